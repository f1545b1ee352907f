#!/usr/bin/env bats
# The load client against the real server: what it verifies, what it finds, and that its counts are
# the ledger's.
#
# SC2016: what stands in single quotes is jq's.
# shellcheck disable=SC2016

load harness

setup_file() {
    lab_open
    start_responder --slots 400
    # connreq: how many requests the connection has had, for --keepalive.
    start_nginx "s|request=\$request_time|& connreq=\$connection_requests|"
}

# client [OPTION]...: on http.sock; the report in the file report, JSON in json, status in $status.
client() {
    local target=http://localhost/stream

    case ${1:-} in http*) target=$1 && shift ;; esac
    rm -f json
    run "$LOAD" --unix-socket http.sock --json json --quiet "$@" "$target"
    echo "$output" >report
    echo "load $*: $status"
    cat report
}

# figure JQ: of the client's report.
figure() { jq -r "$1" json; }

# is JQ: whether that is true of the report.
is() { jq -e "$1" json >/dev/null || { echo "not so: $1" && return 1; }; }

# sums: the ledger's, once nothing is live.
sums() {
    wait_until 10 books_hold && jq -c .ledger books.out
}

# since BEFORE JQ: the difference of the ledger's sums, in jq as $a (before) and $b (now).
since() {
    jq -en --argjson a "$1" --argjson b "$(sums)" "$2" >/dev/null ||
        { echo "not so: $2" && echo "before $1" && echo "now $(sums)" && return 1; }
}

@test "every spelling with every vocabulary, 1 and 3 tokens an event, is verified" {
    for wire in lf crlf cr nospace comments multiline bom drip; do
        for vocab in words torture; do
            for chunk in 1 3; do
                client --streams 4 --prompt 'hello {i}' --tokens 200 --verify --control "wire=$wire" \
                    --control "vocab=$vocab" --control "chunk=$chunk" --control ttft_ms=0 \
                    --control itl_ms=1 --control stamps=1 --control ids=1
                [ "$status" = 0 ]
                is '.requests | .complete == 4 and .verified == 4 and .failed == 0'
                is '.tokens.received == 800'
            done
        done
    done
}

@test "a seed of its own for each, pings, as fast as the client reads" {
    client --streams 4 --prompt hello --tokens 20000 --verify --control 'seed={i}' \
        --control itl_ms=0 --control vocab=torture --control ping_ms=5 --ramp 0
    [ "$status" = 0 ]
    is '.requests.verified == 4 and .tokens.received == 80000'
}

@test "600 short streams: nothing is lost where the client takes the socket over from libcurl" {
    client --streams 20 --requests 600 --prompt 'hello {i}' --tokens 4 --control ttft_ms=0 \
        --control itl_ms=1 --control stamps=1 --verify
    [ "$status" = 0 ]
    is '.requests.verified == 600 and .tokens.received == 2400'
}

@test "a JSON body is verified by what it asks for" {
    # /generate answers in one piece, so this is no stream; that it came as JSON the ledger tells.
    client http://localhost/generate --prompt 'he said "hi"' --tokens 7 --requests 1 \
        -H 'X-Request-Id: body-{i}' \
        -d '{"prompt":"{prompt}","max_tokens":{tokens},"ttft_ms":0,"itl_ms":0}'
    [ "$status" = 1 ]
    is '.failures.not_a_stream == 1'
    [ "$(ledger body-0 '"\(.route) \(.requested) \(.outcome)"')" = 'generate 7 done' ]
}

