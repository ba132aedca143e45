# shellcheck shell=bash
#
# What the parts of script/torture share that run script/test.  Meant to be
# sourced.

# Runs a command, and ends with the line of its output that a test began with
# this word.  Fails if the command does.
closing_with() { # word, command...
    local word=$1 output status=0
    shift
    output=$(mktemp)
    "$@" | tee "$output" || status=$?
    sed -n "s/^# \($word: .*\)/\1/p" "$output" | tail -n 1
    rm -f "$output"
    return "$status"
}
