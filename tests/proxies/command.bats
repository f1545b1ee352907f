#!/usr/bin/env bats
# scripts/proxies: what it starts, what it refuses, what it leaves behind.
#
# SC2030, SC2031: each test is a subshell. SC2154: bats sets stderr.
# shellcheck disable=SC2030,SC2031,SC2154

bats_require_minimum_version 1.5.0
load ../scripts/server.bash

setup() {
    TRASH=$(mktemp -d "${TMPDIR:-/tmp}/runnel proxies.XXXXXX")
    chmod 711 "$TRASH"
    TREE=$ROOT
    export RUNNEL_PROXIES="$TRASH/be ds" RUNNEL_PROXIES_PORT="${RUNNEL_PROXIES_PORT:-18300}"
}

teardown() {
    proxies down || true
    if [ -n "${RUN:-}" ]; then
        kill -TERM "$RUN" 2>/dev/null || true
        wait_until 60 is_gone "$RUN"
    fi
    [ -z "${HOLDER:-}" ] || kill "$HOLDER" 2>/dev/null || true
    rm -rf "$TRASH"
}

# With its descriptors closed to the daemons: bats waits until nobody holds its own.
proxies() { "$TREE/scripts/proxies" "$@" 3>&- 4>&-; }

answer() { sed -n "s/^$1=//p" "$RUNNEL_PROXIES/$2/answer"; }

get() { curl -q -sS -f --noproxy 127.0.0.1 --max-time 20 "$@"; }

proxy_pid() { sed -n 's/^proxy \([0-9]*\) .*/\1/p' "$RUNNEL_PROXIES/$1/servers"; }

nothing_runs() {
    local entry

    for entry in /proc/[0-9]*; do
        case $(readlink "$entry/cwd" 2>/dev/null)$(tr '\0' ' ' 2>/dev/null <"$entry/cmdline") in
            *"$RUNNEL_PROXIES"*)
                echo "runs: ${entry#/proc/}"
                return 1
                ;;
        esac
    done
}

is_gone() { ! is_running "$1"; }

# A tree of our own, whose templates a test may break.
own_tree() {
    TREE=$TRASH/tree
    mkdir "$TREE"
    cp -r "$ROOT/scripts" "$ROOT/tests" "$ROOT/nginx.conf" "$TREE"
    ln -s "$ROOT/build" "$ROOT/fcgi-app" "$TREE"
}

@test "each proxy has its default and its tuned configuration" {
    run -0 proxies list
    for name in nginx apache-proxy-fcgi apache-fcgid lighttpd haproxy caddy h2o varnish nginx-nginx; do
        grep -qx "$name/default" <<<"$output"
        grep -qx "$name/tuned" <<<"$output"
    done
}

@test "what is not known is refused in a sentence" {
    run -2 --separate-stderr proxies start
    [[ "$stderr" == *"'start' is neither a command (run, list, up, down) nor one of the beds"* ]]
    run -2 --separate-stderr proxies run nginx --jobs
    run -2 --separate-stderr proxies run --jobs 0 nginx
    [[ "$stderr" == *"--jobs: 0"* ]]
    run -2 --separate-stderr proxies run nginx/none
    run -2 --separate-stderr proxies up
    run -2 --separate-stderr proxies up nginx
    [[ "$stderr" == *"one of nginx/default"*"nginx/tuned"* ]]
    run -2 --separate-stderr proxies up nginx/../..
    run -2 --separate-stderr proxies up nginx/tuned --slots 4
    run -2 --separate-stderr proxies down nginx/none
    RUNNEL_PROXIES_PORT=x run -2 --separate-stderr proxies up nginx/tuned
    [[ "$stderr" == *RUNNEL_PROXIES_PORT* ]]
    nothing_runs
}

