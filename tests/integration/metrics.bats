#!/usr/bin/env bats
# /metrics: the ledger for Prometheus, and the access log in both formats.
#
# SC2154: `ask` sets code. SC2094: `metrics` is a word of promtool's too.
# shellcheck disable=SC2154,SC2094

load harness

setup_file() {
    lab_open
    start_responder --slots 2 --queue 1 --log-format json
    start_nginx
    # One of each outcome that a client can bring about.
    get '/stream?prompt=hello&max_tokens=5&ttft_ms=1&itl_ms=1' -H 'X-Request-Id: one-done' >/dev/null
    get '/stream?prompt=hello&max_tokens=5&ttft_ms=1&fault=eof@2' -H 'X-Request-Id: one-failed' >/dev/null
    get '/generate' -H 'Content-Type: application/json' -H 'X-Request-Id: one-whole' \
        -d '{"prompt":"hello","max_tokens":7,"ttft_ms":1,"itl_ms":1}' >/dev/null
    curl -s --max-time 0.3 --unix-socket http.sock -H 'X-Request-Id: one-cancelled' \
        'http://localhost/stream?prompt=hello&ttft_ms=1&itl_ms=50&max_tokens=100' >/dev/null || true
    wait_until 5 ledger_is one-cancelled '.outcome == "cancelled"'
    local clients=
    for id in a b c; do
        curl -s --max-time 1 --unix-socket http.sock -H "X-Request-Id: held-$id" \
            'http://localhost/stream?prompt=hello&ttft_ms=60000' >/dev/null 3>&- &
        clients="$clients $!"
        wait_until 5 ledger_is "held-$id" '.outcome == "live"'
    done
    get '/metrics' >live
    ask '/stream?prompt=hello' -H 'X-Request-Id: one-shed'
    echo "$code" >shed
    for client in $clients; do
        wait "$client" || true # curl's own time-out
    done
    wait_until 5 books_hold
    get '/metrics' >metrics
}

# value NAME: of a sample in the file.
value() {
    awk -v name="$1" '$1 == name { print $2; found = 1 } END { exit !found }' "${2:-metrics}"
}

@test "promtool finds nothing to say" {
    promtool=$(command -v promtool || echo "$ROOT/build/tools/usr/bin/promtool")
    [ -x "$promtool" ] || skip 'no promtool (tests/tools/setup brings it)'
    run -0 "$promtool" check metrics <metrics
    echo "$output"
    [ -z "$output" ]
}

@test "requests by route and outcome" {
    [ "$(value 'runnel_requests_total{route="stream",outcome="done"}')" = 1 ]
    [ "$(value 'runnel_requests_total{route="stream",outcome="failed"}')" = 1 ]
    [ "$(value 'runnel_requests_total{route="stream",outcome="cancelled"}')" = 4 ]
    [ "$(value 'runnel_requests_total{route="stream",outcome="shed"}')" = 1 ]
    [ "$(value 'runnel_requests_total{route="generate",outcome="done"}')" = 1 ]
    [ "$(value runnel_requests_accepted_total)" = 8 ]
}

@test "running, waiting, slots and processes are gauges" {
    [ "$(value runnel_num_requests_running live)" = 2 ]
    [ "$(value runnel_num_requests_waiting live)" = 1 ]
    [ "$(value runnel_num_requests_running)" = 0 ]
    [ "$(value runnel_num_requests_waiting)" = 0 ]
    [ "$(value runnel_slots)" = 2 ]
    [ "$(value runnel_processes)" = 1 ]
    [ "$(cat shed)" = 503 ]
}

@test "tokens: generated = delivered + discarded" {
    generated=$(value runnel_tokens_generated_total)
    [ "$generated" = $(($(value runnel_tokens_delivered_total) + $(value runnel_tokens_discarded_total))) ]
    [ "$generated" -ge 14 ]
    [ "$(value runnel_tokens_held)" = 0 ]
}

@test "histograms count what they should, and are cumulative" {
    # First tokens of the done, failed, whole and cancelled ones; then one gap for each more token.
    [ "$(value runnel_time_to_first_token_seconds_count)" = 4 ]
    generated=$(value runnel_tokens_generated_total)
    [ "$(value runnel_inter_token_latency_seconds_count)" = $((generated - 4)) ]
    [ "$(value runnel_pace_error_seconds_count)" = "$generated" ]
    [ "$(value runnel_queue_time_seconds_count)" = 7 ] # all but the shed one
    [ "$(value runnel_cancel_latency_seconds_count)" = 4 ]
    for name in time_to_first_token inter_token_latency pace_error queue_time cancel_latency; do
        awk -v name="runnel_${name}_seconds" '
            index($1, name "_bucket") == 1 { if ($2 < last) bad = 1; last = $2; n++ }
            $1 == name "_count" { if ($2 != last) bad = 1 }
            END { exit bad || n != 43 }' metrics
    done
}

@test "the content type is the format's" {
    ask /metrics
    [ "$(header Content-Type)" = 'text/plain; version=0.0.4; charset=utf-8' ]
    ask /metrics -I
    [ "$code" = 200 ]
}

@test "the certificate of a request has the pace error" {
    ledger_is one-done '.pace_error_p99_us >= 10 and .ttft_ms >= 1'
    ledger_is one-shed '.pace_error_p99_us == null and .ttft_ms == null and .generated == 0'
}

@test "the access log has one line for each request, as JSON" {
    jq -es 'map(select(.message == "request")) | length == 8 and
        (map(select(.id == "one-cancelled")) | length == 1 and .[0].detected_by == "hangup" and
            .[0].outcome == "cancelled" and .[0].requested == 100) and
        (map(select(.id == "one-whole")) | .[0].route == "generate" and .[0].generated == 7)' responder.log
}
