# shellcheck shell=bash
#
# Whole Debian systems to throw away: what is installed, started and broken in
# one is gone when the run ends.  Meant to be sourced, after packages.sh,
# isolation.sh and environments.sh; needs root and namespaces.
#
# A system is a stack of directories, mounted one over the other: a Debian tree
# of the cache, a layer with the packages that a suite needs, kept in the cache
# likewise, and on top an empty directory of the run's own.

# Part of the layers' names: change it when the packages of a layer change.
LAYER_RECIPE=4

# Goes on as root, or says that it cannot.
become_root() { # script, its arguments...
    [ "$(id -u)" -ne 0 ] || return 0
    command -v sudo >/dev/null || die "needs root or sudo"
    restart_as_root "$@"
}

# And with them what it takes to list the source tree and to use them.
require_namespaces() {
    need_packages git iproute2 util-linux
    can_isolate || die "needs namespaces, and they are forbidden here"
}

# Sets SERVER_CHROOT.  Version 15 as a tree too, unlike script/test, which
# works with the one of this machine.
find_tree() { # version
    case $1 in
        15) find_debian_server 15 bookworm ;;
        16) die "no Debian release ever had PostgreSQL 16" ;;
        *) find_server "$1" ;;
    esac
}

# Sets LAYER and builds it if it is not there yet.
find_layer() { # name, tree, packages...
    LAYER=$WALSIZER_CACHE/$1-${2##*/}-$LAYER_RECIPE
    in_cache "$LAYER" bash "$ROOT/script/lib/build-layer" "${@:2}"
}

# The directories of a run, empty.
make_layers_dir() {
    make_work_dir
    chmod 755 "$RUN_DIR/tmp/w"
    remove_tree "$RUN_DIR/upper"
    remove_tree "$RUN_DIR/work"
    mkdir -p "$RUN_DIR/upper" "$RUN_DIR/work"
}

# Runs a command in RUN_DIR/tmp/w of a system of its own, as root of it, with
# a loopback device and no other network.
run_in_layers() { # tree, layer, command...
    in_background "${APART[@]}" "$ROOT/script/lib/enter-layers" "$RUN_DIR" "$@"
}
