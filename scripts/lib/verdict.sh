# What the doctor found, and what it concludes. Sourced after common.sh.
# shellcheck shell=sh disable=SC2030,SC2031,SC2034,SC2154 # subshells on purpose; its variables are the callers', and the other way

# finding LEVEL CODE QUESTION SENTENCE: LEVEL is ok, note, limit or fault; CODE names the directives.
finding() {
    printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" >>"$TMP/findings"
    [ "$FORM" = json ] || print_finding "$1" "$3" "$4" | tee -a "$TMP/report"
}

# The sentence is wrapped at 96 columns, under itself.
print_finding() {
    level=$1
    [ "$1" != fault ] || level=FAULT
    printf '%s\n' "$3" | fold -s -w 71 | sed 's/ *$//' | {
        IFS= read -r line || :
        printf '%-6s %-17s %s\n' "$level" "$2" "$line"
        while IFS= read -r line; do
            printf '%-24s %s\n' '' "$line"
        done
    }
}

# put NAME VALUE: a figure.
put() { printf '%s=%s\n' "$1" "$2" >>"$TMP/figures"; }

introduce() {
    server=$(header first server)
    via=$(header first via)
    put server "$server"
    [ "$FORM" != json ] || return 0
    {
        echo "$SHOWN_URL: $(head -n 1 "$TMP/first/head" | tr -d '\r\000-\037\177')${server:+, Server: $server}${via:+, Via: $via}"
        echo "It is $1."
        echo
    } | tee -a "$TMP/report"
}

count_of() { cut -f 1 "$TMP/findings" | grep -c -x "$1" || :; }

conclude() {
    faults=$(count_of fault)
    limits=$(count_of limit)
    if [ "$faults" -gt 0 ]; then
        verdict=fault
    else
        verdict=clean
    fi
    put verdict "$verdict"
    if [ "$FORM" = json ]; then
        run_awk json,doctor_json "$TMP/figures" "$TMP/findings"
    else
        print_verdict | tee -a "$TMP/report"
    fi
    keep_all
    if [ -n "$OUT" ]; then
        cat -- "$TMP/figures" >"$OUT" || could_not_run "cannot write $OUT"
    fi
    [ "$verdict" = clean ] || exit 1
}

print_verdict() {
    echo
    if [ "$verdict" = fault ]; then
        echo "Verdict: $faults fault$([ "$faults" -eq 1 ] || echo s)$(limits_too)."
    else
        echo "Verdict: clean$(limits_too)."
    fi
    run_awk directives -v server="$(header first server) $(header first via)" "$TMP/findings" "$here/lib/directives.tsv"
}

limits_too() { [ "$limits" -eq 0 ] || echo "; $limits limit$([ "$limits" -eq 1 ] || echo s)"; }

# --keep FOLDER.
keep_all() {
    [ -n "$KEEP" ] || return 0
    {
        [ ! -f "$TMP/report" ] || cat -- "$TMP/report" >"$KEEP/report.txt"
        cat -- "$TMP/figures" >"$KEEP/figures.txt"
    } || could_not_run "cannot write into $KEEP (--keep)"
    pictures=
    for name in slow direct stream; do
        [ -f "$TMP/$name/events" ] || continue
        events_table "$TMP/$name/events" >"$KEEP/$name.tsv" || could_not_run "cannot write into $KEEP (--keep)"
        pictures="$pictures $name"
    done
    set --
    for name in $pictures; do
        [ "$(wc -l <"$KEEP/$name.tsv")" -gt 2 ] || continue
        case $name in
            direct) set -- "$@" "$KEEP/$name.tsv=without the path" ;;
            *) set -- "$@" "$KEEP/$name.tsv=through the path" ;;
        esac
    done
    [ $# -gt 0 ] || return 0
    ! can_draw || "$here/plot" --out "$KEEP" "$@" >/dev/null || say "no pictures (above)"
}
