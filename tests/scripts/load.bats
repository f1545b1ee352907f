#!/usr/bin/env bats
# The load client against canned replies: other formats, replies that are none, what it sends, what it
# prints. tests/integration/load.bats has it against the real server.

bats_require_minimum_version 1.5.0

# serve PROGRAM NAME: started, with its port in $NAME.port; the pid in $SERVER.
serve() {
    python3 "$BATS_TEST_DIRNAME/$1" >"$BATS_FILE_TMPDIR/$2" 3>&- 4>&- &
    SERVER=$!
    until [ -s "$BATS_FILE_TMPDIR/$2" ]; do
        kill -0 "$SERVER" || return 1
        sleep 0.02
    done
}

setup_file() {
    export LC_ALL=C
    root=$BATS_TEST_DIRNAME/../..
    LOAD=$(realpath -m "${LOAD:-$root/build/bin/load}")
    [ -x "$LOAD" ] || { echo "no $LOAD: run make first" >&2 && return 1; }
    export LOAD
    serve replies.py port || return 1
    export REPLIES=$SERVER
    serve record.py record || return 1
    export RECORDER=$SERVER
    BASE=http://127.0.0.1:$(cat "$BATS_FILE_TMPDIR/port")
    RECORD=http://127.0.0.1:$(head -n 1 "$BATS_FILE_TMPDIR/record")
    export BASE RECORD
}

teardown_file() { kill "$REPLIES" "$RECORDER"; }

setup() { cd "$BATS_TEST_TMPDIR" || return 1; }

# client ARGUMENT...: the report in $output, JSON in json.
client() {
    rm -f json
    run "$LOAD" --json json "$@"
    echo "load $*: $status"
    echo "$output"
}

is() { jq -e "$1" json >/dev/null || { echo "not so: $1" && return 1; }; }

# asked: the last request that the recorder has got.
asked() {
    tr -d '\r' <"$BATS_FILE_TMPDIR/record" | awk '
        NR == 1 { next }
        /^--- / { last = now; now = ""; next }
        { now = now $0 "\n" }
        END { printf "%s", last }'
}

@test "a chat of the OpenAI API: role, usage and empty deltas are no tokens" {
    client --streams 3 "$BASE/chat"
    [ "$status" -eq 0 ]
    is '.requests.complete == 3 and .tokens.received == 75 and .ms.itl.count == 72'
    client --format token "$BASE/chat"
    is '.tokens.received == 0'
    client --format openai "$BASE/whole"
    is '.tokens.received == 0'
}

