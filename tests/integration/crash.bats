#!/usr/bin/env bats
# Ends and starts: kill -9, SIGTERM and the drain, what is refused at the start and how it is said.
#
# SC2154: bats sets stderr and stderr_lines. SC2030, SC2031: a test's RESPONDER_PID is its own.
# shellcheck disable=SC2154,SC2030,SC2031

load harness

setup_file() { lab_open; }

setup() {
    cd "$LAB" || return 1
    rm -f -- *.sock runnel.state responder.log
}

# Each test starts what it needs.
teardown() {
    stop_nginx
    [ -z "$RESPONDER_PID" ] || stop_responder KILL >/dev/null || true
    lab_check
}

# start_stream ID QUERY [COUNT]: a live stream in the background, once COUNT tokens are made; the
# body is in the file ID, curl's pid in CLIENT.
start_stream() {
    start_get "$1" "/stream?prompt=hello&$2" -H "X-Request-Id: $1"
    wait_until 10 ledger_is "$1" ".outcome == \"live\" and .generated >= ${3:-3}"
}

# start_generate ID: a /generate of 1,000 tokens in the background, the same; its status in ID.out.
start_generate() {
    start_get "$1" /generate -H 'Content-Type: application/json' -H "X-Request-Id: $1" \
        -d '{"prompt":"hello","max_tokens":1000,"ttft_ms":0,"itl_ms":20}' -w '%{http_code}'
    wait_until 10 ledger_is "$1" ".outcome == \"live\" and .generated >= 3"
}

# not_started STATUS TEXT FLAG...: ends with STATUS and one sentence that has TEXT, and no listener.
not_started() {
    local expected=$1 text=$2

    shift 2
    run --separate-stderr timeout 20 "$RUNNEL" "$@" </dev/null
    echo "status $status: $stderr"
    [ "$status" = "$expected" ]
    [ -z "$output" ]
    [ "${#stderr_lines[@]}" = 1 ]
    [[ "$stderr" == *"$text"* ]]
    [ ! -e runnel.sock ]
}

healthz_says() {
    ask /healthz
    [ "$code" = "$1" ]
}

# --- kill -9 ---

@test "kill -9 in mid-stream, and a start on the same --state: totals go on, no ghosts" {
    start_responder --state runnel.state
    start_nginx
    get '/stream?prompt=hello&max_tokens=10&ttft_ms=0&itl_ms=0' >/dev/null
    start_stream victim 'max_tokens=1000&ttft_ms=0&itl_ms=10' 5
    victim=$CLIENT
    start_generate whole
    before=$(get /_debug/generated)
    stop_responder KILL >killed || [ $? = 137 ]
    wait "$victim" # curl sees a clean end: only [DONE] proves completeness
    [ "$(grep -c '^data: {' victim)" -ge 5 ]
    run ! grep -q DONE victim
    ask /healthz
    [ "$code" = 502 ]
    jq -e .error.code body

    start_responder --state runnel.state
    ledger_is victim '.outcome == "failed" and .phase == "decode" and .generated >= 5 and
                      .delivered + .discarded == .generated'
    ledger_is whole '.outcome == "failed" and .delivered == 0 and .discarded == .generated'
    books_hold
    after=$(get /_debug/generated)
    jq -e -n --argjson before "$before" --argjson after "$after" '
        $after.ledger.accepted == $before.ledger.accepted and
        $after.ledger.done == $before.ledger.done and
        $after.ledger.failed == $before.ledger.failed + 2 and
        $after.total >= $before.total'
    get '/stream?prompt=hello&max_tokens=20&ttft_ms=0&itl_ms=0' >/dev/null
    [ "$(get /_debug/generated | jq .total)" = $(($(jq .total <<<"$after") + 20)) ]
    books_hold
    stop_responder
}

@test "kill -9 under the load client: every stream of it has failed, and none is called complete" {
    start_responder
    start_nginx
    "$LOAD" --unix-socket http.sock --streams 5 --prompt hello --tokens 1000 --json load.json \
        http://localhost/stream >load.out 2>&1 3>&- &
    pid=$!
    owned "$pid"
    all_run() { get /_debug/generated | jq -e '.ledger.running == 5' >/dev/null; }
    wait_until 10 all_run
    stop_responder KILL >killed || [ $? = 137 ]
    status=0
    ended_with "$pid" 20 || status=$?
    cat load.out
    [ "$status" = 1 ]
    jq -e '.requests.failed == 5 and .failures.truncated + .failures.cut == 5' load.json
}

