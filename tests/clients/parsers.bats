#!/usr/bin/env bats
# Independent SSE parsers read every wire spelling and every fault as docs/http-api.md says.
#
# SC2016: what looks like a variable in single quotes is jq's. SC2034: `want` is for each_reads.
# SC2154: harness.bash sets ROOT, GEN, PYTHON. SC1091: it is checked by itself.
# shellcheck disable=SC2016,SC2034,SC2154,SC1091

load ../integration/harness

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

# read_with READER TARGET [LAST-EVENT-ID]: its object.
read_with() {
    local reader=$1 url=$URL$2 here=$ROOT/tests/clients

    shift 2
    case $reader in
    parser) node "$here/read_parser.mjs" "$url" "$@" ;;
    httpx) "$ROOT/build/clients/python/bin/python" "$here/read_httpx.py" "$url" "$@" ;;
    *) node "$here/read_eventsource.mjs" "$reader" "$url" "$@" ;;
    esac
}

# each_reads TARGET JQ [READERS]: that JQ is true of what each saw; $want is the full list of tokens.
each_reads() {
    local reader seen

    for reader in ${3:-$READERS}; do
        seen=$(read_with "$reader" "$1")
        jq -e --argjson want "$want" "$2" <<<"$seen" >/dev/null || {
            echo "$reader, $1: not true: $2"
            echo "$seen"
            return 1
        }
    done
}

tokens_of() { # VOCAB TOKENS
    "$GEN" --prompt hello --tokens "$2" --vocab "$1" --format json | jq -c .tokens
}

@test "each legal spelling gives the identical tokens, words and torture" {
    for vocab in words torture; do
        want=$(tokens_of "$vocab" 100)
        for wire in lf crlf cr nospace comments multiline drip; do
            each_reads "/stream?prompt=hello&max_tokens=100&itl_ms=0&vocab=$vocab&wire=$wire" \
                '.status == 200 and .tokens == $want and .done and .error == null and .garbled == 0'
        done
        each_reads "/stream?prompt=hello&max_tokens=100&itl_ms=0&vocab=$vocab&wire=bom" \
            '.tokens == $want and .done and .garbled == 0' "$BOM_READERS"
    done
}

@test "the spellings with ids, chunks, stamps and pings too" {
    want=$(tokens_of torture 60)
    for wire in lf crlf cr nospace comments multiline drip; do
        each_reads "/stream?prompt=hello&max_tokens=60&itl_ms=0&vocab=torture&wire=$wire&ids=1&stamps=1&chunk=7" \
            '.done and (.tokens | add) == ($want | add) and .ids[0] == "7" and .ids[-1] == "60"'
    done
    seen=$(read_with parser '/stream?prompt=hello&max_tokens=2&ttft_ms=120&ping_ms=20&wire=crlf')
    jq -e '.pings >= 3 and .done' <<<"$seen"
}

@test "the byte order mark costs a reader that does not know it exactly the first event" {
    want=$(tokens_of words 10)
    each_reads '/stream?prompt=hello&max_tokens=10&wire=bom' '.tokens == $want[1:] and .done' httpx
}

@test "error@K: K tokens, the error event, no [DONE]" {
    want=$(tokens_of words 10)
    each_reads '/stream?prompt=hello&max_tokens=10&fault=error@4' \
        '.tokens == $want[:4] and .error == "fault" and (.done | not)'
}

@test "eof@K and reset@K: K tokens and no [DONE]" {
    want=$(tokens_of words 10)
    for fault in eof@4 reset@4 eof@0; do
        count=${fault#*@}
        each_reads "/stream?prompt=hello&max_tokens=10&fault=$fault" \
            ".tokens == \$want[:$count] and .error == null and (.done | not)"
    done
}

@test "stall@K:MS: everything, later" {
    want=$(tokens_of words 10)
    each_reads '/stream?prompt=hello&max_tokens=10&fault=stall@4:300&ping_ms=50' \
        '.tokens == $want and .done'
    id=stall-of-300
    get '/stream?prompt=hello&max_tokens=10&fault=stall@4:300' -H "X-Request-Id: $id" >/dev/null
    ledger_is "$id" '.outcome == "done" and .duration_ms >= 314'
}

@test "status:CODE: the status, and no stream" {
    want=[]
    for status in 400 429 500 503; do
        each_reads "/stream?prompt=hello&max_tokens=10&fault=status:$status" \
            ".status == $status and .tokens == [] and (.done | not)" 'parser eventsource httpx'
    done
}

@test "garble@K: exactly event K does not parse" {
    want=$(tokens_of words 10)
    each_reads '/stream?prompt=hello&max_tokens=10&fault=garble@4' \
        '.tokens == $want[:4] + $want[5:] and .garbled == 1 and .done'
}

@test "dup@K: event K twice, told by its id" {
    want=$(tokens_of words 10)
    each_reads '/stream?prompt=hello&max_tokens=10&fault=dup@4&ids=1' \
        '.tokens == $want[:5] + $want[4:] and .ids[4] == .ids[5] and (.ids | unique | length) == 10'
}

@test "nodone: all tokens, no [DONE]" {
    want=$(tokens_of words 10)
    each_reads '/stream?prompt=hello&max_tokens=10&fault=nodone' '.tokens == $want and (.done | not)'
}

@test "each resumes after any event, and stops at 204" {
    want=$(tokens_of torture 10)
    for reader in parser eventsource httpx; do
        for last in 0 1 9 10; do
            seen=$(read_with "$reader" '/stream?prompt=hello&max_tokens=10&vocab=torture&ids=1' "$last")
            jq -e --argjson want "$want" ".tokens == \$want[$last:] and .done" <<<"$seen" || {
                echo "$reader after $last: $seen"
                false
            }
        done
        seen=$(read_with "$reader" '/stream?prompt=hello&max_tokens=10&ids=1' 'done')
        jq -e '.status == 204 and .tokens == []' <<<"$seen" || {
            echo "$reader after done: $seen"
            false
        }
    done
}
