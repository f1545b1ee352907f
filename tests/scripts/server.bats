#!/usr/bin/env bats
# scripts/up and scripts/down: what they start, what they refuse, what they leave behind.
#
# SC2030, SC2031: each test is a subshell. SC2154: bats sets stderr.
# shellcheck disable=SC2030,SC2031,SC2154

bats_require_minimum_version 1.5.0
load server.bash

setup() { private_server; }
teardown() { remove_server; }

responder() { cat "$RUNNEL_PREFIX/runnel.pid"; }
nginx() { cat "$RUNNEL_PREFIX/nginx.pid"; }

nothing_is_left() {
    [ ! -e "$RUNNEL_PREFIX/runnel.sock" ]
    [ ! -e "$RUNNEL_PREFIX/runnel.pid" ]
    [ ! -e "$RUNNEL_PREFIX/nginx.pid" ]
    for cwd in /proc/[0-9]*/cwd; do
        [ "$(readlink "$cwd")" != "$RUNNEL_PREFIX" ]
    done
}

@test "up serves, a second up changes nothing, down leaves nothing but logs and ledger" {
    run up
    [ "$status" -eq 0 ]
    [[ "$output" == *"http://127.0.0.1:$RUNNEL_PORT/ answers"* ]]
    [ "$(get /healthz)" = ok ]
    pids="$(responder) $(nginx)"

    run up
    [ "$status" -eq 0 ]
    [[ "$output" == *"already up"* ]]
    [ "$(responder) $(nginx)" = "$pids" ]

    run down
    [ "$status" -eq 0 ]
    nothing_is_left
    [ -s "$RUNNEL_PREFIX/runnel.log" ]
    [ -s "$RUNNEL_PREFIX/runnel.state" ]

    run down
    [ "$status" -eq 0 ]
    [[ "$output" == *"nothing runs"* ]]
}

@test "the responder does not run as root, nor needs to" {
    [ "$(id -u)" -eq 0 ] || skip "not root"
    up
    [ "$(stat -c %U "/proc/$(responder)")" = www-data ]
}

@test "a killed responder is started again, behind the same nginx" {
    up
    before=$(nginx)
    kill -KILL "$(responder)"
    run up
    [ "$status" -eq 0 ]
    [ "$(nginx)" = "$before" ]
    [ "$(get /healthz)" = ok ]
}

@test "a killed nginx is started again, before the same responder" {
    up
    before=$(responder)
    # Its workers too, which would go on listening.
    workers=$(cat "/proc/$(nginx)/task/$(nginx)/children")
    # shellcheck disable=SC2086
    kill -KILL "$(nginx)" $workers
    run up
    [ "$status" -eq 0 ]
    [ "$(responder)" = "$before" ]
    [ "$(get /healthz)" = ok ]
}

@test "several processes on one socket" {
    RUNNEL_PROCESSES=3 up
    mapfile -t pids <"$RUNNEL_PREFIX/runnel.pid"
    [ "${#pids[@]}" -eq 3 ]
    run down
    nothing_is_left
    for pid in "${pids[@]}"; do
        run is_running "$pid"
        [ "$status" -eq 1 ]
    done
}

@test "a taken port is told with its holder, and nothing is started" {
    python3 -c 'import socket, sys, time
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
print(s.getsockname()[1], flush=True); time.sleep(60)' >"$TRASH/port" 3>&- &
    holder=$!
    wait_until 10 test -s "$TRASH/port"
    RUNNEL_PORT=$(cat "$TRASH/port") run up
    kill "$holder"
    [ "$status" -eq 3 ]
    [[ "$output" == *"is taken by pid $holder ("*")"* ]]
    nothing_is_left
}

@test "a bad option is told by runnel's own sentence, and nothing is started" {
    run up -- --slots many
    [ "$status" -eq 2 ]
    [[ "$output" == *--slots*many* ]]
    nothing_is_left
}

@test "options reach runnel; other options need a down first" {
    up -- --max-tokens 7
    [ "$(get '/stream?prompt=a&itl_ms=1&ttft_ms=1' | grep -c '"token"')" -eq 7 ]
    run up -- --max-tokens 7
    [ "$status" -eq 0 ]
    run up -- --max-tokens 8
    [ "$status" -eq 3 ]
    [[ "$output" == *"other options"* ]]
}

@test "a responder that dies at once is told with the end of its log, and nothing is left" {
    cat >"$TRASH/dies" <<'END'
#!/bin/sh
case "$*" in *--print-config*) exit 0 ;; esac
echo "cannot start: no luck" >>runnel.log
exit 3
END
    chmod 755 "$TRASH/dies"
    RUNNEL=$TRASH/dies run up
    [ "$status" -eq 3 ]
    [[ "$output" == *"no luck"* ]]
    nothing_is_left
}

@test "a responder that dies a little later, too" {
    cat >"$TRASH/dies" <<'END'
#!/bin/sh
case "$*" in *--print-config*) exit 0 ;; esac
sleep 0.3
echo "went away: no luck" >>runnel.log
END
    chmod 755 "$TRASH/dies"
    RUNNEL=$TRASH/dies run up
    [ "$status" -eq 3 ]
    [[ "$output" == *"no luck"* ]]
    nothing_is_left
}

