# shellcheck shell=bash
#
# A server of one's own to install into.  Meant to be sourced, by what script/test
# and script/demo start.

# Makes the directory "server" in the present one, and sets SERVER_PG_CONFIG to
# the pg_config in it.
#
# PostgreSQL finds its files relative to its programs, so a copied tree is a
# complete installation of its own.  Debian's servers share /usr with everything
# else: of them this copies what make install writes to and what has to find
# that, and links the rest.  Any other server is there already, copied whole;
# its pg_config is given relative to it.
copy_server() { # pg_config
    local dir

    case $1 in
        /usr/*)
            for dir in --bindir --pkglibdir --sharedir; do
                dir=$("$1" "$dir")
                mkdir -p "server${dir#/usr}"
                cp -a "$dir/." "server${dir#/usr}/"
            done
            for dir in --includedir --libdir; do
                dir=$("$1" "$dir")
                mkdir -p "$(dirname "server${dir#/usr}")"
                ln -s "$dir" "server${dir#/usr}"
            done
            # shellcheck disable=SC2034  # for the caller
            SERVER_PG_CONFIG=$PWD/server${1#/usr}
            ;;
        *) SERVER_PG_CONFIG=$PWD/server/$1 ;;
    esac
}