@test "nginx that goes away under the load client: it is refused, and does not spin" {
    start_responder
    start_nginx
    "$LOAD" --unix-socket http.sock --streams 3 --duration $((2 * SLOW)) --prompt hello --tokens 3 \
        --control ttft_ms=5 --control itl_ms=1 --json load.json http://localhost/stream \
        >load.out 2>&1 3>&- &
    pid=$!
    owned "$pid"
    some_are_done() { get /_debug/generated | jq -e '.ledger.done > 10' >/dev/null; }
    wait_until 10 some_are_done
    stop_nginx
    status=0
    ended_with "$pid" 20 || status=$?
    cat load.out
    [ "$status" = 1 ]
    # Three streams that wait 50 ms after each refusal.
    jq -e '.failures.connect > 0 and .failures.connect <= (3 * 20 * 2 + 3) * '"$SLOW" load.json
    jq -e '.requests | .started == .complete + .failed' load.json
}

@test "killed 5 times over: the books hold each time" {
    start_responder --state runnel.state
    start_nginx
    for round in 1 2 3 4 5; do
        for stream in a b c d; do
            start_get "$stream" '/stream?prompt=hello&max_tokens=100000&ttft_ms=0&itl_ms=0.1' \
                -H "X-Request-Id: $round$stream"
        done
        for stream in a b c d; do
            wait_until 10 ledger_is "$round$stream" '.generated > 0'
        done
        stop_responder KILL >killed || true
        start_responder --state runnel.state
        books_hold
        jq -e ".ledger.accepted == $((round * 4)) and .ledger.failed == $((round * 4))" books.out
    done
    stop_responder
}

@test "without --state nothing is kept, and no file is made" {
    start_responder
    start_nginx
    get '/stream?prompt=hello&max_tokens=3&ttft_ms=0&itl_ms=0' >/dev/null
    stop_responder
    start_responder
    get /_debug/generated | jq -e '.id == null and .total == 0 and .ledger.accepted == 0'
    [ ! -e runnel.state ]
    stop_responder
}

@test "two processes on one socket and one --state: each answers for both" {
    spawn-fcgi -F 2 -P pids -s runnel.sock -M 0660 -- "$RUNNEL" --state runnel.state \
        --log-file responder.log 3>&-
    mapfile -t pids < <(tr -s ' \n' '\n' <pids)
    owned "${pids[@]}"
    [ "${#pids[@]}" = 2 ]
    RESPONDER_PID=${pids[0]} responder_ready runnel.sock
    start_nginx
    # Each process has slots of its own: streams that fall to the one and to the other.
    clients=()
    for n in $(seq 30); do
        start_get s "/stream?prompt=hello&max_tokens=1000&ttft_ms=0&itl_ms=20" \
            -H "X-Request-Id: s$n"
        clients+=("$CLIENT")
    done
    wait_until 10 running_are 30
    doomed=0
    for n in $(seq 30); do
        [ "$(ledger "s$n" .pid)" != "${pids[0]}" ] || doomed=$((doomed + 1))
    done
    echo "the first has $doomed of 30"
    # The one that has fewer is killed: with all streams on it there would be nothing to go on.
    victim=0
    [ "$doomed" -le 15 ] || { victim=1 doomed=$((30 - doomed)); }
    for _ in $(seq 10); do running_are 30; done
    kill -KILL "${pids[victim]}"
    wait_until 5 running_are $((30 - doomed))
    get /_debug/generated | jq -e ".ledger.failed == $doomed"
    kill "${clients[@]}"
    wait_until 5 books_hold
    kill -TERM "${pids[1 - victim]}"
    wait_until 5 has_ended "${pids[1 - victim]}"
}

# running_are COUNT: by the ledger.
running_are() {
    get /_debug/generated | jq -e ".ledger.running == $1" >/dev/null
}

# --- SIGTERM ---

@test "SIGTERM: a live stream runs to [DONE], new requests get 503 with Retry-After, exit 0" {
    start_responder
    start_nginx
    start_stream last 'max_tokens=150&ttft_ms=0&itl_ms=20'
    kill -TERM "$RESPONDER_PID"
    wait_until 5 healthz_says 503
    jq -e '.error.code == "draining"' body
    [ -n "$(header retry-after)" ]
    ask '/stream?prompt=hello&max_tokens=2'
    [ "$code" = 503 ]
    [[ "$(header retry-after)" =~ ^[0-9]+$ ]]
    jq -e '.error | .type and .message and .code' body
    ask /generate -H 'Content-Type: application/json' -d '{"prompt":"hello","max_tokens":2}'
    [ "$code" = 503 ]
    [ -n "$(header retry-after)" ]
    ledger_is last '.outcome == "live"'
    wait "$CLIENT"
    [ "$(grep -c '^data: {"token":' last)" = 150 ]
    [ "$(tail -n 2 last)" = 'data: [DONE]' ]
    ended_with "$RESPONDER_PID" 5
    RESPONDER_PID=''
    grep -q 'drained' responder.log
    [ ! -e runnel.sock ]
}

