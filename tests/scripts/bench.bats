#!/usr/bin/env bats
# The bench: its summary on runs with known medians, and what its options refuse. It measures nothing
# here: that is `make bench`.

bats_require_minimum_version 1.5.0
load awk.bash

setup() {
    export BENCH_DIR=$BATS_TEST_TMPDIR/lab
}

@test "medians of odd and even counts, and ratios to runnel, level by level" {
    printf '%s\t' round level peer a >"$BATS_TEST_TMPDIR/runs"
    printf 'b\n' >>"$BATS_TEST_TMPDIR/runs"
    while read -r line; do
        printf '%s\n' "${line// /$'\t'}" >>"$BATS_TEST_TMPDIR/runs"
    done <<END
1 100:20 runnel 10 0
1 100:20 node 30 7
1 900:20 node 5 1
2 100:20 node 20 9
2 100:20 runnel 4 0
3 100:20 runnel 1e2 0
3 100:20 node -1 8
4 100:20 node 40 1
END
    for awk in "${AWKS[@]}"; do
        run program "$awk" bench_summary "$BATS_TEST_TMPDIR/runs"
        echo "$awk: $output"
        [ "${lines[0]}" = $'level\tpeer\truns\ta\tx\tb\tx' ]
        [ "${lines[1]}" = $'100:20\trunnel\t3\t10.000\t1.00\t0.000\t-' ]
        [ "${lines[2]}" = $'100:20\tnode\t4\t25.000\t2.50\t7.500\t-' ]
        [ "${lines[3]}" = $'900:20\tnode\t1\t5.000\t-\t1.000\t-' ]
        [ "${#lines[@]}" = 4 ]
        run program "$awk" bench_summary -v base=node "$BATS_TEST_TMPDIR/runs"
        [ "${lines[1]}" = $'100:20\trunnel\t3\t10.000\t0.40\t0.000\t0.00' ]
    done
}

@test "what a run does not have is left out of the median" {
    printf 'round\tlevel\tpeer\ta\n1\t1:1\trunnel\t-\n2\t1:1\trunnel\t3\n1\t1:1\tnode\t-\n' >"$BATS_TEST_TMPDIR/runs"
    for awk in "${AWKS[@]}"; do
        run program "$awk" bench_summary "$BATS_TEST_TMPDIR/runs"
        echo "$awk: $output"
        [ "${lines[1]}" = $'1:1\trunnel\t2\t3.000\t1.00' ]
        [ "${lines[2]}" = $'1:1\tnode\t1\t-\t-' ]
    done
}

@test "options that are none: 2, and what is allowed is told" {
    for arguments in '--levels 100' '--levels 100:x' '--levels 0:20' '--levels 5:0' '--levels 5:20:7' '--peers apache' '--rounds 0' '--seconds 1.5' \
        '--rounds' '--nonsense 1'; do
        # shellcheck disable=SC2086 # an option and its value
        run "$ROOT/tests/bench/run" $arguments
        echo "$arguments: $output"
        [ "$status" = 2 ]
        [[ "$output" == *"${arguments%% *}"* ]]
    done
    for arguments in '--levels ' '--peers ' '--levels 9999999999:20'; do
        run "$ROOT/tests/bench/run" "${arguments%% *}" "${arguments#* }"
        echo "$arguments: $output"
        [ "$status" = 2 ]
        [[ "$output" == *"${arguments%% *}"* ]]
    done
    BENCH_PORT=65536 run "$ROOT/tests/bench/run" --rounds 1 --seconds 1 --levels 1:20 --peers floor
    [ "$status" = 2 ]
    run "$ROOT/tests/bench/run" --help
    [ "$status" = 0 ]
}

@test "what it cannot do: 3, and no row" {
    [ -x "$ROOT/build/bench/floor" ] || skip "no build/bench/floor: tests/bench/setup makes it"
    small=(--rounds 1 --seconds 1 --levels 1:20 --peers floor --out)
    mkdir -p "$BATS_TEST_TMPDIR/taken/runs.tsv"
    for out in /dev/null/x '' "$BATS_TEST_TMPDIR/taken" /proc/self; do
        run "$ROOT/tests/bench/run" "${small[@]}" "$out"
        echo "$out: $output"
        [ "$status" = 3 ]
    done
    BENCH_RUNNEL=/nonexistent run "$ROOT/tests/bench/run" "${small[@]}" "$BATS_TEST_TMPDIR"
    echo "$output"
    [ "$status" = 3 ]
    [[ "$output" == *BENCH_RUNNEL* ]]
    [ ! -e "$BATS_TEST_TMPDIR/runs.tsv" ]
}

