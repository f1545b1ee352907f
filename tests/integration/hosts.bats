#!/usr/bin/env bats
# One nginx and responders on several hosts, over TCP; a host is cut off in mid-stream. The hosts are
# network namespaces of this file's own, at a switch that is one too: the machine's network is not
# touched. It needs root.
#
# SC2154: the harness sets code.
# shellcheck disable=SC2154

load harness

# address HOST
address() {
    case $1 in
        front) echo 10.77.0.1 ;;
        a) echo 10.77.0.2 ;;
        b) echo 10.77.0.3 ;;
        far) echo 10.77.1.2 ;; # at the long cable
    esac
}

# on HOST COMMAND...: runs it there.
on() { ip netns exec "$NET-$1" "${@:2}"; }

# Sets CANNOT where the tests are skipped: bats cannot skip a whole file.
setup_file() {
    export CANNOT='' NET=runnel-$$
    command -v ip >/dev/null || { echo 'no ip: scripts/deps --test' && return 1; }
    if [ "$(id -u)" != 0 ]; then
        CANNOT='needs root, for network namespaces'
    elif ! ip netns add "$NET-switch"; then
        CANNOT='network namespaces are not permitted here'
    elif ! ip -n "$NET-switch" link add name switch type bridge; then
        CANNOT='this kernel has no bridge'
    fi
    [ -z "$CANNOT" ] || return 0
    lab_open
    network_open
    start_host a
    start_host b -F 2
}

teardown_file() {
    local failed=0

    if [ -z "$CANNOT" ]; then
        stop_nginx
        for host in a b far front; do stop_host "$host" || failed=1; done
        lab_close || failed=1
    fi
    network_close
    return "$failed"
}

setup() {
    [ -z "$CANNOT" ] || skip "$CANNOT"
    cd "$LAB" || return 1
}

# A test starts the nginx that it needs, and leaves the network whole.
teardown() {
    [ -z "$CANNOT" ] || return 0
    stop_nginx
    for host in a b; do mend "$host" && unmute "$host"; done
    lab_check
}

# --- the network ---

network_open() {
    local host

    ip -n "$NET-switch" link set dev switch up
    for host in front a b; do
        namespace "$host"
        ip -n "$NET-switch" link add name "$host" type veth peer name eth0 netns "$NET-$host"
        ip -n "$NET-switch" link set dev "$host" master switch
        ip -n "$NET-switch" link set dev "$host" up
        ip -n "$NET-$host" address add "$(address "$host")/24" dev eth0
        ip -n "$NET-$host" link set dev eth0 up
    done
    # On nginx's host, as docs/capacity.md tells, but shorter: 4 s to a host that is gone.
    set_keepalive 2 1 2
}

namespace() {
    ip netns add "$NET-$1"
    ip -n "$NET-$1" link set dev lo up
}

set_keepalive() {
    on front sh -c "cd /proc/sys/net/ipv4 && echo $1 >tcp_keepalive_time &&
        echo $2 >tcp_keepalive_intvl && echo $3 >tcp_keepalive_probes"
}

# Whatever is still there, also after half a start.
network_close() {
    local host pid

    for host in front a b far switch; do
        [ -e "/run/netns/$NET-$host" ] || continue
        for pid in $(ip netns pids "$NET-$host"); do kill -s KILL "$pid"; done
        ip netns delete "$NET-$host" || return 1
    done
}

# cut_off HOST: the switch drops what comes from it and what goes to it; neither end sees its link down.
cut_off() { bridge -n "$NET-switch" link set dev "$1" state 0; }

# unplug HOST: the link is down, at the switch and at the host.
unplug() { ip -n "$NET-switch" link set dev "$1" down; }

# mute HOST: what it sends to nginx's host goes to an address that nobody has; it hears everything.
mute() { ip -n "$NET-$1" neighbour replace "$(address front)" lladdr 02:00:00:00:00:99 dev eth0; }

unmute() { ip -n "$NET-$1" neighbour flush to "$(address front)" dev eth0 nud permanent; }

