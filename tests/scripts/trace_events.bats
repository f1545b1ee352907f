#!/usr/bin/env bats
# What is read in curl's traces: recorded ones against files, made ones (trace.py) against an
# independent reader. UPDATE=1 rewrites the .expected of the recorded ones, to be reviewed.
#
# The loop over the made traces is one test for each awk: a failure names the trace.
#
# SC2030, SC2031: each test is a subshell, and sets its own output.
# shellcheck disable=SC2030,SC2031

bats_require_minimum_version 1.5.0
load awk.bash

setup_file() {
    mkdir "$BATS_FILE_TMPDIR/made"
    python3 "$BATS_TEST_DIRNAME/trace.py" "$BATS_FILE_TMPDIR/made"
}

made_traces_read_by() {
    local trace count=0

    for trace in "$BATS_FILE_TMPDIR"/made/*.trace; do
        program "$1" json,trace_clock,trace_events "$trace" >"$BATS_TEST_TMPDIR/out"
        same "$1: $trace" "${trace%.trace}.expected" "$BATS_TEST_TMPDIR/out"
        count=$((count + 1))
    done
    [ "$count" -gt 300 ]
}

@test "mawk: made traces, split at every byte, every spelling, every way to end" {
    made_traces_read_by mawk
}

@test "gawk: made traces" {
    made_traces_read_by gawk
}

@test "busybox awk: made traces" {
    made_traces_read_by "busybox awk"
}

@test "recorded traces: events, verdict, figures and percentiles" {
    local trace awk

    for trace in "$TRACES"/*.trace; do
        [ -z "${UPDATE:-}" ] || digest mawk "$trace" >"${trace%.trace}.expected"
        for awk in "${AWKS[@]}"; do
            digest "$awk" "$trace" >"$BATS_TEST_TMPDIR/digest"
            same "$awk: $trace" "${trace%.trace}.expected" "$BATS_TEST_TMPDIR/digest"
        done
    done
}

@test "10,000 tokens are read within 10 s" {
    local awk

    for awk in "${AWKS[@]}"; do
        # shellcheck disable=SC2086 # the name may be two words
        timeout 10 $awk -f "$PROGRAMS/json.awk" -f "$PROGRAMS/trace_clock.awk" -f "$PROGRAMS/trace_events.awk" \
            "$BATS_FILE_TMPDIR/made/many-10000.trace" >"$BATS_TEST_TMPDIR/out"
        [ "$(grep -c -P '^event\t.*\ttoken\t' "$BATS_TEST_TMPDIR/out")" -eq 10000 ]
    done
}

@test "a trace that is cut anywhere is never taken for a whole stream" {
    local trace=$BATS_FILE_TMPDIR/made/one-read-each.trace last n

    last=$(grep -n 'Connection #0' "$trace" | cut -d : -f 1)
    # The last chunk is "0 CRLF CRLF": without it the body has no end, though [DONE] has been seen.
    for ((n = 1; n < last - 2; n++)); do
        head -n "$n" "$trace" >"$BATS_TEST_TMPDIR/cut"
        program mawk json,trace_clock,trace_events "$BATS_TEST_TMPDIR/cut" >"$BATS_TEST_TMPDIR/events"
        run program mawk json,verdict "$BATS_TEST_TMPDIR/events"
        [ "$status" -eq 1 ]
        [ -n "$output" ]
    done
}

# verdict_is SENTENCE NAME: of a made trace, by each awk; an empty sentence is a whole stream.
verdict_is() {
    local awk

    for awk in "${AWKS[@]}"; do
        run program "$awk" json,verdict <(program "$awk" json,trace_clock,trace_events "$BATS_FILE_TMPDIR/made/$2.trace")
        echo "$awk, $2: $output"
        [ "$output" = "$1" ]
        [ "$status" -eq "$([ -z "$1" ] && echo 0 || echo 1)" ]
    done
}

@test "verdicts: a whole stream is one with [DONE], and nothing else is" {
    verdict_is "" one-read-each
    verdict_is "" chat
    verdict_is "" error-null
    verdict_is "" single-token
    verdict_is "" torture
    verdict_is "" close-crlf
    verdict_is "the stream ended after 3 tokens without [DONE]" no-done
    verdict_is "the stream ended after 1 token and a part of an event without [DONE]" cut-in-event
    verdict_is "the stream ended after 1 token and a part of an event without [DONE]" cut-before-blank-line
    verdict_is "the body was cut short after [DONE]" cut-after-done
    verdict_is "the body was cut short after [DONE]" short-body
    verdict_is 'an error event after 1 token: no "luck"' error-event
    verdict_is "an error event after 1 token: openai" error-json
    verdict_is "an error event after 2 tokens: no room" response-failed
    verdict_is "" response-completed
    verdict_is "" response-incomplete
    verdict_is 'event 2 is not JSON: {"token":"b"' garbled
    verdict_is "an event came after [DONE]" after-done
    verdict_is "the stream ended without a token" no-token
    verdict_is "the stream ended after 0 tokens without [DONE]" empty-body
    verdict_is "HTTP status 400" status-400
}