@test "a port that is taken: 3, and nobody else is measured" {
    [ -x "$ROOT/build/bench/floor" ] || skip "no build/bench/floor: tests/bench/setup makes it"
    python3 -c 'import socket, time
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
time.sleep(60)' >"$BATS_TEST_TMPDIR/port" 3>&- &
    other=$!
    until [ -s "$BATS_TEST_TMPDIR/port" ]; do sleep 0.05; done
    BENCH_PORT=$(cat "$BATS_TEST_TMPDIR/port") run "$ROOT/tests/bench/run" --rounds 1 \
        --seconds 1 --levels 1:20 --peers floor --out "$BATS_TEST_TMPDIR"
    kill "$other"
    echo "$output"
    [ "$status" = 3 ]
    [[ "$output" == *BENCH_PORT* ]]
}

@test "a terminal that is closed: nothing is left running" {
    [ -x "$ROOT/build/bench/floor" ] || skip "no build/bench/floor: tests/bench/setup makes it"
    BENCH_PORT=$(python3 -c 'import socket; print(socket.create_server(("127.0.0.1", 0)).getsockname()[1])')
    export BENCH_PORT
    "$ROOT/tests/bench/run" --rounds 1 --seconds 20 --levels 1:20 --peers floor --out "$BATS_TEST_TMPDIR" 3>&- &
    bench=$!
    until [ -e "$BENCH_DIR/load.txt" ]; do sleep 0.05; done
    nginx=$(cat "$BENCH_DIR/nginx.pid")
    kill -s HUP "$bench"
    # The load client, in the foreground, is not told: a terminal would.
    for _ in {1..100}; do
        pkill -x -P "$bench" load && break
        sleep 0.05
    done
    status=0
    wait "$bench" || status=$?
    [ "$status" = 129 ]
    run ! kill "$nginx"
}

@test "pictures of a summary; what is wrong with the arguments is told" {
    command -v gnuplot >/dev/null || skip "gnuplot is not installed"
    printf 'level\tpeer\truns\ttokens_per_s\tx\tboth_cpu_us\tx\tlateness_p99_ms\tx\tpeer_kib\tx\n' >"$BATS_TEST_TMPDIR/summary"
    for peer in runnel runnel-2 floor node starlette; do
        printf '%s\t%s\t1\t500\t1\t30\t1\t0.5\t1\t4000\t1\n' 10:20 "$peer" 100:20 "$peer" 1000:20 "$peer" \
            20:0:500 "$peer" >>"$BATS_TEST_TMPDIR/summary"
    done
    for picture in levels growth; do
        "$ROOT/tests/bench/draw" "$picture" "$BATS_TEST_TMPDIR/summary" "$BATS_TEST_TMPDIR/$picture.png"
        [ "$(head -c 4 "$BATS_TEST_TMPDIR/$picture.png" | tail -c 3)" = PNG ]
    done
    for arguments in '' 'growth' 'other x y' 'levels /nonexistent y'; do
        # shellcheck disable=SC2086 # arguments
        run "$ROOT/tests/bench/draw" $arguments
        echo "$arguments: $output"
        [ "$status" = 2 ]
    done
    run "$ROOT/tests/bench/draw" --help
    [ "$status" = 0 ]
    [[ "$output" == *tests/bench/draw* ]]
    # What is no summary is told as such, and names no file.
    mkdir "$BATS_TEST_TMPDIR/tmp"
    printf '10:20\t../outside\t1\t500\n' >>"$BATS_TEST_TMPDIR/summary"
    TMPDIR=$BATS_TEST_TMPDIR/tmp "$ROOT/tests/bench/draw" growth "$BATS_TEST_TMPDIR/summary" "$BATS_TEST_TMPDIR/growth.png"
    [ -z "$(ls "$BATS_TEST_TMPDIR/tmp")" ]
    run "$ROOT/tests/bench/draw" growth /dev/null "$BATS_TEST_TMPDIR/none.png"
    echo "$output"
    [ "$status" = 3 ]
    [[ "$output" == *'No data'* ]]
}
