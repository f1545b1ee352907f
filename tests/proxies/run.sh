#!/bin/sh
# Each bed starts, passes every byte on, does with streams what is expected of it, and is gone when it
# is told to. TAP.
#
#     tests/proxies/run.sh [NAME/VARIANT ...]

set -eu
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/../.."

# shellcheck source=tests/lint/lib/tap.sh
. tests/lint/lib/tap.sh

if [ ! -x "${RUNNEL:-build/bin/runnel}" ]; then
    echo "1..0 # no build/bin/runnel: run make first"
    exit 1
fi

# With a space in its path, as a user's may have, and open to the workers of root's servers. Short,
# because Apache wants the whole path of a socket, in at most 95 bytes.
trash=$(mktemp -d "${TMPDIR:-/tmp}/a r.XXXXXX")
chmod 711 "$trash"
mkdir -m 711 "$trash/t"
TMPDIR=$trash/t
export TMPDIR
result=$trash/result
run=
# shellcheck disable=SC2317 # the trap calls it
clean_up() {
    if [ -n "$run" ]; then
        kill -TERM "$run" 2>/dev/null || :
        wait "$run" || :
    fi
    if [ "$failed" -eq 0 ] && [ "$count" -gt 0 ]; then
        rm -rf "$trash"
    else
        echo "# kept: $trash" >&2
    fi
}
trap clean_up EXIT
trap 'exit 143' HUP INT TERM

# shellcheck disable=SC2046 # names
[ $# -gt 0 ] || set -- $(scripts/proxies list)
scripts/proxies run --out "$result" "$@" >"$trash/out" 2>&1 &
run=$!
status=0
wait "$run" || status=$?
run=
sed 's/^/# /' "$trash/out"

for bed in "$@"; do
    problems=$(cat "$result/$bed/problems" 2>&1) || :
    check "$bed does what is expected of it" "$problems"
done

want=0
[ "$failed" -eq 0 ] || want='1 or 3'
case $want in *"$status"*) problems= ;; *) problems="exit status $status, expected $want" ;; esac
check 'the exit status says the same' "$problems"

problems=$(
    for bed in "$@"; do
        for table in result.txt result.tsv result.md; do
            grep -q "${bed}[[:space:]]" "$result/$table" || echo "$bed is not in $table"
        done
        for file in report.txt figures.txt slow.tsv; do
            [ -s "$result/$bed/$file" ] || echo "$bed has no $file"
        done
    done
)
check 'each bed has its report, and is in the tables' "$problems"

problems=$(
    find "$TMPDIR" -mindepth 1
    for entry in /proc/[0-9]*; do
        command=$(tr '\0' ' ' 2>/dev/null <"$entry/cmdline") || :
        case $(readlink "$entry/cwd" 2>/dev/null)$command in
        *"$TMPDIR"*) echo "still running: ${entry#/proc/} $command" ;;
        esac
    done
)
check 'nothing is left behind' "$problems"
finish
