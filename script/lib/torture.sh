# shellcheck shell=bash
#
# What the parts of script/torture share whose result is one line.  Meant to be
# sourced.

# Keeps the line of a part for test/README.md, and prints it as the last one.
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

# Runs a command, and keeps what a command for sed makes of its output.  Fails if
# the command does.
keeping() { # part, command for sed, command...
    local part=$1 pick=$2 output line status=0
    shift 2
    output=$(mktemp)
    "$@" | tee "$output" || status=$?
    line=$(sed -nE "$pick" "$output" | paste -sd ';' | sed 's/; */; /g')
    rm -f "$output"
    [ "$status" -ne 0 ] || [ -z "$line" ] || keep_line "$part" "$line"
    return "$status"
}

# The same for the line that a test began with the part's name.
closing_with() { # part, command...
    keeping "$1" "s/^# $1: //p" "${@:2}"
}
