#!/usr/bin/env bats
# Who may call: API keys, and pages of other origins.
#
# SC2154: code is set by ask. SC2030, SC2031: a test's code and socket are its own. SC2034:
# HTTP_SOCKET is read by the harness. SC2153: CLIENT is set by start_get.
# shellcheck disable=SC2154,SC2030,SC2031,SC2034,SC2153

load harness

setup_file() {
    lab_open
    printf '# of two people\n\nsk-alice-1\n  sk-bob-2\t\n' >keys
    chmod 600 keys
    start_responder --ttft-ms 0 --itl-ms 0 --api-key-file keys \
        --cors-origin 'https://app.example, http://localhost:3000'
    start_nginx
    # A second pair without either; what it is told differs by test.
    "$RUNNEL" --listen unix:open.sock --ttft-ms 0 --itl-ms 0 >open.log 2>&1 3>&- &
    OPEN_PID=$!
    "$RUNNEL" --listen unix:any.sock --ttft-ms 0 --itl-ms 0 --cors-origin '*' >any.log 2>&1 3>&- &
    ANY_PID=$!
    export OPEN_PID ANY_PID
    local name pid
    for name in open any; do
        pid=OPEN_PID
        [ "$name" = open ] || pid=ANY_PID
        wait_ready "$name" "${!pid}" "$PYTHON" "$PEERS/fastcgi.py" probe "$name.sock"
        [ "$(id -u)" != 0 ] || chown www-data "$name.sock"
    done
}

teardown_file() {
    kill -s TERM "$OPEN_PID" "$ANY_PID"
    wait_until 10 has_ended "$OPEN_PID"
    wait_until 10 has_ended "$ANY_PID"
    lab_close
}

# before NAME: a private nginx in front of NAME.sock, until the end of the test.
before() {
    derive_conf "s|unix:http.sock|unix:$1.http|" "s|^pid nginx.pid|pid $1.pid|" \
        "s|server unix:runnel.sock|server unix:$1.sock|" >"$1.conf"
    other_nginx "$1"
    FRONT=$OTHER_PID
    owned "$FRONT"
    HTTP_SOCKET=$1.http
    wait_ready 'the second nginx' "$FRONT" get /healthz
}

KEY='Authorization: Bearer sk-alice-1'
JSON='Content-Type: application/json'
CHAT='{"messages":[{"role":"user","content":"hello"}],"max_tokens":2}'

# each_service FUNCTION: FUNCTION TARGET [CURL OPTION]... for each route that asks for a key.
each_service() {
    "$1" '/stream?prompt=hello&max_tokens=2'
    "$1" /generate -H "$JSON" -d '{"prompt":"hello","max_tokens":2}'
    "$1" /v1/completions -H "$JSON" -d '{"prompt":"hello","max_tokens":2}'
    "$1" /v1/completions -H "$JSON" -d '{"prompt":"hello","max_tokens":2,"stream":true}'
    "$1" /v1/chat/completions -H "$JSON" -d "$CHAT"
    "$1" /v1/models
    "$1" /v1/models/runnel
}

accepted() { get /_debug/generated | jq .ledger.accepted; }

# --- keys ---

is_refused() {
    ask "$@"
    [ "$code" = 401 ]
    [ "$(header www-authenticate)" = Bearer ]
    jq -e '.error.code == "invalid_api_key" and .error.type == "authentication_error" and
        .error.param == null and (.error.message | contains("key"))' body
}

refused_without() {
    is_refused "$@"
    grep -q 'no API key was given' body
    for given in 'Bearer sk-alice-2' 'Bearer sk-alice-' 'Bearer sk-alice-11' 'Bearer' \
        'Bearer # of two people' 'Basic sk-alice-1' 'sk-alice-1' 'Bearer sk-alice-1,sk-bob-2'; do
        is_refused "$@" -H "Authorization: $given"
    done
}

taken_with() {
    for key in sk-alice-1 sk-bob-2; do
        ask "$@" -H "Authorization: Bearer $key"
        [ "$code" = 200 ]
    done
    ask "$@" -H "Authorization: bearer  sk-bob-2"
    [ "$code" = 200 ]
}

@test "without a key, or with a wrong one: 401, in the API's shape, and nothing is generated" {
    before=$(accepted)
    each_service refused_without
    ask '/stream?prompt=hello' -I
    [ "$code" = 401 ]
    [ "$(accepted)" = "$before" ]
}

@test "with one of the keys: 200" {
    each_service taken_with
}

