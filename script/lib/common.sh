# shellcheck shell=bash
#
# What the scripts share: sourced by each of them, and by what they start in a
# shell of its own.  bash reads a script as it goes, so each ends with "exit": it is
# read to the end before a long run starts, during which somebody may edit it.

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)

for part in packages isolation environments unpackaged layers; do
    # shellcheck source=/dev/null
    . "$ROOT/script/lib/$part.sh"
done

# However the script ends, nothing of it is left.
clean_up_at_the_end() {
    trap clean_up EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
}

# Begins a script that needs root and namespaces: with RUN_DIR, a private directory,
# and in RUN_DIR/tree the sources.
begin() { # script, its arguments...
    clean_up_at_the_end
    become_root "$@"
    require_namespaces
    make_run_dir
    copy_tree "$RUN_DIR/tree"
}