mend() {
    ip -n "$NET-switch" link set dev "$1" up
    # The switch lets traffic through when it has seen the link.
    wait_until 5 bridge -n "$NET-switch" link set dev "$1" state 3 2>/dev/null
}

# long_cable MS: a host `far`, so many milliseconds from nginx's.
long_cable() {
    namespace far
    "$PYTHON" "$PEERS/cable.py" "$NET-front" "$NET-far" "$1" >cable.out 2>&1 3>&- &
    owned "$!"
    for host in front far; do
        wait_until 5 ip -n "$NET-$host" link set dev cable up 2>/dev/null
    done
    ip -n "$NET-front" address add 10.77.1.1/24 dev cable
    ip -n "$NET-far" address add "$(address far)/24" dev cable
}

# --- the hosts ---

# start_host HOST [SPAWN-FCGI OPTION]... [-- FLAG...]: a responder as one starts it there.
start_host() {
    local host=$1 options=()

    shift
    while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1") && shift; done
    [ $# -eq 0 ] || shift
    on "$host" spawn-fcgi -a "$(address "$host")" -p 9000 -b 4096 -P "$host.pids" "${options[@]}" -- \
        "$RUNNEL" --state "$host.state" --log-file "$host.log" --peer-timeout-s 2 "$@" \
        >"$host.out" 2>&1 3>&-
    wait_until 10 on "$host" "$PYTHON" "$PEERS/fastcgi.py" probe "$(address "$host"):9000" \
        2>/dev/null
}

pids_of() { [ ! -e "$1.pids" ] || tr -s ' \n' '\n' <"$1.pids"; }

# A responder that does not end by itself fails.
stop_host() {
    local pid failed=0

    for pid in $(pids_of "$1"); do
        kill -s TERM "$pid" || failed=1
        wait_until 10 has_ended "$pid" || { kill -s KILL "$pid" && failed=1; }
    done
    rm -f "$1.pids"
    return "$failed"
}

# ledger_of HOST [ID]: asked on the host itself, cut off or not.
ledger_of() {
    on "$1" "$PYTHON" "$PEERS/fastcgi.py" get "$(address "$1"):9000" \
        "/_debug/generated${2:+?id=$2}"
}

# sum HOST JQ: of the ledger's sums.
sum() { ledger_of "$1" | jq ".ledger$2"; }

# shows HOST JQ: whether that is true of the sums (for wait_until).
shows() { ledger_of "$1" | jq -e ".ledger | $2" >/dev/null; }

# tells HOST ID JQ: whether that is true of a request.
tells() { ledger_of "$1" "$2" 2>/dev/null | jq -e "$3" >/dev/null; }

books_hold_on() {
    shows "$1" '.queued == 0 and .running == 0 and .held == 0 and
        .accepted == .done + .cancelled + .failed + .shed + .stalled + .drained and
        .generated == .delivered + .discarded'
}

books_hold_on_both() { books_hold_on a && books_hold_on b; }

# --- nginx ---

# nginx for start_nginx, which runs it in a shell of its own.
nginx() { exec ip netns exec "$NET-front" nginx "$@"; }

# front "HOST..." [SED]...: nginx for these hosts, as docs/capacity.md tells.
front() {
    local host servers='zone runnel 64k; least_conn;'

    for host in $1; do
        servers+=" server $(address "$host"):9000 max_fails=1 fail_timeout=10s;"
    done
    rm -f access.log error.log
    start_nginx "s|^ *server unix:runnel.sock;|$servers|" \
        's|^ *fastcgi_buffering off;|& fastcgi_socket_keepalive on;|' \
        "s|request=\$request_time|& upstream=\$upstream_addr|" "${@:2}"
}

# served_by ID HOST: whether nginx passed it to that host alone.
served_by() { grep -q "id=$1 .*upstream=$(address "$2"):9000 " access.log; }

# start_load [OPTION]...: in the background; its pid in CLIENT, its report in json.
start_load() {
    rm -f json
    "$LOAD" --unix-socket http.sock --json json --quiet "$@" http://localhost/stream \
        >load.out 2>&1 3>&- &
    CLIENT=$!
    owned "$CLIENT"
}

# --- tests ---

@test "least_conn spreads the streams evenly, and the two ledgers count what the clients got" {
    front 'a b'
    start_load --streams 12 --requests 36 --prompt 'hello {i}' --tokens 100 --verify \
        --control ttft_ms=100 --control itl_ms=20
    wait_until 10 both_run 6
    ended_with "$CLIENT" 60
    jq -e '.requests | .verified == 36 and .failed == 0' json
    wait_until 5 books_hold_on_both
    [ "$(sum a .done)" -ge 12 ]
    [ "$(sum b .done)" -ge 12 ]
    [ $(($(sum a .done) + $(sum b .done))) = 36 ]
    [ $(($(sum a .delivered) + $(sum b .delivered))) = 3600 ]
    [ "$(jq .tokens.received json)" = 3600 ]
}

both_run() { shows a ".running == $1" && shows b ".running == $1"; }

@test "a host is cut off in mid-stream: the other's streams go on, its own are cancelled and end" {
    front 'a b'
    before=$(sums)
    start_load --streams 8 --prompt 'hello {i}' --tokens 400 --verify --control ttft_ms=0 \
        --control itl_ms=20
    wait_until 10 both_run 4
    cut_off a
    # The responder gives the slots back within --peer-timeout-s (2 s), and says so.
    wait_until 10 shows a '.running == 0'
    shows b '.running == 4'
    since "$before" a '.cancelled == 4'
    # nginx ends their streams within the keepalive of its own host (4 s).
    wait_until 10 nginx_gave_up 4
    ended_with "$CLIENT" 60 || [ $? = 1 ]
    jq -e '.requests | .verified == 4 and .failed == 4' json
    jq -e '.failures.cut == 4' json
    # Of all gaps that were seen, the other host's 4 * 399 among them.
    jq -e ".ms.itl | .count >= 1596 and .max < $((1000 * SLOW))" json
    since "$before" b '.done == 4 and .delivered == 1600'
    mend a
    books_hold_on_both
    # New streams come to both again.
    start_load --streams 8 --requests 8 --prompt 'hello {i}' --tokens 20 --verify
    ended_with "$CLIENT" 30
    since "$before" a '.done == 4'
    books_hold_on_both
}

# sums: of both hosts, as they are now.
sums() { jq -cn --argjson a "$(sum a '')" --argjson b "$(sum b '')" '{$a, $b}'; }

# since SUMS HOST JQ: whether that is true of what was added to a host's sums.
since() {
    jq -en --argjson before "$1" --argjson now "$(sum "$2" '')" --arg host "$2" \
        "\$now | with_entries(.value -= \$before[\$host][.key]) | ($3) or (debug | false)" >/dev/null
}

# nginx_gave_up COUNT: on so many connections to a host.
nginx_gave_up() { [ "$(grep -c 'recv() failed (110' error.log)" -ge "$1" ]; }

@test "in decode, prefill, a stall and a reply in one piece: each slot is given back, once" {
    front a
    before=$(sums)
    start_get decode '/stream?prompt=hello&ttft_ms=0&itl_ms=20&max_tokens=10000' -H 'X-Request-Id: decode'
    start_get prefill '/stream?prompt=hello&ttft_ms=100000' -H 'X-Request-Id: prefill'
    start_get stall '/stream?prompt=hello&ttft_ms=0&itl_ms=1&fault=stall@5:100000' -H 'X-Request-Id: stall'
    stall=$CLIENT
    start_get whole /generate -H 'Content-Type: application/json' -H 'X-Request-Id: whole' \
        -d '{"prompt":"hello","ttft_ms":100000}' -w '%{http_code}'
    whole=$CLIENT
    wait_until 5 tells a decode '.generated > 0'
    wait_until 5 tells a stall '.generated == 5'
    wait_until 5 shows a '.running == 4'
    cut_off a
    wait_until 10 shows a '.running == 0'
    since "$before" a '.cancelled == 4 and .accepted == 4'
    books_hold_on a
    for id in decode prefill stall whole; do
        tells a "$id" '.outcome == "cancelled" and (.detected_by == "hangup" or .detected_by == "write")'
    done
    tells a prefill '.phase == "prefill" and .generated == 0'
    tells a stall '.phase == "decode" and .generated == 5'
    # A stream that had begun breaks off; a reply that had not is an error of nginx.
    status=0
    wait "$stall" || status=$?
    [ "$status" = 18 ]
    [ "$(grep -c '^data: {' stall)" = 5 ]
    wait "$whole"
    [ "$(cat whole.out)" = 502 ]
}

@test "a link that goes down and comes up: the same, and new streams come to both hosts again" {
    front 'a b'
    before=$(sums)
    start_load --streams 4 --prompt 'hello {i}' --tokens 100 --verify --control ttft_ms=0 \
        --control itl_ms=50
    wait_until 10 both_run 2
    unplug a
    wait_until 10 shows a '.running == 0'
    since "$before" a '.cancelled == 2'
    ended_with "$CLIENT" 60 || [ $? = 1 ]
    jq -e '.requests | .verified == 2 and .failed == 2' json
    mend a
    start_load --streams 4 --prompt 'hello {i}' --tokens 100 --verify
    ended_with "$CLIENT" 60
    since "$before" a '.cancelled == 2 and .done == 2'
    since "$before" b '.cancelled == 0 and .done == 4'
    books_hold_on_both
}

@test "new requests to a host that is gone: one fails, then the other host gets them all" {
    front 'a b'
    before=$(sums)
    cut_off a
    codes
    [ "$(grep -c 200 codes)" = 9 ]
    [ "$(grep -Ec '502|504' codes)" = 1 ]
    since "$before" b '.done == 9'
    mend a
    # nginx tries it again after fail_timeout.
    wait_until 30 served_by_a_again
    since "$before" a '.done == 1'
}

# codes: the statuses of ten requests, one after the other, in a file of this name.
codes() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        ask '/stream?prompt=hello&max_tokens=1&ttft_ms=0'
        echo "$code"
    done >codes
    cat codes
}