@test "a refused request with a large body gets its answer" {
    head -c 900000 /dev/zero | tr '\0' x >large
    is_refused /generate -H "$JSON" --data-binary @large
}

@test "what tells of the service asks for none" {
    for path in /healthz /metrics /_debug/generated; do
        ask "$path"
        [ "$code" = 200 ]
    done
    ask /nothing
    [ "$code" = 404 ]
}

@test "SIGHUP reads the keys anew; a file that is wrong changes nothing" {
    ask /v1/models -H 'Authorization: Bearer sk-carol-3'
    [ "$code" = 401 ]
    printf 'sk-carol-3\nsk-alice-1\n' >keys.new
    chmod 600 keys.new
    mv keys.new keys
    kill -s HUP "$RESPONDER_PID"
    wait_until 5 grep -q 'api keys read anew, keys=2' responder.log
    ask /v1/models -H 'Authorization: Bearer sk-carol-3'
    [ "$code" = 200 ]
    ask /v1/models -H 'Authorization: Bearer sk-bob-2'
    [ "$code" = 401 ]

    printf 'sk-dave-4\nnot a key\n' >keys
    kill -s HUP "$RESPONDER_PID"
    wait_until 5 grep -q 'error.*line 2 of .keys.' responder.log
    ask /v1/models -H 'Authorization: Bearer sk-dave-4'
    [ "$code" = 401 ]
    ask /v1/models -H "$KEY"
    [ "$code" = 200 ]

    printf '# of two people\n\nsk-alice-1\n  sk-bob-2\t\n' >keys
    chmod 644 keys
    run -1 grep 'every user' responder.log
    kill -s HUP "$RESPONDER_PID"
    wait_until 5 grep -q 'warn.*every user of this machine can read .keys.' responder.log
    chmod 600 keys
}

@test "a stream that lives goes on when the keys change" {
    start_get kept '/stream?prompt=hello&max_tokens=40&itl_ms=25' -H "$KEY" -H 'X-Request-Id: kept'
    wait_until 5 ledger_is kept '.generated >= 1'
    printf 'sk-eve-5\nsk-alice-1\nsk-bob-2\n' >keys
    kill -s HUP "$RESPONDER_PID"
    wait_until 5 grep -q 'read anew, keys=3' responder.log
    ask /v1/models -H 'Authorization: Bearer sk-eve-5'
    [ "$code" = 200 ]
    wait "$CLIENT"
    [ "$(grep -c '^data: {' kept)" = 40 ]
}

@test "a start without usable keys fails, and says which setting" {
    for file in missing empty .; do
        : >empty
        code=0
        "$RUNNEL" --listen unix:none.sock --api-key-file "$file" >none.log 2>&1 || code=$?
        [ "$code" = 3 ]
        grep -q -- "--api-key-file: .$file. " none.log
    done
    code=0
    "$RUNNEL" --listen unix:none.sock --cors-origin https://a/ >none.log 2>&1 || code=$?
    [ "$code" = 3 ]
    grep -q -- '--cors-origin: .https://a/. ' none.log
    code=0
    "$RUNNEL" --cors-origin https://a/ --print-config >none.log 2>&1 || code=$?
    [ "$code" = 2 ]
}

@test "no key is in any log" {
    run -1 grep -e 'sk-' -e carol -e dave -e eve-5 responder.log access.log error.log
}

# --- pages of other origins ---

PREFLIGHT=(-X OPTIONS -H 'Origin: https://app.example' -H 'Access-Control-Request-Method: POST'
    -H 'Access-Control-Request-Headers: authorization,content-type,x-runnel-itl-ms')

# page_may ORIGIN: the last reply lets pages of ORIGIN read it.
page_may() {
    [ "$(header access-control-allow-origin)" = "$1" ]
    [ "$(header access-control-expose-headers)" = 'X-Request-Id, Retry-After' ]
    [ "$(header vary)" = Origin ]
    [ -z "$(header access-control-allow-credentials)" ]
    [ "$(grep -ci '^access-control-allow-origin:' head)" = 1 ]
}

page_may_not() {
    [ "$(grep -ci '^access-control' head)" = 0 ]
}

readable() {
    for origin in https://app.example http://localhost:3000; do
        ask "$@" -H "Origin: $origin" -H "$KEY"
        [ "$code" = 200 ]
        page_may "$origin"
        ask "$@" -H "Origin: $origin"
        [ "$code" = 401 ]
        page_may "$origin"
    done
    for origin in https://evil.example https://app.example.evil http://app.example null; do
        ask "$@" -H "Origin: $origin" -H "$KEY"
        [ "$code" = 200 ]
        page_may_not
        [ "$(header vary)" = Origin ]
    done
    ask "$@" -H "$KEY"
    page_may_not
    [ "$(header vary)" = Origin ]
}