@test "up twice is the same bed; the proxy and the side door have one ledger; down leaves nothing" {
    run -0 proxies up haproxy/tuned -- --slots 7
    first=$output
    get "$(answer url haproxy/tuned)/stream?prompt=a&max_tokens=3&ttft_ms=0" -H 'X-Request-Id: asked' |
        grep -q DONE
    get "$(answer side_door haproxy/tuned)/_debug/generated?id=asked" | grep -q '"generated":3'
    run -0 --separate-stderr proxies up haproxy/tuned -- --slots 7
    [ "$output" = "$first" ]
    [[ "$stderr" == *"already up"* ]]
    run -3 --separate-stderr proxies up haproxy/tuned -- --slots 8
    [[ "$stderr" == *"other options"* ]]
    run -0 proxies down
    [ ! -e "$RUNNEL_PROXIES" ]
    nothing_runs
    run -0 proxies down
}

@test "down --keep leaves the logs, and nothing that runs" {
    proxies up nginx/tuned
    run -0 proxies down --keep nginx/tuned
    nothing_runs
    [ -e "$RUNNEL_PROXIES/nginx/tuned/proxy/error.log" ]
    [ -s "$RUNNEL_PROXIES/nginx/tuned/origin/runnel.log" ]
    run -0 proxies down
    [ ! -e "$RUNNEL_PROXIES" ]
}

@test "a bed whose proxy died is made anew; what the dead one had started ends" {
    proxies up nginx/tuned
    before=$(proxy_pid nginx/tuned)
    # Its workers live on, and listen on.
    workers=$(cat "/proc/$before/task/$before/children")
    kill -KILL "$before"
    wait_until 5 is_gone "$before"
    proxies up nginx/tuned
    [ "$(proxy_pid nginx/tuned)" != "$before" ]
    for pid in $workers; do
        is_gone "$pid"
    done
    get "$(answer url nginx/tuned)/healthz"
}

@test "a proxy that does not start: exit 3 with its own words, and nothing is left running" {
    own_tree
    echo 'no_such_directive on;' >>"$TREE/tests/proxies/nginx/tuned/nginx.conf"
    run -3 --separate-stderr proxies up nginx/tuned
    [ -z "$output" ]
    [[ "$stderr" == *no_such_directive*"died"* ]]
    nothing_runs
}

@test "a placeholder that nobody fills is an error" {
    own_tree
    echo '# @NOBODY@' >>"$TREE/tests/proxies/nginx/tuned/nginx.conf"
    run -3 --separate-stderr proxies up nginx/tuned
    [[ "$stderr" == *@NOBODY@* ]]
    nothing_runs
}

@test "a responder that does not start: exit 3" {
    RUNNEL=/nowhere run -3 --separate-stderr proxies up nginx/tuned
    [[ "$stderr" == *"/nowhere is not there"* ]]
    nothing_runs
}

# hold_ports FREE BOUND: takes a hundred ports that nobody had, and RUNNEL_PROXIES_PORT is the first.
# FREE of them are given back, BOUND are taken by a socket that does not listen, which looks free and
# is not; the others have a listener.
hold_ports() {
    python3 - "$1" "$2" "$TRASH/held" 3>&- 4>&- <<'PYTHON' &
import os, signal, socket, sys

free, bound = map(int, sys.argv[1:3])


def hundred(first):
    held = []
    for port in range(first, first + 100):
        one = socket.socket()
        held.append(one)
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            return None
    return held


first = next(first for first in range(20000, 32000, 100) if hundred(first))
held = hundred(first)
for one in held[:free]:
    one.close()
for one in held[free + bound:]:
    one.listen()
with open(sys.argv[3] + ".new", "w") as out:
    out.write(str(first))
os.rename(sys.argv[3] + ".new", sys.argv[3])
signal.pause()
PYTHON
    HOLDER=$!
    wait_until 10 test -e "$TRASH/held"
    RUNNEL_PROXIES_PORT=$(cat "$TRASH/held")
}

@test "ports that others have are gone round, also those that are taken in the last moment" {
    hold_ports 2 2
    run -0 proxies up haproxy/tuned
    get "$(answer url haproxy/tuned)/healthz"
}

