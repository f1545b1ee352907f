#!/usr/bin/env bats
# The instruments at servers that are not ours: llama.cpp, with a model whose text is known
# (ring_model.py), and LiteLLM, a gateway in front of it.
#
# The server's own counts and times are the witness: usage, and the timings of llama.cpp's last chunk.
#
# SC2016: jq's and nginx's variables. SC2030, SC2031: each test is a subshell. SC2154: harness.bash
# sets ROOT, LAB, PYTHON; bats sets stderr. SC1091: the harness is checked by itself.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154,SC1091

load ../integration/harness

N=60 # tokens of a stream
KEY=sk-of-a-gateway-that-is-gone-in-a-minute

setup_file() {
    lab_open
    SERVERS=$ROOT/build/clients/servers/bin
    SCRIPTS=$ROOT/scripts
    export SERVERS SCRIPTS GATEWAY_KEY=$KEY
    [ -x "$SERVERS/litellm" ] || {
        echo "no $SERVERS/litellm: run tests/clients/setup first" >&2
        return 1
    }
    "$PYTHON" "$ROOT/tests/clients/ring_model.py" ring.gguf
    start_llama llama
    LLAMA=$(cat llama.address)
    start_llama doomed
    export LLAMA LLAMA_PID DOOMED_PID
    start_gateway
}

teardown_file() {
    for pid in "$GATEWAY_PID" "$LLAMA_PID" "$DOOMED_PID"; do
        kill -s TERM "$pid" 2>/dev/null || true
        wait_until 10 has_ended "$pid" || kill -s KILL "$pid"
    done
    lab_close
}

# start_llama NAME: its address in NAME.address, its pid in NAME_PID.
start_llama() {
    "$SERVERS/python" "$ROOT/tests/clients/serve_llama.py" ring.gguf >"$1.address" 2>"$1.log" 3>&- &
    printf -v "${1^^}_PID" '%s' "$!"
    disown # one of them will be killed, which the shell need not tell
    wait_ready llama.cpp "$!" grep -q http "$1.address"
}

# It starts for half a minute on a busy machine, most of it spent on importing itself.
start_gateway() {
    GATEWAY=http://127.0.0.1:$(free_port)
    cat >gateway.yaml <<END
model_list:
  - {model_name: ring, litellm_params: {model: openai/ring, api_base: $LLAMA/v1, api_key: none}}
  - {model_name: doomed, litellm_params: {model: openai/ring, api_base: $(cat doomed.address)/v1, api_key: none, max_retries: 0}}
END
    HOME=$LAB LITELLM_MASTER_KEY=$KEY LITELLM_LOCAL_MODEL_COST_MAP=True NO_DOCS=True \
        "$SERVERS/litellm" --config gateway.yaml --telemetry False --host 127.0.0.1 --port "${GATEWAY##*:}" \
        >gateway.log 2>&1 3>&- &
    GATEWAY_PID=$!
    export GATEWAY GATEWAY_PID
    wait_until 180 gateway_answers_or_died
    is_running "$GATEWAY_PID" || show_logs
    # The first request of its life imports more.
    curl -sf -m 120 -o first -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \
        -d "$(body chat '"max_tokens":1')" "$GATEWAY/v1/chat/completions"
}

gateway_answers_or_died() {
    curl -sf -m 5 -o health "$GATEWAY/health/liveliness" || ! is_running "$GATEWAY_PID"
}

# body KIND [MEMBER]...: a request for a stream of N tokens, without reasoning; later members win.
body() {
    local kind=$1 members

    shift
    case $kind in
    chat) members='"messages":[{"role":"user","content":"hello"}],"chat_template_kwargs":{"enable_thinking":false}' ;;
    completions) members='"prompt":"hello"' ;;
    esac
    jq -cn '[inputs] | add' <<<"{\"model\":\"ring\",\"temperature\":0,\"stream\":true,\"max_tokens\":$N,$members} {$(
        IFS=,
        echo "$*"
    )}"
}

path_of() { [ "$1" = chat ] && echo v1/chat/completions || echo v1/completions; }

# instrument NAME BASE PATH BODY OPTION...
instrument() {
    local name=$1 url=$2/$3 body=$4

    shift 4
    run --separate-stderr "$SCRIPTS/$name" "$url" -d "$body" --bearer-env GATEWAY_KEY "$@"
    printf '%s\n' "$output" "$stderr"
}

# is JQ: true of the last output.
is() { jq -e --argjson n "$N" "$1" <<<"$output"; }

