# One HTTP request by curl, for the instruments: options, the trace, the verdict. Sourced after
# common.sh.
# shellcheck shell=sh disable=SC2034,SC2154 # its variables are the callers', and the other way

URL=
unset PROMPT         # unset: not given; an empty one is asked for as it is
TOKENS=
METHOD=
BODY=
OUT=
SOCKET=
TIMEOUT=120
KEEP_TRACE=
KEEP_BODY=
CONFIG=         # further lines of curl's configuration

# The options of every instrument. `common_option "$@"; shift "$USED"`
common_option() {
    case $1 in
        --url | --prompt | --tokens | --out | --unix-socket | --timeout | --keep-trace | \
            --keep-body | --request | -X | --header | -H | --data | -d)
            need_value "$@"
            USED=2
            ;;
        *) USED=1 ;;
    esac
    case $1 in
        --url) URL=$2 ;;
        --prompt) PROMPT=$2 ;;
        --tokens)
            need_number --tokens "$2" 1 100000
            TOKENS=$2
            ;;
        --out) OUT=$2 ;;
        --unix-socket) SOCKET=$2 ;;
        --timeout)
            need_number --timeout "$2" 1 86400
            TIMEOUT=$2
            ;;
        --keep-trace) KEEP_TRACE=$2 ;;
        --keep-body) KEEP_BODY=$2 ;;
        --request | -X) METHOD=$2 ;;
        --header | -H) config_line header "$2" ;;
        --data | -d) BODY=$2 ;;
        --help | -h) show_help "$0" ;;
        *) usage_error "unknown option '$1'" ;;
    esac
}

# curl's configuration file takes what must not be seen in `ps` (a key in a header, a prompt). In
# its quotes, backslash, quote and newline are escaped.
config_line() {
    quoted=$(printf '%s' "$2" | sed -e 's/[\\"]/\\&/g' -e ':more' -e '$!{N;b more' -e '}' -e 's/\n/\\n/g')
    CONFIG="$CONFIG$1 = \"$quoted\"
"
}

# request_defaults TOKENS: without --url, the server of `make up` is asked for that many tokens. With
# --url, the URL stands as given, and --prompt and --tokens add to its query only if they are set.
request_defaults() {
    if [ -z "$URL" ]; then
        URL=http://127.0.0.1:$PORT/stream
        : "${PROMPT=hello}" "${TOKENS:=$1}"
        need_number RUNNEL_PORT "$PORT" 1 65535
    fi
    if [ -n "$BODY" ]; then
        [ -z "${PROMPT+given}$TOKENS" ] || usage_error "--data is the whole request: it excludes --prompt and --tokens"
        config_line data-binary "$BODY"
        config_line header "Content-Type: application/json"
    else
        config_query
    fi
    [ -z "$METHOD" ] || config_line request "$METHOD"
    [ -z "$SOCKET" ] || config_line unix-socket "$SOCKET"
    # A figure of an earlier run must not stand for this one. Only a plain file: as root, removing
    # /dev/null would break the machine.
    [ ! -f "$OUT" ] || [ -L "$OUT" ] || rm -f -- "$OUT"
}

config_query() {
    [ -z "${PROMPT+given}$TOKENS" ] || CONFIG="${CONFIG}get
"
    # Written as name=text: curl escapes what follows the first "=", whatever it is.
    [ -z "${PROMPT+given}" ] || config_line data-urlencode "prompt=$PROMPT"
    [ -z "$TOKENS" ] || config_line data-urlencode "max_tokens=$TOKENS"
}

# curl_run ARGUMENT...: -q first, so that no ~/.curlrc changes what is measured; UTC, so that no
# change to summer time falls into the trace; no proxy for this machine.
curl_run() {
    printf '%s' "$CONFIG" >"$TMP/curlrc"
    TZ=UTC0 exec curl -q -sS -N --noproxy 127.0.0.1,localhost,::1 --globoff -K "$TMP/curlrc" "$@"
}

# Runs the request to its end: $TMP/trace, $TMP/body, $TMP/events. Returns only if it was a complete
# stream of tokens; anything else is told in a sentence, and no figure is printed.
measure_stream() {
    need_program curl
    (curl_run --max-time "$TIMEOUT" --trace "$TMP/trace" --trace-time -o "$TMP/body" "$URL") \
        2>"$TMP/curl.err" &
    CHILD=$!
    status=0
    wait "$CHILD" || status=$?
    CHILD=
    [ -z "$KEEP_TRACE" ] || cat -- "$TMP/trace" >"$KEEP_TRACE" || could_not_run "cannot write $KEEP_TRACE"
    [ -z "$KEEP_BODY" ] || [ ! -f "$TMP/body" ] || cat -- "$TMP/body" >"$KEEP_BODY" || could_not_run "cannot write $KEEP_BODY"

    case $status in
        0 | 18 | 28 | 52 | 55 | 56 | 92) ;;     # there was a connection: the trace tells how far it came
        7) could_not_run "nothing answers at $URL ($(curl_error)): run make up first" ;;
        2 | 3 | 26) usage_error "$(curl_error)" ;;
        *) could_not_run "$URL: $(curl_error)" ;;
    esac
    run_awk json,trace_events "$TMP/trace" >"$TMP/events"
    if ! verdict=$(run_awk json,verdict "$TMP/events"); then
        refuse "$status" "$verdict"
    fi
    [ "$status" -eq 0 ] || measured_no "$(curl_error)"
}

refuse() {
    case $1 in
        0) reason=$2 ;;
        28) reason="$2 (given up after $TIMEOUT s, --timeout)" ;;
        *) reason="$2 ($(curl_error))" ;;
    esac
    case $2 in
        HTTP*) message=$(json "$TMP/body" error.message 2>/dev/null) || message=$(head -c 200 "$TMP/body" 2>/dev/null) || message= ;;
        *) message= ;;
    esac
    measured_no "no figure: $reason${message:+: $message}"
}

curl_error() { sed -n '1s/^curl: ([0-9]*) *//p' "$TMP/curl.err"; }

# emit FILE: the result, to standard output and to --out.
emit() {
    if [ -n "$OUT" ]; then
        cat -- "$1" >"$OUT" || could_not_run "cannot write $OUT"
    fi
    cat -- "$1"
}
