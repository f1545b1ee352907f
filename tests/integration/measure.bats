#!/usr/bin/env bats
# measure against what the server itself knows: its stamps and its ledger.
#
# SC2030, SC2031: each test is a subshell. SC2154: bats sets stderr.
# shellcheck disable=SC2030,SC2031,SC2154

load harness.bash

setup_file() {
    lab_open
    start_responder
    start_nginx
}

measure() {
    run --separate-stderr "$ROOT/scripts/measure" --unix-socket http.sock "$@"
    echo "$stderr"
}

@test "TTFT agrees with the ledger, and the gaps with the stamps" {
    # (bats uses i itself.) The best of five: a busy machine delays the reader, never the other way.
    best=1000000
    for attempt in 1 2 3 4 5; do
        measure "http://localhost/stream?prompt=a&max_tokens=101&ttft_ms=200&itl_ms=10&jitter=normal:20&stamps=1" \
            -H "X-Request-Id: m$attempt" --json --keep-events events.tsv
        [ "$status" -eq 0 ]
        difference=$(jq --argjson ledger "$(ledger "m$attempt" .ttft_ms)" '(.ttft_ms.p50 - $ledger) * 1000 | floor' <<<"$output")
        echo "request $attempt: $difference us later than the ledger's"
        [ "$difference" -ge -1000 ] # curl's clock starts when it sends, the ledger's when it accepts
        [ "$difference" -ge "$best" ] || best=$difference
    done
    [ "$best" -lt 10000 ] # 5 % of the 200 ms
    # The median gap as the server sent them, against the median gap as they arrived: within 5 %.
    sent=$(sed -n 's/.*"t_us":\([0-9]*\).*/\1/p' events.tsv |
        awk 'NR > 1 { printf "%.0f\n", $1 - before } { before = $1 }' | sort -n | sed -n 50p)
    jq -e --argjson sent "$sent" '(.itl_ms.p50 * 1000 - $sent) | fabs < $sent * 0.05' <<<"$output"
}

@test "every spelling and chunk size gives the same tokens, and a timing trace is replayed" {
    for wire in lf crlf cr nospace comments multiline bom drip; do
        measure "http://localhost/stream?prompt=a&max_tokens=30&ttft_ms=1&itl_ms=0&vocab=torture&wire=$wire" --json
        echo "$wire: $output"
        [ "$(jq -c '[.whole, .tokens, .token_events]' <<<"$output")" = '[1,30,30]' ]
    done
    measure "http://localhost/stream?prompt=a&max_tokens=30&ttft_ms=1&itl_ms=2&chunk=3" --json
    [ "$(jq -c '[.tokens, .token_events, .itl_ms.count]' <<<"$output")" = '[30,10,29]' ]

    "$ROOT/scripts/measure" --unix-socket http.sock "http://localhost/stream?prompt=a&max_tokens=20&ttft_ms=150&itl_ms=30" \
        --timing-trace >recorded
    run "$RUNNEL" --listen unix:x.sock --timing-trace recorded --print-config
    [ "$status" -eq 0 ]
}

@test "every fault is told, and is in no figure" {
    for fault in error@5 eof@5 garble@5 nodone status:503; do
        measure "http://localhost/stream?prompt=a&max_tokens=10&ttft_ms=0&itl_ms=0&fault=$fault"
        echo "$fault: $status $stderr"
        [ "$status" -eq 1 ]
        [ -z "$output" ]
    done
}