@test "300 streams, 30 % aborts, 5 % slow readers: the counts are the ledger's, to the last" {
    before=$(sums)
    # Aborts up to the middle of the stream: one just before the end could be too late to cancel.
    client --streams 300 --prompt 'hello {i}' --tokens 100 --control itl_ms=20 --control stamps=1 \
        --abort-rate 30 --abort-after 1..30 --slow-readers 5 --slow-pause 20 --verify --seed 7
    [ "$status" = 0 ]
    is '.requests | .started == 300 and .failed == 0 and .complete + .aborted == 300'
    is '.requests | .aborted > 60 and .aborted < 120 and .slow_readers > 4 and .slow_readers < 30'
    since "$before" "\$b.accepted - \$a.accepted == 300"
    since "$before" "\$b.done - \$a.done == $(figure .requests.complete)"
    since "$before" "\$b.cancelled - \$a.cancelled == $(figure .requests.aborted)"
    since "$before" '$b.failed == $a.failed and $b.stalled == $a.stalled and $b.shed == $a.shed'
    since "$before" "\$b.delivered - \$a.delivered >= $(figure .tokens.received)"
    # Whoever stayed has all; who left has between 1 and 30.
    is '.tokens.received >= .requests.complete * 100 + .requests.aborted'
    is '.tokens.received <= .requests.complete * 100 + .requests.aborted * 30'
}

@test "aborts anywhere: no token is received that was not delivered" {
    before=$(sums)
    client --streams 50 --requests 150 --prompt 'hello {i}' --tokens 40 --control itl_ms=5 \
        --control ttft_ms=10 --abort-rate 100 --verify
    [ "$status" = 0 ]
    is '.requests.aborted == 150'
    since "$before" "\$b.accepted - \$a.accepted == 150"
    since "$before" "\$b.done + \$b.cancelled - \$a.done - \$a.cancelled == 150"
    since "$before" "\$b.delivered - \$a.delivered >= $(figure .tokens.received)"
}

@test "slow readers that leave, leave at once" {
    before=$(sums)
    client --streams 100 --prompt 'hello {i}' --tokens 500 --control itl_ms=1 --slow-readers 100 \
        --slow-pause 5 --abort-after 10..400 --verify
    [ "$status" = 0 ]
    is '.requests.aborted == 100 and .requests.slow_readers == 100'
    since "$before" '$b.accepted - $a.accepted == 100'
}

@test "each fault is found, and has its name" {
    while read -r fault failure tokens; do
        before=$(sums)
        client --streams 3 --prompt hello --tokens 12 --control ttft_ms=0 --control itl_ms=1 \
            --control "fault=$fault" --verify
        [ "$status" = 1 ]
        is ".requests | .started == 3 and .failed == 3 and .complete == 0"
        is ".failures.$failure == 3"
        is ".tokens.received == 3 * $tokens"
        since "$before" '$b.accepted - $a.accepted == 3 and $b.cancelled == $a.cancelled'
    done <<END
error@5 error_event 5
reset@5 truncated 5
eof@5 truncated 5
garble@5 bad_json 11
nodone truncated 12
dup@5 wrong_token 13
status:503 http 0
END
    is '.http_status["503"] == 3'
}

@test "what is doubled is called doubled; without --verify nobody knows" {
    client --requests 1 --prompt hello --tokens 12 --control itl_ms=1 --control fault=dup@5 --verify
    is '.wrong_tokens.doubled == 1'
    grep -q 'doubled at token 6' report
    client --requests 1 --prompt hello --tokens 12 --control itl_ms=1 --control fault=dup@5
    [ "$status" = 0 ]
    is '.tokens.received == 13'
}

@test "a seed or prompt that is not the server's is found at the first token" {
    client --requests 2 --prompt hello --tokens 12 --control itl_ms=1 --control seed=5 --verify
    [ "$status" = 0 ]
    # The server is asked for another vocabulary by a name that the client does not look for.
    client 'http://localhost/stream?prompt=hello&max_tokens=12&itl_ms=1&%76ocab=torture&vocab=words' \
        --requests 2 --verify
    [ "$status" = 1 ]
}

@test "fewer tokens than were asked for" {
    # A resumed stream has no beginning.
    client --requests 2 --prompt hello --tokens 12 --control itl_ms=1 --control ids=1 \
        -H 'Last-Event-ID: 5' --verify
    [ "$status" = 1 ]
    is '.failures.wrong_token == 2'
}

