#!/usr/bin/env bats
# 1,000 streams at once, through nginx, from one client process.

load harness

setup_file() {
    lab_open
    ulimit -n "$(ulimit -H -n)"
    start_responder --slots 2000
    start_nginx
}

@test "1,000 streams at 50 tokens/s: no error, each whole and right, and on time" {
    [ "$(ulimit -n)" = unlimited ] || [ "$(ulimit -n)" -ge 2200 ] || skip 'ulimit -n is too low'
    ulimit -n "$(ulimit -H -n)"
    workers=$(cat "/proc/$NGINX_PID/task/$NGINX_PID/children")
    # shellcheck disable=SC2086 # a list of numbers
    run peer many streams 1000 50 100 "$RESPONDER_PID" $workers
    echo "# ${output//$'\n'/$'\n# '}" >&3
    [ "$status" = 0 ]
}

@test "the books hold, and nothing is live" {
    books_hold
}
