#!/usr/bin/env bats
# The experiment of scripts/accident, short: with a server of its own, and what it must show.
#
# SC2154: bats sets stderr.
# shellcheck disable=SC2154

load harness.bash

setup_file() { lab_open; }

@test "the server that notices generates for nobody, the other one does" {
    run --separate-stderr "$ROOT/scripts/accident" --slots 4 --duration $((4 * SLOW)) --leave 50 --tokens 50 \
        --port "$(free_port)" --out "a folder" 3>&-
    echo "$output $stderr"
    [ "$status" -eq 0 ]
    read -r notices ignores <<<"$(sed -n 's/^tokens that nobody read *//p' <<<"$output")"
    [ "$ignores" -gt 0 ]
    [ $((notices * 5)) -lt "$ignores" ]
    # The same clients in both runs.
    read -r notices ignores <<<"$(sed -n 's/^requests of clients who left *//p' <<<"$output")"
    [ "$notices" -gt 0 ]
    [ "$notices" -eq "$ignores" ]
    # Tokens of whole streams by the whole time, to the last digit that both have.
    column() { awk -v row="$1" 'index($0, row) == 1 { print $(NF - 1) }' <<<"$output"; }
    awk -v stayed="$(column 'requests of clients who stayed')" -v seconds="$(column 'until the last client')" \
        -v useful="$(column 'useful tokens')" 'BEGIN { d = useful - stayed * 50 / seconds; exit !(d < 0.01 && d > -0.01) }'
    cmp "a folder/accident.txt" - <<<"$output"
    [ "$(head -n 1 "a folder/ignores.tsv" | tr '\t' ' ')" = "seconds running waiting delivered discarded" ]
}

@test "usage, and what it needs" {
    for arguments in "--leave 0" "--slots" "--nose 1"; do
        # shellcheck disable=SC2086
        run "$ROOT/scripts/accident" $arguments
        [ "$status" -eq 2 ]
    done
    LOAD=/nowhere run "$ROOT/scripts/accident"
    [ "$status" -eq 3 ]
}
