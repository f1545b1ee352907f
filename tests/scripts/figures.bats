#!/usr/bin/env bats
# Figures with known answers: percentiles, gaps, JSON values.
#
# SC2030, SC2031: each test is a subshell, and sets its own output. SC1003: a backslash is meant.
# shellcheck disable=SC1003,SC2030,SC2031

bats_require_minimum_version 1.5.0
load awk.bash

# percentiles_are EXPECTED ASK NUMBER...: by each awk, in the order given and in reverse.
percentiles_are() {
    local expected=$1 ask=$2 awk

    shift 2
    for awk in "${AWKS[@]}"; do
        run program "$awk" percentiles -v ask="$ask" <(printf '%s\n' "$@")
        echo "$awk: $output"
        [ "${output//$'\n'/ }" = "$expected" ]
        run program "$awk" percentiles -v ask="$ask" <(printf '%s\n' "$@" | tac)
        [ "${output//$'\n'/ }" = "$expected" ]
    done
}

@test "percentiles by nearest rank" {
    percentiles_are "count=1 min=7 mean=7 p1=7 p50=7 p99=7 max=7" "1 50 99" 7
    percentiles_are "count=2 min=1 mean=2 p50=1 p51=2 p99=2 max=2" "50 51 99" 1 2
    percentiles_are "count=5 min=15 mean=32 p5=15 p30=20 p40=20 p50=35 p100=50 max=50" "5 30 40 50 100" 15 20 35 40 50
    # shellcheck disable=SC2046 # numbers
    percentiles_are "count=100 min=1 mean=51 p50=50 p90=90 p99=99 p99.9=100 max=100" "50 90 99 99.9" $(seq 100)
    # shellcheck disable=SC2046
    percentiles_are "count=101 min=0 mean=50 p50=50 p99=99 max=100" "50 99" $(seq 0 100)
    # shellcheck disable=SC2046
    percentiles_are "count=1000 min=1 mean=501 p50=500 p99=990 p99.9=999 max=1000" "50 99 99.9" $(seq 1000)
    percentiles_are "count=4 min=0 mean=750000002 p50=3 p75=3 max=3000000000" "50 75" 3 0 3 3000000000
}

@test "no number: no percentile" {
    local awk

    for awk in "${AWKS[@]}"; do
        run program "$awk" percentiles <(:)
        [ "$output" = count=0 ]
    done
}

@test "20,000 shuffled numbers are sorted as sort does, within 10 s" {
    local awk want

    seq 20000 | shuf --random-source=<(yes) >"$BATS_TEST_TMPDIR/numbers"
    want=$(printf 'count=20000\nmin=1\nmean=10001\np99.99=19998\nmax=20000')
    for awk in "${AWKS[@]}"; do
        # shellcheck disable=SC2086 # the name may be two words
        run timeout 10 $awk -v ask=99.99 -f "$PROGRAMS/percentiles.awk" "$BATS_TEST_TMPDIR/numbers"
        echo "$awk: $output"
        [ "$output" = "$want" ]
    done
}

@test "gaps: n tokens give n - 1, those of one event are 0" {
    local awk

    printf 'event\t%s\n' $'100\t1\tother\t0\t{}' $'200\t2\ttoken\t1\tx' $'250\t3\ttoken\t3\tx' \
        $'250\t3\ttoken\t1\tx' $'3000000250\t4\ttoken\t1\tx' $'3000000300\t5\tdone\t0\t' >"$BATS_TEST_TMPDIR/events"
    for awk in "${AWKS[@]}"; do
        run program "$awk" gaps "$BATS_TEST_TMPDIR/events"
        echo "$awk: $output"
        [ "${output//$'\n'/ }" = "50 0 0 0 3000000000" ]
        run program "$awk" figures "$BATS_TEST_TMPDIR/events"
        [[ "$output" == *first_event_us=100*first_token_us=200*last_token_us=3000000250*tokens=6*token_events=4*coalesced=1* ]]
    done
}

# json_is EXPECTED PATH JSON
json_is() {
    local awk

    for awk in "${AWKS[@]}"; do
        printf '%s' "$3" >"$BATS_TEST_TMPDIR/json"
        run program "$awk" json,json_get -v path="$2" "$BATS_TEST_TMPDIR/json"
        echo "$awk: $3 at $2: '$output'"
        [ "$status" -eq 0 ]
        [ "$output" = "$1" ]
    done
}

