#!/usr/bin/env bats
# Kept connections between nginx and the responder: used again, and an abort still arrives.

load harness

setup_file() {
    lab_open
    start_responder --ttft-ms 0 --itl-ms 0
    start_nginx 's|^ *server unix:runnel.sock;|&\nkeepalive 16;|' \
        's|^ *fastcgi_buffering off;|&\nfastcgi_keep_conn on;|'
}

@test "500 requests, cancels between them: few connections, the same threads" {
    peer keepconn requests "$RESPONDER_PID" 500
}

@test "16 clients at once, each stream its own text" {
    peer keepconn at_once
}

@test "refused requests with bodies of all sizes leave the connection in step" {
    peer keepconn refused_bodies "$RESPONDER_PID"
}

@test "the books hold after all of this" {
    books_hold
}
