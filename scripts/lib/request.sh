# One HTTP request by curl, for the instruments: options, the trace, the verdict. Sourced after
# common.sh.
# shellcheck shell=sh disable=SC2034,SC2154 # its variables are the callers', and the other way

URL=
FORMAT=auto          # of the events: see trace_events.awk
NO_DONE=0
unset PROMPT         # unset: not given; an empty one is asked for as it is
TOKENS=
METHOD=
BODY=
CONTENT_TYPE_GIVEN=
OUT=
SOCKET=
TIMEOUT=120
KEEP_TRACE=
KEEP_BODY=
KEEP_EVENTS=
CONFIG=         # further lines of curl's configuration

# The options of every instrument. `common_option "$@"; shift "$USED"`
common_option() {
    case $1 in
        --url | --prompt | --tokens | --out | --unix-socket | --timeout | --keep-trace | \
            --keep-body | --request | -X | --header | -H | --data | -d | --format | \
            --bearer-env | --bearer-file | --keep-events)
            need_value "$@"
            USED=2
            ;;
        *) USED=1 ;;
    esac
    case $1 in
        --url) take_url "$2" ;;
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
        --keep-events) KEEP_EVENTS=$2 ;;
        --request | -X) METHOD=$2 ;;
        --header | -H) take_header "$2" ;;
        --data | -d) BODY=$2 ;;
        --bearer-env) bearer_env "$2" ;;
        --bearer-file) bearer_file "$2" ;;
        --format)
            case $2 in auto | json | text) ;; *) usage_error "--format: '$2' is not auto, json or text" ;; esac
            FORMAT=$2
            ;;
        --no-done) NO_DONE=1 ;;
        --help | -h) show_help "$0" ;;
        -*) usage_error "unknown option '$1'" ;;
        *) take_url "$1" ;;
    esac
}

take_url() {
    [ -z "$URL" ] || usage_error "two URLs: '$URL' and '$1'"
    [ -n "$1" ] || usage_error "the URL is empty"
    URL=$1
}

# A file is read here, once: it may be a pipe, and there may be many requests.
take_header() {
    case $1 in
        @*)
            [ "$1" != @- ] || set -- @/dev/stdin
            lines=$(cat -- "${1#@}" 2>/dev/null) || usage_error "--header: cannot read ${1#@}"
            lines=$(printf '%s' "$lines" | tr -d '\r')
            while IFS= read -r header_line; do
                [ -z "$header_line" ] || take_header_line "$header_line"
            done <<END
$lines
END
            ;;
        *) take_header_line "$1" ;;
    esac
}

take_header_line() {
    case $(printf '%s' "${1%%[:;]*}" | tr -d ' \t' | tr '[:upper:]' '[:lower:]') in
        content-type) CONTENT_TYPE_GIVEN=1 ;;
    esac
    config_line header "$1"
}

# A key comes from the environment or a file, so that neither `ps` nor the shell's history has it.
bearer_env() {
    key=$(printenv -- "$1") || usage_error "--bearer-env: there is no variable $1 in the environment"
    bearer "--bearer-env $1" "$key"
}

bearer_file() {
    key=$(head -n 1 -- "$1") || usage_error "--bearer-file: cannot read $1"
    bearer "--bearer-file $1" "$key"
}

bearer() {
    case $2 in
        '' | *[![:print:]]*) usage_error "$1: its first line is no key" ;;
    esac
    config_line header "Authorization: Bearer $2"
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
        take_body
        [ -n "$CONTENT_TYPE_GIVEN" ] || config_line header "Content-Type: application/json"
    else
        config_query
    fi
    [ -z "$METHOD" ] || config_line request "$METHOD"
    [ -z "$SOCKET" ] || config_line unix-socket "$SOCKET"
    # A figure of an earlier run must not stand for this one. Only a plain file: as root, removing
    # /dev/null would break the machine.
    [ ! -f "$OUT" ] || [ -L "$OUT" ] || rm -f -- "$OUT"
}

take_body() {
    case $BODY in
        @-) cat >"$TMP/given_body" ;;
        @*) cat -- "${BODY#@}" >"$TMP/given_body" 2>"$TMP/err" || usage_error "--data: cannot read ${BODY#@}" ;;
        *) printf '%s' "$BODY" >"$TMP/given_body" ;;
    esac
    config_line data-binary "@$TMP/given_body"
}

config_query() {
    [ -z "${PROMPT+given}$TOKENS" ] || CONFIG="${CONFIG}get
"
    # Written as name=text: curl escapes what follows the first "=", whatever it is.
    [ -z "${PROMPT+given}" ] || config_line data-urlencode "prompt=$PROMPT"
    [ -z "$TOKENS" ] || config_line data-urlencode "max_tokens=$TOKENS"
}

# curl_run ARGUMENT...: -q first, so that no ~/.curlrc changes what is measured; UTC, so that no
# change to summer time falls into the trace; no proxy for this machine. The URL is the caller's. A
# configuration file of its own: one in the background may not have read its own yet.
curl_run() {
    curlrc=$(mktemp "$TMP/curlrc.XXXXXX")
    printf '%s' "$CONFIG" >"$curlrc"
    TZ=UTC0 exec curl -q -sS -N --noproxy 127.0.0.1,localhost,::1 --globoff -K "$curlrc" "$@"
}

