# What the doctor asks of a path, one function a question. Sourced after request.sh and ledger.sh.
# Each leaves its figures in $TMP/FOLDER/*, and says what it found by `finding`.
# shellcheck shell=sh disable=SC2030,SC2031,SC2034,SC2154 # subshells on purpose; its variables are the callers', and the other way

# --- streams of runnel ---

# runnel_url NAME=VALUE&...: sets URL, with these controls. The seed is another each time, so that no
# cache on the way answers for the server.
runnel_url() {
    SEED=$((SEED + 1))
    case $1 in
        *hints=*) ;;
        *) set -- "$1&hints=$HINTS" ;;
    esac
    case $BASE_URL in
        *\?*) URL="$BASE_URL&$1&seed=$SEED" ;;
        *) URL="$BASE_URL?prompt=doctor&$1&seed=$SEED" ;;
    esac
}

# probe FOLDER QUERY [CURL ARGUMENT]...: a stream through the path.
probe() {
    probe_name=$1
    mkdir -p "$TMP/$probe_name"
    runnel_url "$2"
    shift 2
    PROGRESS="a stream ($probe_name)"
    stream_run "$TMP/$probe_name" "$@"
    stream_verdict "$TMP/$probe_name" >"$TMP/$probe_name/verdict" || :
}

# probe_direct FOLDER QUERY: the same, without the path: at --origin.
probe_direct() {
    (
        CONFIG=$ORIGIN_CONFIG
        BASE_URL=$ORIGIN_URL/stream
        SEED=$((SEED + 1000))
        probe "$1" "$2"
    )
}

whole() { [ ! -s "$TMP/$1/verdict" ]; }

# Without [DONE] by the path's doing, or for another reason?
why() { cat "$TMP/$1/verdict"; }

# analyse FOLDER SPLIT_US: FOLDER/analysis, NAME=VALUE: bursts.awk's figures, medians of its lists.
analyse() {
    run_awk json,bursts -v split_us="$2" "$TMP/$1/events" >"$TMP/$1/bursts"
    for name in events bursts coalesced first_us last_us arrived_us sent_us; do
        sed -n "s/^$name	/$name=/p" "$TMP/$1/bursts"
    done >"$TMP/$1/analysis"
    for name in burst_events burst_bytes interval_us delay_us; do
        sed -n "s/^$name	//p" "$TMP/$1/bursts" | run_awk percentiles -v ask="50 99" | sed "s/^/${name}_/"
    done >>"$TMP/$1/analysis"
    run_awk gaps "$TMP/$1/events" | run_awk percentiles -v ask="50 99" | sed 's/^/gap_us_/' >>"$TMP/$1/analysis"
}

# of FOLDER NAME: a figure of the analysis; 0 if there is none.
of() {
    of_value=$(figure "$TMP/$1/analysis" "$2")
    printf '%s' "${of_value:-0}"
}

ms_of() { milliseconds "$(of "$1" "$2")"; }

# header FOLDER NAME: of the last reply there. A stranger's text goes to a terminal: no control characters.
header() { tr -d '\000-\011\013-\037\177' <"$TMP/$1/head" 2>/dev/null | sed -n "s/^$2: *//Ip" | tail -n 1; }

# --- the questions ---

# Tokens are sent 50 ms apart and 1 ms apart, and how do they arrive? What is held back for a time comes
# in bursts of one interval, what is held back for a size comes in bursts of one size.
SLOW_ITL_MS=50
SLOW_TOKENS=40
FAST_TOKENS=2000
ask_stream() {
    probe slow "max_tokens=$SLOW_TOKENS&ttft_ms=200&itl_ms=$SLOW_ITL_MS&stamps=1"
    analyse slow 25000
    probe fast "max_tokens=$FAST_TOKENS&ttft_ms=50&itl_ms=1&stamps=1"
    analyse fast 15000
    told=
    for name in slow fast; do
        whole $name || told="$told the $name stream: $(why $name)."
    done
    [ -z "$told" ] || finding fault cut stream "a stream did not come whole:$told"
    classify_stream
    figures_of_stream
    case $STREAM in clean | unknown) ;; *) ask_hints ;; esac
}

