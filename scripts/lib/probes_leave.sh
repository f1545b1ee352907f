# What the doctor asks about clients that leave, half leave, or do not read. Sourced after probes.sh.
# shellcheck shell=sh disable=SC2030,SC2031,SC2034,SC2154 # subshells on purpose; its variables are the callers', and the other way

# abort_probe NAME QUERY N: leaves as soon as the ledger counts N tokens for the request (0: as soon as it
# knows the request), and waits until its record is no longer live. outcome is empty if nothing is
# known of the request; extra tokens were generated, and noticed_ms passed, after the client had gone.
#
# By the ledger's count and not by what arrives: behind a buffer nothing arrives.
# Tokens are far apart in decode, so that none is made between the last look into the ledger and the
# leaving, not on a busy machine either.
ABORT_WAIT_MS=9000
ABORT_ITL_MS=200
abort_probe() {
    runnel_url "$2"
    id=$(new_id "$SCRIPT")
    outcome='' extra=0 noticed_ms=0 seen=0
    start_stream "$id"
    if wait_generated "$id" "$3"; then
        seen=$(record generated)
        leave
        left_ms=$(now_ms)
        while ledger_ask "$id"; do
            outcome=$(record outcome)
            noticed_ms=$(($(now_ms) - left_ms))
            case $outcome in live) ;; *) break ;; esac
            [ "$noticed_ms" -lt "$ABORT_WAIT_MS" ] || break
            sleep 0.02
        done
        generated=$(record generated)
        extra=$((generated - seen))
    else
        leave
    fi
    put "abort_$1" "${outcome:-unknown}"
    put "abort_$1_extra" "$extra"
    put "abort_$1_ms" "$noticed_ms"
}

wait_generated() {
    known_from=$(now_ms)
    until ledger_ask "$1" && [ "$(record generated)" -ge "$2" ]; do
        [ $(($(now_ms) - known_from)) -lt 5000 ] || return 1
        sleep 0.01
    done
}

more_tokens() { if [ "$1" -eq 1 ]; then echo "1 more token"; else echo "$1 more tokens"; fi; }

ask_aborts() {
    if [ -z "$LEDGER_URL" ]; then
        put abort unknown
        finding note abort abort "not known: nothing answers at /_debug/generated. --origin URL-or-socket tells where the server can be asked"
        return
    fi
    abort_probe decode "max_tokens=$((ABORT_WAIT_MS / ABORT_ITL_MS))&ttft_ms=50&itl_ms=$ABORT_ITL_MS" 5
    judge_decode
    silence="max_tokens=60&ttft_ms=50&itl_ms=$SLOW_ITL_MS&fault=stall@5:4000"
    abort_probe gap "$silence" 5
    judge_silent gap "a silence of 4 s after 5 tokens"
    [ "$class" = ok ] || [ -z "$outcome" ] || ask_ping "$silence"
    abort_probe prefill "max_tokens=60&ttft_ms=4000&itl_ms=$SLOW_ITL_MS" 0
    judge_silent prefill "a prefill of 4 s"
}

# abort_finding NAME LEVEL CODE SENTENCE: the level is a figure too: one that does not depend on times.
abort_finding() {
    class=$2
    put "abort_$1_class" "$2"
    finding "$2" "$3" "abort in $1" "$4"
}

# What came of a stream that its client left after 5 of many tokens. One token may have been made
# between the last look into the ledger and the leaving.
judge_decode() {
    case $outcome in
        '') abort_finding decode note abort "not known: the ledger has no request with our X-Request-Id; the path must pass it on" ;;
        cancelled | failed)
            if [ "$extra" -gt 10 ]; then
                abort_finding decode fault abort "noticed only after $(more_tokens "$extra"), $noticed_ms ms after the client had gone"
            elif [ "$extra" -le 1 ]; then
                abort_finding decode ok abort "$outcome with $(more_tokens "$extra"), within $noticed_ms ms ($(record detected_by))"
            else
                abort_finding decode limit abort-late "$outcome after $(more_tokens "$extra"), $noticed_ms ms after the client had gone ($(record detected_by))"
            fi
            ;;
        *) abort_finding decode fault abort "never noticed: the outcome is $outcome, with $(more_tokens "$extra") for nobody" ;;
    esac
}

