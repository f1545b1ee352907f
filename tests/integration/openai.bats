#!/usr/bin/env bats
# The OpenAI-compatible endpoints: the same engine, in another API's words.

load harness

setup_file() {
    lab_open
    start_responder --ttft-ms 0 --itl-ms 0
    start_nginx
}

@test "200 prompts of many scripts: /stream, /generate, the four forms of /v1/ and gen agree" {
    peer openai prompts 200
}

@test "a conversation is the documented prompt" {
    peer openai conversations
}

@test "stop sequences: the text before them, why it ended, and what it cost, in all four forms" {
    peer openai stops 100
}

@test "what may begin a stop sequence is held back, and nothing else" {
    peer openai held_back
}

@test "the head comes at once, the role with the first token" {
    peer openai first_event
}

@test "a reply in one piece takes as long as its stream" {
    peer openai whole_is_paced
}

@test "a client that leaves a stream: cancelled, and no further token is made" {
    peer openai leaves_stream
}

@test "a client that leaves before a reply in one piece: the same" {
    peer openai leaves_whole
}

@test "each control, in the body and as a header" {
    peer openai each_control
}

@test "runnel wins over the body's own seed, the body over headers" {
    peer openai precedence
}

@test "the schedule of a prompt is that of /stream" {
    peer openai jitter_is_the_same
}

@test "a stream with ids is resumed after any event, stop sequence or not" {
    peer openai resumed
}

@test "faults: errors as this API's clients look for them" {
    peer openai faults
}

@test "what only a stream has is refused without stream" {
    peer openai streams_only
}

@test "models: one, by its name; a request may name any" {
    peer openai models
}

@test "each member with each kind of value" {
    peer openai wrong_values
}

@test "bodies that are none, too deep, too large, or say a thing twice" {
    peer openai wrong_bodies
}

@test "routes of their own in /metrics" {
    get /metrics >metrics
    for route in completions chat; do
        for outcome in cancelled failed 'done'; do
            awk -v name="runnel_requests_total{route=\"$route\",outcome=\"$outcome\"}" '
                $1 == name && $2 > 0 { found = 1 } END { exit !found }' metrics
        done
    done
}

@test "the books hold after all of this" {
    wait_until 5 books_hold
}