@test "a stall is a timeout, and a cancel in the ledger" {
    before=$(sums)
    client --streams 2 --prompt hello --tokens 12 --control itl_ms=1 --control fault=stall@5:60000 \
        --timeout $((2 * SLOW))
    [ "$status" = 1 ]
    is '.failures.timeout == 2'
    grep -q 'after 5 tokens' report
    since "$before" '$b.cancelled - $a.cancelled == 2'
}

@test "the open loop starts what it owes, and no more than may be open" {
    before=$(sums)
    client --rate 100 --arrivals poisson --requests 60 --prompt hello --tokens 20 \
        --control itl_ms=10 --control ttft_ms=50 --verify
    [ "$status" = 0 ]
    is '.loop == "open" and .requests.complete == 60 and .requests.delayed == 0'
    since "$before" '$b.done - $a.done == 60'

    # 100 a second of 250 ms each, and 5 at once: most have to wait, and their ttft says so.
    client --rate 100 --requests 60 --streams 5 --prompt hello --tokens 20 --control itl_ms=10 \
        --control ttft_ms=50
    [ "$status" = 0 ]
    is '.requests.open_max == 5 and .requests.complete == 60 and .requests.delayed > 40'
    is '.ms.ttft.p90 > 3 * .ms.ttft_sent.p50'
    grep -q 'warning.*--streams' report
}

@test "a duration ends the starts, and what is open runs to its end" {
    client --streams 5 --duration "$SLOW" --warmup 0.3 --prompt hello --tokens 20 --control itl_ms=5 \
        --control ttft_ms=20 --verify --goodput ttft:60000,itl:60000
    [ "$status" = 0 ]
    is '.requests | .complete == .started and .started > 5'
    is ".window.seconds - ($SLOW - 0.3) | fabs < 0.001"
    is '.window.complete < .requests.complete and .goodput.good == .window.complete'
    is '.ms.ttft.count < .requests.complete and .ms.ttft.count > 0'
}

@test "connections are used again with --keepalive, and not without" {
    client --streams 2 --requests 20 --prompt hello --tokens 5 --control itl_ms=1 --control ttft_ms=0 \
        --keepalive --verify -H 'X-Request-Id: kept-{i}'
    [ "$status" = 0 ]
    client --streams 2 --requests 20 --prompt hello --tokens 5 --control itl_ms=1 --control ttft_ms=0 \
        --verify -H 'X-Request-Id: anew-{i}'
    [ "$status" = 0 ]
    [ "$(grep -c 'id=kept-.*connreq=1 ' access.log)" -le 2 ]
    [ "$(grep -c 'id=anew-.*connreq=1 ' access.log)" = 20 ]
}

@test "with --keepalive libcurl reads the bodies: the same is found" {
    before=$(sums)
    client --streams 20 --requests 60 --prompt 'hello {i}' --tokens 100 --control vocab=torture \
        --control itl_ms=2 --control ttft_ms=10 --control chunk=3 --abort-rate 30 --abort-after 1..20 \
        --slow-readers 30 --slow-pause 5 --keepalive --verify
    [ "$status" = 0 ]
    is '.requests | .aborted > 5 and .slow_readers > 5 and .complete + .aborted == 60'
    since "$before" "\$b.done + \$b.cancelled - \$a.done - \$a.cancelled == 60"
    while read -r fault failure; do
        client --streams 3 --prompt hello --tokens 12 --control ttft_ms=0 --control itl_ms=1 \
            --control "fault=$fault" --keepalive --verify
        [ "$status" = 1 ]
        is ".failures.$failure == 3 and .requests.failed == 3"
    done <<END
error@5 error_event
eof@5 truncated
dup@5 wrong_token
status:503 http
END
}

