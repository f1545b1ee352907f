#!/usr/bin/env bats
# The lab on the real server, and whether it can fail.
#
# SC2030, SC2031: each test is a subshell. SC2154: bats sets stderr.
# shellcheck disable=SC2030,SC2031,SC2154

bats_require_minimum_version 1.5.0
load server.bash

setup() {
    private_server
    export LS_DIR="$TRASH/l s"
}

teardown() { remove_server; }

@test "every step passes; the files have their exact form; the server stays up" {
    up
    run --separate-stderr "$SCRIPTS/lab"
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "$output" != *FAIL* ]]
    cmp "$LS_DIR/gen1.txt" "$LS_DIR/gen2.txt"
    [[ "$(cat "$LS_DIR/ttft.txt")" =~ ^ttft_ms=[0-9]+$ ]]
    [[ "$(cat "$LS_DIR/itl.txt")" =~ ^count=[0-9]+\ p50_ms=[0-9.]+\ p99_ms=[0-9.]+$ ]]
    [[ "$(cat "$LS_DIR/cancel.txt")" =~ ^requested=100\ generated=[56]$ ]]
    [ "$(cut -d = -f 1 "$LS_DIR/report.txt" | tr '\n' ' ')" = "ttft_ms itl_p50_ms tokens throughput_tps " ]
    [ "$(get /healthz)" = ok ]
}

@test "a responder that ignores cancels fails the lab" {
    up -- --ignore-cancel --itl-ms 5
    run --separate-stderr "$SCRIPTS/lab"
    echo "$output"
    [ "$status" -eq 1 ]
    [ "$(grep FAIL <<<"$output" | cut -d ' ' -f 1 | sort -u)" = cancel.txt ]
}

@test "a generator that differs from the server fails the lab" {
    up
    cat >"$TRASH/gen" <<END
#!/bin/sh
"$GEN" "\$@" --seed 7
END
    chmod 755 "$TRASH/gen"
    GEN=$TRASH/gen run --separate-stderr "$SCRIPTS/lab"
    echo "$output"
    [ "$status" -eq 1 ]
    [ "$(grep -c FAIL <<<"$output")" -eq 2 ]
}

@test "without a server it says what to do" {
    run --separate-stderr "$SCRIPTS/lab"
    [ "$status" -eq 3 ]
    [[ "$stderr" == *"run make up first"* ]]
}
