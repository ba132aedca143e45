# shellcheck shell=bash
#
# Whole Debian systems to throw away: what is installed, started and broken in
# one is gone when the run ends.  Meant to be sourced, by common.sh; needs root
# and namespaces.
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

# Sets LAYER and builds it if it is not there yet.
find_layer() { # name, tree, packages...
    LAYER=$WALSIZER_CACHE/$1-${2##*/}-$LAYER_RECIPE
    in_cache "$LAYER" build_layer "${@:2}"
}

# Fills a directory with what apt-get adds to a Debian tree of the cache, as a
# layer to mount over that tree, which stays as it is.  A package of another
# architecture is named with it: libcmocka-dev:s390x.
build_layer() { # tree, package..., directory
    local dir=${!#} packages=("${@:2:$#-2}") package
    root=$dir.root
    trap 'umount -R "$root" 2>/dev/null; rm -rf --one-file-system "$root" "${root%.root}.work"' EXIT
    mkdir -p "$root" "$dir.work"
    mount -t overlay walsizer "$root" -o "lowerdir=$1,upperdir=$dir,workdir=$dir.work"
    mount -t proc proc "$root/proc"
    for package in "${packages[@]}"; do
        case $package in
            *:*) in_tree "$root" dpkg --add-architecture "${package#*:}" ;;
        esac
    done
    # The tree's own policy keeps the packages' services from being started.
    install_in_tree "$root" "${packages[@]}"
    in_tree "$root" sh -c 'rm -rf /var/lib/apt/lists/*'
}

# Runs a suite in a Debian system with a version of the server and packages, as root
# of it, with a loopback device and no other network.
in_system() { # suite, version, packages...
    find_tree "$2"
    find_layer "$1" "$SERVER_CHROOT" "${@:3}"
    make_work_dir
    chmod 755 "$RUN_DIR/tmp/w"
    remove_tree "$RUN_DIR/upper"
    remove_tree "$RUN_DIR/work"
    mkdir -p "$RUN_DIR/upper" "$RUN_DIR/work"
    cp -a "$RUN_DIR/tree" "$RUN_DIR/tmp/w/src"
    [ ! -d "$RUN_DIR/release" ] || cp -a "$RUN_DIR/release" "$RUN_DIR/tmp/w/"
    in_background "${APART[@]}" "$ROOT/script/lib/enter" --layers "$RUN_DIR" "$SERVER_CHROOT" "$LAYER" \
        bash "src/script/lib/$1-suite" "$2"
}
