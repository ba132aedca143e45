# shellcheck shell=bash
#
# For suites whose steps build upon one another.  Meant to be sourced.

work=$PWD
src=$work/src
steps=0

# Runs a command in silence, and ends the suite, with its output, if it fails.
step() { # what, command...
    local status
    printf '%-66s' "-- $1"
    # where a command is tested, bash would not end it at its first failure
    set +e
    (set -e; "${@:2}") >"$work/log" 2>&1
    status=$?
    set -e
    if [ "$status" -ne 0 ]; then
        echo FAILED
        tail -n 80 "$work/log" | cut -c 1-300
        exit 1
    fi
    echo ok
    steps=$((steps + 1))
}

# Waits until a command succeeds.
eventually() { # seconds, command...
    local end=$((SECONDS + $1))
    until "${@:2}"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.5
    done
}

as_postgres() {
    runuser -u postgres -- "$@"
}

sql() { as_postgres psql -XAtq -v ON_ERROR_STOP=1 -d postgres -c "$1"; } # statement

# The commands of a page of the manual, in its order; or those for a case, named where
# their block begins.
commands_of() { # page[, case]
    awk -v "begin=\`\`\`sh${2:+ $2}" '$0 == begin { on = 1; next } /^```/ { on = 0 } on' "$src/doc/$1"
}