# Would it stream if the server asked for it?
ask_hints() {
    [ "$HINTS" = 0 ] || return 0
    probe hinted "max_tokens=$SLOW_TOKENS&ttft_ms=200&itl_ms=$SLOW_ITL_MS&stamps=1&hints=1"
    analyse hinted 25000
    if [ "$(of hinted burst_events_p50)" -eq 1 ] && [ "$(of hinted bursts)" -ge 10 ]; then
        put stream_hinted clean
        finding note buffered stream "it streams for a server that sends X-Accel-Buffering: no, as runnel does unless it is asked not to"
    else
        put stream_hinted same
        finding note buffered stream "X-Accel-Buffering: no from the server changes nothing"
    fi
}

classify_stream() {
    events=$(of slow events)
    sent=$(milliseconds "$(of slow sent_us)")
    bursts="in bursts of $(of slow burst_events_p50) tokens every $(ms_of slow interval_us_p50) ms"
    if [ "$events" -lt 10 ]; then
        STREAM=unknown
    elif [ $(($(of slow arrived_us) * 10)) -lt "$(of slow sent_us)" ]; then
        classify_whole
    elif [ "$(of slow burst_events_p50)" -ge 2 ]; then
        if same "$(of slow interval_us_p50)" "$(of fast interval_us_p50)"; then
            STREAM=time:$(($(of slow interval_us_p50) / 1000))
            finding fault buffered stream "tokens sent ${SLOW_ITL_MS} ms apart arrive $bursts, and so do those 1 ms apart: held back for a time"
        elif same "$(of slow burst_bytes_p50)" "$(of fast burst_bytes_p50)"; then
            STREAM=size:$(of slow burst_bytes_p50)
            finding fault buffered stream "tokens arrive in bursts of $(of slow burst_bytes_p50) bytes at any pace: held back until a buffer is full"
        else
            STREAM=coalesced
            finding fault coalesced stream "tokens sent $SLOW_ITL_MS ms apart arrive $bursts"
        fi
    elif fast_is_held; then
        STREAM=coalesced
        finding fault coalesced stream "at 50 ms a token each arrives by itself, but 1 ms apart they arrive in bursts of $(of fast burst_events_p50) every $(ms_of fast interval_us_p50) ms"
    else
        STREAM=clean
        finding ok stream stream "$events tokens sent over $sent ms arrived over $(ms_of slow arrived_us) ms, each by itself; delay added beyond the least: p50 $(ms_of slow delay_us_p50) ms, max $(ms_of slow delay_us_max) ms"
    fi
}

# The slow stream came at once. A fast one of 150 KB shows whether a buffer that fills is passed on.
classify_whole() {
    evidence="$events tokens sent over $sent ms arrived within $(ms_of slow arrived_us) ms, $(ms_of slow first_us) ms after the request"
    if [ "$(of fast bursts)" -ge 3 ] && [ "$(of fast burst_bytes_p50)" -ge 1000 ]; then
        STREAM=size:$(of fast burst_bytes_p50)
        finding fault buffered stream "$evidence; a longer stream arrives in bursts of about $(of fast burst_bytes_p50) bytes: held back until a buffer is full, or the end"
    else
        STREAM=whole
        finding fault buffered stream "$evidence: held back until the end"
    fi
}

# At 1 ms a token, the scheduling of a busy machine looks like bursts too. It is the path's doing if
# the median token is late, and much later than without the path.
fast_is_held() {
    [ "$(of fast delay_us_p50)" -ge 10000 ] && [ "$(of fast burst_events_p50)" -ge 10 ] || return 1
    [ -n "$ORIGIN_URL" ] || return 0
    probe_direct fast_direct "max_tokens=$FAST_TOKENS&ttft_ms=50&itl_ms=1&stamps=1"
    analyse fast_direct 15000
    [ "$(of fast delay_us_p50)" -ge $((4 * $(of fast_direct delay_us_p50))) ]
}

