#!/usr/bin/env bats
# doctor at a server that is no runnel, of canned replies: what its gauge of running requests tells.
# The real ones are in tests/clients/foreign.bats, the real paths in tests/integration/doctor.bats.
#
# SC2030, SC2031: each test is a subshell. SC2154: bats sets stderr.
# shellcheck disable=SC2030,SC2031,SC2154

bats_require_minimum_version 1.5.0
load replies.bash

# doctor PATH OPTION...: the figures are in the file figures.
doctor() {
    local path=$1

    shift
    run --separate-stderr "$SCRIPTS/doctor" "$BASE/$path" -d '{"stream":true}' --out figures "$@"
    printf '%s\n' "$output" "$stderr"
    [ -z "$stderr" ]
}

one_line() { tr -s ' \n' ' ' <<<"$output"; }

@test "a header of the server is shown without what a terminal obeys" {
    doctor coloured --ask stream
    [[ "$output" == *"Via: 1.1 "*"[31mred"* ]]
    [[ "$output$(cat figures)" != *$'\e'* ]]
    doctor coloured --ask stream --json
    jq -e . <<<"$output"
}

@test "an abort that the server notices, and one that it does not" {
    doctor heedful
    [ "$status" -eq 0 ]
    [[ "$(one_line)" == *"ok abort the running requests were 0 again "*" after the client had gone"* ]]
    doctor heedless
    [ "$status" -eq 1 ]
    [[ "$(one_line)" == *"FAULT abort the running requests were 0 again only "* ]]
}

@test "behind what holds all tokens back, nothing arrives that one could wait for" {
    doctor lump --json
    [ "$status" -eq 1 ] # by the buffering alone
    [ "$(jq -c '[.findings[] | select(.level == "fault") | .question]' <<<"$output")" = '["stream"]' ]
    jq -e '.findings[] | select(.question == "abort") | .level == "ok"' <<<"$output"
    doctor lump/heedless --json
    [ "$(jq -c '[.findings[] | select(.level == "fault") | .question]' <<<"$output")" = '["stream","abort"]' ]
}

@test "many tokens in a burst are held back, a few are coalesced; with the origin and without" {
    local origin

    for origin in "--origin ${BASE/127.0.0.1/localhost}" ""; do
        # shellcheck disable=SC2086
        doctor bursts/15 --ask stream $origin
        [ "$status" -eq 1 ]
        grep -x 'stream=bursts:15' figures
        [[ "$(one_line)" == *" in bursts of 15 "*"buffered: the path holds tokens back."* ]]
        # shellcheck disable=SC2086
        doctor bursts/3 --ask stream $origin
        [ "$status" -eq 1 ]
        grep -x 'stream=coalesced' figures
        [[ "$(one_line)" == *" in bursts of 3 "*"coalesced: tokens that were sent apart arrive together."* ]]
    done
}

@test "a gauge that needs the key of the request" {
    SESAME=sesame doctor locked/heedful --bearer-env SESAME --ask stream,abort
    [ "$status" -eq 0 ]
    [[ "$(one_line)" == *"ok abort the running requests were 0 again"* ]]
    doctor locked/heedful --ask stream,abort
    [ "$status" -eq 0 ]
    [[ "$(one_line)" == *"note abort not known"* ]]
}

@test "only what is asked" {
    doctor heedful --ask compression --json
    [ "$(jq -c '[.findings[].question] | unique' <<<"$output")" = '["compression"]' ]
    doctor heedful --ask cache
    [[ "$(one_line)" == *"note cache not asked: it takes a stream of runnel"* ]]
    doctor heedful --ask stream --json
    [ "$(jq -c '[.findings[].question] | unique' <<<"$output")" = '["stream"]' ]
}
