#!/usr/bin/env bats
# The bench on a small scale, in ratios of one run: what a busy machine does to one peer it does to all. The
# bounds leave room to those of docs/performance.md.
#
# SC2154: harness.bash sets LAB, RUNNEL and ROOT.
# shellcheck disable=SC2154

bats_require_minimum_version 1.5.0
load ../integration/harness

setup_file() {
    lab_open
    export BENCH_DIR=$LAB/bench BENCH_RUNNEL=$RUNNEL
    BENCH_PORT=$(free_port)
    export BENCH_PORT
    "$ROOT/tests/bench/run" --rounds 3 --seconds 2 --levels '100:20 20:0:5000' --peers 'runnel floor node' \
        --out "$BATS_FILE_TMPDIR" >"$BATS_FILE_TMPDIR/out" 2>&1 || {
        cat "$BATS_FILE_TMPDIR/out"
        return 1
    }
}

# ratio LEVEL PEER FIGURE BOUND: whether this peer's median divided by runnel's keeps a bound like >1.5.
ratio() {
    awk -F '\t' -v level="$1" -v peer="$2" -v figure="$3" -v bound="$4" '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == figure) column = i + 1 }
        $1 == level && $2 == peer { value = $column; found = 1 }
        END {
            limit = substr(bound, 2) + 0
            held = found && value != "-" && (bound ~ /^>/ ? value + 0 > limit : value + 0 < limit)
            printf "%s of %s at %s: %s times that of runnel, %s is needed\n", figure, peer, level, value, bound
            exit !held
        }' "$BATS_FILE_TMPDIR/summary.tsv"
}

@test "no stream of any of them has failed" {
    cat "$BATS_FILE_TMPDIR/runs.tsv"
    awk -F '\t' 'NR > 1 && $4 != 0 { exit 1 } END { exit NR != 16 }' "$BATS_FILE_TMPDIR/runs.tsv"
}

@test "a token costs at most two and a half times what a bare write(2) of it does" {
    ratio 100:20 floor peer_cpu_us '>0.4'
}

@test "a plain Node.js server costs more a token, alone and with nginx" {
    ratio 100:20 node peer_cpu_us '>1.2'
    ratio 100:20 node both_cpu_us '>1'
}

@test "a stream takes less memory than there" {
    ratio 100:20 node peer_kib_a_stream '>2'
}

@test "without a pace it is at least twice as fast" {
    ratio 20:0:5000 node tokens_per_s '<0.5'
}

@test "a first token comes no later" {
    ratio 100:20 node ttft_p50_ms '>0.9'
}