@test "the drain's deadline: an error event and no [DONE], outcome drained, exit 0" {
    start_responder --state runnel.state --drain-s 0.5
    start_nginx
    start_stream cut 'max_tokens=1000&ttft_ms=0&itl_ms=20'
    cut=$CLIENT
    start_generate whole
    kill -TERM "$RESPONDER_PID"
    ended_with "$RESPONDER_PID" 10
    RESPONDER_PID=''
    wait "$cut" "$CLIENT"
    run ! grep -q DONE cut
    [ "$(grep -c '^event: error$' cut)" = 1 ]
    [ "$(tail -n 3 cut | head -n 1)" = 'event: error' ]
    tail -n 2 cut | sed -n 's/^data: //p' | jq -e '.error | .code == "draining" and
        (.message | contains("--drain-s")) and (keys == ["code", "message", "param", "type"])'
    [ "$(cat whole.out)" = 503 ]
    jq -e '.error.code == "draining"' whole
    start_responder --state runnel.state
    ledger_is cut '.outcome == "drained" and .generated < 1000'
    ledger_is whole '.outcome == "drained" and .delivered == 0'
    books_hold
    stop_responder
}

@test "queued requests are drained too" {
    start_responder --state runnel.state --drain-s 0.3 --slots 1
    start_nginx
    start_stream running 'max_tokens=1000&ttft_ms=0&itl_ms=20'
    start_get waiting '/stream?prompt=hello&max_tokens=2' -H 'X-Request-Id: waiting'
    wait_until 10 ledger_is waiting '.phase == "queued"'
    kill -TERM "$RESPONDER_PID"
    ended_with "$RESPONDER_PID" 10
    RESPONDER_PID=''
    wait "$CLIENT" || true
    run ! grep -q DONE waiting
    grep -q '^event: error$' waiting
    start_responder --state runnel.state
    ledger_is waiting '.outcome == "drained" and .phase == "queued" and .generated == 0'
    books_hold
    stop_responder
}

@test "a queued request is served in the drain, when there is time" {
    start_responder --slots 1
    start_nginx
    start_stream running 'max_tokens=50&ttft_ms=0&itl_ms=20'
    start_get waiting '/stream?prompt=hello&max_tokens=2' -H 'X-Request-Id: waiting'
    wait_until 10 ledger_is waiting '.phase == "queued"'
    stop_responder
    wait "$CLIENT"
    [ "$(tail -n 2 waiting)" = 'data: [DONE]' ]
    [ "$(tail -n 2 running)" = 'data: [DONE]' ]
}

@test "a second SIGTERM ends at once" {
    start_responder
    start_nginx
    start_stream cut 'max_tokens=100000&ttft_ms=0&itl_ms=20'
    kill -TERM "$RESPONDER_PID"
    wait_until 5 healthz_says 503
    is_running "$RESPONDER_PID"
    kill -TERM "$RESPONDER_PID"
    ended_with "$RESPONDER_PID" 2
    RESPONDER_PID=''
    wait "$CLIENT"
    run ! grep -q DONE cut
    grep -q '^event: error$' cut
}

@test "a drain with requests that wait behind live ones on kept connections" {
    start_responder
    start_nginx
    peer hostile pipelined_into_the_drain "$RESPONDER_PID"
    ended_with "$RESPONDER_PID" 10
    RESPONDER_PID=''
}

@test "--drain-s 0: live streams get their error event at once; SIGINT is the same" {
    for signal in TERM INT; do
        start_responder --drain-s 0
        start_nginx
        start_stream cut 'max_tokens=100000&ttft_ms=0&itl_ms=20'
        kill -s "$signal" "$RESPONDER_PID"
        ended_with "$RESPONDER_PID" 2
        RESPONDER_PID=''
        wait "$CLIENT"
        run ! grep -q DONE cut
        grep -q '^event: error$' cut
        stop_nginx
    done
}

