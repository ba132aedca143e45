# shellcheck shell=bash
#
# Counts tests, and judges the skipped ones, from what pg_regress, prove and
# cmocka print.  Meant to be sourced.
#
# A test may be skipped only because the server is of the wrong version, or for
# want of what only root can give, and the reason must say so in one of these
# forms:
#
#     needs PostgreSQL 17 or later      accepted where 16 or less is tested
#     only before PostgreSQL 17         accepted where 17 or more is tested
#     needs file systems of its own     accepted where none could be mounted
#
# Any other reason, a missing tool for instance, counts as a failure.

skip_is_allowed() { # reason, tested version
    if [[ $1 =~ needs\ PostgreSQL\ ([0-9]+)\ or\ later ]]; then
        [ "${BASH_REMATCH[1]}" -gt "$2" ]
    elif [[ $1 =~ only\ before\ PostgreSQL\ ([0-9]+) ]]; then
        [ "${BASH_REMATCH[1]}" -le "$2" ]
    elif [[ $1 =~ needs\ file\ systems\ of\ its\ own ]]; then
        [ -z "${WALSIZER_SMALL_FS-}" ]
    else
        return 1
    fi
}

# The reason of each skipped test in a log of prove --directives, one a line.
# A test marked TODO is reported too: it was not passed either.
skip_reasons() { # log
    sed -nE \
        -e 's/^(\[[0-9:]+\] )?t\/.*\.\.+ skipped: *(.*)$/\2/p' \
        -e 's/^ *ok [0-9]+ .*# *skip(ped)? *(.*)$/\2/Ip' \
        -e 's/^ *(not )?ok [0-9]+ .*# *todo *(.*)$/TODO \2/Ip' \
        "$1"
}

skipped_tests() { # log
    grep -ciE '^ *(not )?ok [0-9]+ .*# *(skip|todo)' "$1" || true
}

# The sum of the numbers that a sed script prints.
sum() { # sed script, log
    sed -nE "$@" | awk '{ n += $1 } END { print n + 0 }'
}

# pg_regress: "All 12 tests passed", "3 of 12 tests failed", since 9.x.
regress_total() { # log
    sum 's/.*(All| of) ([0-9]+) tests? (passed|failed).*/\2/p' "$1"
}

regress_failed() { # log
    sum 's/^[^0-9]*([0-9]+) of [0-9]+ tests? failed.*/\1/p' "$1"
}

# prove: "Files=4, Tests=87, ...", and for each failed file of its summary
# "t/001_x.pl (Wstat: 256 Tests: 9 Failed: 1)".  A file that died after its
# last good test has failed too, though it says "Failed: 0".
prove_total() { # log
    sum 's/^Files=[0-9]+, Tests=([0-9]+),.*/\1/p' "$1"
}

prove_failed() { # log
    sum 's/^[a-z]+\/.* \(Wstat: .* Failed: ([0-9]+)\).*/\1/; T; s/^0$/1/; p' "$1"
}

failed_tap_files() { # log
    sed -nE 's/^t\/(.*)\.pl +\(Wstat: .*/\1/p' "$1" | sort -u
}

cmocka() { # PASSED, FAILED or SKIPPED; log
    sum "s/^\[  $1 *\] ([0-9]+) test.*/\1/p" "$2"
}

# The lines with which pg_regress and prove end.
closing_lines() { # log
    grep -E 'tests? (passed|failed)|^Files=|^Result: ' "$1" || true
}
