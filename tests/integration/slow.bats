#!/usr/bin/env bats
# Clients that do not read: they pause their own generation, cost bounded memory, and delay nobody.

load harness

setup_file() {
    lab_open
    start_responder --stall-timeout 3
    start_nginx
}

@test "20 that never read: a 21st keeps its pace, memory is bounded, they end as stalled" {
    peer slow never_read "$RESPONDER_PID"
}

@test "one that reads slowly gets every token, and is no stall" {
    peer slow reads_slowly
}

@test "one that stops and goes on before the timeout gets every token" {
    peer slow stops_and_goes_on
}

@test "a big /generate that nobody reads gives its slot back, and ends as stalled" {
    peer slow big_generate
}

@test "a slow reader that leaves is cancelled at once" {
    peer slow slow_one_leaves
}

@test "the books hold after all of this" {
    books_hold
}
