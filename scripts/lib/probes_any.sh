# What can be asked of a path to a server that is no runnel: it tells neither when it sent a token nor
# how many it made. Sourced after probes.sh.
# shellcheck shell=sh disable=SC2030,SC2031,SC2034,SC2154 # subshells on purpose; its variables are the callers', and the other way

# is_runnel: do its events carry stamps? The first reply stays in $TMP/first.
is_runnel() {
    probe first "max_tokens=2&ttft_ms=0&itl_ms=0&stamps=1"
    stream_possible "$TMP/first"
    grep -q '"t_us":' "$TMP/first/events" 2>/dev/null
}

# Where does the ledger answer?
find_ledger() {
    if [ -n "$ORIGIN_URL" ]; then
        LEDGER_URL=$ORIGIN_URL/_debug/generated
        ledger_ask || could_not_run "--origin: no ledger at $LEDGER_URL ($(curl_error)): is it a runnel, and may this machine ask it?"
        return
    fi
    LEDGER_URL=$(url_origin "$BASE_URL")/_debug/generated
    LEDGER_SOCKET=$SOCKET
    if ! ledger_ask || ! record total >/dev/null 2>&1; then
        LEDGER_URL=
    fi
}

# Everything is judged by one stream as it was asked for; with --origin, also by the same without the path.
ask_any_server() {
    any_stream
    whole stream || return 0
    for question in $ASK; do
        case $question in
            stream) judge_any_stream ;;
            compression) ask_any_compression ;;
            abort) ask_any_abort ;;
            *) [ "$ASK" = "$QUESTIONS" ] || finding note "$question" "$question" "not asked: it takes a stream of runnel" ;;
        esac
    done
}

any_stream() {
    mkdir -p "$TMP/stream" "$TMP/first"
    PROGRESS="the stream"
    stream_run "$TMP/stream"
    cp "$TMP/stream/head" "$TMP/first/head" 2>/dev/null || :
    stream_possible "$TMP/stream"
    if ! stream_verdict "$TMP/stream" >"$TMP/stream/verdict"; then
        case $(why stream) in
            HTTP* | 'the reply is'* | 'there was no'*) could_not_run "$SHOWN_URL: nothing to examine: $(why stream)" ;;
        esac
    fi
    introduce "another server than runnel, which tells neither when it sent a token nor how many it made"
    if ! whole stream; then
        finding fault cut stream "the stream did not come whole: $(why stream)"
        return
    fi
    analyse stream 5000
}

judge_any_stream() {
    put_arrivals stream
    if [ -n "$ORIGIN_URL" ]; then
        compare_with_origin
    else
        judge_arrivals
    fi
}

all_at_once() { [ $(($(of "$1" arrived_us) * 10)) -lt "$(of "$1" first_us)" ] && [ "$(of "$1" bursts)" -le 3 ]; }

judge_arrivals() {
    n=$(of stream events)
    if [ "$n" -lt 10 ]; then
        finding note stream stream "$n token events are too few to tell: ask for more tokens"
    elif all_at_once stream; then
        put stream whole
        finding fault buffered stream "$n token events arrived within $(ms_of stream arrived_us) ms, $(ms_of stream first_us) ms after the request: the path buffers, or the server does not stream. --origin tells which"
    elif [ $(($(of stream coalesced) * 4)) -gt "$n" ]; then
        judge_bursts "$(of stream coalesced) of $n token events arrived in the same read as the one before," \
            ": the path does it, or the server sends several at once. --origin tells which"
    else
        put stream clean
        finding ok stream stream "$n token events arrived over $(ms_of stream arrived_us) ms, the first after $(ms_of stream first_us) ms; gaps p50 $(ms_of stream gap_us_p50) ms, max $(ms_of stream gap_us_max) ms"
    fi
}

# judge_bursts BEGIN END: of a sentence. One pace cannot tell whether a buffer was filled or a time went by.
MANY_IN_A_BURST=5
judge_bursts() {
    burst=$(($(of stream events) / $(of stream bursts)))
    bursts="in bursts of $burst tokens on average, every $(ms_of stream interval_us_p50) ms"
    if [ "$burst" -ge "$MANY_IN_A_BURST" ]; then
        put stream "bursts:$burst"
        finding fault buffered stream "$1 $bursts: held back for a time or until a buffer is full$2"
    else
        put stream coalesced
        finding fault coalesced stream "$1 $bursts$2"
    fi
}

