# What the tests of the awk programs share. Each runs under every awk that Debian has.
# shellcheck shell=bash disable=SC2034 # its variables are the tests'

ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
PROGRAMS=$ROOT/scripts/awk
TRACES=$BATS_TEST_DIRNAME/traces
AWKS=(mawk gawk "busybox awk")
export LC_ALL=C

# program AWK NAME[,NAME...] ARGUMENT...
program() {
    local awk=$1 names=$2 name files=()

    shift 2
    for name in ${names//,/ }; do
        files+=(-f "$PROGRAMS/$name.awk")
    done
    $awk "${files[@]}" "$@"
}

# digest AWK TRACE: all that the instruments read in a trace.
digest() {
    program "$1" json,trace_clock,trace_events "$2" >"$BATS_TEST_TMPDIR/events"
    cat "$BATS_TEST_TMPDIR/events"
    echo "verdict: $(program "$1" json,verdict "$BATS_TEST_TMPDIR/events" || echo "exit $?")"
    program "$1" figures "$BATS_TEST_TMPDIR/events"
    program "$1" gaps "$BATS_TEST_TMPDIR/events" | program "$1" percentiles
}

# same WHAT EXPECTED ACTUAL: files; shows the difference.
same() {
    cmp -s "$2" "$3" || {
        echo "$1:"
        diff "$2" "$3" | head -n 10
        return 1
    }
}
