# shellcheck shell=bash
#
# What the parts of script/torture share whose result is one line.  Meant to be
# sourced.

# Keeps the line of a part for doc/reliability.md, and prints it as the last one.
keep_line() { # part, line
    if [ -n "${TORTURE_KEEP-}" ]; then
        python3 - "$1" "$2" >"$TORTURE_KEEP/$1.json" <<'END'
import datetime, json, os, sys
print(json.dumps({"date": datetime.date.today().isoformat(),
                  "commit": os.environ["TORTURE_COMMIT"],
                  "command": os.environ["TORTURE_COMMAND"],
                  "line": sys.argv[2]}, indent=1))
END
    fi
    printf '%s\n' "$2"
}

# Runs a command, and keeps the line of its output that a test began with the
# part's name.  Fails if the command does.
closing_with() { # part, command...
    local part=$1 output line status=0
    shift
    output=$(mktemp)
    "$@" | tee "$output" || status=$?
    line=$(sed -n "s/^# $part: \(.*\)/\1/p" "$output" | tail -n 1)
    rm -f "$output"
    [ "$status" -ne 0 ] || [ -z "$line" ] || keep_line "$part" "$line"
    return "$status"
}
