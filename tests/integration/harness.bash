# What the integration tests share: a private nginx and a private responder on Unix sockets in a
# trash folder, which is kept when a test fails.
#
#     setup_file() { lab_open; start_responder --slots 4; start_nginx; }
#
# Every address is relative to the folder, which is the working directory of both servers and of
# each test: a socket's path may have 107 bytes only, and nginx leaves `unix:` to the kernel.
#
# RUNNEL   the responder to test    (build/bin/runnel)
# GEN      the token generator      (gen beside RUNNEL, else build/bin/gen)
# LOAD     the load client          (load beside RUNNEL, else build/bin/load)
# PYTHON   runs the peers           (python3)
# SC2034: code and CLIENT are read by the tests. SC2238: head is a file of ours.
# shellcheck shell=bash disable=SC2034,SC2238

bats_require_minimum_version 1.5.0

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
PEERS=$ROOT/tests/integration/peers
PATH=$PATH:/usr/sbin:/sbin # nginx, for an ordinary user
HTTP_SOCKET=http.sock
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1

# --- the folder ---

lab_open() {
    RUNNEL=$(realpath -m "${RUNNEL:-$ROOT/build/bin/runnel}")
    GEN=$(realpath -m "${GEN:-$(dirname "$RUNNEL")/gen}")
    [ -x "$GEN" ] || GEN=$ROOT/build/bin/gen
    LOAD=$(realpath -m "${LOAD:-$(dirname "$RUNNEL")/load}")
    [ -x "$LOAD" ] || LOAD=$ROOT/build/bin/load
    if [ ! -x "$RUNNEL" ] || [ ! -x "$GEN" ]; then
        echo "no $RUNNEL or no $GEN: run make first" >&2
        return 1
    fi
    # Not a wrapper that looks for the interpreter anew each time.
    PYTHON=$("${PYTHON:-python3}" -c 'import sys; print(sys.executable)') || return 1
    # How much slower than the plain build it may be: for the bounds that the tests wait for.
    SLOW=1
    ! grep -qa __asan_init "$RUNNEL" || SLOW=4
    ! grep -qa __tsan_init "$RUNNEL" || SLOW=10
    LAB=$(mktemp -d "${TMPDIR:-/tmp}/runnel test.XXXXXX") || return 1
    chmod 711 "$LAB" # the workers of root's nginx are another user
    install -m 755 -d "$LAB/web" && install -m 644 "$ROOT"/fcgi-app/web/* "$LAB/web" || return 1
    # A relative log_path: the sanitizers' options have no way to write a space.
    ASAN_OPTIONS=log_path=sanitizer:detect_leaks=1
    TSAN_OPTIONS=log_path=sanitizer:halt_on_error=0
    UBSAN_OPTIONS=log_path=sanitizer:print_stacktrace=1
    RESPONDER_PID='' NGINX_PID=''
    export RUNNEL GEN LOAD PYTHON SLOW LAB ASAN_OPTIONS TSAN_OPTIONS UBSAN_OPTIONS
    export RESPONDER_PID NGINX_PID
    cd "$LAB" || return 1
}

# owned PID...: processes that a test starts beside the two; they end with it, however it ends.
owned() { printf '%s\n' "$@" >>"$LAB/owned"; }

end_owned() {
    local pid

    [ -e "$LAB/owned" ] || return 0
    while read -r pid; do
        # Only what still runs in our folder: a pid may be another's by now.
        [ "$(readlink "/proc/$pid/cwd" 2>/dev/null)" = "$LAB" ] || continue
        kill -s TERM "$pid"
        wait_until 2 has_ended "$pid" || kill -s KILL "$pid"
    done <"$LAB/owned"
    rm -f "$LAB/owned"
}

# After each test: says what is needed to find out why it failed.
lab_check() {
    local failed=0

    end_owned
    [ "${BATS_TEST_COMPLETED:-}" = 1 ] || [ -n "${BATS_TEST_SKIPPED:-}" ] || failed=1
    if compgen -G "$LAB/sanitizer.*" >/dev/null; then
        cat "$LAB"/sanitizer.*
        failed=1
    fi
    [ "$failed" = 0 ] && return 0
    : >"$LAB/failed"
    show_logs
    echo "kept: $LAB"
    [ "${BATS_TEST_COMPLETED:-}" != 1 ] # a test that failed has said so already
}

# At the end of a file. A responder that does not end well, or leaks, fails the file.
lab_close() {
    local status=0

    [ -n "${LAB:-}" ] || return 0
    stop_nginx
    stop_responder || status=1
    if compgen -G "$LAB/sanitizer.*" >/dev/null; then
        cat "$LAB"/sanitizer.* >&2
        status=1
    fi
    cd / || return 1
    if [ "$status" = 0 ] && [ ! -e "$LAB/failed" ]; then
        rm -rf "$LAB"
    else
        echo "# kept: $LAB" >&3
    fi
    return "$status"
}

show_logs() {
    local log

    for log in "$LAB"/*.log "$LAB"/*.out; do
        [ -s "$log" ] || continue
        echo "--- ${log##*/}, its end:"
        # An ordinary user's nginx, and a confined one's, complain about limits each time.
        grep -v 'RLIMIT_NOFILE' "$log" | tail -n 5
    done
}