@test "no port is left: a sentence" {
    hold_ports 0 0
    run -3 --separate-stderr proxies up haproxy/tuned
    [[ "$stderr" == *RUNNEL_PROXIES_PORT* ]]
    nothing_runs
}

# run_part NAME...: what can be known in seconds.
run_part() { proxies run --out "$TRASH/result" "$@" -- --ask header; }

@test "a bed that does not do what is expected: exit 1, naming bed, figure, expected and got" {
    own_tree
    echo 'x_accel_buffering=eaten' >"$TREE/tests/proxies/nginx/tuned/expected"
    run -1 run_part nginx/tuned
    [[ "$output" == *"nginx/tuned: x_accel_buffering=kept, expected =eaten"* ]]
    [[ "$output" == *"0 as expected, 1 not, 0 not measured"* ]]
    [ -s "$TRASH/result/nginx/tuned/logs/error.log" ] || [ -s "$TRASH/result/nginx/tuned/logs/runnel.log" ]
    # Patterns, several with bars, and !=.
    printf '%s\n' '# a comment' '' 'x_accel_buffering=eaten|k*' 'drain!=cut' 'crash=hid???' 'bytes!=changed|lost' \
        >"$TREE/tests/proxies/nginx/tuned/expected"
    run -0 run_part nginx/tuned
    [[ "$output" == *"1 as expected, 0 not, 0 not measured"* ]]
    [ ! -e "$TRASH/result/nginx/tuned/logs" ]
    printf '%s\n' 'drain!=cut|whole' 'nonsense' >"$TREE/tests/proxies/nginx/tuned/expected"
    run -1 run_part nginx/tuned
    [[ "$output" == *"nginx/tuned: drain=whole, expected !=cut|whole"*"'nonsense' is neither"* ]]
    rm "$TREE/tests/proxies/nginx/tuned/expected"
    run -1 run_part nginx/tuned
    [[ "$output" == *"nginx/tuned: nothing is expected of it"* ]]
    nothing_runs
}

@test "a bed that cannot be measured: exit 3, and the others are" {
    own_tree
    echo 'no_such_directive on;' >>"$TREE/tests/proxies/nginx/default/nginx.conf"
    run -3 run_part nginx
    [[ "$output" == *"nginx/default: it does not start"*no_such_directive* ]]
    [[ "$output" == *"1 as expected, 0 not, 1 not measured"* ]]
    grep -q '^nginx/tuned' "$TRASH/result/result.tsv"
    run -1 grep '^nginx/default' "$TRASH/result/result.tsv"
    nothing_runs
}

bed_has_answered() { find "$TRASH" -path '*/b/nginx/tuned/answer' | grep -q .; }

@test "a run that is told to stop leaves nothing that runs" {
    export TMPDIR=$TRASH
    "$ROOT/scripts/proxies" run --out "$TRASH/result" nginx haproxy/tuned >"$TRASH/out" 2>&1 3>&- 4>&- &
    RUN=$!
    wait_until 30 bed_has_answered
    kill -TERM "$RUN"
    status=0
    wait "$RUN" || status=$?
    [ "$status" -eq 143 ]
    [ -z "$(find "$TRASH" -name 'runnel-*')" ]
    RUNNEL_PROXIES=$TRASH nothing_runs
}

@test "two at the same time" {
    proxies up nginx/tuned >"$TRASH/one" &
    one=$!
    proxies up haproxy/tuned >"$TRASH/two"
    wait "$one"
    get "$(answer url nginx/tuned)/healthz"
    get "$(answer url haproxy/tuned)/healthz"
    [ "$(cat "$TRASH/one" "$TRASH/two" | grep -c '^url=')" = 2 ]
    [ "$(cat "$TRASH/one" "$TRASH/two" | grep -E '^(url|side_door)=' | sort -u | wc -l)" = 4 ]
}
