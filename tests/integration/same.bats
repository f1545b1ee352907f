#!/usr/bin/env bats
# One prompt, one text: however it is asked for, streamed or whole, it is what gen prints.

load harness

setup_file() {
    lab_open
    start_responder --ttft-ms 0 --itl-ms 0
    start_nginx
}

@test "200 prompts of many scripts: /stream, /generate and gen agree" {
    peer same prompts 200
}

@test "fewer tokens are a prefix of more, streamed and whole" {
    peer same prefixes
}

@test "a seed gives another sequence, the same each time" {
    peer same seeds
}

@test "20,000 tokens of torture: /stream, /generate and gen agree" {
    peer same long
}

@test "the pace does not change the text" {
    peer same pace
}

@test "50 streams at once, each its own text" {
    peer same at_once
}

@test "the books hold after all of this" {
    books_hold
}