setup() { cd "$LAB" || return 1; }
teardown() { lab_check; }
teardown_file() { lab_close; }

# --- processes ---

# is_running PID: and not a zombie that its parent has not yet waited for.
is_running() {
    local stat

    [ -n "$1" ] && stat=$(cat "/proc/$1/stat" 2>/dev/null) && stat=${stat##*) } &&
        [ "${stat:0:1}" != Z ]
}

# wait_until SECONDS COMMAND...: 0 as soon as COMMAND is true, 1 when it never was.
wait_until() {
    local end=$((SECONDS + $1 * SLOW + 1))

    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.01
    done
}

has_ended() { ! is_running "$1"; }

# wait_ready NAME PID COMMAND...: until COMMAND is true; 1 with the log's tail when the child dies.
wait_ready() {
    local name=$1 pid=$2 tries=0

    shift 2
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        if ! is_running "$pid" || [ "$tries" -gt 500 ]; then
            echo "$name (pid $pid) did not become ready"
            show_logs
            return 1
        fi
        sleep 0.02
    done
}

# ended_with PID SECONDS: waits for the end of a child of this shell; its exit status.
ended_with() {
    if ! wait_until "$2" has_ended "$1"; then
        echo "process $1 did not end within $2 s (x $SLOW)"
        return 125
    fi
    wait "$1"
}

# free_port: a TCP port that nobody has at the moment; another may be quicker to take it.
free_port() {
    "$PYTHON" -c 'import socket
with socket.socket() as one:
    one.bind(("127.0.0.1", 0))
    print(one.getsockname()[1])'
}

# --- the responder ---

# start_responder [FLAG]...: on runnel.sock, or where a --listen among the flags says.
start_responder() {
    local flag address=runnel.sock listen=(--listen unix:runnel.sock)

    for flag in "$@"; do
        [[ "$flag" != --listen=* ]] || { listen=() address=${flag#--listen=}; }
    done
    "$RUNNEL" "${listen[@]}" "$@" >>responder.log 2>&1 3>&- &
    RESPONDER_PID=$!
    responder_ready "$address"
}

# responder_ready ADDRESS: until it speaks FastCGI there.
responder_ready() {
    wait_ready responder "$RESPONDER_PID" "$PYTHON" "$PEERS/fastcgi.py" probe "$1" || return 1
    # As `make up` does it: the workers of root's nginx are www-data.
    [ "$(id -u)" != 0 ] || [ ! -S "$1" ] || chown www-data "$1"
}

# stop_responder [SIGNAL]: its exit status; 0 when there is none.
stop_responder() {
    local pid=$RESPONDER_PID

    RESPONDER_PID=''
    [ -n "$pid" ] || return 0
    kill -s "${1:-TERM}" "$pid" 2>/dev/null || true
    ended_with "$pid" 10 && return 0
    set -- $?
    is_running "$pid" && kill -s KILL "$pid"
    echo "the responder ended with status $1"
    tail -n 15 "$LAB/responder.log"
    return "$1"
}

# --- nginx ---

# start_nginx [SED]...: the shipped nginx.conf on http.sock, with these edits, each of which must
# change something.
start_nginx() {
    derive_conf "$@" >nginx.conf || return 1
    nginx -p "$LAB/" -e error.log -c "$LAB/nginx.conf" -g 'daemon off;' >>nginx.out 2>&1 3>&- &
    NGINX_PID=$!
    wait_ready nginx "$NGINX_PID" get /healthz
}

derive_conf() {
    local edit before conf

    conf=$(cat "$ROOT/nginx.conf")
    [ "$(grep -c '^ *listen ' <<<"$conf")" = 1 ] || {
        echo "nginx.conf: one line with listen is expected" >&2
        return 1
    }
    for edit in 's|listen 127\.0\.0\.1:8170;|listen unix:http.sock;|' "$@"; do
        before=$conf
        conf=$(sed "$edit" <<<"$before")
        [ "$conf" != "$before" ] || {
            echo "nginx.conf has nothing that this would change: $edit" >&2
            return 1
        }
    done
    printf '%s\n' "$conf"
}

# front_conf NAME: NAME.conf for another nginx, of the server blocks on standard input.
front_conf() {
    local kind

    {
        printf '%s\n' "pid $1.pid;" "error_log $1_error.log;" 'events { }' 'http {' 'access_log off;'
        for kind in client_body proxy fastcgi scgi uwsgi; do
            echo "${kind}_temp_path $1_$kind;"
        done
        cat
        echo '}'
    } >"$1.conf"
}

# other_nginx NAME: starts one with NAME.conf. Its pid is in OTHER_PID: the caller waits until it is
# ready, and sees to its end.
other_nginx() {
    nginx -p "$LAB/" -e "$1_error.log" -c "$LAB/$1.conf" -g 'daemon off;' >"$1.out" 2>&1 3>&- &
    OTHER_PID=$!
}

stop_nginx() {
    local pid=$NGINX_PID

    NGINX_PID=''
    [ -n "$pid" ] || return 0
    kill -s TERM "$pid" 2>/dev/null || true
    ended_with "$pid" 10 || true
    ! is_running "$pid" || kill -s KILL "$pid"
    rm -f http.sock
}

# --- clients ---

# get TARGET [CURL OPTION]...: the body of the reply; fails as curl does (-f).
get() {
    local target=$1

    shift
    curl -sS -f -N --max-time 60 --unix-socket "$HTTP_SOCKET" "$@" "http://localhost$target"
}

# ask TARGET [CURL OPTION]...: sets $code; the reply is in the files head and body.
ask() {
    local target=$1

    shift
    code=$(curl -sS -N --max-time 60 --unix-socket "$HTTP_SOCKET" -D head -o body \
        -w '%{http_code}' "$@" "http://localhost$target")
}

# start_get FILE TARGET [CURL OPTION]...: in the background; curl's pid in CLIENT, its exit status
# by `wait "$CLIENT"`, the body in FILE.
start_get() {
    local file=$1 target=$2

    shift 2
    (exec curl -sS -N --max-time 120 --unix-socket "$HTTP_SOCKET" -o "$file" "$@" \
        "http://localhost$target") >"$file.out" 2>&1 3>&- &
    CLIENT=$!
}

# header NAME: its value in the last reply of ask.
header() {
    tr -d '\r' <head | sed -n "s/^$1: //Ip"
}

# ledger ID [JQ]: what the ledger tells of a request.
ledger() {
    get "/_debug/generated?id=$1" | jq -r "${2:-.}"
}

# ledger_is ID JQ: whether that is true of the request (for wait_until).
ledger_is() {
    get "/_debug/generated?id=$1" 2>/dev/null | jq -e "$2" >/dev/null
}

# books_hold: the two equations, and nothing live.
books_hold() {
    get /_debug/generated >books.out && jq -e '.ledger |
        .queued == 0 and .running == 0 and .held == 0 and
        .accepted == .done + .cancelled + .failed + .shed + .stalled + .drained and
        .generated == .delivered + .discarded' books.out >/dev/null
}

# peer NAME FUNCTION [ARGUMENT]...: a client in Python.
peer() {
    local name=$1

    shift
    "$PYTHON" "$PEERS/$name.py" "$@"
}
