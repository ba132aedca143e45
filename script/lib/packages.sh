# shellcheck shell=bash
#
# Debian packages: what the scripts need, installed only where it is missing.
# Meant to be sourced, by script/test and by script/demo.
#
# Nothing here is done twice: once everything is installed no command below
# touches the network, so that a second run works offline and at once.

# What it takes to build, install and test the extension on Debian 12.
WALSIZER_PREREQUISITES=(
    postgresql-15 postgresql-server-dev-15
    gcc libc6-dev make pkg-config
    clang libclang-rt-14-dev
    libcmocka-dev
    perl libipc-run-perl
    python3 codespell gcovr pylint
    git iproute2 util-linux
    libevent-2.1-7 libc-ares2
)

say() { printf '%s\n' "$*"; }

complain() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

die() {
    complain "$@"
    exit 1
}

# Runs a command with the rights of the administrator, or says that it cannot.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "needs root or sudo for: $*"
    fi
}

# Continues a script of ours as root, with the variables that say how to reach
# the package registries, and what to test.
restart_as_root() { # script, its arguments...
    local kept='CI|PG_CONFIG|PG_TEST_TIMEOUT_DEFAULT|PROVE_TESTS|PIP_.*|https?_proxy|WALSIZER_.*'
    exec sudo --preserve-env="$(compgen -e | grep -E "^($kept)$" | paste -sd,)" "$ROOT/$1" "${@:2}"
}

# Packages, namespaces and a change of user need root; somebody who has sudo need
# not type it.  Without it, a script does what it can.
become_root_if_possible() { # script, its arguments...
    if [ "$(id -u)" -ne 0 ] && command -v sudo >/dev/null &&
        { sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v; }; }
    then
        restart_as_root "$@"
    fi
}

# Installs those of the named packages that are missing.  Returns 1, having
# said why, if that is not possible.
need_packages() {
    local package missing=()
    for package in "$@"; do
        # shellcheck disable=SC2016  # the ${} is dpkg-query's, not ours
        [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null || { complain "not a Debian system; please install: ${missing[*]}"; return 1; }
    say "installing: ${missing[*]}"
    patiently install_packages "${missing[@]}"
}

# The package lists of a fresh machine are empty or old: always renew them.
install_packages() {
    apt_get update &&
        without_default_cluster apt_get install -y --no-install-recommends "$@"
}

# What needs the network, or a lock that a booting machine's own update holds,
# may succeed a little later.
patiently() { # command...
    local pause
    for pause in 10 30 60; do
        ! "$@" || return 0
        complain "again in $pause seconds: $*"
        sleep "$pause"
    done
    "$@"
}

# apt-get that asks nothing, waits its turn for the lock of another run, tries
# a slow mirror again, and speaks only when it fails.
apt_get() {
    local said
    said=$(as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l \
        apt-get -q -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 "$@" </dev/null 2>&1) ||
        { tail -n 40 <<<"$said" >&2; complain "apt-get $1 failed"; return 1; }
}

# Debian's postgresql-15 creates and starts a server on port 5432 when it is
# installed.  The tests start their own servers and want to leave nothing
# running, so tell it not to, for as long as the given command runs.
without_default_cluster() (
    dir=/etc/postgresql-common/createcluster.d
    file=$dir/walsizer-$$.conf

    trap 'as_root rm -f "$file"; as_root rmdir "$dir" 2>/dev/null || true' EXIT
    as_root mkdir -p "$dir"
    printf 'create_main_cluster = false\n' | as_root tee "$file" >/dev/null
    "$@"
)

install_prerequisites() {
    need_packages "${WALSIZER_PREREQUISITES[@]}"
}