@test "replies to pages of the origins in the list can be read, errors too, and to no others" {
    each_service readable
    ask '/stream?prompt=' -H 'Origin: https://app.example' -H "$KEY"
    [ "$code" = 400 ]
    page_may https://app.example
    ask /generate -H 'Origin: https://app.example' -H "$KEY"
    [ "$code" = 405 ]
    page_may https://app.example
    # Written by the engine, when the request has long been forgotten.
    ask '/stream?prompt=a&fault=status:503' -H 'Origin: https://app.example' -H "$KEY"
    [ "$code" = 503 ]
    page_may https://app.example
    ask '/stream?prompt=a&max_tokens=1&ids=1' -H 'Origin: https://app.example' -H "$KEY" \
        -H 'Last-Event-ID: done'
    [ "$code" = 204 ]
    page_may https://app.example
}

preflighted() {
    ask "$1" "${PREFLIGHT[@]}"
    [ "$code" = 204 ]
    [ ! -s body ]
    page_may https://app.example
    [[ "$(header access-control-allow-headers)" = 'Authorization, Content-Type, '*'*' ]]
    [ "$(header access-control-max-age)" = 7200 ]
    case $1 in
    /stream* | /v1/models*) [ "$(header access-control-allow-methods)" = 'GET, HEAD' ] ;;
    *) [ "$(header access-control-allow-methods)" = POST ] ;;
    esac
}

@test "a preflight is answered without a key, and reaches neither generator nor ledger" {
    before=$(accepted)
    each_service preflighted
    [ "$(accepted)" = "$before" ]
    ask /v1/completions "${PREFLIGHT[@]}" -H 'Origin: https://evil.example'
    ask /v1/completions -X OPTIONS -H 'Origin: https://evil.example' \
        -H 'Access-Control-Request-Method: POST'
    [ "$code" = 403 ]
    page_may_not
    jq -e '.error.code == "origin_not_allowed" and .error.param == "Origin"' body
    # An OPTIONS that is no preflight is a method like any other.
    for option in 'Origin: https://app.example' 'Access-Control-Request-Method: POST'; do
        ask /v1/completions -X OPTIONS -H "$option" -H "$KEY"
        [ "$code" = 405 ]
        [ "$(header allow)" = POST ]
    done
}

@test "what tells of the service is for no page" {
    for path in /healthz /metrics /_debug/generated; do
        ask "$path" -H 'Origin: https://app.example'
        [ "$code" = 200 ]
        page_may_not
        [ -z "$(header vary)" ]
        ask "$path" "${PREFLIGHT[@]}"
        [ "$code" = 405 ]
        page_may_not
    done
}

@test "--cors-origin '*': any page" {
    before any
    for origin in https://app.example null chrome-extension://x; do
        ask /v1/models -H "Origin: $origin"
        [ "$code" = 200 ]
        page_may '*'
    done
    ask /v1/chat/completions "${PREFLIGHT[@]}"
    [ "$code" = 204 ]
    page_may '*'
    ask /v1/models
    page_may_not
}

@test "without the two: no key is asked for, no page may call, OPTIONS is 405" {
    before open
    open_to_all() {
        ask "$@" -H 'Origin: https://app.example'
        [ "$code" = 200 ]
        page_may_not
        [ -z "$(header vary)" ]
        ask "$1" "${PREFLIGHT[@]}"
        [ "$code" = 405 ]
        [ -n "$(header allow)" ]
        page_may_not
    }
    each_service open_to_all
}

@test "the head of a stream comes at once, with the lines of an origin too" {
    clients=
    for id in 1 22 333 4444 55555 666666 7777777 88888888; do
        start_get "head-$id" '/stream?prompt=a&max_tokens=1&ttft_ms=3000' -H "$KEY" \
            -H 'Origin: https://app.example' -H "X-Request-Id: $id" -w '%{time_starttransfer}' -m 2
        clients="$clients $CLIENT"
    done
    for client in $clients; do
        wait "$client" || [ $? = 28 ] # it was cut off by -m, before the first token
    done
    for id in 1 22 333 4444 55555 666666 7777777 88888888; do
        seconds=$(tail -n 1 "head-$id.out")
        jq -en "$seconds > 0 and $seconds < 2"
    done
}

@test "the books hold after all of this" {
    wait_until 5 books_hold
}
