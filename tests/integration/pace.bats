#!/usr/bin/env bats
# Timing that flags of the server decide: each test has a responder of its own.

load harness

setup_file() { lab_open; }

teardown() {
    stop_nginx
    [ -z "$RESPONDER_PID" ] || stop_responder
    lab_check
}

start() {
    start_responder "$@"
    start_nginx
}

@test "pings come in the queue, in prefill and in a stall, and never inside an event" {
    start --slots 1
    get '/stream?prompt=holder&max_tokens=2&ttft_ms=300&itl_ms=0' >/dev/null &
    wait_until 5 books_have_running
    get '/stream?prompt=queued&max_tokens=3&ttft_ms=100&itl_ms=0&fault=stall@2:100&ping_ms=20&wire=drip' >body
    wait "$!"
    [ "$(grep -c '^: ping$' body)" -ge 10 ]
    # Queue and prefill, between tokens 1 and 2, and nowhere else.
    grep -v '^$' body | uniq | sed 's/{.*/{}/' >shape
    printf '%s\n' ': ping' 'data: {}' 'data: {}' ': ping' 'data: {}' 'data: [DONE]' | diff - shape
}

books_have_running() {
    get /_debug/generated | jq -e '.ledger.running == 1' >/dev/null
}

@test "--itl-per-running-us: each running request adds to every gap" {
    start --itl-per-running-us 250
    peer timing batch 250
}

@test "--timing-trace: the recorded figures, over and over" {
    printf '# recorded\n15000\n100\n2000\n\n350\n' >trace
    start --timing-trace trace
    peer timing trace 15000,100,2000,350
}

@test "--timing-trace: a bad file is refused, with its line" {
    for content in '1000' '1000\n1.5' '1000\n-3' '1000\nabc' '1000\n99999999999999999999' ''; do
        # shellcheck disable=SC2059 # the content is the format
        printf "$content\n" >trace
        run -3 "$RUNNEL" --listen unix:other.sock --timing-trace trace
        [[ "$output" == *"--timing-trace: \`trace\`"* ]]
    done
    run -3 "$RUNNEL" --listen unix:other.sock --timing-trace /nowhere
    [[ "$output" == *'--timing-trace: cannot read'* ]]
}

@test "a ping never comes before a head: fault=status in the queue" {
    start --slots 1
    get '/stream?prompt=holder&max_tokens=1&ttft_ms=400' >/dev/null &
    holder=$!
    wait_until 5 books_have_running
    ask '/stream?prompt=a&fault=status:429&ping_ms=20'
    wait "$holder"
    # shellcheck disable=SC2154 # `ask` sets code
    [ "$code" = 429 ]
}
