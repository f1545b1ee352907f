#!/usr/bin/env bats
# Independent SSE parsers read every wire spelling and every fault as docs/http-api.md says.
#
# SC2016: what looks like a variable in single quotes is jq's. SC2034: `want` is for each_reads.
# SC2154: harness.bash sets ROOT, GEN, PYTHON. SC1091: it is checked by itself.
# shellcheck disable=SC2016,SC2034,SC2154,SC1091

load ../integration/harness

want=[]

# Each prints the same object: {status, tokens, ids, done, error, garbled, pings}.
READERS='parser eventsource undici httpx'

# httpx-sse 0.4.3 takes the mark for a part of the first field's name, and loses the first event.
BOM_READERS='parser eventsource undici'

setup_file() {
    lab_open
    start_responder --ttft-ms 5 --itl-ms 1
    PORT=$("$PYTHON" -c '
import socket
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    print(probe.getsockname()[1])')
    URL=http://127.0.0.1:$PORT
    export PORT URL
    start_nginx "s|listen unix:http.sock;|listen unix:http.sock; listen 127.0.0.1:$PORT;|"
}

# read_with READER: what it saw of each of the readings on standard input, one object a line.
read_with() {
    local here=$ROOT/tests/clients

    case $1 in
    parser) node "$here/read_parser.mjs" ;;
    httpx) "$ROOT/build/clients/python/bin/python" "$here/read_httpx.py" ;;
    *) node "$here/read_eventsource.mjs" "$1" ;;
    esac
}

# plan JQ TARGET [LAST-EVENT-ID]: a reading, of which JQ is to be true; $want is the full list of
# tokens, as it is now.
plan() {
    jq -nc --arg url "$URL$2" --arg last "${3-}" '{url: $url, last: (if $last == "" then null else $last end)}' \
        >>readings
    printf '%s\n' "$1" >>judgements
    printf '%s\n' "$want" >>wants
}

# each_reads [READERS]: does what was planned, one process a reader.
each_reads() {
    local reader seen judgement target

    for reader in ${1:-$READERS}; do
        read_with "$reader" <readings >answers
        [ "$(wc -l <answers)" = "$(wc -l <readings)" ]
        while read -r seen <&4 && read -r judgement <&5 && read -r want <&6 && read -r target <&7; do
            jq -e --argjson want "$want" "$judgement" <<<"$seen" >/dev/null || {
                echo "$reader, $target: not true: $judgement"
                echo "$seen"
                return 1
            }
        done 4<answers 5<judgements 6<wants 7<readings
    done
    rm readings judgements wants
}

tokens_of() { # VOCAB TOKENS
    "$GEN" --prompt hello --tokens "$2" --vocab "$1" --format json | jq -c .tokens
}

@test "each legal spelling gives the identical tokens, words and torture" {
    for vocab in words torture; do
        want=$(tokens_of "$vocab" 100)
        for wire in lf crlf cr nospace comments multiline drip; do
            plan '.status == 200 and .tokens == $want and .done and .error == null and .garbled == 0' \
                "/stream?prompt=hello&max_tokens=100&itl_ms=0&vocab=$vocab&wire=$wire"
        done
    done
    each_reads
    for vocab in words torture; do
        want=$(tokens_of "$vocab" 100)
        plan '.tokens == $want and .done and .garbled == 0' \
            "/stream?prompt=hello&max_tokens=100&itl_ms=0&vocab=$vocab&wire=bom"
    done
    each_reads "$BOM_READERS"
}

@test "the spellings with ids, chunks, stamps and pings too" {
    want=$(tokens_of torture 60)
    for wire in lf crlf cr nospace comments multiline drip; do
        plan '.done and (.tokens | add) == ($want | add) and .ids[0] == "7" and .ids[-1] == "60"' \
            "/stream?prompt=hello&max_tokens=60&itl_ms=0&vocab=torture&wire=$wire&ids=1&stamps=1&chunk=7"
    done
    each_reads
    plan '.pings >= 3 and .done' '/stream?prompt=hello&max_tokens=2&ttft_ms=120&ping_ms=20&wire=crlf'
    each_reads parser
}

@test "the byte order mark costs a reader that does not know it exactly the first event" {
    want=$(tokens_of words 10)
    plan '.tokens == $want[1:] and .done' '/stream?prompt=hello&max_tokens=10&wire=bom'
    each_reads httpx
}

@test "faults after the head" {
    want=$(tokens_of words 10)
    of_ten='/stream?prompt=hello&max_tokens=10&fault'
    # error@K: K tokens, the error event, no [DONE]
    plan '.tokens == $want[:4] and .error == "fault" and (.done | not)' "$of_ten=error@4"
    # eof@K and reset@K: K tokens and no [DONE]
    for fault in eof@4 reset@4 eof@0; do
        plan ".tokens == \$want[:${fault#*@}] and .error == null and (.done | not)" "$of_ten=$fault"
    done
    # garble@K: exactly event K does not parse
    plan '.tokens == $want[:4] + $want[5:] and .garbled == 1 and .done' "$of_ten=garble@4"
    # dup@K: event K twice, told by its id
    plan '.tokens == $want[:5] + $want[4:] and .ids[4] == .ids[5] and (.ids | unique | length) == 10' \
        "$of_ten=dup@4&ids=1"
    # nodone: all tokens, no [DONE]
    plan '.tokens == $want and (.done | not)' "$of_ten=nodone"
    each_reads
}

@test "stall@K:MS: everything, later" {
    want=$(tokens_of words 10)
    plan '.tokens == $want and .done' '/stream?prompt=hello&max_tokens=10&fault=stall@4:300&ping_ms=50'
    each_reads
    id=stall-of-300
    get '/stream?prompt=hello&max_tokens=10&fault=stall@4:300' -H "X-Request-Id: $id" >/dev/null
    ledger_is "$id" '.outcome == "done" and .duration_ms >= 314'
}

@test "status:CODE: the status, and no stream" {
    for status in 400 429 500 503; do
        plan ".status == $status and .tokens == [] and (.done | not)" \
            "/stream?prompt=hello&max_tokens=10&fault=status:$status"
    done
    each_reads 'parser eventsource httpx'
}

@test "each resumes after any event, and stops at 204" {
    want=$(tokens_of torture 10)
    for last in 0 1 9 10; do
        plan ".tokens == \$want[$last:] and .done" \
            '/stream?prompt=hello&max_tokens=10&vocab=torture&ids=1' "$last"
    done
    plan '.status == 204 and .tokens == []' '/stream?prompt=hello&max_tokens=10&ids=1' 'done'
    each_reads 'parser eventsource httpx'
}