@test "a drain with a client that does not read, and with one half-way in its request" {
    start_responder --drain-s 0.5
    start_nginx
    "$PYTHON" "$PEERS/slow.py" hold_open 4 3>&- &
    holder=$!
    owned "$holder"
    wait_until 10 test -e held
    kill -TERM "$RESPONDER_PID"
    ended_with "$RESPONDER_PID" 5
    RESPONDER_PID=''
    rm held
    wait "$holder"
}

# --- the ring ---

@test "a full ring: the oldest are forgotten, a live one that was is still counted" {
    start_responder --state runnel.state
    start_nginx
    start_stream oldest 'max_tokens=100000&ttft_ms=0&itl_ms=50'
    peer ring fill 4096
    ask '/_debug/generated?id=oldest'
    [ "$code" = 404 ]
    jq -e '.error.message | contains("4096")' body
    ask '/_debug/generated?id=fill-0'
    [ "$code" = 200 ]
    get /_debug/generated | jq -e '.id == "fill-4095" and .ledger.running == 1 and
        .ledger.accepted == 4097 and .ledger.done == 4096'
    kill "$CLIENT"
    wait_until 5 books_hold
    get /_debug/generated | jq -e '.ledger.cancelled == 1 and .id == "fill-4095"'
    stop_responder
    start_responder --state runnel.state
    get /_debug/generated | jq -e '.id == "fill-4095" and .ledger.accepted == 4097'
    stop_responder
}

# --- starts that are refused ---

# Makes one, runnel.state.
size_of_a_ledger() {
    start_responder --state runnel.state
    stop_responder >/dev/null
    stat -c %s runnel.state
}

@test "a --state file that is none: refused in a sentence, exit 3, and left as it is" {
    listen=(--listen unix:runnel.sock)
    size=$(size_of_a_ledger)
    printf 'my notes\n' >notes
    cp notes notes.before
    not_started 3 --state "${listen[@]}" --state notes
    cmp notes notes.before
    head -c "$size" /dev/zero | tr '\0' x >same_size
    cp same_size same_size.before
    not_started 3 --state "${listen[@]}" --state same_size
    cmp same_size same_size.before
    head -c $((size - 1)) runnel.state >shorter
    not_started 3 --state "${listen[@]}" --state shorter
    not_started 3 --state "${listen[@]}" --state .
    not_started 3 --state "${listen[@]}" --state nowhere/runnel.state
    rm -f same_size same_size.before shorter
}

@test "a --state path that is no regular file is refused, and still there afterwards" {
    # As a pipe; a device would be an experiment on the machine: root may delete /dev/null.
    mkfifo pipe
    not_started 3 --state --listen unix:runnel.sock --state pipe
    [ -p pipe ]
    ln -s pipe link
    not_started 3 --state --listen unix:runnel.sock --state link
    [ -h link ]
    [ -p pipe ]
}

@test "a --state file of the right size that is all zeros is not taken for a ledger" {
    size=$(size_of_a_ledger)
    head -c "$size" /dev/zero >zeros
    not_started 3 --state --listen unix:runnel.sock --state zeros
}

@test "no listening socket on descriptor 0: a sentence, exit 3" {
    not_started 3 'spawn-fcgi'
    [[ "$stderr" == *--listen* ]]
    run --separate-stderr timeout 20 "$RUNNEL" <&-
    [ "$status" = 3 ]
    [[ "$stderr" == *--listen* ]]
    run --separate-stderr timeout 20 "$RUNNEL" <"$0"
    [ "$status" = 3 ]
}

@test "addresses that cannot be listened on: a sentence, exit 3" {
    for address in unix: unix:nowhere/x.sock nonsense :9000 127.0.0.1: 127.0.0.1:x \
        127.0.0.1:99999 "unix:$(head -c 200 /dev/zero | tr '\0' a)" 203.0.113.1:9000; do
        not_started 3 --listen --listen "$address"
    done
    printf 'a file\n' >occupied
    not_started 3 occupied --listen unix:occupied
    [ "$(cat occupied)" = 'a file' ]
}

@test "a socket that somebody listens on is not taken away; an abandoned one is" {
    start_responder
    run --separate-stderr timeout 20 "$RUNNEL" --listen unix:runnel.sock
    [ "$status" = 3 ]
    [[ "$stderr" == *runnel.sock* ]]
    "$PYTHON" "$PEERS/fastcgi.py" healthz runnel.sock
    stop_responder KILL >killed || true
    [ -S runnel.sock ]
    start_responder
    "$PYTHON" "$PEERS/fastcgi.py" healthz runnel.sock
    stop_responder
}

