# What `scripts/proxies run` does with the beds: measures each, compares with what is expected of it,
# and writes the tables. Sourced after common.sh, server.sh and beds.sh.
# shellcheck shell=sh disable=SC2034,SC2153,SC2154 # its variables are the callers', and the other way

OUT=$ROOT/build/proxies/result
JOBS=2
COLUMNS="verdict stream stream_hinted ttft_ms gap_p50_ms gap_max_ms fast_gap_p50_ms
    fast_gap_p99_ms coalesced_percent compressed silence cached bytes x_accel_buffering
    abort_decode abort_decode_class abort_decode_extra abort_decode_ms abort_gap
    abort_gap_class abort_gap_extra abort_gap_ms abort_ping_class abort_ping_ms
    abort_prefill abort_prefill_class abort_prefill_extra abort_prefill_ms half_close
    slow_reader absorbed_kb head head_generates http10 http2 crash crash_status crash_curl
    crash_ms drain drain_ms"

# --- one bed, in a process of its own: it ends what it began, however it ends ---

# run_one NAME/VARIANT FOLDER DOCTOR-OPTION...: the figures, report and pictures go to FOLDER, and
# `problems`: a line for each thing that is not as expected; empty if all is.
run_one() {
    bed=$1
    RESULT=$2
    shift 2
    choose_folder
    need_bed "$bed"
    began=$(date +%s)
    trap end_one EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    : >"$RESULT/problems"
    : >"$RESULT/extra"
    if measure_bed "$@"; then
        cat -- "$RESULT/extra" >>"$RESULT/figures.txt"
        compare_with_expected "$BEDS/$bed/expected" "$RESULT/figures.txt" $# >>"$RESULT/problems"
        write_row >"$RESULT/row"
        status=0
        [ ! -s "$RESULT/problems" ] || status=1
    else
        status=3
    fi
    rm -f -- "$RESULT/extra"
    leave_bed
    say_progress
    exit "$status"
}

measure_bed() {
    if ! "$here/proxies" up "$bed" >"$RESULT/answer" 2>"$RESULT/up.err"; then
        problem "it does not start:" <"$RESULT/up.err"
        return 1
    fi
    URL=$(figure "$RESULT/answer" url)
    SIDE_DOOR=$(figure "$RESULT/answer" side_door)
    rm -f -- "$RESULT/answer" "$RESULT/up.err"
    in_background "$here/doctor" "$URL/stream" --origin "$SIDE_DOOR" --keep "$RESULT" "$@"
    if [ "$STATUS" -gt 1 ]; then
        problem "the doctor ended with status $STATUS:" <"$RESULT/out"
        return 1
    fi
    ask_bytes
    ask_crash
    ask_drain
    rm -f -- "$RESULT/out"
}

# A signal does not wait for the end of what runs in the background.
in_background() {
    "$@" >"$RESULT/out" 2>&1 &
    CHILD=$!
    STATUS=0
    wait "$CHILD" || STATUS=$?
    CHILD=
}

problem() { { echo "$1" && tail -n 5 | sed 's/^/  /'; } >>"$RESULT/problems"; }

put_extra() { printf '%s=%s\n' "$1" "$2" >>"$RESULT/extra"; }

