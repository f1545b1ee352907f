#!/usr/bin/env bats
# ids=1 and Last-Event-ID.

load harness

setup_file() {
    lab_open
    start_responder
    start_nginx
}

@test "two disconnects in a row: the pieces are byte for byte the whole" {
    peer resume identical
}

@test "only what was missing is generated and counted" {
    peer resume counted
}

@test "a fault hits once: the rest can be resumed" {
    peer resume past_fault
}

@test "an id that this stream cannot have is 400" {
    peer resume bad
}

@test "without ids=1 the header says nothing" {
    get '/stream?prompt=hello&max_tokens=3&ttft_ms=0&itl_ms=0' -H 'Last-Event-ID: 2' >with
    get '/stream?prompt=hello&max_tokens=3&ttft_ms=0&itl_ms=0' | diff - with
}
