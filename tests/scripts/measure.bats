#!/usr/bin/env bats
# measure against canned replies: what it counts, what it leaves out, what it must not show.
#
# SC2030, SC2031: each test is a subshell. SC2154: bats sets stderr.
# shellcheck disable=SC2030,SC2031,SC2154

bats_require_minimum_version 1.5.0
load replies.bash

measure() { run --separate-stderr "$SCRIPTS/measure" "$@"; }

@test "the table has every figure, its count and its definition" {
    measure "$BASE/whole?n=30"
    echo "$output"
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "1 of 1 streams whole: 30 tokens in 30 events" ]
    [[ "$output" =~ TTFT\ +1\ +[0-9.]+\ +n/a\ +n/a\ +[0-9.]+\ +ms\ +request\ sent\ to\ the\ first\ event\ with\ a\ token ]]
    [[ "$output" =~ ITL\ +29\ +[0-9.]+\ +[0-9.]+\ +n/a\ +[0-9.]+\ +ms ]]
    [[ "$output" =~ coalesced\ +29\  ]]
}

@test "a percentile is printed when the sample carries it, and not before" {
    measure "$BASE/whole?n=100" --json
    [ "$(jq -c '.itl_ms | [.count, .p90 != null, .p99]' <<<"$output")" = '[99,true,null]' ]
    measure "$BASE/whole?n=101" --json
    [ "$(jq -c '.itl_ms | [.count, .p99 != null]' <<<"$output")" = '[100,true]' ]
    measure "$BASE/whole?n=10" --json
    [ "$(jq -c '.itl_ms | [.count, .p90]' <<<"$output")" = '[9,null]' ]
}

@test "several runs: gaps are pooled, and each awk agrees on what does not depend on time" {
    for awk in mawk gawk "busybox awk"; do
        RUNNEL_AWK=$awk measure "$BASE/whole?n=30" --runs 4 --json
        [ "$status" -eq 0 ]
        [ "$(jq -c '[.runs, .whole, .tokens, .itl_ms.count, .ttft_ms.count, .tpot_ms.count, (.streams | length)]' <<<"$output")" = \
            '[4,4,120,116,4,4,4]' ]
        jq -e '.ttft_ms | .min <= .p50 and .p50 <= .max' <<<"$output"
    done
}

@test "a stream that was not whole is told, is in no figure, and makes the exit status 1" {
    measure "$BASE/fickle" --runs 4 --json
    [ "$status" -eq 1 ]
    [ "$(jq -c '[.runs, .whole, .tokens, .itl_ms.count, (.failed | length)]' <<<"$output")" = '[4,2,10,8,2]' ]
    [ "$(jq -r '.failed[0].reason' <<<"$output")" = "the stream ended after 5 tokens without [DONE]" ]
    [[ "$stderr" == *"2 of 4 streams were not whole"* ]]

    measure "$BASE/eof"
    [ "$status" -eq 1 ]
    [ -z "$output" ]
    [[ "$stderr" == *"no figure: no stream was whole"* ]]
}

@test "reasoning, role and usage are no tokens; the usage tells how many there were" {
    measure "$BASE/think" -d '{}' --json
    [ "$(jq -c '[.tokens, .token_events, .reasoning_events]' <<<"$output")" = '[10,5,3]' ]
    # The reasoning takes 60 ms: neither the role event nor the reasoning is the first token.
    jq -e '.ttft_ms.p50 - .first_event_ms.p50 >= 60' <<<"$output"
    measure "$BASE/think" -d '{}'
    [[ "${lines[0]}" == *"10 tokens in 5 events (tokens as the server's usage tells them; 5 by the events); 3 events of reasoning are not counted" ]]
}

@test "plain text events, and a stream without [DONE]" {
    measure "$BASE/words"
    [ "$status" -eq 1 ]
    [[ "$stderr" == *"after 12 tokens without [DONE]"* ]]
    measure "$BASE/words" --no-done --json
    [ "$(jq -c '[.tokens, .itl_ms.count]' <<<"$output")" = '[12,11]' ]
    measure "$BASE/words" --no-done --format json
    [[ "$stderr" == *"event 1 is not JSON: word"* ]]
    # Not by its length, not by a last chunk: a server that died looks the same.
    measure "$BASE/eof" --no-done
    [ "$status" -eq 1 ]
    [[ "$stderr" == *"nothing tells whether the stream is whole"* ]]
}

@test "--tsv: a line an event, also of a stream that failed" {
    measure "$BASE/fickle" --runs 2 --tsv --out events.tsv
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = $'run\tus\tread\tkind\ttokens\tdata' ]
    [ "$(cut -f 1,4,5 events.tsv | sort | uniq -c | tr -s ' \t' ' ')" = "$(printf ' %s\n' "1 1 done 0" "5 1 token 1" "5 2 token 1" "1 run kind tokens")" ]
    [ "$(awk -F '\t' 'NR > 2 && $1 == run && $2 < us { bad = 1 } { run = $1; us = $2 } END { print bad + 0 }' events.tsv)" = 0 ]
}

@test "--timing-trace: what the responder replays" {
    measure "$BASE/whole?n=5" --runs 2 --timing-trace
    [ "$status" -eq 0 ]
    [ "$(grep -c '^# request' <<<"$output")" -eq 2 ]
    [ "$(grep -c -x '[0-9]*' <<<"$output")" -eq 10 ]
}

@test "a key is taken from the environment or a file, and is neither shown nor kept" {
    SESAME=sesame measure "$BASE/key" --bearer-env SESAME --keep-trace trace --json
    [ "$status" -eq 0 ]
    # Still a trace that can be read, without the key and without the cookie.
    "$SCRIPTS/measure" "$BASE/key" --bearer-file <(printf 'sesame\nmore\n') --keep-trace trace2 >/dev/null
    for file in trace trace2; do
        [ -s "$file" ]
        ! xxd_text "$file" | grep -q -e sesame -e crumbs -e GET
        xxd_text "$file" | grep -q '"token": " t4"'
    done
    printf 'Authorization: Bearer sesame\n' >headers
    measure "$BASE/key" -H @headers
    [ "$status" -eq 0 ]
    measure "$BASE/key?key=hidden" --bearer-env HOME --json
    [ "$status" -eq 1 ]
    [[ "$output$stderr" != *hidden* ]]
    [[ "$stderr" == *"HTTP status 401: no  [31mkey"* ]]
    measure "$BASE/key" --bearer-env NO_SUCH_VARIABLE
    [ "$status" -eq 2 ]
    KEY=$'two\nlines' measure "$BASE/key" --bearer-env KEY
    [ "$status" -eq 2 ]
}

# The bytes of a trace as text, so that a word split over two of its lines is found.
xxd_text() { sed -n 's/^[0-9a-f]*: \(.\{48\}\).*/\1/p' "$1" | tr -d ' \n' | python3 -c 'import sys; sys.stdout.buffer.write(bytes.fromhex(sys.stdin.read()))'; }

@test "usage errors are 2, an absent server is 3" {
    for arguments in "--runs 0" "--runs" "--json --tsv" "--format xml" "a b" "--url a b"; do
        # shellcheck disable=SC2086
        measure $arguments
        echo "$arguments: $stderr"
        [ "$status" -eq 2 ]
    done
    measure http://user:secret@127.0.0.1:1/x?y=z
    [ "$status" -eq 3 ]
    [[ "$stderr" == *"nothing answers at http://127.0.0.1:1/x "* ]]
}