# same A B: within 30 %.
same() { [ $(($1 * 10)) -ge $(($2 * 7)) ] && [ $(($2 * 10)) -ge $(($1 * 7)) ] && [ "$1" -gt 0 ]; }

# put_arrivals FOLDER: what can be told of any stream.
put_arrivals() {
    put ttft_ms "$(ms_of "$1" first_us)"
    put gap_p50_ms "$(ms_of "$1" gap_us_p50)"
    pairs=$(($(of "$1" events) - 1))
    [ "$pairs" -lt 1 ] || put coalesced_percent "$(milliseconds $(($(of "$1" coalesced) * 100000 / pairs)))"
}

put_direct() {
    put direct_ttft_ms "$(ms_of direct first_us)"
    put direct_gap_p50_ms "$(ms_of direct gap_us_p50)"
}

figures_of_stream() {
    put stream "$STREAM"
    put_arrivals slow
    put gap_max_ms "$(ms_of slow gap_us_max)"
    put fast_gap_p50_ms "$(ms_of fast gap_us_p50)"
    put fast_gap_p99_ms "$(ms_of fast gap_us_p99)"
    put delay_p50_ms "$(ms_of slow delay_us_p50)"
    put delay_max_ms "$(ms_of slow delay_us_max)"
    [ -n "$ORIGIN_URL" ] || return 0
    probe_direct direct "max_tokens=$SLOW_TOKENS&ttft_ms=200&itl_ms=$SLOW_ITL_MS&stamps=1"
    analyse direct 25000
    put_direct
    finding note stream stream "the first token after $(ms_of slow first_us) ms; without the path after $(ms_of direct first_us) ms"
}

# What a browser offers.
ALL_ENCODINGS="Accept-Encoding: gzip, deflate, br, zstd"

# A browser offers compression. It must not be applied, or at least not hold tokens back.
ask_compression() {
    probe gzip "max_tokens=20&ttft_ms=50&itl_ms=$SLOW_ITL_MS" -H "$ALL_ENCODINGS"
    is_compressed || return 0
    if [ "$reads" -ge 15 ]; then
        finding limit compressed compression "$encoding, flushed for each token: $reads reads for 20 tokens; it costs processor time and makes the stream longer"
    else
        finding fault compressed compression "$encoding, and 20 tokens came in $reads reads: the compressor holds them back"
    fi
}

# The reply in $TMP/gzip: its encoding, and in how many reads it came. Its events cannot be read; but
# when did bytes come?
is_compressed() {
    encoding=$(header gzip content-encoding)
    put compressed "${encoding:-none}"
    if [ -z "$encoding" ]; then
        finding ok compressed compression "none, though gzip, deflate, br and zstd were offered"
        return 1
    fi
    reads=$(run_awk trace_clock,trace_reads "$TMP/gzip/trace" | wc -l)
}

# A silence between tokens, as in a long prefill or a tool call: does a timeout cut it?
ask_silence() {
    probe silence "max_tokens=6&ttft_ms=0&itl_ms=20&fault=stall@3:$((SILENCE_S * 1000))"
    if whole silence; then
        put silence "${SILENCE_S}s"
        finding ok timeout silence "$SILENCE_S s without a token are survived (--silence S tries longer ones)"
        return
    fi
    put silence cut
    code=$(sed -n 's/^head	[0-9]*	\([0-9]*\).*/\1/p' "$TMP/silence/events" | tail -n 1)
    cut_us=$(run_awk trace_clock,trace_end "$TMP/silence/trace")
    finding fault timeout silence "the stream was cut $(milliseconds "$cut_us") ms after the request, in a silence of $SILENCE_S s (HTTP ${code:-none}): $(why silence)"
    probe ping "max_tokens=6&ttft_ms=0&itl_ms=20&fault=stall@3:$((SILENCE_S * 1000))&ping_ms=$((cut_us / 3000 + 1))"
    if whole ping; then
        finding note timeout silence "with a comment sent every $((cut_us / 3000 + 1)) ms in the silence (ping_ms) the stream survives"
    else
        finding note timeout silence "comments sent in the silence (ping_ms) do not keep it alive"
    fi
}

