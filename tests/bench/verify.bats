#!/usr/bin/env bats
# 5,000 streams at once, of which three in ten leave and one in twenty reads slowly: no wrong byte, and the
# client's counts are the ledger's.
#
# SC2016: what stands in single quotes is jq's. SC2154: harness.bash sets LOAD.
# shellcheck disable=SC2016,SC2154

bats_require_minimum_version 1.5.0
load ../integration/harness

setup_file() {
    lab_open
    start_responder --slots 6000
    start_nginx
}

@test "5,000 streams, 30 % aborts, 5 % slow readers: every byte, and every count" {
    ulimit -n "$(ulimit -Hn)"
    # nginx holds two descriptors a stream, in a worker that may have most of them.
    [ "$(ulimit -n)" -ge 10500 ] || skip "this machine allows $(ulimit -Hn) descriptors"
    run "$LOAD" --unix-socket http.sock --json json --quiet --streams 5000 --prompt 'hello {i}' --tokens 60 \
        --control itl_ms=250 --control stamps=1 --abort-rate 30 --abort-after 1..50 --slow-readers 5 \
        --slow-pause 50 --verify --seed 7 http://localhost/stream
    echo "$output"
    [ "$status" = 0 ]
    wait_until 10 books_hold
    jq -e '.requests | .started == 5000 and .failed == 0 and .complete + .aborted == 5000 and
        .verified == .complete and .aborted > 1300 and .aborted < 1700 and .slow_readers > 150' json
    jq -e '.wrong_tokens | add == 0' json
    jq -e --slurpfile client json '.ledger |
        .accepted == 5000 and .done == $client[0].requests.complete and
        .cancelled == $client[0].requests.aborted and .failed + .shed + .stalled + .drained == 0 and
        .running == 0 and .queued == 0 and .delivered >= $client[0].tokens.received' books.out
    # Whoever stayed has all; who left was given a few more than it waited for at most.
    jq -e '.tokens.received >= 60 * .requests.complete + .requests.aborted' json
    jq -e --slurpfile client json '.ledger.generated - $client[0].tokens.received <=
        5 * $client[0].requests.aborted' books.out
}
