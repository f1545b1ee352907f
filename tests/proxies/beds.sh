#!/bin/sh
# Each bed starts, serves a stream whole and unchanged, and is gone when it is told to. TAP.
#
#     tests/proxies/beds.sh [NAME/VARIANT ...]

set -eu
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/../.."

# shellcheck source=tests/lint/lib/tap.sh
. tests/lint/lib/tap.sh

tokens=200
query="prompt=hello&max_tokens=$tokens&ttft_ms=5&itl_ms=1"
gen=${GEN:-build/bin/gen}
if [ ! -x "$gen" ] || [ ! -x "${RUNNEL:-build/bin/runnel}" ]; then
    echo "1..0 # no $gen or no build/bin/runnel: run make first"
    exit 1
fi

# With a space in its path, as a user's may have, and open to the workers of root's servers.
trash=$(mktemp -d "${TMPDIR:-/tmp}/runnel proxies.XXXXXX")
chmod 711 "$trash"
RUNNEL_PROXIES=$trash/beds
export RUNNEL_PROXIES
finished=
# shellcheck disable=SC2317 # the trap calls it
clean_up() {
    if [ -z "$finished" ]; then
        scripts/proxies down --keep || :
        echo "# kept: $trash" >&2
    else
        rm -rf "$trash"
    fi
}
trap clean_up EXIT
trap 'exit 143' HUP INT TERM

get() { # FILE URL [CURL OPTION]...
    file=$1
    shift
    curl -q -sS -N --noproxy 127.0.0.1 --max-time 60 -o "$trash/$file" "$@"
}

answer() { sed -n "s/^$1=//p" "$trash/answer"; }

# The books may be closed a moment after the client has the last byte.
ledger_knows() { # URL
    end=$(($(date +%s) + 5))
    until
        get ledger "$1" &&
            grep -q "\"generated\":$tokens,\"delivered\":$tokens,.*\"outcome\":\"done\"" "$trash/ledger"
    do
        [ "$(date +%s)" -le "$end" ] || return 1
        sleep 0.05
    done
}

# What is wrong with the stream, one sentence a line; nothing if all is well.
problems_of_stream() {
    url=$(answer url)
    side_door=$(answer side_door)
    id=whole-$$
    got=$(get stream "$url/stream?$query" -H "X-Request-Id: $id" -w '%{http_code} %{content_type}') ||
        echo "curl: exit status $?"
    [ "$got" = '200 text/event-stream; charset=utf-8' ] || echo "the head says $got"
    ledger_knows "$side_door/_debug/generated?id=$id" || echo "the ledger says $(cat "$trash/ledger")"
    "$gen" --prompt hello --tokens $tokens --format text >"$trash/expected.text"
    ${RUNNEL_AWK:-awk} -f scripts/awk/json.awk -f scripts/awk/stream_text.awk "$trash/stream" \
        >"$trash/stream.text" ||
        echo 'an event of the stream cannot be read'
    cmp "$trash/expected.text" "$trash/stream.text" 2>&1 || echo 'its text is not what gen prints'
    [ "$(tail -n 2 "$trash/stream")" = 'data: [DONE]' ] || echo 'it does not end with [DONE]'
    # What awk does not see: CJK, emoji, quotes, U+2028, byte by byte.
    torture="$query&vocab=torture&ids=1&wire=comments"
    get through "$url/stream?$torture" || echo "torture: curl: exit status $?"
    get past "$side_door/stream?$torture" || echo "torture, at the side door: curl: exit status $?"
    cmp "$trash/past" "$trash/through" 2>&1 || echo 'the proxy has changed the stream'
}

problems_of_down() {
    scripts/proxies down "$1" 2>&1 || echo "down: exit status $?"
    [ ! -e "$RUNNEL_PROXIES" ] || find "$RUNNEL_PROXIES" | sed 's/^/left: /'
    for entry in /proc/[0-9]*; do
        command=$(tr '\0' ' ' 2>/dev/null <"$entry/cmdline") || :
        case $(readlink "$entry/cwd" 2>/dev/null)$command in
        *"$RUNNEL_PROXIES"*) echo "still running: ${entry#/proc/} $command" ;;
        esac
    done
}

# shellcheck disable=SC2046 # names
[ $# -gt 0 ] || set -- $(scripts/proxies list)
for bed in "$@"; do
    if problems=$(scripts/proxies up "$bed" 2>&1 >"$trash/answer"); then
        problems=$(problems_of_stream)
    fi
    # A bed that failed is kept, with its logs, and out of the way of the others.
    if [ -n "$problems" ]; then
        check "$bed serves a stream whole" "$problems"
        scripts/proxies down --keep "$bed" 2>/dev/null || :
        mkdir -p "$trash/failed/${bed%/*}"
        mv "$RUNNEL_PROXIES/$bed" "$trash/failed/$bed"
        scripts/proxies down
        continue
    fi
    check "$bed serves a stream whole, and leaves nothing behind" "$(problems_of_down "$bed")"
done
[ "$failed" -ne 0 ] || finished=1
finish
