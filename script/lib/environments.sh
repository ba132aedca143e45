# shellcheck shell=bash
# shellcheck disable=SC2034  # what find_server sets is for its callers
#
# The PostgreSQL servers that the suite can run with, one for each supported
# version.  Meant to be sourced, by common.sh.
#
# A server of the version that the machine has is taken: that of PG_CONFIG, or
# one below /usr/lib/postgresql.  Otherwise:
#
#     15  Debian 12's own package, which is installed
#     16  see unpackaged.sh
#     17  Debian trixie        a minimal Debian tree to chroot into
#     18  Debian forky         the same
#     19  Debian experimental  the same, on sid
#
# An environment is built once and kept in $WALSIZER_CACHE.  Nothing that is
# tested is ever installed into it.  Remove its directory to have it built
# anew, with the newest minor release.

WALSIZER_CACHE=${WALSIZER_CACHE:-/var/cache/walsizer}
SUPPORTED_VERSIONS=(15 16 17 18 19)
WATCHED_VERSIONS=(13 14)

# Debian's release that has a version, and the one to take the server itself from.
declare -A SUITES=([15]=bookworm [17]=trixie [18]=forky [19]="sid experimental")

# A mirror that is frozen, or has not been updated for a week, will do: what
# comes from it is tested with and is not exposed to anybody.  Signatures are
# checked as ever.
TOLERATE_OLD_MIRROR=(-oAcquire::Check-Valid-Until=false -oAcquire::Check-Date=false)

# Part of the names in the cache: change it when a recipe below changes.
RECIPE=2