@test "JSON: values by path, escapes undone" {
    json_is 20 usage.completion_tokens '{"text":"x","usage":{"prompt_tokens":1,"completion_tokens":20}}'
    json_is c a.2.b '{"a":[1,[],{"b":"c"}]}'
    json_is -1.5e3 a ' { "a" : -1.5e3 } '
    json_is x "" '"x"'
    json_is "" a '{"a":""}'
    json_is $'"\\/\b\f\n\r\tx' a '{"a":"\"\\\/\b\f\n\r\tx"}'
    json_is 'é漢😀é漢😀' a '{"a":"\u00e9\u6F22\ud83d\uDE00é漢😀"}'
    json_is $'\xef\xbf\xbdx' a '{"a":"\ud83dx"}'
    json_is '\u0041 \\' a '{"a":"\\u0041 \\\\"}'
    json_is '\' a '{"a":"\\","b":"\\\\"}'
    json_is '}{][,:' a '{"a":"}{][,:"}'
}

@test "JSON: what is none is refused" {
    local awk text

    for awk in "${AWKS[@]}"; do
        for text in '' '{' '{"a":1' '{"a" 1}' '{"a":"b}' '[1,]' '{,}' '{"a":1,}' '"x' '"x\"' data '1 2' \
            '{"a":tru}' '{"a":1}}' '[1}' '{"a":"b"}x' '{"a"}' '[1 2]' '{1:2}' '1.' '+1' '"a""b"'; do
            run program "$awk" json,json_get -v path= <(printf '%s' "$text")
            echo "$awk: $text"
            [ "$status" -eq 1 ]
        done
    done
}

@test "JSON: a long text full of escapes takes linear time" {
    local awk

    python3 -c 'import json; print(json.dumps({"text": "é\n\"\\ abc😀 " * 30000}))' >"$BATS_TEST_TMPDIR/json"
    python3 -c 'import sys; sys.stdout.buffer.write(("é\n\"\\ abc😀 " * 30000).encode())' >"$BATS_TEST_TMPDIR/text"
    for awk in "${AWKS[@]}"; do
        # shellcheck disable=SC2086 # the name may be two words
        timeout 20 $awk -v path=text -f "$PROGRAMS/json.awk" -f "$PROGRAMS/json_get.awk" "$BATS_TEST_TMPDIR/json" \
            >"$BATS_TEST_TMPDIR/out"
        cmp "$BATS_TEST_TMPDIR/text" "$BATS_TEST_TMPDIR/out"
    done
}

@test "the text of a stream's tokens; a broken event is told" {
    local awk

    for awk in "${AWKS[@]}"; do
        run program "$awk" json,stream_text <(printf 'data: {"token":"a"}\n\ndata:{"token":" \\"b\\"\\n"}\n\ndata: [DONE]\n\n')
        [ "$status" -eq 0 ]
        [ "$output" = 'a "b"' ]
        run program "$awk" json,stream_text <(printf 'data: {"token":"a"}\n\ndata: {"token"\n\n')
        [ "$status" -eq 1 ]
    done
}

@test "the holder of a port is found among the listening sockets" {
    local awk

    printf '%s\n' \
        '   0: 0100007F:1FEA 0100007F:8888 01 0:0 00:0 0 0 0 11 1' \
        '   1: 0100007F:1FEB 00000000:0000 0A 0:0 00:0 0 0 0 12 1' \
        '   2: 0200007F:1FEA 00000000:0000 0A 0:0 00:0 0 0 0 13 1' \
        '   3: 00000000000000000000000000000000:1FEA 0:0 0A 0:0 00:0 0 0 0 14 1' >"$BATS_TEST_TMPDIR/tcp"
    for awk in "${AWKS[@]}"; do
        [ "$(program "$awk" listener -v port=1FEA "$BATS_TEST_TMPDIR/tcp")" = 14 ]
        [ "$(program "$awk" listener -v port=1FEB "$BATS_TEST_TMPDIR/tcp")" = 12 ]
        [ -z "$(program "$awk" listener -v port=1FEC "$BATS_TEST_TMPDIR/tcp")" ]
    done
}
