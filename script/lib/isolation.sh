# shellcheck shell=bash
#
# Private places to run the suite in.  Meant to be sourced; the caller sets
# ROOT, the top of the source tree.
#
# A run gets a directory of its own and, as root, namespaces of its own:
# mounts (a private /tmp and /dev/shm), processes (when the run ends, however
# it ends, the kernel ends every server that it started), network (a loopback
# device and nothing else; no port can be taken) and System V IPC.  The run
# directory is removed at the end, so nothing is left.
#
#     RUN_DIR/tree   the sources as they were when the run started
#     RUN_DIR/root   where the root of a chroot is mounted
#     RUN_DIR/tmp    /tmp, as the run sees it
#     RUN_DIR/tmp/w  where it works

APART=(unshare --mount --pid --ipc --net --fork --kill-child --)

RUN_DIR=    # of the run, to be removed at the end
HALF_BUILT= # an environment that is being built, to be removed likewise
RUN_PID=    # of the process that does either

# A fixed place on disk rather than $TMPDIR: another user must be able to
# reach it, and a path to a socket may not exceed 107 bytes.
make_run_dir() {
    sweep_run_dirs
    RUN_DIR=$(mktemp -d /var/tmp/walsizer.XXXXXX)
    exec {RUN_LOCK}<"$RUN_DIR"
    flock "$RUN_LOCK"
    chmod 0711 "$RUN_DIR"
    make_work_dir
}

# Makes the work directory, or empties it for the next server.
make_work_dir() {
    remove_tree "$RUN_DIR/tmp"
    mkdir -p "$RUN_DIR/root" "$RUN_DIR/tmp/w"
    chmod 1777 "$RUN_DIR/tmp"
}

# Removes what runs left that were killed with no chance to clean up: the
# directories that nobody holds locked, except brand-new ones, which somebody
# may be about to lock.
sweep_run_dirs() {
    local dir lock
    find /var/tmp -maxdepth 1 -ignore_readdir_race -name 'walsizer.??????' \
        -user "$(id -u)" -mmin +1 |
        while IFS= read -r dir; do
            # another run may be sweeping, too
            { exec {lock}<"$dir"; } 2>/dev/null || continue
            ! flock -n "$lock" || remove_tree "$dir" || true
            exec {lock}<&-
        done
}

# For a trap: ends what is running, and removes what it was working on.
clean_up() {
    [ -z "$RUN_PID" ] || stop_run
    remove_tree "$RUN_DIR"
    [ -z "$RUN_DIR" ] || exec {RUN_LOCK}<&-
    remove_tree "$HALF_BUILT"
    RUN_DIR='' HALF_BUILT=''
}

# Processes that were just killed may still be writing: try again.
remove_tree() { # directory or ""
    local try
    [ -n "$1" ] || return 0
    for try in 1 2 3 4 5; do
        ! rm -rf --one-file-system "$1" 2>/dev/null || return 0
        sleep "0.$try"
    done
    rm -rf --one-file-system "$1"
}

# In the namespaces it is enough to kill unshare: --kill-child takes the first
# process with it, and that takes all others.
stop_run() {
    kill -KILL "$RUN_PID" 2>/dev/null || true
    can_isolate || stop_what_is_left
    wait "$RUN_PID" 2>/dev/null || true
    RUN_PID=
}

# Without namespaces: the session's process group, and the servers, which have
# left it, by the run directory that they work in.
stop_what_is_left() {
    local pid
    kill -KILL -- "-$RUN_PID" 2>/dev/null || true
    [ -n "$RUN_DIR" ] || return 0
    for pid in /proc/[0-9]*; do
        case $(readlink "$pid/cwd" 2>/dev/null || true) in
            "$RUN_DIR"/*) kill -KILL "${pid#/proc/}" 2>/dev/null || true ;;
        esac
    done
}

# The tree as it is, with uncommitted work, without what git ignores.
copy_tree() { # destination
    mkdir -p "$1"
    list_tree | tar -C "$ROOT" --null --no-recursion -T - -cf - |
        tar -C "$1" --no-same-owner -xf -
}

list_tree() {
    local file
    if git_here rev-parse --git-dir >/dev/null 2>&1; then
        git_here ls-files -z --cached --others --exclude-standard |
            while IFS= read -r -d '' file; do
                [ ! -f "$ROOT/$file" ] && [ ! -L "$ROOT/$file" ] || printf '%s\0' "$file"
            done
    else
        (cd "$ROOT" && find . -path ./.git -prune -o ! -type d -print0)
    fi
}

# As root in a tree that belongs to somebody else git refuses to work unless
# told that the tree is meant.
git_here() {
    git -c safe.directory="$ROOT" -C "$ROOT" "$@"
}

can_isolate() {
    if [ -z "${CAN_ISOLATE-}" ]; then
        CAN_ISOLATE=no
        [ "$(id -u)" -ne 0 ] || ! "${APART[@]}" sh -c 'ip link set lo up && mount -t tmpfs none /dev/shm' 2>/dev/null ||
            CAN_ISOLATE=yes
    fi
    [ "$CAN_ISOLATE" = yes ]
}

# Runs a command in RUN_DIR/tmp/w, as the given user.
run_isolated() { # chroot or "", user, command...
    # the same name may have another number in a chroot
    [ "$(id -u)" -ne 0 ] ||
        chown -R "$(awk -F: -v user="$2" '$1 == user { print $3 ":" $4 }' "$1/etc/passwd")" "$RUN_DIR/tmp/w"
    if can_isolate; then
        in_background "${APART[@]}" "$ROOT/script/lib/enter" "$RUN_DIR" "$@"
    else
        in_background setsid "$ROOT/script/lib/enter" --plain "$RUN_DIR" "${@:2}"
    fi
}

# Runs a command and waits, in such a way that a trap can end it at once, that
# it ends with this script, and that it has no terminal.
in_background() { # command...
    local status=0
    setpriv --pdeathsig KILL "$@" </dev/null &
    RUN_PID=$!
    wait "$RUN_PID" || status=$?
    can_isolate || stop_what_is_left
    RUN_PID=
    return "$status"
}