# The same request twice: does the second get the first one's reply?
ask_cache() {
    query="max_tokens=3&ttft_ms=0&itl_ms=0&stamps=1&hints=1"
    probe once "$query"
    SEED=$((SEED - 1))
    probe again "$query"
    if whole once && whole again && [ "$(stamp_of once)" = "$(stamp_of again)" ]; then
        put cached yes
        finding fault cached cache "the same request twice got the same reply, with the first one's time stamps: a cache answers for the server"
    else
        put cached no
        finding ok cached cache "the same request twice is generated twice"
    fi
}

stamp_of() { sed -n 's/.*"t_us":\([0-9]*\).*/\1/p' "$TMP/$1/events" | head -n 1; }

# Another proxy in front of this path needs the header; so does the path's own first hop.
ask_header() {
    probe header "max_tokens=1&ttft_ms=0&hints=1"
    if [ "$(header header x-accel-buffering)" = no ]; then
        put x_accel_buffering kept
        finding ok header header "X-Accel-Buffering: no reaches the client, so an nginx in front of this path would not buffer"
    else
        put x_accel_buffering eaten
        finding note header header "X-Accel-Buffering: no is eaten on the path: an nginx in front of it would buffer by its own setting"
    fi
}

# HEAD answers at once and generates nothing.
ask_head() {
    id=$(new_id "$SCRIPT")
    runnel_url "max_tokens=5&ttft_ms=$((SILENCE_S * 1000))"
    mkdir -p "$TMP/HEAD"
    status=$( (curl_run --max-time "$((SILENCE_S > 2 ? SILENCE_S - 1 : 2))" -I -H "X-Request-Id: $id" -o "$TMP/HEAD/head" -w '%{http_code}' "$URL") 2>"$TMP/curl.err") || status="none ($(curl_error))"
    put head "$status"
    if [ "$status" != 200 ]; then
        finding note head HEAD "is answered with $status, GET with 200"
    elif [ -n "$LEDGER_URL" ] && ledger_ask "$id"; then
        put head_generates yes
        finding fault head HEAD "started a generation of $(record generated) tokens: the path sends it on as GET"
    else
        put head_generates no
        finding ok head HEAD "200 at once, and nothing is generated"
    fi
}

# ask_protocol NAME CURL_OPTION: does a stream over another version of HTTP come as it was sent?
ask_protocol() {
    probe "$1" "max_tokens=20&ttft_ms=50&itl_ms=$SLOW_ITL_MS&stamps=1" "$2"
    version=$(sed -n '1s/ .*//p' "$TMP/$1/head" 2>/dev/null) || version=
    case $1-$version in
        http10-*) ;;
        http2-HTTP/2*) ;;
        *)
            put "$1" none
            finding note protocol "$3" "not spoken here"
            return
            ;;
    esac
    analyse "$1" 25000
    if ! whole "$1"; then
        put "$1" failed
        finding fault cut "$3" "the stream does not come whole: $(why "$1")"
    elif [ $(($(of "$1" arrived_us) * 10)) -lt "$(of "$1" sent_us)" ]; then
        put "$1" buffered
        finding fault buffered "$3" "20 tokens sent over $(ms_of "$1" sent_us) ms arrived within $(ms_of "$1" arrived_us) ms"
    else
        put "$1" ok
        finding ok protocol "$3" "20 tokens sent over $(ms_of "$1" sent_us) ms arrived over $(ms_of "$1" arrived_us) ms"
    fi
}
