#!/usr/bin/env bats
# The HTTP interface, as a client sees it through nginx: routes, methods, headers, and every way
# in which a request can be wrong.
#
# SC2154: code is set by ask. SC2030, SC2031: a test's code is its own. SC2034: HTTP_SOCKET is read
# by the harness.
# shellcheck disable=SC2154,SC2030,SC2031,SC2034

load harness

setup_file() {
    lab_open
    start_responder --ttft-ms 0 --itl-ms 0
    start_nginx
}

# is_error STATUS [CODE [PARAM]]: the last reply is this error, in its one shape.
is_error() {
    if [ "$code" = "$1" ] && grep -qi '^content-type: application/json.$' head &&
        grep -qi '^x-request-id: .' head &&
        jq -e --arg code "${2:-}" --arg param "${3:-}" '
            keys == ["error"] and (.error | keys == ["code", "message", "param", "type"] and
                (.message | type == "string" and length > 10) and
                (.type | type == "string") and (.code | type == "string") and
                ($code == "" or .code == $code) and
                ($param == "" or .param == $param and (.message | contains($param))))' \
            body >jq.out; then
        return 0
    fi
    echo "expected: $*"
    cat head body
    return 1
}

# refused QUERY CODE [PARAM]: /stream says 400.
refused() {
    ask "/stream?$1"
    is_error 400 "${@:2}"
}

# refused_body BODY CODE [PARAM]: /generate says 400.
refused_body() {
    ask /generate -H 'Content-Type: application/json' --data-binary "$1"
    is_error 400 "${@:2}"
}