@test "unknown flags and bad values: exit 2, and the setting is named" {
    not_started 2 --nonsense --nonsense
    not_started 2 nonsense nonsense
    not_started 2 -x -x
    not_started 2 --slots --slots
    for flag in slots queue max-tokens ttft-ms itl-ms stall-timeout drain-s body-max-bytes \
        prompt-max-bytes max-tokens-limit socket-mode log-level read-timeout-s; do
        for value in '' +5 -1 0x10 20abc 1e3 99999999999999999999; do
            not_started 2 "--$flag" "--$flag=$value"
        done
    done
    not_started 2 --slots --slots 0
    not_started 2 --max-tokens --max-tokens 500 --max-tokens-limit 400
    RUNNEL_SLOTS=abc not_started 2 RUNNEL_SLOTS
    not_started 2 --socket-mode --socket-mode 888
}

@test "--help, --version and --print-config: exit 0, nothing on stderr" {
    run --separate-stderr -0 "$RUNNEL" --help
    [[ "$output" == *--slots*RUNNEL_SLOTS*--print-config*'exit status'* ]]
    [ -z "$stderr" ]
    run --separate-stderr -0 "$RUNNEL" --version
    [[ "$output" =~ ^runnel\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
    [ -z "$stderr" ]
    RUNNEL_QUEUE=7 run --separate-stderr -0 "$RUNNEL" --print-config --slots 3 --itl-ms=0.5
    [ -z "$stderr" ]
    grep -q '^slots = 3 .*flag' <<<"$output"
    grep -q '^queue = 7 .*environment' <<<"$output"
    grep -q '^itl-ms = 0.5' <<<"$output"
    grep -q '^ttft-ms = 200 .*default' <<<"$output"
    RUNNEL_SLOTS=5 run -0 "$RUNNEL" --print-config --slots=6
    grep -q '^slots = 6 .*flag' <<<"$output"
    run -2 "$RUNNEL" --print-config --slots abc
}

# --- starts that work ---

@test "started by spawn-fcgi, on descriptor 0" {
    spawn-fcgi -n -s runnel.sock -M 0660 -- "$RUNNEL" >>responder.log 2>&1 3>&- &
    RESPONDER_PID=$!
    wait_ready responder "$RESPONDER_PID" test -S runnel.sock
    responder_ready runnel.sock
    start_nginx
    ask '/stream?prompt=hello&max_tokens=2&ttft_ms=0&itl_ms=0'
    [ "$code" = 200 ]
    stop_responder
}

@test "--listen unix: makes the socket with --socket-mode, 660 by default" {
    start_responder
    [ "$(stat -c %a runnel.sock)" = 660 ]
    stop_responder
    [ ! -e runnel.sock ]
    start_responder --socket-mode 600
    [ "$(stat -c %a runnel.sock)" = 600 ]
    stop_responder
}

@test "--listen HOST:PORT, behind nginx" {
    for _ in 1 2 3; do
        port=$(free_port)
        start_responder "--listen=127.0.0.1:$port" && break
        RESPONDER_PID=''
    done
    start_nginx "s|server unix:runnel.sock;|server 127.0.0.1:$port;|"
    ask '/stream?prompt=hello&max_tokens=20&ttft_ms=0&itl_ms=0'
    [ "$code" = 200 ]
    [ "$(grep -c '^data: {' body)" = 20 ]
    # A client that leaves is noticed over TCP as well.
    start_stream left 'max_tokens=1000&ttft_ms=0&itl_ms=20'
    kill "$CLIENT"
    wait_until 5 ledger_is left '.outcome == "cancelled" and .detected_by == "hangup"'
    # Without REUSEADDR the port would be taken for a minute.
    stop_responder
    start_responder "--listen=127.0.0.1:$port"
    stop_responder
}

@test "SIGHUP opens --log-file anew; the log says what happened to each request" {
    start_responder --log-file runnel.txt
    start_nginx
    get '/stream?prompt=hello&max_tokens=2&ttft_ms=0&itl_ms=0' -H 'X-Request-Id: before' >/dev/null
    wait_until 5 grep -q 'id=before .*outcome=done' runnel.txt
    mv runnel.txt runnel.old
    kill -HUP "$RESPONDER_PID"
    wait_until 5 test -e runnel.txt
    get '/stream?prompt=hello&max_tokens=2&ttft_ms=0&itl_ms=0' -H 'X-Request-Id: after' >/dev/null
    wait_until 5 grep -q 'id=after .*outcome=done' runnel.txt
    run ! grep -q 'id=after' runnel.old
    stop_responder
    not_started 3 --log-file --listen unix:runnel.sock --log-file nowhere/log
}