# What the reply in the file body says, read by another reader: jq.
chunks() { sed -n 's/^data: \({.*\)/\1/p' body; }
contents() { chunks | jq -r '.choices[0] | .delta.content // .text // empty | select(. != "") | @json'; }

with_usage='"stream_options":{"include_usage":true}'

@test "chat and completions of both: as many tokens as the server counts" {
    for base in "$LLAMA" "$GATEWAY"; do
        for kind in chat completions; do
            instrument measure "$base" "$(path_of $kind)" "$(body $kind "$with_usage")" --runs 3 --json --keep-body body
            [ "$status" -eq 0 ]
            is '.runs == 3 and .whole == 3 and .failed == [] and .tokens == 3 * $n and ([.streams[].tokens] == [$n, $n, $n])'
            [ "$(chunks | jq '.usage.completion_tokens // empty' | tail -n 1)" = "$N" ]
            # A character of several tokens is one event: the ring has two of them.
            events=$(contents | wc -l)
            [ "$events" -lt "$N" ]
            is ".token_events == 3 * $events and .itl_ms.count == 3 * ($events - 1) and .reasoning_events == 0"
        done
    done
}

@test "without a usage, as many as the events brought; the text is that of a reply in one piece" {
    for base in "$LLAMA" "$GATEWAY"; do
        instrument measure "$base" v1/chat/completions "$(body chat)" --json --keep-body body
        [ "$status" -eq 0 ]
        [ "$(chunks | grep -c '"usage"')" = 0 ]
        is ".tokens == $(contents | wc -l) and .tokens == .token_events"
        text=$(contents | jq -rs 'join("")')
        [[ "$text" == *"near our café then🌊 the sea is calm"* ]]
        curl -sf -o whole -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \
            -d "$(body chat '"stream":false')" "$base/v1/chat/completions"
        [ "$(jq -r '.choices[0].message.content' whole)" = "$text" ]
    done
}

@test "a role and a reasoning are no tokens, and the first token comes after them" {
    for base in "$LLAMA" "$GATEWAY"; do
        # Three words of reasoning and its end, then the answer.
        instrument measure "$base" v1/chat/completions "$(body chat "$with_usage" '"chat_template_kwargs":{"enable_thinking":true}')" \
            --json --keep-events events --keep-body body
        [ "$status" -eq 0 ]
        [ "$(sed -n 2p events | cut -f 4,5)" = $'other\t0' ]
        sed -n 2p events | grep -q '"role":"assistant"'
        is '.reasoning_events == 3'
        is '.ttft_ms.p50 - .first_event_ms.p50 >= 2 * .itl_ms.p50'
        thought=$(chunks | jq '.usage.completion_tokens_details.reasoning_tokens // empty' | tail -n 1)
        if [ -n "$thought" ]; then
            is ".tokens == \$n - $thought" # the gateway tells them apart
        else
            is '.tokens == .token_events'  # llama.cpp does not: only the events say what was the answer
        fi
    done
}

@test "TTFT and ITL against the times that the server itself tells" {
    instrument measure "$LLAMA" v1/completions "$(body completions '"cache_prompt":false')" --json --keep-body body
    [ "$status" -eq 0 ]
    timings=$(chunks | jq -c '.timings // empty' | tail -n 1)
    echo "$timings"
    jq -e --argjson t "$timings" '.streams[0] |
        ((.last_token_ms - .ttft_ms) / $t.predicted_ms | . > 0.75 and . < 1.33) and
        .ttft_ms >= 0.95 * $t.prompt_ms and
        .ttft_ms <= $t.prompt_ms + 0.5 * $t.predicted_ms' <<<"$output"
    is '.itl_ms.p50 as $p | .tpot_ms.p50 | . / $p > 0.5 and . / $p < 2'
    is '.coalesced_share < 0.2 and .ttfb_ms.p50 <= .first_event_ms.p50 and .first_event_ms.p50 <= .ttft_ms.p50'
}