@test "the times are those of the server's own stamps" {
    client --streams 20 --prompt hello --tokens 50 --control itl_ms=20 --control ttft_ms=100 \
        --control stamps=1 --events events --events-streams 2 --hdr hdr --hdr ttft:ttft
    [ "$status" = 0 ]
    is '.ms.itl.count == 980 and .ms.lateness.count == 980 and .ms.path.count == 1000'
    is '.ms.pace.min >= 0 and .ms.path.min == 0 and .ms.due.min >= 0'
    # The server sends nothing before it is due, and no clock can make it look earlier.
    is '.ms.ttft_sent.min >= 100 and .asked_ttft_ms == 100 and .ms.total.min >= 100 + 49 * 20'
    is '.ms.due.max >= .ms.path.max and .ms.due.max >= .ms.pace.max'
    is '.ms.lateness.p50 - (.ms.itl.p50 - 20) | fabs < 0.05'
    # Two streams, each with a head, 50 tokens, an end of the events and of the body.
    [ "$(grep -c '^[01]	[0-9]*	[0-9]*	[a-z]*	[0-9]*$' events)" = 106 ]
    [ "$(awk -F '\t' '$4 == "token" { n += $5 } END { print n }' events)" = 100 ]
    [ "$(sed -n 's/^#\[Max.*Total count *= *\([0-9]*\)\]/\1/p' hdr)" = 980 ]
    [ "$(sed -n 's/^#\[Max.*Total count *= *\([0-9]*\)\]/\1/p' ttft)" = 20 ]
}

@test "an interrupted run closes what is open, reports, and is no success" {
    before=$(sums)
    rm -f json
    "$LOAD" --unix-socket http.sock --streams 5 --prompt hello --tokens 1000 --json json \
        http://localhost/stream >report 2>&1 3>&- &
    pid=$!
    owned "$pid"
    # Not before all are there.
    all_run() { get /_debug/generated | jq -e '.ledger.running == 5' >/dev/null; }
    wait_until 10 all_run
    kill -s INT "$pid"
    status=0
    ended_with "$pid" 10 || status=$?
    [ "$status" = 3 ]
    is '.interrupted == true and .requests.interrupted == 5 and .requests.failed == 0'
    grep -q INTERRUPTED report
    since "$before" '$b.cancelled - $a.cancelled == 5'
}

@test "nothing listens: 3, at once, and it says where" {
    client --unix-socket nobody.sock --prompt hello --tokens 5
    [ "$status" = 3 ]
    grep -q 'nobody.sock' report
    run "$LOAD" "http://127.0.0.1:$(free_port)/stream" --prompt hello
    echo "$output"
    [ "$status" = 3 ]
    [[ "$output" == *'nothing answers'* ]]
    run "$LOAD" http://no.such.host.invalid/stream --prompt hello
    [ "$status" = 3 ]
    [[ "$output" == *'no.such.host.invalid'* ]]
}

@test "too few descriptors, and files that cannot be written: 3 before anything is sent" {
    before=$(sums)
    run bash -c 'ulimit -n 100 && exec "$@"' - "$LOAD" --unix-socket http.sock --streams 500 \
        --prompt hello http://localhost/stream
    [ "$status" = 3 ]
    [[ "$output" == *RLIMIT_NOFILE* ]]
    for option in --json --hdr --events; do
        run "$LOAD" --unix-socket http.sock --prompt hello "$option" no/such/folder http://localhost/stream
        [ "$status" = 3 ]
        [[ "$output" == *no/such/folder* ]]
    done
    since "$before" '$b.accepted == $a.accepted'
}

@test "--verify that cannot know, and URLs that are none: 2" {
    run "$LOAD" --unix-socket http.sock http://localhost/stream --verify
    [ "$status" = 2 ]
    [[ "$output" == *--prompt* ]]
    run "$LOAD" --unix-socket http.sock 'http://localhost/stream?prompt=a' --verify
    [ "$status" = 2 ]
    [[ "$output" == *--tokens* ]]
    for url in ftp://localhost/ 'http://' 'http://a b/' 'http://localhost:99999/'; do
        run "$LOAD" "$url"
        echo "$url: $output"
        [ "$status" = 2 ]
    done
}

@test "the books hold after all of this" {
    wait_until 10 books_hold
}
