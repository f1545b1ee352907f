#!/usr/bin/env bats
# Peers on the FastCGI socket that are no web server: silent, malformed, half-way, too large. None
# of them ends the process, holds a thread, or delays a request that comes through nginx.

load harness

setup_file() {
    lab_open
    start_responder --ttft-ms 0 --itl-ms 0 --read-timeout-s 3
    start_nginx
}

# The process is the one that was started: nothing that a peer sends ends it.
teardown() {
    lab_check
    is_running "$RESPONDER_PID"
}

@test "50 silent, 50 that speak HTTP, 50 that ask for values, 50 that stop half-way" {
    peer hostile crowd
}

@test "500 connections that stop in their first record" {
    peer hostile stopped_early
}

@test "a peer that stops half-way is closed by --read-timeout-s, an idle one is not" {
    peer hostile read_timeout
}

@test "management records: each value once, unknown types answered" {
    peer hostile management
}

@test "ABORT_REQUEST in mid-stream: cancelled, detected by abort, and nothing more is made" {
    peer hostile abort
}

@test "ABORT_REQUEST in two pieces, of another request, and before the request is whole" {
    peer hostile odd_aborts
}

@test "a second BEGIN_REQUEST inside a request" {
    peer hostile second_begin
}

@test "a role that is not the responder's" {
    peer hostile other_role
}

@test "params: 100 KiB are read, 200 KiB are refused" {
    peer hostile huge_params
}

@test "malformed params" {
    peer hostile malformed_params
}

@test "params whose lengths add up to more than an int" {
    peer hostile params_that_overflow
}

@test "a connection closed at every byte of a request" {
    peer hostile closed_at_every_byte
}

@test "a request byte by byte" {
    peer hostile byte_by_byte
}

@test "requests one behind the other on a kept connection" {
    peer hostile pipelined
}

@test "without the keep flag the connection closes after the reply" {
    peer hostile not_kept
}

@test "padding, empty records, ids other than 1, and records of no known type" {
    peer hostile odd_but_allowed
}

@test "bytes that nobody asked for in mid-stream do not disturb it" {
    peer hostile chatter
}

@test "500 connections of random bytes and mutated requests" {
    peer hostile noise
}

@test "the books hold after all of this, and no connection is left" {
    books_hold
    peer hostile few_descriptors "$RESPONDER_PID"
}