served_by_a_again() {
    ask '/stream?prompt=hello&max_tokens=1&ttft_ms=0' -H 'X-Request-Id: again'
    served_by again a
}

RETRY='s|fastcgi_next_upstream off;|fastcgi_next_upstream error timeout;|'

@test "next_upstream error timeout, no connection: the other host gets the request, once" {
    front 'a b' "$RETRY"
    before=$(sums)
    cut_off a
    codes
    [ "$(grep -c 200 codes)" = 10 ]
    since "$before" a '.accepted == 0'
    since "$before" b '.done == 10 and .accepted == 10'
    tried_both
}

# tried_both: a request went to the host that is gone, and from there to the other.
tried_both() { grep -q "status=200.*upstream=$(address a):9000, $(address b):9000 " access.log; }

# unheard [SED]: two streams, one for each host; a hears its request, and cannot be heard any more.
# Their statuses are in one.out and two.out.
unheard() {
    local one two pids target='/stream?prompt=hello&max_tokens=500&ttft_ms=0&itl_ms=10'

    front 'a b' "$@"
    mapfile -t pids < <(pids_of a)
    # Stopped, it takes the connection and the request, and does not answer yet.
    kill -s STOP "${pids[@]}"
    start_get one "$target" -w '%{http_code}'
    one=$CLIENT
    start_get two "$target" -w '%{http_code}'
    two=$CLIENT
    wait_until 5 shows b '.running == 1'
    mute a
    kill -s CONT "${pids[@]}"
    wait "$one"
    wait "$two"
    wait_until 10 shows a '.running == 0'
}

