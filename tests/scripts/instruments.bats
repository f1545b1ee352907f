#!/usr/bin/env bats
# ttft, itl, report and cancel against canned replies: what they print, and what they refuse to print.
#
# SC2030, SC2031: each test is a subshell. SC2154: bats sets stderr.
# shellcheck disable=SC2030,SC2031,SC2154

bats_require_minimum_version 1.5.0

load replies.bash

measure() {
    local script=$1

    shift
    run --separate-stderr "$SCRIPTS/$script" "$@"
}

# refuses SENTENCE SCRIPT ARGUMENT...: exit 1, no figure, not even an older one in --out.
refuses() {
    local sentence=$1

    shift
    echo "ttft_ms=1" >old
    measure "$@" --out old
    echo "$* -> $status: $stderr"
    [ "$status" -eq 1 ]
    [ -z "$output" ]
    [ ! -e old ]
    [[ "$stderr" == *"no figure: "*"$sentence"* ]]
}

@test "the exact form of the results, on standard output and in --out" {
    measure ttft --url "$BASE/whole" --out ttft.txt
    [[ "$output" =~ ^ttft_ms=[1-9][0-9]*$ ]]
    [ "$output" = "$(cat ttft.txt)" ]

    measure itl --url "$BASE/whole" --out itl.txt
    [[ "$output" =~ ^count=29\ p50_ms=[0-9]+\.[0-9]{3}\ p99_ms=[0-9]+\.[0-9]{3}$ ]]
    [ "$output" = "$(cat itl.txt)" ]

    measure report --url "$BASE/whole" --out report.txt
    [[ "${lines[*]}" =~ ^ttft_ms=[1-9][0-9]*\ itl_p50_ms=[0-9]+\.[0-9]{3}\ tokens=30\ throughput_tps=[0-9]+\.[0-9]{3}$ ]]
    [ "${#lines[@]}" -eq 4 ]
    [ "$output" = "$(cat report.txt)" ]
}

@test "chat events: role and usage are no tokens" {
    measure report --url "$BASE/chat" -d '{"messages":[]}'
    [[ "$output" == *tokens=25* ]]
}

@test "any locale, any time zone, any awk, a ~/.curlrc and a proxy in the way" {
    echo "max-time = 0.001" >.curlrc
    for awk in mawk gawk "busybox awk"; do
        HOME=$PWD LANG=de_DE.UTF-8 LC_ALL=de_DE.UTF-8 LC_NUMERIC=de_DE.UTF-8 TZ=Pacific/Chatham \
            http_proxy=http://127.0.0.1:1 RUNNEL_AWK=$awk measure report --url "$BASE/whole"
        echo "$awk: $output $stderr"
        [[ "$output" =~ itl_p50_ms=[0-9]+\.[0-9]{3} ]]
    done
}

@test "a stream that is none has no figure" {
    for script in ttft itl report; do
        refuses "ended after 25 tokens without [DONE]" "$script" --url "$BASE/eof"
        refuses "an error event after 25 tokens: out of luck" "$script" --url "$BASE/error"
        refuses "event 4 is not JSON" "$script" --url "$BASE/garbled"
        refuses "ended after 0 tokens without [DONE]" "$script" --url "$BASE/empty"
        refuses "the reply is text/html, not text/event-stream" "$script" --url "$BASE/html"
        refuses 'HTTP status 400: max_tokens: "x" is no number' "$script" --url "$BASE/refused"
        refuses "ended after 25 tokens without [DONE]" "$script" --url "$BASE/reset"
        refuses "given up after 1 s" "$script" --url "$BASE/silent" --timeout 1
    done
}

@test "too few tokens: no percentile is invented" {
    refuses "1 tokens give 0 gaps" itl --url "$BASE/whole?n=1"
    refuses "19 tokens give 18 gaps" itl --url "$BASE/whole?n=19"
    measure itl --url "$BASE/whole?n=20"
    [ "$status" -eq 0 ]
    measure itl --url "$BASE/whole?n=2" --min-count 1
    [[ "$output" == "count=1 "* ]]
    refuses "1 token" report --url "$BASE/whole?n=1"
}

# echoed NAME: of the request that /echo saw; its token is JSON of JSON.
echoed() { sed -n '1s/^data: //p' body | jq -r '.token | fromjson | '"$1"; }

