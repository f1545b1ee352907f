#!/usr/bin/env bats
# A client that leaves: the generator stops, its slot is free, the next request is served, and the
# ledger tells so. It is asked each time; that the client sees nothing more proves nothing.

load harness

setup_file() {
    lab_open
    start_responder --slots 256
    for _ in 1 2 3; do
        # Resets need TCP, on a port that nobody has; somebody may take it before nginx does.
        HTTP_PORT=$(free_port)
        export HTTP_PORT
        start_nginx "s|listen unix:http.sock;|& listen 127.0.0.1:$HTTP_PORT;|" && return 0
    done
    return 1
}

@test "after 5 of 100 tokens, 1 ms apart" {
    peer cancel after_five 1
}

@test "after 5 of 100 tokens, 5 ms apart" {
    peer cancel after_five 5
}

@test "after 5 of 100 tokens, 20 ms apart: at most 6 were generated" {
    peer cancel after_five 20
}

@test "after 5 of 100 tokens, 50 ms apart: at most 6 were generated" {
    peer cancel after_five 50
}

@test "in a prefill of 3 s: nothing was generated, and it ended with the client" {
    peer cancel in_prefill
}

@test "in a gap of 3 s between tokens: no further token, and it ended with the client" {
    peer cancel in_gap
}

@test "in the middle of a /generate" {
    peer cancel in_generate
}

@test "while queued, first, in the middle and last; the order of the others stays" {
    peer cancel while_queued
}

@test "a slot goes to the next in the queue when its client leaves" {
    peer cancel hands_over
}

@test "by close, reset and half-close, over a Unix socket and TCP" {
    peer cancel each_way "$HTTP_PORT"
}

@test "200 at once, in decode" {
    peer cancel many 200 20
}

@test "200 at once, in prefill" {
    peer cancel many 200 3000
}

@test "at once, before the head has come: 100 times" {
    peer cancel at_once
}

@test "of one stream, while 20 others go on undisturbed" {
    peer cancel among_others
}

@test "--ignore-cancel: all is generated for nobody, and the ledger says for whom" {
    "$RUNNEL" --listen unix:deaf.sock --ignore-cancel >deaf.log 2>&1 3>&- &
    deaf=$!
    owned "$deaf"
    wait_ready responder "$deaf" "$PYTHON" "$PEERS/fastcgi.py" probe deaf.sock
    grep -q 'warn.*--ignore-cancel' deaf.log
    peer cancel ignored deaf.sock
    kill -TERM "$deaf"
    ended_with "$deaf" 10
}

@test "the books hold after all of this" {
    books_hold
}