@test "a responder that never answers is given up, and killed though it ignores TERM" {
    cat >"$TRASH/deaf" <<'END'
#!/bin/sh
case "$*" in *--print-config*) exit 0 ;; esac
trap '' TERM
echo $$ >>runnel.log
while :; do sleep 1; done
END
    chmod 755 "$TRASH/deaf"
    RUNNEL=$TRASH/deaf RUNNEL_READY_S=1 run up
    [ "$status" -eq 3 ]
    [[ "$output" == *"did not answer"* ]]
    run is_running "$(cat "$RUNNEL_PREFIX/runnel.log")"
    [ "$status" -eq 1 ]
    [ ! -e "$RUNNEL_PREFIX/runnel.sock" ]
}

@test "a pid file with another process's number kills nobody" {
    up
    echo $$ >"$RUNNEL_PREFIX/kept"
    keep=$(responder)
    echo $$ >"$RUNNEL_PREFIX/runnel.pid"
    run down
    [ "$status" -eq 0 ]
    kill -0 $$
    kill -KILL "$keep"
}

@test "a prefix of somebody else is refused" {
    [ "$(id -u)" -eq 0 ] || skip "not root"
    mkdir "$RUNNEL_PREFIX"
    chown nobody "$RUNNEL_PREFIX"
    run up
    [ "$status" -eq 3 ]
    [[ "$output" == *"belongs to user nobody"* ]]
    ln -s / "$TRASH/link"
    RUNNEL_PREFIX=$TRASH/link run up
    [ "$status" -eq 3 ]
    [[ "$output" == *"symbolic link"* ]]
    rmdir "$RUNNEL_PREFIX"
}

@test "a checkout that www-data cannot enter: a copy runs" {
    [ "$(id -u)" -eq 0 ] || skip "not root"
    mkdir -m 700 "$TRASH/closed"
    cp "$RUNNEL" "$TRASH/closed/runnel"
    RUNNEL=$TRASH/closed/runnel run up
    [ "$status" -eq 0 ]
    [[ "$output" == *"a copy in "* ]]
    [ "$(get /healthz)" = ok ]
}

# A checkout of what scripts/up needs, closed to www-data when run as root.
closed_checkout() {
    mkdir -m 700 "$TRASH/closed" "$TRASH/closed/fcgi-app"
    cp -R "$ROOT/scripts" "$ROOT/nginx.conf" "$TRASH/closed/"
    cp -R "$ROOT/fcgi-app/web" "$TRASH/closed/fcgi-app/"
    chmod -R go= "$TRASH/closed"
    SCRIPTS=$TRASH/closed/scripts
}

@test "the live page is served, also from a checkout that www-data cannot enter" {
    closed_checkout
    (umask 077 && up)
    get / | cmp - "$ROOT/fcgi-app/web/index.html"
    get /web/app.js | cmp - "$ROOT/fcgi-app/web/app.js"
}

@test "each up brings the page up to date, without stopping anything" {
    closed_checkout
    up
    before="$(responder) $(nginx)"
    echo '<!-- newer -->' >>"$TRASH/closed/fcgi-app/web/index.html"
    rm "$TRASH/closed/fcgi-app/web/icon.svg"
    get /web/icon.svg >/dev/null
    run up
    [[ "$output" == *"already up"* ]]
    [ "$(responder) $(nginx)" = "$before" ]
    [ "$(get / | tail -n 1)" = '<!-- newer -->' ]
    run get /web/icon.svg
    [ "$status" -eq 22 ]
}

@test "down ends live streams: gently, and at once with --now" {
    up
    curl -q -sN "http://127.0.0.1:$RUNNEL_PORT/stream?prompt=a&max_tokens=1000" >"$TRASH/stream" 3>&- &
    wait_until 10 grep -q token "$TRASH/stream"
    before=$SECONDS
    run down --now
    [ "$status" -eq 0 ]
    [ $((SECONDS - before)) -le 4 ]
    nothing_is_left
}

@test "--help, and wrong options" {
    for script in up down deps lab ttft itl cancel report; do
        run "$SCRIPTS/$script" --help
        [ "$status" -eq 0 ]
        [[ "$output" == "$script: "*"Exit: "* ]]
        run "$SCRIPTS/$script" --nonsense
        [ "$status" -eq 2 ]
        [[ "$output" == *--nonsense* ]]
    done
}

@test "what no pid file tells of is found: workers without a master, a responder without a file" {
    up
    master=$(nginx)
    kill -KILL "$master"
    rm "$RUNNEL_PREFIX/runnel.pid"

    run up
    [ "$status" -eq 0 ]
    [[ "$output" == *"ending what an earlier run left behind"* ]]
    [ "$(get /healthz)" = ok ]

    kill -KILL "$(nginx)"
    rm "$RUNNEL_PREFIX/runnel.pid"
    run down
    [ "$status" -eq 0 ]
    [[ "$output" == *"strays"* ]]
    nothing_is_left
}