@test "prompt, headers, method and body reach the server as they were given" {
    prompt=$'a&b=c#d "q" \\ %41 + é漢😀\nline'
    measure ttft --url "$BASE/echo?x=1" --prompt "$prompt" --tokens 3 --keep-body body
    [ "$(echoed .query.prompt)" = "$prompt" ]
    [ "$(echoed .query.max_tokens)" = 3 ]
    [ "$(echoed .query.x)" = 1 ]
    [ "$(echoed .method)" = GET ]

    data=$'{"a":"\\"\\\\ \\n é"}'
    measure ttft --url "$BASE/echo" -H 'X-A: "quoted" \ text' --header "X-B: b" --data "$data" --keep-body body
    [ "$(echoed .method)" = POST ]
    [ "$(echoed .body)" = "$data" ]
    [ "$(echoed '.headers["X-A"]')" = '"quoted" \ text' ]
    [ "$(echoed '.headers["X-B"]')" = b ]
    [ "$(echoed '.types | join(";")')" = application/json ]
}

@test "a content type of one's own replaces ours, wherever it is given" {
    printf 'X-A: a\r\ncontent-type: text/b\n\n' >headers
    for header in "Content-Type: text/b" "CONTENT-TYPE:text/b" @headers; do
        measure ttft --url "$BASE/echo" -d x -H "$header" --keep-body body
        [ "$(echoed '.types | join(";")')" = text/b ]
    done
    [ "$(echoed '.headers["X-A"]')" = a ]
    measure ttft --url "$BASE/echo" -H @nowhere
    [ "$status" -eq 2 ]
    [[ "$stderr" == *"--header: cannot read nowhere"* ]]
    measure ttft --url "$BASE/echo" -d @nowhere
    [ "$status" -eq 2 ]
    [[ "$stderr" == *"--data: cannot read nowhere"* ]]
}

@test "a file of headers and a body are read once, for all requests" {
    measure measure "$BASE/echo" --runs 3 -H @<(echo 'X-A: once') -d @<(printf 'twice\n\0\n') --keep-body body
    [ "$status" -eq 0 ]
    [ "$(echoed '.headers["X-A"]')" = once ]
    [ "$(echoed '.body | @json')" = '"twice\n\u0000\n"' ]
    printf body | "$SCRIPTS/measure" "$BASE/echo" --runs 2 -d @- --keep-body body
    [ "$(echoed .body)" = body ]
}

@test "usage errors are 2, an absent server is 3" {
    for arguments in "--tokens 1e3" "--tokens" "--tokens 0" "--timeout -1" "--timeout 007" "http://127.0.0.1:1 extra"; do
        # shellcheck disable=SC2086
        measure ttft $arguments
        echo "$arguments: $status $stderr"
        [ "$status" -eq 2 ]
    done
    for script in ttft itl report cancel; do
        RUNNEL_PORT=1 measure "$script"
        [ "$status" -eq 3 ]
        [[ "$stderr" == *"run make up first"* ]]
        # Another server's address: there is nothing that make up could do about it.
        measure "$script" --url http://127.0.0.1:1/
        [ "$status" -eq 3 ]
        [[ "$stderr" == *"nothing answers at http://127.0.0.1:1/ "* ]]
        [[ "$stderr" != *"make up"* ]]
    done
}

@test "--out may be a device, and stays one" {
    [ -c /dev/full ] || skip "no /dev/full"
    measure ttft --url "$BASE/whole" --out /dev/full
    [ "$status" -eq 3 ]
    [ -c /dev/full ]
}

@test "cancel does not believe a count that moves, nor a request that never ends" {
    measure cancel --url "$BASE/endless"
    [ "$status" -eq 1 ]
    [[ "$stderr" == *"ended with 6 tokens, and now counts 7"* ]]
    measure cancel --url "$BASE/endless" --debug-url "$BASE/live" --timeout 1
    [ "$status" -eq 1 ]
    [[ "$stderr" == *"still live 1 s after"* ]]
    [ -z "$output" ]
}

@test "cancel needs a stream to cancel, and a server that tells" {
    measure cancel --url "$BASE/whole?n=3"
    [ "$status" -eq 3 ]
    [[ "$stderr" == *"only 3 of 5 events"* ]]
    measure cancel --url "$BASE/endless" --debug-url "$BASE/nowhere"
    [ "$status" -eq 3 ]
}

@test "TPOT is by the tokens that the usage tells, as measure has it" {
    measure report --url "$BASE/think" -d '{}' --keep-events events
    [ "${lines[2]}" = tokens=10 ]
    tpot=$(sed -n 's/.*TPOT .*: \([0-9.]*\) ms$/\1/p' <<<"$stderr")
    [ "$tpot" = "$(awk -F '\t' '$4 == "token" { if (!n++) first = $2; last = $2 } END { printf "%.3f", int((last - first) / 9) / 1000 }' events)" ]
}