@test "a host that is not heard any more: a 502, and nothing is generated twice" {
    before=$(sums)
    unheard
    [[ "$(cat one.out two.out)" =~ ^(200502|502200)$ ]]
    since "$before" a '.cancelled == 1 and .generated > 0'
    since "$before" b '.done == 1'
}

@test "next_upstream error timeout, the same: the stream of a GET is generated twice" {
    before=$(sums)
    unheard "$RETRY"
    [ "$(cat one.out two.out)" = 200200 ]
    since "$before" a '.cancelled == 1 and .generated > 0'
    since "$before" b '.done == 2'
}

@test "next_upstream error timeout: a POST goes to the other host only while it has not been sent" {
    local one post=(-H 'Content-Type: application/json' -w '%{http_code}')

    front 'a b' "$RETRY"
    before=$(sums)
    # One for each host, both silent for longer than nginx takes to give a host up.
    post+=(-d '{"prompt":"hello","max_tokens":1,"ttft_ms":8000}')
    start_get one /generate "${post[@]}"
    one=$CLIENT
    start_get two /generate "${post[@]}"
    wait_until 5 both_run 1
    cut_off a
    wait "$one" "$CLIENT"
    [[ "$(cat one.out two.out)" =~ ^(200502|502200)$ ]]
    since "$before" b '.accepted == 1 and .done == 1'
    wait_until 10 books_hold_on a
    # Now there is no connection to be had, and an nginx that is new does not know it.
    stop_nginx
    mend a
    front 'a b' "$RETRY"
    cut_off a
    for _ in 1 2 3; do
        ask /generate -H 'Content-Type: application/json' \
            -d '{"prompt":"hello","max_tokens":1,"ttft_ms":0}'
        [ "$code" = 200 ]
    done
    since "$before" a '.accepted == 1 and .cancelled == 1'
    since "$before" b '.accepted == 4 and .done == 4'
    tried_both
}

