# A stream that is left on purpose, and what the server's ledger tells of it. Sourced after request.sh.
# shellcheck shell=sh disable=SC2030,SC2031,SC2034,SC2154 # subshells on purpose; its variables are the callers', and the other way

LEDGER_URL=          # of /_debug/generated
LEDGER_SOCKET=       # a unix socket to ask it through, or empty

# The scheme and host of --url, and this server's own path.
url_origin() {
    case $1 in
        *://*) rest=${1#*://} ;;
        *) rest=$1 ;;
    esac
    printf '%s%s' "${1%"$rest"}" "${rest%%[/?#]*}"
}

# ledger_ask [ID]: the server's record of that request (or of the last one), in $TMP/record; nothing
# but the socket is shared with the stream's request.
ledger_ask() {
    (
        CONFIG=
        [ -z "$LEDGER_SOCKET" ] || config_line unix-socket "$LEDGER_SOCKET"
        curl_run -f --max-time 5 -o "$TMP/record" "$LEDGER_URL${1:+?id=$1}"
    ) 2>"$TMP/curl.err"
}

record() { json "$TMP/record" "$1"; }

# named_stream ID CURL-ARGUMENT...: in a subshell, which curl replaces.
named_stream() {
    id=$1
    shift
    curl_run --max-time "$TIMEOUT" -H "X-Request-Id: $id" "$@" "$URL"
}

# start_stream ID: in the background, its body in $TMP/left; curl's pid in CHILD.
start_stream() {
    (named_stream "$1" -o "$TMP/left") 2>"$TMP/curl.err" &
    CHILD=$!
}

# open_stream ID: the same, its body in the fifo $TMP/pipe, its head in $TMP/head.
open_stream() {
    rm -f "$TMP/pipe" "$TMP/head"
    mkfifo "$TMP/pipe"
    (named_stream "$1" -D "$TMP/head") >"$TMP/pipe" 2>"$TMP/curl.err" &
    CHILD=$!
}

# take_events N: reads until N events have begun to arrive; how many did is in taken. The shell's own
# `read` takes a pipe byte by byte, so nothing waits in a buffer (mawk would wait for 4 KiB).
take_events() {
    taken=0
    while [ "$taken" -lt "$1" ] && IFS= read -r line; do
        case $line in
            data:*"[DONE]"*) return ;;
            data:*) taken=$((taken + 1)) ;;
        esac
    done
}

# Kills curl: the kernel closes its connection at once. Its exit status in STATUS.
leave() {
    kill -KILL "$CHILD" 2>/dev/null || :
    STATUS=0
    wait "$CHILD" 2>/dev/null || STATUS=$?
    CHILD=
}