# stream_run FOLDER [CURL ARGUMENT]...: one request to its end. In FOLDER: trace, body, head, curl.err,
# events. curl's exit status in STATUS.
stream_run() {
    folder=$1
    shift
    (curl_run --max-time "$TIMEOUT" --trace "$folder/trace" --trace-time -D "$folder/head" \
        -o "$folder/body" "$@" "$URL") 2>"$folder/curl.err" &
    CHILD=$!
    show_progress "$folder/body"
    STATUS=0
    wait "$CHILD" || STATUS=$?
    CHILD=
    [ -f "$folder/trace" ] || : >"$folder/trace"
    run_awk json,trace_clock,trace_events -v format="$FORMAT" "$folder/trace" >"$folder/events"
}

# While curl runs, on a terminal: how long it has been, and how much has come.
PROGRESS=
show_progress() {
    [ -t 2 ] && [ -n "$PROGRESS" ] || return 0
    started=$(date +%s)
    while is_running "$CHILD"; do
        printf '\r%s: %s, %s s, %s bytes \033[K' "$SCRIPT" "$PROGRESS" $(($(date +%s) - started)) \
            "$(stat -c %s -- "$1" 2>/dev/null || echo 0)" >&2
        sleep 0.2
    done
    printf '\r\033[K' >&2
}

# stream_verdict FOLDER: after stream_run. Nothing if it was a complete stream of tokens; else a
# sentence, and 1.
stream_verdict() {
    if ! reason=$(run_awk json,verdict -v no_done="$NO_DONE" "$1/events"); then
        case $STATUS in
            0) ;;
            28) reason="$reason (given up after $TIMEOUT s, --timeout)" ;;
            *) reason="$reason ($(curl_error "$1"))" ;;
        esac
        case $reason in
            HTTP*) message=$(json "$1/body" error.message 2>/dev/null) || message=$(head -c 200 "$1/body" 2>/dev/null) || message= ;;
            *) message= ;;
        esac
        # A stranger's text goes to a terminal: no control characters.
        printf '%s' "$reason${message:+: $message}" | tr '\000-\037\177' '[ *]'
        return 1
    fi
    if [ "$STATUS" -ne 0 ]; then
        curl_error "$1"
        return 1
    fi
}

# No connection, or none of the request's making: nothing was measured, and nothing will be.
stream_possible() {
    case $STATUS in
        0 | 18 | 28 | 52 | 55 | 56 | 92) ;;     # there was a connection: the trace tells how far it came
        7) could_not_run "nothing answers at $(shown_url) ($(curl_error "$1"))$(up_hint)" ;;
        2 | 3 | 26) usage_error "$(curl_error "$1")" ;;
        *) could_not_run "$(shown_url): $(curl_error "$1")" ;;
    esac
}

# Without the query and the user, which may hold a prompt, a key or a password.
shown_url() { printf '%s' "${URL%%[?#]*}" | sed 's|//[^/@]*@|//|'; }

up_hint() { case $URL in http://127.0.0.1:"$PORT"/*) echo ": run $(make_name up) first" ;; esac }

# keep_files FOLDER: what --keep-trace, --keep-body and --keep-events ask for. Of what was sent, the trace keeps the
# times and sizes alone: the request may hold a key.
keep_files() {
    [ -z "$KEEP_TRACE" ] || run_awk trace_public "$1/trace" >"$KEEP_TRACE" || could_not_run "cannot write $KEEP_TRACE"
    [ -z "$KEEP_BODY" ] || [ ! -f "$1/body" ] || cat -- "$1/body" >"$KEEP_BODY" || could_not_run "cannot write $KEEP_BODY"
    [ -z "$KEEP_EVENTS" ] || events_table "$1/events" >"$KEEP_EVENTS" || could_not_run "cannot write $KEEP_EVENTS"
}

EVENTS_HEAD=$(printf 'run\tus\tread\tkind\ttokens\tdata')

# events_table FILE: the table that scripts/plot reads, of one request's events.
events_table() {
    printf '%s\n' "$EVENTS_HEAD"
    run_awk event_lines -v run=1 "$1"
}

# One request to its end, in $TMP. Returns only if it was a complete stream of tokens; anything else
# is told in a sentence, and no figure is printed.
measure_stream() {
    need_program curl
    PROGRESS="1 request"
    stream_run "$TMP"
    keep_files "$TMP"
    stream_possible "$TMP"
    verdict=$(stream_verdict "$TMP") || measured_no "no figure: $verdict"
}

# curl_error [FOLDER]: what curl said.
curl_error() { sed -n '1s/^curl: ([0-9]*) *//p' "${1:-$TMP}/curl.err"; }

# emit FILE: the result, to standard output and to --out.
emit() {
    if [ -n "$OUT" ]; then
        cat -- "$1" >"$OUT" || could_not_run "cannot write $OUT"
    fi
    cat -- "$1"
}