@test "ttft, itl and report, and a picture" {
    request=$(body chat "$with_usage")
    for base in "$LLAMA" "$GATEWAY"; do
        instrument ttft "$base" v1/chat/completions "$request"
        [ "$status" -eq 0 ]
        [[ "$output" =~ ^ttft_ms=[1-9][0-9]*$ ]]
        instrument itl "$base" v1/chat/completions "$request" --keep-body body
        [ "$status" -eq 0 ]
        [[ "$output" =~ ^count=$(($(contents | wc -l) - 1))\ p50_ms=[0-9.]+\ p99_ms=[0-9.]+$ ]]
        instrument report "$base" v1/chat/completions "$request" --keep-events "${base##*:}.tsv"
        [ "$status" -eq 0 ]
        [ "${#lines[@]}" -eq 4 ]
        [ "${lines[2]}" = tokens=$N ]
        # Throughput is N tokens over TTFT and all gaps: it follows from the events that were kept.
        awk -F '\t' -v n=$N -v said="${lines[3]#*=}" '$4 == "token" { us = $2 }
            END { ratio = said * us / 1e6 / n; exit !(ratio > 0.999 && ratio < 1.001) }' "${base##*:}.tsv"
    done
    "$SCRIPTS/plot" "${LLAMA##*:}.tsv=direct" "${GATEWAY##*:}.tsv=gateway" --format svg
    grep -q gateway timeline.svg
    [ -s gaps.svg ]
}

@test "other APIs: llama.cpp's own, Messages, Responses" {
    messages=$(body chat "\"max_tokens\":$N")
    instrument measure "$LLAMA" completion "{\"prompt\":\"hello\",\"n_predict\":$N,\"temperature\":0,\"stream\":true}" --json
    [ "$status" -eq 0 ]
    is '.whole == 1 and .tokens == $n and .token_events < $n'
    instrument measure "$LLAMA" v1/messages "$messages" --json
    [ "$status" -eq 0 ]
    is '.tokens == $n and .token_events < $n'
    instrument measure "$GATEWAY" v1/messages "$messages" --json --keep-body body
    [ "$status" -eq 0 ]
    is ".tokens == $(sed -n 's/^data: \({.*\)/\1/p' body | jq '.usage.output_tokens // empty' | tail -n 1)"
    # Each part's text comes again when it is done; the reasoning is one of them.
    instrument measure "$LLAMA" v1/responses "{\"input\":\"hello\",\"max_output_tokens\":$N,\"temperature\":0,\"stream\":true}" \
        --json --keep-body body
    [ "$status" -eq 0 ]
    is ".reasoning_events == 3 and .token_events == $(grep -c '"type":"response.output_text.delta"' body)"
}

@test "what fails is no figure: refused, no key, and a server that dies behind the gateway" {
    instrument measure "$LLAMA" v1/chat/completions '{"stream":true}'
    [ "$status" -eq 1 ]
    [ -z "$output" ]
    [[ "$stderr" == *"HTTP status 400: "*messages* ]]
    run --separate-stderr "$SCRIPTS/measure" "$GATEWAY/v1/chat/completions" -d "$(body chat)" -H "Authorization: Bearer sk-wrong"
    [ "$status" -eq 1 ]
    [[ "$stderr" == *"HTTP status 4"* ]]

    # A 200 and a clean end, and in between an event with an error: it must not pass for a short answer.
    "$SCRIPTS/measure" "$GATEWAY/v1/chat/completions" --bearer-env GATEWAY_KEY \
        -d "$(body chat '"model":"doomed"' '"max_tokens":1500')" --keep-body body >out 2>err 3>&- &
    measuring=$!
    doomed=$(cat doomed.address)
    wait_until 60 generates "$doomed" || return 1
    kill -s KILL "$DOOMED_PID"
    status=0
    wait "$measuring" || status=$?
    cat err
    [ "$status" -eq 1 ]
    [ ! -s out ]
    grep -E 'an error event after [1-9][0-9]* tokens: ' err
    [ "$(contents | wc -l)" -gt 10 ]
}

# generates ADDRESS: a request runs there, and more than 20 tokens have been made.
generates() {
    curl -sf -m 5 "$1/metrics" >metrics && grep -qx 'llamacpp:requests_processing 1' metrics &&
        awk '$1 == "llamacpp:n_decode_total" { exit !($2 > 20) }' metrics
}

# --- the doctor ---

# front BASE DIRECTIVE...: nginx in front of that; its URL in FRONT. Both the server and the gateway send
# X-Accel-Buffering: no, so a default nginx would stream: here it is told not to listen.
front() {
    local base=$1

    shift
    FRONT=http://127.0.0.1:$(free_port)
    front_conf front <<END
server {
    listen ${FRONT#http://};
    proxy_ignore_headers X-Accel-Buffering;
    $*
    location / { proxy_pass $base; }
}
END
    other_nginx front
    owned "$OTHER_PID"
    wait_ready "nginx (front)" "$OTHER_PID" curl -s -m 5 "$FRONT/"
}

# doctor BASE OPTION...: the figures are in the file figures; $tokens in the stream.
doctor() {
    local base=$1

    shift
    instrument doctor "$base" v1/chat/completions "$(body chat "\"max_tokens\":${tokens:-$N}")" --out figures "$@"
    one_line=$(tr -s ' \n' ' ' <<<"$output")
    [ -z "$stderr" ]
}

