#!/usr/bin/env bats
# plot: the numbers that it draws, and pictures of the right kind.
#
# SC2030, SC2031: each test is a subshell, and sets its own output. SC2154: bats sets stderr.
# shellcheck disable=SC2030,SC2031,SC2154

bats_require_minimum_version 1.5.0
load awk.bash

setup() { cd "$BATS_TEST_TMPDIR" || return 1; }

# table NAME LINE...: a table of events, its lines with spaces for tabs.
table() {
    local name=$1

    shift
    { echo "run us read kind tokens data"; printf '%s\n' "$@"; } | tr ' ' '\t' >"$name"
}

plot() { run --separate-stderr "$ROOT/scripts/plot" "$@"; }

@test "the timeline: tokens by their number, and when they were sent" {
    local awk

    table a '1 100000 1 other 0 {}' '1 200000 2 token 1 {"token":"a","t_us":1795959011000000}' \
        '1 300000 3 token 2 {"token":"b","t_us":1795959011090000}' '2 1 1 token 1 {"token":"c"}' '1 300000 3 done 0 [DONE]'
    # The server sent the two 90 ms apart, and 100 ms lie between their arrivals: the first was quicker.
    printf 'seconds\tlabel x\n0.200000\t1\n0.300000\t3\n\n\nseconds\tsent (label x)\n0.200000\t1\n0.290000\t3\n' >want
    for awk in "${AWKS[@]}"; do
        program "$awk" json,plot_timeline -v run=1 -v label="label x" a >got
        same "$awk" want got
    done
}

@test "what the load client writes: streams from 0, one beside the other, without data" {
    local awk

    printf '# stream us read kind tokens\n0 100 1 token 1\n1 200000 1 token 1\n0 300 2 token 1\n1 500000 2 token 2\n' |
        tr ' ' '\t' | sed 's/^#\t/# /' >events
    printf 'seconds\tl\n0.200000\t1\n0.500000\t3\n' >want
    printf '0\n200\n300000\n' >want_gaps
    for awk in "${AWKS[@]}"; do
        program "$awk" json,plot_timeline -v run=2 -v label=l events >got
        same "$awk" want got
        program "$awk" table_gaps events | sort -n >got
        same "$awk" want_gaps got
    done
    command -v gnuplot || skip "no gnuplot"
    plot --out . events
    [ "$status" -eq 0 ]
}

@test "the gaps: of each run by itself, several tokens of an event, a share for each" {
    local awk

    table a '1 100 1 token 1 x' '1 150 2 token 3 x' '2 1000 1 token 1 x' '2 41000 2 token 1 x'
    printf '0\n0\n50\n40000\n' >want
    printf 'ms\tl\n0.010\t0\n0.010\t0.500000\n0.050\t0.750000\n40.000\t1.000000\n' >want_share
    for awk in "${AWKS[@]}"; do
        program "$awk" table_gaps a | sort -n >got
        same "$awk" want got
        program "$awk" plot_gaps -v label=l got >got_share
        same "$awk" want_share got_share
    done
}

@test "two streams in one picture, as SVG and PNG; labels are text, whatever is in them" {
    command -v gnuplot || skip "no gnuplot"
    table "one file.tsv" '1 100 1 token 1 x' '1 150 2 token 1 x'
    table two.tsv '1 100 1 token 1 x' '1 90000 2 token 1 x'
    plot --out "new folder" "one file.tsv" "two.tsv=\`touch oops\` \"; 'system(\"touch oops\")' <b>&"
    echo "$stderr"
    [ "$status" -eq 0 ]
    [ ! -e oops ]
    for name in timeline gaps; do
        [ "$(head -c 4 "new folder/$name.png" | od -An -c | tr -d ' ')" = '211PNG' ]
        python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' "new folder/$name.svg"
        grep -q 'one file' "new folder/$name.svg"
        grep -q '&lt;b>&amp;' "new folder/$name.svg"
    done
    plot --out . --prefix x- --format svg two.tsv
    [ -s x-timeline.svg ]
    [ ! -e x-timeline.png ]
    # Options may follow the files, as with the other instruments; after -- all are files.
    plot two.tsv --prefix y- "one file.tsv" --format svg
    [ "$status" -eq 0 ]
    [ -s y-timeline.svg ]
    grep -q 'one file' y-timeline.svg
    cp two.tsv ./--format
    plot --prefix z- --format svg -- --format two.tsv
    [ "$status" -eq 0 ]
    grep -q -e --format z-timeline.svg
}

@test "what cannot be drawn is told" {
    table empty
    table single '1 100 1 token 1 x'
    echo "no table" >other
    plot empty
    [ "$status" -eq 1 ]
    plot other
    [ "$status" -eq 2 ]
    plot missing
    [ "$status" -eq 3 ]
    plot
    [ "$status" -eq 2 ]
    plot --format gif single
    [ "$status" -eq 2 ]
    plot --prefix a/b single
    [ "$status" -eq 2 ]
    command -v gnuplot || skip "no gnuplot"
    plot single
    [ "$status" -eq 0 ]
    [ -s timeline.svg ]
    [ ! -e gaps.svg ]
    [[ "$stderr" == *"one token"* ]]
    echo "a file, not a folder" >file
    plot --out file/below single
    [ "$status" -eq 3 ]
}