# judge_silent NAME WHAT: of a client that left while nothing was sent, for 4 s.
judge_silent() {
    case $outcome in
        '') abort_finding "$1" note abort "not known: the ledger has no request with our X-Request-Id" ;;
        cancelled | failed)
            if [ "$noticed_ms" -lt 3000 ]; then
                abort_finding "$1" ok abort "$outcome within $noticed_ms ms, in $2"
            elif [ "$extra" -gt 10 ]; then
                abort_finding "$1" fault abort "noticed only after $(more_tokens "$extra"), $noticed_ms ms after the client had gone, in $2"
            else
                abort_finding "$1" limit abort-late "noticed only when tokens came again ($(more_tokens "$extra")), $noticed_ms ms after the client had gone, in $2"
            fi
            ;;
        *) abort_finding "$1" fault abort "never noticed: the outcome is $outcome, with $(more_tokens "$extra"), for a client that left in $2" ;;
    esac
}

# ask_ping QUERY: would comments help, which are written in the silence?
ask_ping() {
    abort_probe ping "$1&ping_ms=250" 5
    case $outcome in
        cancelled | failed)
            if [ "$noticed_ms" -lt 3000 ]; then
                put abort_ping_class ok
                finding note abort "abort in gap" "with a comment every 250 ms in the silence (ping_ms): $outcome within $noticed_ms ms"
                return
            fi
            ;;
    esac
    put abort_ping_class none
    finding note abort "abort in gap" "comments in the silence (ping_ms) do not help"
}

# A client that closes its sending side and goes on reading (nc -N): is that an abort?
ask_half_close() {
    case $BASE_URL in http://*) ;; *)
        finding note half-close half-close "not tried: over TLS there is none"
        return ;;
    esac
    command -v perl >/dev/null 2>&1 || {
        finding note half-close half-close "not tried: it needs perl"
        return
    }
    runnel_url "max_tokens=30&ttft_ms=100&itl_ms=50"
    rest=${URL#http://}
    host=${rest%%/*}
    # shellcheck disable=SC2086 # an empty socket is no argument
    perl "$here/lib/half_close.pl" "$host" "/${rest#*/}" ${SOCKET:+"$SOCKET"} >"$TMP/half_close" 2>"$TMP/curl.err" || :
    if grep -q '\[DONE\]' "$TMP/half_close"; then
        put half_close served
        finding ok half-close half-close "a client that closed its sending side is served to the end"
    elif head -n 1 "$TMP/half_close" | grep -q ' [45]'; then
        put half_close unknown
        finding note half-close half-close "not known: the reply to a plain request is $(head -n 1 "$TMP/half_close" | tr -d '\r')"
    else
        put half_close aborted
        finding note half-close half-close "counts as an abort: a client that closes its sending side (nc -N) gets no stream"
    fi
}

# A client that does not read: when does the server feel it? Long events, 16 MB of them: the sockets of
# two hops hold 8.
SLOW_READER_EVENT_BYTES=160
ask_slow_reader() {
    [ -n "$LEDGER_URL" ] || return 0
    id=$(new_id "$SCRIPT")
    runnel_url "max_tokens=100000&ttft_ms=0&itl_ms=0&stamps=1&ids=1&wire=comments"
    open_stream "$id"
    exec 9<"$TMP/pipe"            # open, and never read
    if ! wait_generated "$id" 1; then
        exec 9<&-
        leave
        finding note slow-reader "slow reader" "not known: the ledger has no request with our X-Request-Id"
        return
    fi
    before=-1
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        sleep 0.3
        ledger_ask "$id" || break
        now=$(record generated)
        [ "$now" != "$before" ] || break
        before=$now
    done
    exec 9<&-
    leave
    absorbed_kb=$(($(record generated) * SLOW_READER_EVENT_BYTES / 1000))
    put absorbed_kb "$absorbed_kb"
    if [ "$(record outcome)" = "done" ]; then
        put slow_reader limit
        finding limit slow-reader "slow reader" "a client that reads nothing is not felt: all 100,000 tokens, about $absorbed_kb KB, were generated and wait on the path"
    elif [ "$absorbed_kb" -gt 1000 ]; then
        put slow_reader note
        finding note slow-reader "slow reader" "about $absorbed_kb KB are generated for a client that reads nothing before the server feels it"
    else
        put slow_reader ok
        finding ok slow-reader "slow reader" "about $absorbed_kb KB are generated for a client that reads nothing, then the server waits"
    fi
}
