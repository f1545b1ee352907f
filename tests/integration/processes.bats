#!/usr/bin/env bats
# Several responders on one socket and one ledger, as spawn-fcgi -F starts them.

load harness

setup_file() {
    lab_open
    spawn-fcgi -s runnel.sock -M 0666 -F 3 -P pids -- "$RUNNEL" --state runnel.state \
        --log-file "$LAB/responder.log" >/dev/null 3>&-
    read -r RESPONDER_PID _ <<<"$(tr '\n' ' ' <pids)"
    export RESPONDER_PID
    start_nginx
}

teardown_file() {
    local pid

    RESPONDER_PID=''
    while read -r pid || [ -n "$pid" ]; do # the last line of spawn-fcgi's has no end
        kill -s TERM "$pid" 2>/dev/null || true
        wait_until 10 has_ended "$pid" || kill -s KILL "$pid"
    done <"$LAB/pids"
    lab_close
}

@test "any process answers for all" {
    clients=
    for id in 1 2 3 4 5 6 7 8 9; do
        get '/stream?prompt=hello&max_tokens=3&ttft_ms=20&itl_ms=1' -H "X-Request-Id: any-$id" >/dev/null 3>&- &
        clients="$clients $!"
    done
    for client in $clients; do wait "$client"; done
    for id in 1 2 3 4 5 6 7 8 9; do
        ledger_is "any-$id" '.outcome == "done" and .generated == 3'
    done
    get /metrics | grep -qx 'runnel_processes 3'
    get /metrics | grep -qx 'runnel_slots 768'
    books_hold
}

@test "kill -9 of one: what it had live is failed, the others go on, totals stay" {
    total=$(get /_debug/generated | jq .total)
    clients=
    for id in 1 2 3 4 5 6; do
        get '/stream?prompt=hello&max_tokens=400&ttft_ms=0&itl_ms=10' -H "X-Request-Id: kill-$id" >/dev/null 3>&- &
        clients="$clients $!"
        wait_until 5 ledger_is "kill-$id" '.generated >= 1'
    done
    victim=$(ledger kill-1 .pid)
    mine=$(for id in 1 2 3 4 5 6; do ledger "kill-$id" .pid; done | grep -cx "$victim")
    kill -s KILL "$victim"
    wait_until 5 has_ended "$victim"
    for id in 1 2 3 4 5 6; do
        if [ "$(ledger "kill-$id" .pid)" = "$victim" ]; then
            ledger_is "kill-$id" '.outcome == "failed"'
        fi
    done
    for client in $clients; do wait "$client" || true; done
    wait_until 10 books_hold
    get /_debug/generated | jq -e --argjson mine "$mine" --argjson total "$total" \
        '.ledger.failed == $mine and .total > $total'
    get /metrics | grep -qx 'runnel_processes 2'
}

@test "a stopped process does not stop the others" {
    read -r _ second third <<<"$(tr '\n' ' ' <pids)"
    for victim in "$second" "$third"; do
        is_running "$victim" || continue
        get '/stream?prompt=hello&max_tokens=100000&ttft_ms=0&itl_ms=0' >/dev/null 3>&- &
        client=$!
        for _ in 1 2 3 4 5 6 7 8 9 10; do
            kill -s STOP "$victim"
            # Whoever is asked: one that is stopped answers when it goes on, the others at once.
            curl -s -m 2 --unix-socket http.sock http://localhost/metrics >metrics || true
            kill -s CONT "$victim"
        done
        wait "$client" || true
    done
    wait_until 20 books_hold
}
