# What the doctor cannot ask of a path, because it would have to hold its servers: is each byte the
# same behind the proxy; what does a client see when the responder dies; does the proxy's graceful
# stop let a live stream end? Sourced by beds_run.sh's caller; a bed is up, at URL and SIDE_DOOR.
# shellcheck shell=sh disable=SC2034,SC2154 # its variables are the callers', and the other way

fetch() { curl -q -sS -N --noproxy 127.0.0.1 --max-time 60 "$@"; }

# CJK, emoji, quotes, U+2028, comments and ids: the same through the proxy and past it.
ask_bytes() {
    query="stream?prompt=hello&max_tokens=200&ttft_ms=5&itl_ms=1&hints=0&vocab=torture&ids=1&wire=comments"
    if fetch -o "$RESULT/through" "$URL/$query" 2>"$RESULT/out" &&
        fetch -o "$RESULT/past" "$SIDE_DOOR/$query" 2>"$RESULT/out" &&
        grep -q '^data:.*\[DONE\]' "$RESULT/past" && cmp -s "$RESULT/past" "$RESULT/through"; then
        put_extra bytes same
    else
        put_extra bytes changed
    fi
    rm -f -- "$RESULT/through" "$RESULT/past"
}

# live_stream LABEL TOKENS: a stream of 100 ms a token in the background, until the ledger has counted
# eight of them.
live_stream() {
    ID=$(new_id "$1")
    fetch -o "$RESULT/body" -w '%{http_code}' -H "X-Request-Id: $ID" \
        "$URL/stream?prompt=$1&max_tokens=$2&ttft_ms=50&itl_ms=100&hints=0" >"$RESULT/code" 2>"$RESULT/out" &
    CHILD=$!
    until_ms=$(($(now_ms) + 10000))
    until generated_so_far && [ "$GENERATED" -ge 8 ]; do
        if [ "$(now_ms)" -gt "$until_ms" ] || ! is_running "$CHILD"; then
            problem "$1: no stream got to its eighth token; curl says:" <"$RESULT/out"
            kill -KILL "$CHILD" 2>/dev/null || :
            wait "$CHILD" || :
            CHILD=
            return 1
        fi
        sleep 0.02
    done
}

generated_so_far() {
    fetch -f -o "$RESULT/record" "$SIDE_DOOR/_debug/generated?id=$ID" 2>/dev/null &&
        GENERATED=$(json "$RESULT/record" generated)
}

# Its curl's exit in STATUS, the reply's status in CODE, the time since FROM_MS in TOOK_MS.
end_of_stream() {
    STATUS=0
    wait "$CHILD" || STATUS=$?
    CHILD=
    TOOK_MS=$(($(now_ms) - FROM_MS))
    CODE=$(cat "$RESULT/code")
}

# What an event stream has no line for: a page of HTML.
has_foreign_line() { grep -Evq '^$|^(data|event|id|retry)?:' "$RESULT/body"; }

is_whole() { [ "$STATUS" -eq 0 ] && grep -q '^data:.*\[DONE\]' "$RESULT/body"; }

# The pids of the responder: the proxy's own child (mod_fcgid), else the side door's.
responders_of_bed() {
    own=
    for pid in $(session_pids); do
        case $(readlink "/proc/$pid/exe") in "$BED"/*) own="$own $pid" ;; esac
    done
    if [ -n "$own" ]; then echo "$own"; else cat "$BED/origin/runnel.pid"; fi
}

# The responder is killed in mid-stream. `seen`: the client knows that the reply was cut. `hidden`: it
# looks whole, but for [DONE]. `page`: it goes on in HTML, and ends as if whole. Else an HTTP status.
ask_crash() {
    live_stream crash 100 || return 0
    FROM_MS=$(now_ms)
    # shellcheck disable=SC2046 # pids
    kill -KILL $(responders_of_bed)
    end_of_stream
    if is_whole; then
        crash=whole
    elif [ "$CODE" != 200 ] && [ "$CODE" != 000 ]; then
        crash=$CODE
    elif [ "$STATUS" -ne 0 ]; then
        crash=seen
    elif has_foreign_line; then
        crash=page
    else
        crash=hidden
    fi
    put_extra crash "$crash"
    put_extra crash_status "$CODE"
    put_extra crash_curl "$STATUS"
    put_extra crash_ms "$TOOK_MS"
    rm -f -- "$RESULT/body" "$RESULT/code" "$RESULT/record"
    revive_responder
}

revive_responder() {
    PORT=${URL##*:}
    ORIGIN_PORT=${SIDE_DOOR##*:}
    until_ms=$(($(now_ms) + READY_S * 1000))
    origin_up || {
        problem "the responder did not start again:" <"$BED/origin.out"
        return 0
    }
    until passes_through; do
        [ "$(now_ms)" -le "$until_ms" ] || return 0     # the next probe says so
        sleep 0.05
    done
}

# The proxy is told to stop gracefully in mid-stream, which has nine more seconds to go.
ask_drain() {
    # shellcheck source=tests/proxies/nginx/bed.sh
    . "$BEDS/$NAME/bed.sh"
    live_stream drain 100 || return 0
    FROM_MS=$(now_ms)
    kill -s "$DRAIN" "$(sed -n 's/^proxy \([0-9]*\) .*/\1/p' "$BED/servers")"
    end_of_stream
    if is_whole; then
        put_extra drain whole
    else
        put_extra drain cut
    fi
    put_extra drain_curl "$STATUS"
    put_extra drain_ms "$TOOK_MS"
    rm -f -- "$RESULT/body" "$RESULT/code" "$RESULT/record"
}