# body_of SIZE START: JSON of SIZE bytes, its last string filled up.
body_of() {
    printf '%s' "$2"
    head -c $(($1 - ${#2} - 2)) /dev/zero | tr '\0' b
    printf '"}'
}

# --- routes and methods ---

@test "GET /stream: events, one token each, and [DONE]" {
    ask '/stream?prompt=hello&max_tokens=20'
    [ "$code" = 200 ]
    [ "$(grep -c '^data: {"token":".*"}$' body)" = 20 ]
    [ "$(grep -c '^$' body)" = 21 ]
    [ "$(grep -c . body)" = 21 ]
    [ "$(tail -n 2 body)" = 'data: [DONE]' ]
    [ "$(head -n 1 body)" = 'data: {"token":"The"}' ]
}

@test "GET /stream: 128 tokens when the request does not say" {
    ask '/stream?prompt=hello'
    [ "$(grep -c '^data: {' body)" = 128 ]
}

@test "POST /generate: text and usage" {
    ask /generate -H 'Content-Type: application/json' -d '{"prompt":"hello","max_tokens":20}'
    [ "$code" = 200 ]
    [ "$(header content-type)" = application/json ]
    [ "$(header content-length)" = "$(wc -c <body)" ]
    jq -e '.usage == {prompt_tokens: 1, completion_tokens: 20, total_tokens: 21}' body
    [ "$(jq -r .text body)" = "$("$GEN" --prompt hello --tokens 20 --format text)" ]
}

@test "POST /generate: no Content-Type, and one with a charset, are JSON too" {
    for type in 'Content-Type:' 'Content-Type: application/json; charset=utf-8' \
        'Content-Type: Application/JSON'; do
        ask /generate -H "$type" -d '{"prompt":"hello","max_tokens":2}'
        [ "$code" = 200 ]
    done
}

@test "GET /healthz: ok" {
    ask /healthz
    [ "$code" = 200 ]
    [ "$(cat body)" = ok ]
}

@test "GET /_debug/generated: the last stream, the sums; by id; 404 for an unknown id" {
    ask '/stream?prompt=hello&max_tokens=7' -H 'X-Request-Id: seven'
    ask /_debug/generated
    [ "$code" = 200 ]
    jq -e '.id == "seven" and .requested == 7 and .generated == 7 and .outcome == "done" and
           .route == "stream" and .delivered == 7 and .discarded == 0 and .phase == "decode" and
           .detected_by == null and .ttft_ms >= 0 and .duration_ms >= .ttft_ms and
           .total == .ledger.generated' body
    before=$(jq .total body)
    # A /generate is found by its id, but is not "the last stream".
    ask /generate -H 'X-Request-Id: five' -d '{"prompt":"hello","max_tokens":5}' \
        -H 'Content-Type: application/json'
    ask /_debug/generated
    jq -e --argjson before "$before" '.id == "seven" and .total == $before + 5' body
    ask '/_debug/generated?id=five'
    jq -e '.id == "five" and .route == "generate" and .generated == 5 and .delivered == 5' body
    ask '/_debug/generated?id=nobody'
    is_error 404 unknown_id id
}

@test "HEAD: the head of GET, and no generation" {
    before=$(get /_debug/generated | jq .total)
    for target in '/stream?prompt=hello' /healthz /_debug/generated; do
        ask "$target" -I
        [ "$code" = 200 ]
        [ ! -s body ] || cmp head body # curl -I writes the head as the body
        cp head of_head
        ask "$target"
        for name in content-type cache-control x-accel-buffering; do
            [ "$(header $name)" = "$(tr -d '\r' <of_head | sed -n "s/^$name: //Ip")" ]
        done
        before=$((before + $(grep -c '^data: {' body || true)))
    done
    ask '/stream?prompt=' -I
    [ "$code" = 400 ]
    [ "$(get /_debug/generated | jq .total)" = "$before" ]
}

@test "a wrong method: 405 with Allow, and nothing is generated" {
    before=$(get /_debug/generated | jq .ledger.accepted)
    for method in POST PUT DELETE PATCH OPTIONS get; do
        for path in /stream /healthz /_debug/generated; do
            ask "$path?prompt=hello" -X "$method"
            # nginx itself refuses a method in lower case
            [ "$method" != get ] || { [ "$code" = 400 ] || [ "$code" = 405 ]; continue; }
            is_error 405
            [ "$(header allow)" = 'GET, HEAD' ]
        done
    done
    for method in -XGET -I -XPUT; do
        ask '/generate?prompt=hello' "$method"
        [ "$code" = 405 ]
        [ "$(header allow)" = POST ]
    done
    ask /stream -X TRACE
    [ "$code" = 405 ]
    jq -e .error.code body
    [ "$(get /_debug/generated | jq .ledger.accepted)" = "$before" ]
}

@test "an unknown path: 404, also where it looks like a known one" {
    for path in /nothing /stream/ /streams //stream /Stream /generate/x /_debug /_debug/ \
        /healthz/ /stream%00 /stream%20 '/%2e%2e/stream/..'; do
        ask "$path?prompt=hello" --path-as-is
        # nginx alone answers a path that it cannot decode
        [ "$code" = 404 ] || { [ "$path" = /stream%00 ] && [ "$code" = 400 ]; }
        jq -e .error.message body
    done
    ask '/str%65am?prompt=hello&max_tokens=1' # an escape of a plain letter is that letter
    [ "$code" = 200 ]
}

@test "routes of the contract that come later answer once they are there" {
    missing=''
    for path in / /metrics /v1/models; do
        ask "$path"
        [ "$code" != 404 ] || { missing="$missing $path"; continue; }
        [ "$code" = 200 ]
        ask "$path" -X DELETE
        is_error 405
    done
    for path in /v1/completions /v1/chat/completions; do
        ask "$path"
        [ "$code" != 404 ] || { missing="$missing $path"; continue; }
        is_error 405
        [ "$(header allow)" = POST ]
    done
    [ -z "$missing" ] || skip "not there yet:$missing"
}

# --- wrong requests ---

@test "prompt: missing, empty, malformed, with a NUL, too long, twice" {
    refused '' missing prompt
    refused 'max_tokens=5' missing prompt
    refused 'prompt' empty prompt
    refused 'prompt=' empty prompt
    refused 'prompt=a&prompt=b' given_twice prompt
    refused 'prompt=a&pro%6dpt=a' given_twice prompt
    for bad in '%' '%2' '%zz' 'a%2' '%%20' '%+1' '%0x'; do
        refused "prompt=$bad" bad_escape
    done
    refused 'prompt=a%00b' nul_byte
    refused 'prompt=%00' nul_byte
    # a lone continuation, a cut sequence, an overlong slash and NUL, a surrogate, beyond U+10FFFF
    for bad in %80 %e2%82 %c0%af %c0%80 %e0%80%af %ed%a0%80 %f4%90%80%80 %f8%88%80%80%80 %ff; do
        refused "prompt=a$bad" bad_utf8
    done
    refused 'prompt=a&%ff=1' bad_utf8
}

@test "prompt in JSON: the same" {
    refused_body '{}' missing prompt
    refused_body '{"max_tokens":5}' missing prompt
    refused_body '{"prompt":""}' empty prompt
    refused_body '{"prompt":"a","prompt":"b"}' given_twice prompt
    for bad in 5 null true '["a"]' '{"a":1}'; do
        refused_body "{\"prompt\":$bad}" wrong_type prompt
    done
    refused_body '{"prompt":"a\u0000b"}' nul_byte
    refused_body $'{"prompt":"\xff"}' bad_utf8
    refused_body $'{"prompt":"\xed\xa0\x80"}' bad_utf8
    refused_body '{"prompt":"\ud800"}'
    refused_body '{"prompt":"\udc00\ud800"}'
    refused_body '{"prompt":"\x"}' bad_json
    refused_body $'{"prompt":"a\nb"}' # a bare control character (RFC 8259, section 7)
    printf '{"prompt":"a\0b"}' >nul
    ask /generate -H 'Content-Type: application/json' --data-binary @nul
    is_error 400 nul_byte
}

@test "prompt of 65536 bytes passes, of 65537 is refused and the limit is told" {
    head -c 65536 /dev/zero | tr '\0' a >longest
    printf '{"max_tokens":1,"prompt":"%s"}' "$(cat longest)" >fits
    printf '{"max_tokens":1,"prompt":"%sa"}' "$(cat longest)" >too_long
    ask /generate -H 'Content-Type: application/json' --data-binary @fits
    [ "$code" = 200 ]
    ask /generate -H 'Content-Type: application/json' --data-binary @too_long
    is_error 400 too_long prompt
    jq -e '.error.message | contains("65537") and contains("65536")' body
}

@test "a body that is no JSON object" {
    refused_body '' empty_body
    refused_body '   ' empty_body
    for bad in '{' '{"prompt":"a"' '{"prompt":"a",}' "{'prompt':'a'}" '{"prompt":"a"}x' hello \
        '{"prompt":"a"}{"prompt":"a"}' 'prompt=a' '{"prompt" "a"}' '{prompt:"a"}'; do
        refused_body "$bad" bad_json
    done
    for bad in '[]' '"a"' 5 null '[{"prompt":"a"}]'; do
        refused_body "$bad" not_an_object
    done
    # Deep nesting is refused, or skipped as an unknown parameter, and hurts nobody.
    printf '{"prompt":"a","max_tokens":1,"x":%s}' "$(printf '[%.0s' $(seq 50000))" >deep
    ask /generate -H 'Content-Type: application/json' --data-binary @deep
    is_error 400 bad_json
}

@test "numbers: each bad spelling of each parameter, in the query" {
    peer spellings query_numbers
}

@test "numbers: each bad spelling of each parameter, in JSON" {
    peer spellings json_numbers
}

@test "numbers: 1e3 is refused in JSON as it is in a query" {
    peer spellings json_exponents
}

@test "numbers: what is allowed, up to the limits" {
    peer spellings good_numbers
}

@test "vocab: another name is refused, and the allowed ones are told" {
    refused 'prompt=a&vocab=latin' not_allowed vocab
    jq -e '.error.message | contains("latin") and contains("words") and contains("torture")' body
    refused 'prompt=a&vocab=' not_allowed vocab
    refused 'prompt=a&vocab=Words' not_allowed vocab
    refused_body '{"prompt":"a","vocab":"latin"}' not_allowed vocab
    refused_body '{"prompt":"a","vocab":1}' wrong_type vocab
}

@test "each parameter given twice is refused, with the same value too" {
    for pair in max_tokens=5 ttft_ms=1 itl_ms=1 seed=1 vocab=words; do
        refused "prompt=a&$pair&$pair" given_twice "${pair%=*}"
        refused "$pair&prompt=a&x=1&$pair" given_twice "${pair%=*}"
    done
    for field in '"max_tokens":5' '"ttft_ms":1' '"itl_ms":1' '"seed":1' '"vocab":"words"'; do
        name=${field%%:*}
        refused_body "{\"prompt\":\"a\",$field,$field}" given_twice "${name//\"/}"
    done
}

@test "unknown parameters are ignored, also when they come twice" {
    ask '/stream?prompt=hello&max_tokens=2&x=1&x=2&Max_tokens=9&=&&y&temperature=0.7'
    [ "$code" = 200 ]
    [ "$(grep -c '^data: {' body)" = 2 ]
    ask /generate -H 'Content-Type: application/json' \
        -d '{"model":"m","prompt":"hello","max_tokens":2,"x":null,"x":[1],"Prompt":"b"}'
    [ "$code" = 200 ]
    [ "$(jq -r .text body)" = "The sailor" ]
}

@test "a message shows what was given, cut and without control characters" {
    refused "prompt=a&max_tokens=%1b%5b31m%0a$(head -c 2000 /dev/zero | tr '\0' 9)" not_a_number
    jq -e '.error.message | length < 300 and (test("[\\x00-\\x1f]") | not)' body
    refused 'prompt=a&max_tokens=%22%5c%e2%80%a8%f0%9f%98%80' not_a_number max_tokens
    jq -e '.error.message | contains("\"\\\u2028\ud83d\ude00")' body
}

@test "413: by the responder from 1 MiB, by nginx from 2 MiB, both with the limit" {
    for size in 1048577 1500000 2000000; do
        body_of "$size" '{"prompt":"a","x":"' >big
        ask /generate -H 'Content-Type: application/json' -H Expect: --data-binary @big
        is_error 413 too_large
        jq -e '.error.message | contains("1048576") and contains("--body-max-bytes")' body
    done
    head -c 2200000 /dev/zero >big
    ask /generate -H 'Content-Type: application/json' -H Expect: --data-binary @big
    is_error 413
    jq -e '.error.message | contains("nginx")' body
}

@test "a body of exactly 1 MiB is read" {
    body_of 1048576 '{"max_tokens":1,"prompt":"a","x":"' >whole
    [ "$(wc -c <whole)" = 1048576 ]
    ask /generate -H 'Content-Type: application/json' -H Expect: --data-binary @whole
    [ "$code" = 200 ]
}

@test "414: a request line longer than nginx takes; one of 50 KiB is served" {
    head -c 60000 /dev/zero | tr '\0' a >long
    printf 'url = "http://localhost/stream?max_tokens=1&prompt=%s"\n' "$(cat long)" >curl.long
    code=$(curl -sS --unix-socket http.sock -D head -o body -w '%{http_code}' -K curl.long)
    is_error 414
    printf 'url = "http://localhost/stream?max_tokens=1&prompt=%s"\n' \
        "$(head -c 51200 long)" >curl.long
    code=$(curl -sS --unix-socket http.sock -D head -o body -w '%{http_code}' -K curl.long)
    [ "$code" = 200 ]
}

@test "415: a body that says it is something else" {
    for type in text/plain application/x-www-form-urlencoded 'multipart/form-data; boundary=x' \
        application/jsonp application/json5 'text/json'; do
        ask /generate -H "Content-Type: $type" -d '{"prompt":"a"}'
        is_error 415
        jq -e '.error.message | contains("application/json")' body
    done
}

# --- headers ---

@test "the headers of a streamed reply, exactly" {
    ask '/stream?prompt=hello&max_tokens=2' -H 'X-Request-Id: a.B_c-9' \
        -H 'Accept-Encoding: gzip, br'
    [ "$(head -n 1 head | tr -d '\r')" = 'HTTP/1.1 200 OK' ]
    [ "$(header content-type)" = 'text/event-stream; charset=utf-8' ]
    [ "$(header cache-control)" = 'no-cache, no-transform' ]
    [ "$(header x-accel-buffering)" = no ]
    [ "$(header x-request-id)" = a.B_c-9 ]
    [ -z "$(header content-length)$(header content-encoding)" ]
    [ "$(header transfer-encoding)" = chunked ]
    for name in content-type cache-control x-accel-buffering x-request-id; do
        [ "$(grep -ci "^$name:" head)" = 1 ]
    done
    [ "$(grep -ci '^status:' head || true)" = 0 ]
}

@test "hints=0: the head does not ask proxies for anything, and still comes at once" {
    ask '/stream?prompt=hello&max_tokens=2&hints=0'
    [ "$(header cache-control)" = no-cache ]
    [ -z "$(header x-accel-buffering)" ]
    [ "$(grep -c '^data:' body)" = 3 ]
    ask '/stream?prompt=hello&max_tokens=2&hints=0' -I
    [ "$(header cache-control)" = no-cache ]
    [ "$(curl -sN --unix-socket "$HTTP_SOCKET" -o body -w '%{time_starttransfer} %{time_total}\n' \
        'http://localhost/stream?prompt=a&max_tokens=2&ttft_ms=400&hints=0' | awk '{ print ($1 < $2 / 2) }')" = 1 ]
    ask /generate -H 'Content-Type: application/json' -d '{"prompt":"a","hints":0}'
    is_error 400
}

@test "X-Request-Id: a good one is echoed, on errors too, any other is replaced" {
    longest=$(head -c 64 /dev/zero | tr '\0' z)
    for id in a 0 a.b-c_D "$longest"; do
        for target in '/stream?prompt=a&max_tokens=1' '/stream?prompt=' /nothing /healthz; do
            ask "$target" -H "X-Request-Id: $id"
            [ "$(header x-request-id)" = "$id" ]
        done
    done
    for id in "${longest}z" 'a b' 'a/b' 'a;b' 'é' 'a"b' '<a>' 'a,b'; do
        ask '/stream?prompt=a&max_tokens=1' -H "X-Request-Id: $id"
        [[ "$(header x-request-id)" =~ ^[0-9a-f]{32}$ ]]
    done
    ask '/stream?prompt=a&max_tokens=1'
    [[ "$(header x-request-id)" =~ ^[0-9a-f]{32}$ ]]
    first=$(header x-request-id)
    grep -q "id=$first " access.log # nginx's own, so that its log and the ledger agree
    [ "$(ledger "$first" .id)" = "$first" ]
    ask '/stream?prompt=a&max_tokens=1'
    [ "$(header x-request-id)" != "$first" ]
}

@test "errors may not be cached, and 200s of the ledger neither" {
    for target in /nothing '/stream?prompt=' /_debug/generated /healthz; do
        ask "$target"
        [ "$(header cache-control)" = no-store ]
    done
}

# --- around it ---

@test "X-Accel-Buffering: no reaches a second nginx in front, which then does not buffer" {
    front_conf front <<'END'
server {
    listen unix:front.sock;
    location / { proxy_pass http://unix:http.sock:; }
}
server { # the control: it does not heed the header
    listen unix:deaf.sock;
    location / {
        proxy_pass http://unix:http.sock:;
        proxy_ignore_headers X-Accel-Buffering;
    }
}
END
    other_nginx front
    front=$OTHER_PID
    owned "$front"
    wait_ready 'the second nginx' "$front" \
        curl -sf --unix-socket front.sock http://localhost/healthz
    peer hops second_proxy
    kill -TERM "$front"
    ended_with "$front" 10
}

@test "/_debug and /metrics are for this machine only" {
    derive_conf 's|unix:http.sock|unix:far.sock|' 's|^pid nginx.pid|pid far.pid|' \
        's|^ *server_name _;|&\nset_real_ip_from unix:; real_ip_header X-Test-Address;|' >far.conf
    other_nginx far
    far=$OTHER_PID
    owned "$far"
    HTTP_SOCKET=far.sock
    wait_ready 'the second nginx' "$far" get /healthz
    for address in 127.0.0.1 ::1; do
        ask /_debug/generated -H "X-Test-Address: $address"
        [ "$code" = 200 ]
    done
    for address in 203.0.113.9 10.0.0.1 2001:db8::1; do
        for path in /_debug/generated '/_debug/generated?id=x' /_debug /metrics; do
            ask "$path" -H "X-Test-Address: $address"
            is_error 403
        done
        ask '/stream?prompt=a&max_tokens=1' -H "X-Test-Address: $address"
        [ "$code" = 200 ]
    done
    kill -TERM "$far"
    ended_with "$far" 10
}

@test "the books hold after all of this" {
    books_hold
}

@test "the head of a stream comes at once, whatever its length and spelling" {
    for length in 1 2 3 4 5 6 7 8 36 64; do
        id=$(printf "%${length}s" '' | tr ' ' x)
        seconds=$(get '/stream?prompt=a&max_tokens=1&ttft_ms=3000' -H "X-Request-Id: $id" -o /dev/null -w '%{time_starttransfer}' -m 1 || true)
        jq -en "$seconds > 0 and $seconds < 1"
    done
    for wire in bom drip crlf comments; do
        seconds=$(get "/stream?prompt=a&max_tokens=1&ttft_ms=3000&wire=$wire" -o /dev/null -w '%{time_starttransfer}' -m 1 || true)
        jq -en "$seconds > 0 and $seconds < 1"
    done
}

@test "a fault at a token that is not asked for never happens" {
    for fault in error@20 reset@20 eof@20 stall@20:60000 error@99; do
        for wire in lf drip; do
            get "/stream?prompt=a&max_tokens=20&ttft_ms=0&itl_ms=0&chunk=7&wire=$wire&fault=$fault" -m 20 | tail -n 2 | grep -qx 'data: \[DONE\]'
        done
    done
}

@test "HEAD of a stream with fault=status has that status" {
    ask '/stream?prompt=a&fault=status:418' -I
    [ "$code" = 418 ]
}