# What went wrong is in the logs; what went right needs none.
leave_bed() {
    if [ -s "$RESULT/problems" ]; then
        mkdir -p -- "$RESULT/logs"
        for log in "$BED"/proxy/*.log "$BED"/proxy/*.out "$BED"/origin/*.log; do
            [ ! -s "$log" ] || cp -- "$log" "$RESULT/logs/" || :
        done
    fi
    "$here/proxies" down "$bed" >"$RESULT/out" 2>&1 || problem "it does not end:" <"$RESULT/out"
    rm -f -- "$RESULT/out"
    trap - EXIT
}

end_one() {
    [ -z "$CHILD" ] || kill -TERM "$CHILD" 2>/dev/null || :
    "$here/proxies" down "$bed" >/dev/null 2>&1 || :
}

say_progress() {
    result=$RESULT/figures.txt
    # One write: others write there too.
    line=$(printf '%-26s %-6s %-11s aborts %s/%s/%s, crash %s, drain %s, %s s' "$bed" \
        "$(value verdict)" "$(value stream)" "$(value abort_decode_class)" "$(value abort_gap_class)" \
        "$(value abort_prefill_class)" "$(value crash)" "$(value drain)" "$(($(date +%s) - began))")
    echo "$line"
    sed "s|^|    $bed: |" "$RESULT/problems"
}

value() {
    got=$(figure "$result" "$1" 2>/dev/null) || :
    printf '%s' "${got:--}"
}

write_row() {
    result=$RESULT/figures.txt
    printf '%s' "$bed"
    for column in $COLUMNS; do
        printf '\t%s' "$(value "$column")"
    done
    echo
}

# --- as expected? ---

# A line is NAME=PATTERN or NAME!=PATTERN; a pattern is the shell's, and several stand with bars
# between them. compare_with_expected EXPECTED FIGURES PARTIAL: a figure that is not there is a
# problem, unless the doctor was asked for a part only (PARTIAL is not 0).
compare_with_expected() {
    [ -s "$1" ] || {
        echo "nothing is expected of it: there is no $1"
        return
    }
    while IFS= read -r line; do
        case $line in
            '' | '#'*) continue ;;
            *!=*) name=${line%%!=*} pattern=${line#*!=} right=1 ;;
            *=*) name=${line%%=*} pattern=${line#*=} right=0 ;;
            *)
                echo "$1: '$line' is neither NAME=PATTERN nor NAME!=PATTERN"
                continue
                ;;
        esac
        [ "$name" != verdict ] || [ "$3" -eq 0 ] || continue    # that of a part is another
        got=$(figure "$2" "$name")
        if [ -z "$got" ]; then
            [ "$3" -gt 0 ] || echo "$name is not known, expected ${line#"$name"}"
            continue
        fi
        one_of "$got" "$pattern" && is=0 || is=1
        [ "$is" -eq "$right" ] || echo "$name=$got, expected ${line#"$name"}"
    done <"$1"
}

one_of() {
    rest=$2
    while :; do
        # shellcheck disable=SC2254 # a pattern it shall be
        case $1 in ${rest%%|*}) return 0 ;; esac
        case $rest in *'|'*) rest=${rest#*|} ;; *) return 1 ;; esac
    done
}

# --- all of them ---

# run_chosen DOCTOR-OPTION...: the beds of $TMP/chosen, each in a process, JOBS at a time.
run_chosen() {
    chmod 711 -- "$TMP"         # the workers of root's servers are another user
    RUNNEL_PROXIES=$TMP/b       # short: Apache wants the whole path of a socket, in at most 95 bytes
    TMPDIR=$TMP
    export RUNNEL_PROXIES TMPDIR
    RUNNING=
    trap end_run EXIT
    while IFS= read -r bed; do
        wait_for_room "$JOBS"
        rm -rf -- "${OUT:?}/$bed"
        mkdir -p -- "$OUT/$bed" || could_not_run "cannot make $OUT/$bed (--out)"
        "$here/proxies" --one "$bed" "$OUT/$bed" "$@" &
        RUNNING="$RUNNING $!"
    done <"$TMP/chosen"
    wait_for_room 1
    write_results
    conclude_run
}

# Until fewer than that many run.
wait_for_room() {
    while :; do
        alive=
        running=0
        for pid in $RUNNING; do
            if is_running "$pid"; then
                alive="$alive $pid"
                running=$((running + 1))
            fi
        done
        RUNNING=$alive
        [ "$running" -ge "$1" ] || return 0
        sleep 0.1
    done
}

end_run() {
    # shellcheck disable=SC2086 # pids
    [ -z "$RUNNING" ] || kill -TERM $RUNNING 2>/dev/null || :
    wait_for_room 1
    rm -rf -- "$TMP"
}

# In the beds' order: result.tsv, result.txt, result.md, a picture for each proxy.
write_results() {
    {
        printf 'bed'
        for column in $COLUMNS; do
            printf '\t%s' "$column"
        done
        echo
        while IFS= read -r bed; do
            [ ! -f "$OUT/$bed/row" ] || cat -- "$OUT/$bed/row"
            rm -f -- "$OUT/$bed/row"
        done <"$TMP/chosen"
    } >"$OUT/result.tsv" || could_not_run "cannot write into $OUT (--out)"
    run_awk proxies_table -v form=text "$OUT/result.tsv" >"$OUT/result.txt"
    run_awk proxies_table -v form=markdown "$OUT/result.tsv" >"$OUT/result.md"
    draw_before_after
    echo
    cat -- "$OUT/result.txt"
    echo
}

# A bed that could not be measured has no figures.
conclude_run() {
    unexpected=0
    lost=0
    while IFS= read -r bed; do
        if [ ! -f "$OUT/$bed/figures.txt" ]; then
            lost=$((lost + 1))
        elif [ -s "$OUT/$bed/problems" ]; then
            unexpected=$((unexpected + 1))
        else
            continue
        fi
        sed "s|^|$bed: |" "$OUT/$bed/problems"
    done <"$TMP/chosen"
    beds=$(wc -l <"$TMP/chosen")
    echo "$beds bed$([ "$beds" -eq 1 ] || echo s): $((beds - unexpected - lost)) as expected," \
        "$unexpected not, $lost not measured; all of it is in $OUT"
    [ "$lost" -eq 0 ] || exit 3
    [ "$unexpected" -eq 0 ] || exit 1
}

draw_before_after() {
    can_draw || return 0
    for folder in "$OUT"/*/default; do
        name=${folder%/default}
        name=${name##*/}
        set --
        for variant in default tuned; do
            table=$OUT/$name/$variant/slow.tsv
            [ ! -s "$table" ] || set -- "$@" "$table=$name, $variant"
        done
        [ $# -lt 2 ] || "$here/plot" --out "$OUT" --prefix "$name-" "$@" >/dev/null ||
            say "no picture of $name (above)"
    done
}
