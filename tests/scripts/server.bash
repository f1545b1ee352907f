# A private server of scripts/up for tests: its own prefix, with a space in its path, and a free port.
# shellcheck shell=bash disable=SC2034 # its variables are the tests'

ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
SCRIPTS=$ROOT/scripts
export LC_ALL=C

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Sets RUNNEL_PREFIX and RUNNEL_PORT. Not below bats' own folder: the workers of root's nginx are
# another user, and may not enter that.
private_server() {
    RUNNEL=$(realpath -m "${RUNNEL:-$ROOT/build/bin/runnel}")
    GEN=$(realpath -m "${GEN:-$ROOT/build/bin/gen}")
    if [ ! -x "$RUNNEL" ] || [ ! -x "$GEN" ]; then
        echo "no $RUNNEL or no $GEN: run make first" >&2
        return 1
    fi
    TRASH=$(mktemp -d "${TMPDIR:-/tmp}/runnel scripts.XXXXXX")
    chmod 711 "$TRASH"
    RUNNEL_PREFIX="$TRASH/pre fix"
    RUNNEL_PORT=$(free_port)
    export RUNNEL GEN TRASH RUNNEL_PREFIX RUNNEL_PORT
}

remove_server() {
    [ -n "${TRASH:-}" ] || return 0
    "$SCRIPTS/down" --now 3>&-
    rm -rf "$TRASH"
}

# Up, with its descriptors closed to the daemons: bats waits until nobody holds its own.
up() { "$SCRIPTS/up" "$@" 3>&- 4>&-; }
down() { "$SCRIPTS/down" "$@" 3>&- 4>&-; }

get() { curl -q -sS -f --max-time 20 "http://127.0.0.1:$RUNNEL_PORT$1"; }

is_running() {
    local stat

    [ -n "$1" ] && stat=$(cat "/proc/$1/stat" 2>/dev/null) && stat=${stat##*) } && [ "${stat:0:1}" != Z ]
}

# wait_until SECONDS COMMAND...
wait_until() {
    local end=$((SECONDS + $1 + 1))

    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.02
    done
}
