#!/usr/bin/env bats
# When tokens are due, from the stamps: exact figures, not measured ones.

load harness

setup_file() {
    lab_open
    ulimit -n "$(ulimit -Hn)"
    start_responder --slots 1200 --state runnel.state
    start_nginx
}

@test "constant gaps are constant, and a chunk comes with its first token" {
    peer timing constant
}

@test "jitter: bounds, means and deviations as they say, the same for the same request" {
    peer timing shapes
}

@test "prefill adds to the first token for each prompt token" {
    peer timing prefill
}

@test "one request among 1,000 others: the same schedule and the same bytes as alone" {
    peer timing crowd 1000
}

@test "50 unpaced streams at once: the slowest first token within 10 x the fastest" {
    peer timing fair
}

@test "the books hold after all of this" {
    wait_until 5 books_hold
}