@test "next_upstream error timeout: a stream that has begun is not sent to the other host" {
    local client clients=() status

    front 'a b' "$RETRY"
    before=$(sums)
    # Each host gets one of each kind.
    for kind in get post post get; do
        begin_stream "$kind"
        clients+=("$CLIENT")
    done
    wait_until 10 both_run 2
    wait_until 10 shows a '.generated > '"$(jq .a.generated <<<"$before")"
    cut_off a
    for client in "${clients[@]}"; do
        status=0
        wait "$client" || status=$?
        echo "$status"
    done >statuses
    cat statuses
    [ "$(grep -cx 18 statuses)" = 2 ]
    [ "$(grep -cx 0 statuses)" = 2 ]
    wait_until 10 books_hold_on a
    since "$before" a '.accepted == 2 and .cancelled == 2'
    since "$before" b '.accepted == 2 and .done == 2'
}

# begin_stream get|post: of 6 s, longer than nginx takes to give a host up.
begin_stream() {
    case $1 in
        get) start_get stream '/stream?prompt=hello&ttft_ms=0&itl_ms=20&max_tokens=300' ;;
        post)
            start_get stream /v1/completions -H 'Content-Type: application/json' \
                -H 'X-Runnel-Ttft-Ms: 0' -H 'X-Runnel-Itl-Ms: 20' \
                -d '{"model":"any","prompt":"hello","max_tokens":300,"stream":true}'
            ;;
    esac
}

@test "a client that does not read has --stall-timeout, longer than --peer-timeout-s" {
    start_host front -- --stall-timeout 5 --peer-timeout-s 1 --max-tokens-limit 10000000
    front front
    start_get unread '/stream?prompt=hello&max_tokens=10000000&ttft_ms=0&itl_ms=0' \
        -H 'X-Request-Id: unread'
    wait_until 5 test -s unread
    kill -s STOP "$CLIENT"
    wait_until 30 tells front unread '.outcome != "live"'
    ledger_of front unread
    tells front unread '.outcome == "stalled"'
    kill -s KILL "$CLIENT"
    stop_host front
}

@test "over a network of 40 ms there and back each token comes by itself" {
    [ -c /dev/net/tun ] || skip 'no /dev/net/tun here'
    long_cable 20
    start_host far
    front far
    start_load --streams 4 --prompt 'hello {i}' --tokens 100 --verify --control itl_ms=20
    ended_with "$CLIENT" 60
    cat load.out
    # With Nagle's algorithm every other one comes with the one before.
    jq -e '.tokens | .gap_events == 396 and .coalesced < 0.2 * .gap_events' json
}