@test "replies that are no complete stream have a name each" {
    while read -r path failure text; do
        client "$BASE/$path"
        [ "$status" -eq 1 ]
        is ".failures.$failure == 1 and .requests.failed == 1 and .requests.complete == 0"
        [[ "$output" == *"$text"* ]]
    done <<END
eof truncated after 25 tokens without [DONE]
empty truncated after 0 tokens
error error_event out of luck
garbled bad_json {"token":
html not_a_stream no text/event-stream
refused http HTTP 400: max_tokens: "x" is no number
nowhere http HTTP 404: no such path
reset cut after 25 tokens
END
}

@test "a head and nothing more: a timeout" {
    client --timeout 0.5 "$BASE/silent"
    [ "$status" -eq 1 ]
    is '.failures.timeout == 1'
}

@test "an endless stream is left where it was to be left" {
    client --streams 4 --abort-after 7 "$BASE/endless"
    [ "$status" -eq 0 ]
    is '.requests.aborted == 4 and .tokens.received == 28'
}

@test "the request: parameters, an id, and nothing that was not asked for" {
    client --prompt 'a b' --tokens 5 --control itl_ms=20 "$RECORD/path?x=1"
    [ "$status" -eq 0 ]
    run asked
    [ "${lines[0]}" = 'GET /path?x=1&prompt=a%20b&max_tokens=5&itl_ms=20 HTTP/1.1' ]
    id=$(jq -r .url json) # not in it
    [[ "$id" != *load-* ]]
    run -0 grep -c '^X-Request-Id: load-[0-9a-f]\{8\}-0$' <(asked)
    names=$(asked | sed -n 's/^\([A-Za-z-]*\): .*/\1/p' | sort | tr '\n' ' ')
    [ "$names" = 'Accept Host User-Agent X-Request-Id ' ]
}

@test "the request: method, headers and body, also from files" {
    printf 'X-One: {i}\nX-Request-Id: mine\n' >headers
    printf '{"prompt":"{prompt}","n":{tokens}}' >body
    client -X PUT -H @headers -H 'Content-Type: a/b' -d @body --prompt 'say "hi"' --tokens 3 "$RECORD/"
    [ "$status" -eq 0 ]
    run asked
    echo "$output"
    [ "${lines[0]}" = 'PUT / HTTP/1.1' ]
    [[ "$output" == *'X-One: 0'* && "$output" == *'X-Request-Id: mine'* ]]
    [[ "$output" == *'Content-Type: a/b'* && "$output" != *application/json* ]]
    [[ "$output" == *'{"prompt":"say \"hi\"","n":3}' ]]
    [[ "$output" != *Expect* ]]
}

@test "no proxy, netrc or curlrc of the user's has a say" {
    mkdir home
    printf 'header = "X-Curlrc: 1"\nproxy = http://127.0.0.1:9\n' >home/.curlrc
    printf 'machine 127.0.0.1 login me password secret\n' >home/.netrc
    http_proxy=http://127.0.0.1:9 ALL_PROXY=http://127.0.0.1:9 HOME=$PWD/home client "$RECORD/plain"
    [ "$status" -eq 0 ]
    run asked
    [ "${lines[0]}" = 'GET /plain HTTP/1.1' ]
    [[ "$output" != *Curlrc* && "$output" != *Authorization* ]]
}

@test "--json - is JSON and nothing else, on standard output" {
    run --separate-stderr "$LOAD" --json - "$BASE/whole?n=3"
    [ "$status" -eq 0 ]
    jq -e '.tokens.received == 3' <<<"$output"
    # shellcheck disable=SC2154 # bats sets it
    [ -z "$stderr" ]
}

@test "what it prints for people" {
    client --streams 2 --requests 6 --goodput ttft:60000 "$BASE/whole?n=30"
    [ "$status" -eq 0 ]
    [ "${lines[0]%,*}" = 'closed loop, 2 streams at once' ]
    [[ "${lines[1]}" == 'requests     6 started = 6 complete + 0 aborted by us + 0 failed; at most 2 open' ]]
    [[ "${lines[2]}" == 'tokens       180 in 180 events in '*' reads' ]]
    # 6 values carry a p50 and no p90; 174 gaps a p99 and no p99.9.
    row='[0-9]+\.[0-9]{3} +'
    [[ "$output" =~ ttft\ +6\ +${row}-\ +-\ +-\ +-\ +${row}first\ token ]]
    [[ "$output" =~ itl\ +174\ +${row}${row}${row}-\ +-\ +${row}from\ a\ token ]]
    [[ "$output" == *'(6 of 6) kept ttft <= 60000 ms'* ]]
}

@test "a full disk is not kept quiet" {
    [ -w /dev/full ] || skip 'no /dev/full'
    run bash -c '"$0" "$1" >/dev/full' "$LOAD" "$BASE/whole?n=3"
    [ "$status" -eq 3 ]
    run "$LOAD" --events /dev/full --json /dev/full --hdr /dev/full "$BASE/whole?n=3"
    [ "$status" -eq 3 ]
}

@test "--help and --version, and every option of --help is in the man page" {
    run "$LOAD" --help
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = 'usage: load [OPTION]... [URL]' ]
    while read -r option; do
        grep -q -- "\\\\-\\\\-$(sed 's/^--//; s/-/\\\\-/g' <<<"$option")" "$BATS_TEST_DIRNAME/../../docs/man/runnel-load.1" ||
            { echo "docs/man/runnel-load.1 does not have $option" && return 1; }
    done < <(grep -o -- '--[a-z-]*[a-z]' <<<"$output" | sort -u)
    run "$LOAD" --version
    [ "$status" -eq 0 ]
    [[ "$output" == 'load (runnel) '* ]]
}

@test "the man page is without faults" {
    run groff -man -ww -Tutf8 -z "$BATS_TEST_DIRNAME/../../docs/man/runnel-load.1"
    [ "$status" -eq 0 ]
    [ -z "$output" ]
}

@test "the self-test measures, and says what" {
    run "$LOAD" --self-test --streams 50 --json json
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "$output" == *'ceiling '* && "$output" == *'bare '* && "$output" == *'flood '* && "$output" == *'noise '* ]]
    jq -e '.streams == 50 and (.steps | length) > 0 and .flood.got_per_s > 0' json
    # Its server has ended with it.
    for line in /proc/[0-9]*/cmdline; do
        [[ "$(tr '\0' ' ' <"$line" 2>/dev/null)" != "$LOAD --self-test"* ]]
    done
}