compare_with_origin() {
    mkdir -p "$TMP/direct"
    (
        rest=${BASE_URL#*://}
        URL=$ORIGIN_URL/${rest#*/}
        SOCKET=
        CONFIG=$CONFIG_WITHOUT_SOCKET$ORIGIN_CONFIG
        stream_run "$TMP/direct"
        stream_verdict "$TMP/direct" >"$TMP/direct/verdict"
    ) || could_not_run "--origin: the same request there: $(why direct)"
    analyse direct 5000
    put_direct
    evidence="through the path $(of stream events) token events in $(of stream bursts) bursts over $(ms_of stream arrived_us) ms, the first after $(ms_of stream first_us) ms; at the origin $(of direct events) in $(of direct bursts) bursts over $(ms_of direct arrived_us) ms, the first after $(ms_of direct first_us) ms"
    if all_at_once direct; then
        finding note stream stream "the server itself sends all at once: nothing can be said of the path ($evidence)"
    elif all_at_once stream; then
        put stream whole
        finding fault buffered stream "$evidence: the path holds tokens back until the end"
    elif [ $(($(of stream bursts) * 3)) -lt $(($(of direct bursts) * 2)) ]; then
        judge_bursts "$evidence; through the path they came" ""
    else
        put stream clean
        finding ok stream stream "$evidence"
    fi
}

ask_any_compression() {
    mkdir -p "$TMP/gzip"
    stream_run "$TMP/gzip" -H "$ALL_ENCODINGS"
    is_compressed || return 0
    if [ $((reads * 2)) -lt "$(of stream bursts)" ]; then
        finding fault compressed compression "$encoding: $reads reads instead of $(of stream bursts): the compressor holds tokens back"
    else
        finding limit compressed compression "$encoding, in $reads reads: flushed as it goes, at the cost of processor time"
    fi
}

# The gauges of running requests that servers are known to have.
GAUGES='vllm:num_requests_running sglang:num_running_reqs llamacpp:requests_processing tgi_batch_current_size runnel_num_requests_running'

# It may need the key that the stream's request has.
running() {
    (
        CONFIG="$(printf '%s' "$CONFIG_WITHOUT_SOCKET" | grep '^header = ' || :)
$ORIGIN_CONFIG"
        [ -n "$ORIGIN_URL" ] || [ -z "$SOCKET" ] || config_line unix-socket "$SOCKET"
        curl_run -f --max-time 5 "$METRICS_URL"
    ) 2>/dev/null | run_awk gauge -v names="$GAUGES"
}

# Without a ledger, the server's gauge of running requests tells when the generation ended. The client
# leaves after two tokens; behind what holds them back, as soon as the gauge counts its request.
ask_any_abort() {
    METRICS_URL=${ORIGIN_URL:-$(url_origin "$BASE_URL")}/metrics
    if ! before=$(running); then
        finding note abort abort "not known: this server tells no request's count of tokens, and $METRICS_URL has none of the gauges $GAUGES"
        return
    fi
    wanted=2
    ! all_at_once stream || wanted=0
    rm -f "$TMP/left"
    start_stream "$(new_id "$SCRIPT")"
    until has_come "$wanted" && is_counted || ! is_running "$CHILD"; do
        sleep 0.01
    done
    if ! is_running "$CHILD"; then
        leave
        finding note abort abort "not known: the stream had ended before its client could leave"
        return
    fi
    leave
    left_ms=$(now_ms)
    while is_counted && [ $(($(now_ms) - left_ms)) -lt $(($(of stream last_us) / 1000 + 1000)) ]; do
        sleep 0.05
    done
    noticed_ms=$(($(now_ms) - left_ms))
    put abort_decode_ms "$noticed_ms"
    if [ $((noticed_ms * 1000 * 2)) -ge "$(generation_us)" ]; then
        finding fault abort abort "the running requests were $now again only $noticed_ms ms after the client had gone; a whole stream takes $(ms_of stream last_us) ms"
    else
        finding ok abort abort "the running requests were $now again $noticed_ms ms after the client had gone; a whole stream takes $(ms_of stream last_us) ms"
    fi
}

has_come() {
    came=$(grep -c '^data:' "$TMP/left" 2>/dev/null) || :
    [ "${came:-0}" -ge "$1" ]
}

is_counted() { now=$(running) && [ "$now" -gt "$before" ]; }

# How long the server generates: first to last token; if they all came at once, all of the time.
generation_us() {
    if all_at_once stream; then
        of stream last_us
    else
        echo $(($(of stream last_us) - $(of stream first_us)))
    fi
}