figure_is() { grep -x "$1" figures; }

@test "doctor: nginx that buffers, named by comparison with the origin" {
    front "$GATEWAY" 'proxy_buffering on;' 'proxy_http_version 1.0;' 'proxy_buffer_size 4k;' 'proxy_buffers 8 4k;'
    # A short reply fits into a buffer, a longer one comes as buffers fill.
    tokens=12 doctor "$FRONT" --origin "$LLAMA" --ask stream
    [ "$status" -eq 1 ]
    [[ "$one_line" == *"FAULT stream through the path "*" token events in "*"; at the origin "*": the path holds tokens back until the end"* ]]
    figure_is stream=whole
    doctor "$FRONT" --origin "$LLAMA"
    [ "$status" -eq 1 ]
    [[ "$one_line" == *"FAULT stream through the path "*" token events in "*"; at the origin "*"held back for a time or until a buffer is full"* ]]
    [[ "$one_line" == *"> nginx fastcgi_buffering off; (proxy_buffering off;"* ]]
    figure_is 'stream=bursts:[1-9][0-9]*'
    figure_is verdict=fault
    # That is all: an abort arrives.
    [ "$(grep -c '^FAULT' <<<"$output")" = 1 ]
    [[ "$one_line" == *"ok abort the running requests were 0 again"* ]]
    # Without the origin it cannot tell the path from the server, and says so.
    tokens=12 doctor "$FRONT" --ask stream
    [ "$status" -eq 1 ]
    [[ "$one_line" == *"FAULT stream "*"the path buffers, or the server does not stream. --origin tells which"* ]]
}

@test "doctor: nginx as it should be" {
    front "$GATEWAY" 'proxy_buffering off;' 'proxy_http_version 1.1;'
    doctor "$FRONT" --origin "$LLAMA"
    [ "$status" -eq 0 ]
    figure_is stream=clean
    figure_is compressed=none
    figure_is verdict=clean
    [[ "$one_line" == *"ok abort the running requests were 0 again"* ]]
}

# llama.cpp answers in chunks whatever it is asked for, and nginx passes a chunk on when it has come.
@test "doctor: nginx that buffers holds back what ends with the connection, and no chunks" {
    front "$LLAMA" 'proxy_buffering on;' 'proxy_http_version 1.0;'
    doctor "$FRONT" --origin "$LLAMA" --ask stream
    [ "$status" -eq 0 ]
    figure_is stream=clean
}

@test "doctor: an abort that nginx keeps to itself is seen in the server's gauge" {
    front "$GATEWAY" 'proxy_buffering on;' 'proxy_http_version 1.0;' 'proxy_ignore_client_abort on;'
    doctor "$FRONT" --origin "$LLAMA" --ask abort
    [ "$status" -eq 1 ]
    [[ "$one_line" == *"FAULT abort the running requests were "*" again only "*" ms after the client had gone"* ]]
    [[ "$one_line" == *"> nginx fastcgi_ignore_client_abort off; (proxy_ignore_client_abort off;)"* ]]
}

@test "doctor: compression, and what it does to the tokens" {
    front "$LLAMA" 'proxy_buffering off;' 'proxy_http_version 1.1;' 'gzip on;' 'gzip_proxied any;' 'gzip_types text/event-stream;'
    doctor "$FRONT" --ask compression
    [ "$status" -eq 0 ]
    figure_is compressed=gzip
    front "$LLAMA" 'proxy_buffering on;' 'gzip on;' 'gzip_proxied any;' 'gzip_types text/event-stream;'
    instrument measure "$FRONT" v1/chat/completions "$(body chat)" -H 'Accept-Encoding: gzip'
    [ "$status" -eq 1 ]
    [[ "$stderr" == *"the body is compressed (gzip)"* ]]
}

@test "doctor: the gateway, with llama.cpp as its origin" {
    doctor "$GATEWAY" --origin "$LLAMA"
    [ "$status" -eq 0 ]
    figure_is stream=clean
    figure_is verdict=clean
    [[ "$one_line" == *"ok abort the running requests were 0 again"* ]]
    # The gateway has no gauge of its own.
    doctor "$GATEWAY" --ask abort
    [ "$status" -eq 0 ]
    [[ "$one_line" == *"note abort not known: this server tells no request's count of tokens"* ]]
}
