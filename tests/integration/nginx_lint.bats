#!/usr/bin/env bats
# What nginx-lint says of a configuration is what the installed nginx does with it.

load harness

setup_file() {
    lab_open
    start_responder
    start_nginx
    # The same once more, whose replies say nothing about buffering.
    derive_conf 's|unix:http.sock|unix:origin.sock|' 's|fastcgi_pass_header X-Accel|fastcgi_hide_header X-Accel|' \
        's|^pid nginx.pid|pid origin.pid|' >origin.conf
    openssl req -x509 -newkey rsa:2048 -nodes -keyout tls.key -out tls.crt -days 2 -subj /CN=localhost 2>openssl.out
    peer nginx_lint write
    local name
    for name in origin front; do
        other_nginx "$name"
        echo "$OTHER_PID" >"$name.owner"
        wait_ready "$name" "$OTHER_PID" test -S "$name.sock"
    done
    "$ROOT/scripts/nginx-lint" --tsv "$LAB/front.conf" >lint.tsv || [ $? -eq 1 ]
}

teardown_file() {
    local name

    for name in origin front; do
        [ ! -s "$LAB/$name.owner" ] || kill -s TERM "$(cat "$LAB/$name.owner")" 2>/dev/null || true
        wait_until 5 has_ended "$(cat "$LAB/$name.owner" 2>/dev/null)" || true
    done
    lab_close
}

@test "what it calls a fault does not stream; in the clear, over TLS and in HTTP/2" {
    peer nginx_lint streams
}

@test "what it says of aborts: before the upstream's reply" {
    peer nginx_lint prehead
}

@test "what it says of aborts: in the middle of a stream" {
    peer nginx_lint middle
}

@test "which requests are sent to a second server" {
    peer nginx_lint again
}

@test "a stream that breaks off, and a silence that is too long" {
    peer nginx_lint broken
}

@test "what filters and headers do to a reply" {
    peer nginx_lint touched
}

@test "X-Accel-Buffering: no of the upstream, and an nginx that is deaf to it" {
    peer nginx_lint accel
}

@test "limit_rate, with buffering and without" {
    peer nginx_lint rate
}

@test "a mirror holds up the client's next request" {
    peer nginx_lint mirror
}

@test "when a connection to the upstream is kept" {
    peer nginx_lint kept
}

@test "worker_shutdown_timeout cuts streams after a reload" {
    peer nginx_lint reload
}