# Sets what it takes to run the suite with a server, and builds what is not
# there yet.  Returns 1, having said why, if that is not possible.
#
#     SERVER_CHROOT     the tree to chroot into, or empty
#     SERVER_PREFIX     what to copy to get a server, or empty: one in /usr
#     SERVER_PG_CONFIG  its pg_config, relative to the prefix if there is one
find_server() { # version
    SERVER_CHROOT=
    SERVER_PREFIX=
    SERVER_PG_CONFIG=/usr/lib/postgresql/$1/bin/pg_config

    if runs_tap "$1" "${PG_CONFIG-}"; then
        SERVER_PG_CONFIG=$PG_CONFIG
        [[ $PG_CONFIG == /usr/lib/postgresql/* ]] || {
            SERVER_PREFIX=$(dirname "$(dirname "$PG_CONFIG")")
            SERVER_PG_CONFIG=bin/pg_config
        }
    elif ! runs_tap "$1" "$SERVER_PG_CONFIG"; then
        case $1 in
            15) ;;
            16) find_wheel ;;
            17 | 18 | 19) find_tree "$1" ;;
            *) die "no such version: $1 (have ${SUPPORTED_VERSIONS[*]})" ;;
        esac
    fi
}

# Is that a server of the version, with the modules of the TAP tests?
runs_tap() { # version, pg_config
    [ -x "$2" ] && [[ $("$2" --version) =~ ^PostgreSQL\ $1([^0-9]|$) ]] &&
        [ -e "$(dirname "$("$2" --pgxs)")/../test/perl/PostgreSQL/Test/Cluster.pm" ]
}

# The same server with its own assertions compiled in, or with sanitizers too.
# Returns 1 if there is no source to be had: a mirror may lag behind or drop what
# others still have.
find_built_server() { # version, one that find_server finds in Debian; kind: see build-server
    local tarball status=0
    find_server "$1" || return 1
    SERVER_PREFIX=$WALSIZER_CACHE/pg$1-$2-$RECIPE
    SERVER_PG_CONFIG=bin/pg_config
    [ ! -d "$SERVER_PREFIX" ] || return 0

    can_isolate || die "needs root and namespaces to build a server"
    need_packages bison flex bzip2 xz-utils && patiently apt_get update || return 1
    tarball=$(download_source "$1" "$RUN_DIR/source") &&
        in_cache "$SERVER_PREFIX" build_from_source "$2" "$SERVER_CHROOT" "$tarball" ||
        status=1
    remove_tree "$RUN_DIR/source"
    return "$status"
}

# Why a version cannot be tested here, or nothing.
obstacle_to() { # version
    local pg_config
    for pg_config in "${PG_CONFIG-}" "/usr/lib/postgresql/$1/bin/pg_config"; do
        ! runs_tap "$1" "$pg_config" || return 0
    done
    case $1 in
        13 | 14 | 16) [ "$(uname -m)" = x86_64 ] || echo "it comes for x86_64 only" ;;
        17 | 18 | 19) can_isolate || echo "it needs a chroot, and that needs root and namespaces" ;;
    esac
}

# Has a directory of the cache built unless it is there.  It appears under its
# name only when it is complete, and of two runs that want it one builds while
# the other waits.
in_cache() { # directory, function and arguments; it is given a directory to fill
    local dir=$1 log=$1.log
    shift
    [ ! -d "$dir" ] || return 0

    mkdir -p "$WALSIZER_CACHE" || die "cannot write to $WALSIZER_CACHE; set WALSIZER_CACHE"
    exec {CACHE_LOCK}>"$dir.lock"
    flock "$CACHE_LOCK"
    if [ ! -d "$dir" ]; then
        say "building ${dir##*/}, once"
        HALF_BUILT=$dir.incomplete
        if patiently fill "$HALF_BUILT" "$log" "$@"; then
            mv "$HALF_BUILT" "$dir"
            rm -f "$log"
        else
            complain "could not build ${dir##*/}; all of its log is in $log"
            remove_tree "$HALF_BUILT"
        fi
        HALF_BUILT=
    fi
    exec {CACHE_LOCK}>&-
    [ -d "$dir" ]
}

# Runs one of the functions below, where a failing command ends it, and where neither a
# mount nor a process outlives it.  Once more from nothing, if need be: what it loads may
# be out of reach for a moment.
fill() { # directory, log, function and arguments
    local dir=$1 log=$2 apart=()
    remove_tree "$dir"
    mkdir "$dir"
    ! can_isolate || apart=(unshare --mount --pid --fork --kill-child --)
    # shellcheck disable=SC2016
    in_background "${apart[@]}" bash -c '. "$0/script/lib/common.sh"; "$@"' "$ROOT" \
        "${@:3}" "$dir" >"$log" 2>&1 || { tail -n 40 "$log" >&2; return 1; }
}

# PgBouncer for t/033_pooler.pl.  Its package is unpacked, not installed, because that
# would start a service.
build_pgbouncer() { # directory
    (cd "$1" && apt_get update && apt-get -q download pgbouncer && dpkg-deb -x pgbouncer_*.deb . && rm pgbouncer_*.deb)
}

# ---- 17, 18, 19: Debian trees

# Sets SERVER_CHROOT.  Has 15, too, which script/test takes from this machine.
find_tree() { # version
    [ -n "${SUITES[$1]-}" ] || die "no Debian release has PostgreSQL $1"
    # shellcheck disable=SC2086  # one or two suites
    set -- "$1" ${SUITES[$1]}
    SERVER_CHROOT=$WALSIZER_CACHE/pg$1-$2-$RECIPE
    # the update is for the case that apt has no lists and thus no mirror
    [ -d "$SERVER_CHROOT" ] || {
        need_packages debootstrap debian-archive-keyring &&
            patiently apt_get update &&
            in_cache "$SERVER_CHROOT" build_debian_tree "$1" "$2" "${3-}"
    }
}

# The mirror that this machine uses itself.
debian_mirror() {
    # shellcheck disable=SC2016  # the $() are apt's, not ours
    apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' \
        'Created-By: Packages' 'Origin: Debian' |
        awk '$2 == "bookworm" && $3 == "main" { print $1; exit }'
}

build_debian_tree() { # version, suite, suite of the server or "", directory
    local version=$1 suite=$2 server_suite=$3 tree=$4 mirror
    mirror=$(debian_mirror)
    [ -n "$mirror" ] || die "apt knows no mirror of Debian bookworm"

    # Debian 12's debootstrap has not heard of later releases; all of them are
    # installed the way sid is.
    debootstrap --variant=minbase \
        --include=bison,ca-certificates,flex,gcc,libc6-dev,libipc-run-perl,make,perl \
        --keyring=/usr/share/keyrings/debian-archive-keyring.gpg \
        "$suite" "$tree" "$mirror" sid

    configure_apt "$tree" "$mirror" "$suite" "$server_suite" "$version"
    # no server may be started, and none be created
    printf '#!/bin/sh\nexit 101\n' >"$tree/usr/sbin/policy-rc.d"
    chmod +x "$tree/usr/sbin/policy-rc.d"
    mkdir -p "$tree/etc/postgresql-common"
    printf 'create_main_cluster = false\n' >"$tree/etc/postgresql-common/createcluster.conf"

    mount -t proc proc "$tree/proc"
    install_in_tree "$tree" "postgresql-$version" "postgresql-server-dev-$version"
    umount "$tree/proc"
    in_tree "$tree" "/usr/lib/postgresql/$version/bin/pg_config" --version
}

in_tree() { # directory, command...
    chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
        ${http_proxy:+http_proxy="$http_proxy"} \
        DEBIAN_FRONTEND=noninteractive "${@:2}" </dev/null
}

install_in_tree() { # directory, package...
    in_tree "$1" apt-get -q "${TOLERATE_OLD_MIRROR[@]}" update
    in_tree "$1" apt-get -q install -y --no-install-recommends \
        -o Dpkg::Options::=--force-confold -o Dpkg::Options::=--force-unsafe-io "${@:2}"
    in_tree "$1" apt-get clean
}

# A server from experimental must not pull the rest of experimental in: pin
# the server and Debian's common part of it, and nothing else.
configure_apt() { # directory, mirror, suite, suite of the server or "", version
    local apt=$1/etc/apt

    rm -f "$apt"/sources.list.d/*
    printf 'deb %s %s main\n' "$2" "$3" >"$apt/sources.list"
    if [ -n "$4" ]; then
        printf 'deb %s %s main\n' "$2" "$4" >>"$apt/sources.list"
        printf '%s\n' "Package: src:postgresql-$5 src:postgresql-common" \
            "Pin: release a=$4" "Pin-Priority: 990" >"$apt/preferences.d/server"
    fi
    # how this machine reaches the mirror: proxies, timeouts
    apt-config dump Acquire | grep -iE '^Acquire::(https?|Retries)' \
        >"$apt/apt.conf.d/50acquire" || true
}

# ---- Servers with assertions and more, from Debian's source packages

build_from_source() { # kind, chroot or "", source, directory
    local kind=$1 chroot=$2 tarball=$3 dir=$4

    RUN_DIR=$dir/run
    make_work_dir
    mkdir "$RUN_DIR/tmp/w/src"
    tar -C "$RUN_DIR/tmp/w/src" --strip-components 1 -xf "$tarball"
    cp "$ROOT/script/lib/build-server" "$RUN_DIR/tmp/w/"

    run_isolated "$chroot" postgres bash build-server "$kind"
    mv "$RUN_DIR"/tmp/w/installed/usr/local/pgsql/* "$dir/"
    rm -rf "$RUN_DIR"
}

# Prints the name of the file, or returns 1.  apt is given places of its own,
# so that the machine's own sources need not offer source packages.
download_source() { # version, directory
    local version=$1 dir=$2 mirror suite
    mirror=$(debian_mirror)

    mkdir -p "$dir/lists/partial" "$dir/sources.list.d"
    for suite in ${SUITES[$version]} $([ "$version" != 18 ] || echo sid); do
        printf 'deb-src %s %s main\n' "$mirror" "$suite"
    done >"$dir/sources.list"

    local options=(
        -q -o Dir::Etc::SourceList="$dir/sources.list"
        -o Dir::Etc::SourceParts="$dir/sources.list.d"
        -o Dir::State::Lists="$dir/lists"
        -o APT::Sandbox::User=root
        "${TOLERATE_OLD_MIRROR[@]}"
    )
    (cd "$dir" && apt-get "${options[@]}" update &&
        apt-get "${options[@]}" source --download-only "postgresql-$version") >"$dir/log" 2>&1 ||
        { grep '^E:' "$dir/log" >&2; return 1; }
    find "$dir" -name "postgresql-${version}_*.orig.tar.*" ! -name '*.asc'
}
