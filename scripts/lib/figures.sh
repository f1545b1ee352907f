# The figures of a measured stream; sourced after request.sh, used after measure_stream.
# shellcheck shell=sh disable=SC2034,SC2154 # its variables are the callers', and the other way

# $TMP/figures, $TMP/gaps (NAME=VALUE lines), $GAPS and $TOKEN_COUNT.
measure_gaps() {
    run_awk figures "$TMP/events" >"$TMP/figures"
    run_awk gaps "$TMP/events" | run_awk percentiles >"$TMP/gaps"
    GAPS=$(figure "$TMP/gaps" count)
    TOKEN_COUNT=$(figure "$TMP/figures" tokens)
}

gap_ms() { milliseconds "$(figure "$TMP/gaps" "$1")"; }

say_gaps() {
    say "$GAPS gaps between $(figure "$TMP/figures" counted) tokens of 1 request: mean $(gap_ms mean) ms," \
        "p50 $(gap_ms p50), p90 $(gap_ms p90), p99 $(gap_ms p99), max $(gap_ms max)"
    [ "$GAPS" -ge 100 ] || say "below 100 gaps the p99 is the largest gap"
    say_coalesced
}

say_coalesced() {
    events=$(figure "$TMP/figures" token_events)
    say "$(figure "$TMP/figures" coalesced) of $events token events came in the same read as the one before"
}
