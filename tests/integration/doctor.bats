#!/usr/bin/env bats
# The doctor against real nginx, sound and with faults put in: each is named, with its evidence.
#
# SC2030, SC2031: each test is a subshell. SC2154: bats sets stderr. SC2016: nginx's variables.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154

load harness.bash

setup_file() {
    lab_open
    start_responder
    start_nginx
}

# path NAME SED...: another nginx in front of the same responder, on NAME.sock.
path() {
    local name=$1

    shift
    derive_conf "s|unix:http.sock|unix:$name.sock|" "s|^pid nginx.pid|pid $name.pid|" "$@" >"$name.conf" || return 1
    run_path "$name"
}

# run_path NAME: nginx with NAME.conf, until it answers on NAME.sock.
run_path() {
    other_nginx "$1"
    owned "$OTHER_PID"
    wait_ready "nginx ($1)" "$OTHER_PID" curl -sf --unix-socket "$1.sock" http://localhost/healthz
}

# doctor NAME OPTION...: of the path on NAME.sock; the figures are in the file figures.
doctor() {
    local name=$1

    shift
    address=$(sed -n 's/.*listen \(127[^; ]*\).*/\1/p' "$name.conf" 2>/dev/null) || true
    if [ -n "$address" ]; then
        set -- "http://$address/stream" "$@"
    else
        set -- http://localhost/stream --unix-socket "$name.sock" "$@"
    fi
    run --separate-stderr "$ROOT/scripts/doctor" --origin http.sock --out figures "$@"
    printf '%s\n' "$output" "$stderr"
}

one_line() { tr -s ' \n' ' ' <<<"$output"; }

figure_is() { grep -x "$1" figures; }

# fault CODE QUESTION: exit 1, a line for it, and what to change for several proxies.
names_fault() {
    [ "$status" -eq 1 ]
    grep -q "^FAULT  $1 " <<<"$output"
    figure_is verdict=fault
    for proxy in nginx Apache lighttpd HAProxy Caddy h2o Varnish; do
        grep -q "^[> ] $proxy " <<<"$output"
    done
    grep -q '^> nginx ' <<<"$output" # it is nginx that answered
}

@test "the shipped nginx.conf is clean, whatever is asked" {
    doctor http
    [ "$status" -eq 0 ]
    [[ "$output" != *$'\nFAULT'* && "$output" != *$'\nlimit'* ]]
    for line in stream=clean compressed=none silence=5s cached=no x_accel_buffering=kept abort_decode=cancelled \
        abort_decode_class=ok abort_gap=cancelled abort_gap_class=ok abort_prefill=cancelled abort_prefill_class=ok \
        half_close=aborted head=200 head_generates=no http10=ok http2=none verdict=clean; do
        figure_is "$line"
    done
    books_hold
}

@test "buffered by default: whole, and what a header would do" {
    path default 's|fastcgi_buffering off;||'
    doctor default --ask stream
    names_fault stream
    figure_is 'stream=size:[0-9]*'
    figure_is stream_hinted=clean
    [[ "$(one_line)" == *"it streams for a server that sends X-Accel-Buffering: no"* ]]
    doctor default --ask stream --hints
    [ "$status" -eq 0 ]
    figure_is stream=clean
}

@test "a second nginx in front, over HTTP/1.0" {
    front_conf front <<'END'
server {
    listen unix:front.sock;
    location / { proxy_pass http://unix:http.sock:; }
}
END
    run_path front
    doctor front --ask stream,abort
    names_fault stream
    figure_is abort_decode=cancelled
}

@test "gzip, with and without a flush for each token" {
    path gzip 's|gzip off;|gzip on; gzip_proxied any; gzip_types text/event-stream;|'
    doctor gzip --ask stream,compression
    [ "$status" -eq 0 ]
    figure_is compressed=gzip
    [[ "$(one_line)" == *"limit compression gzip, flushed for each token"* ]]
    path gzip_buffered 's|gzip off;|gzip on; gzip_proxied any; gzip_types text/event-stream;|' 's|fastcgi_buffering off;||'
    doctor gzip_buffered --ask compression
    names_fault compression
}

@test "a read timeout of one second cuts a silence, and a ping keeps the stream alive" {
    path short 's|fastcgi_read_timeout 1h;|fastcgi_read_timeout 1s;|'
    doctor short --ask silence
    names_fault silence
    figure_is silence=cut
    [[ "$(one_line)" =~ "with a comment sent every "[0-9]+" ms in the silence (ping_ms) the stream survives" ]]
    grep -q 'fastcgi_read_timeout' <<<"$output"
}

@test "a cache answers for the server" {
    path cache 's|^ *upstream runnel|fastcgi_cache_path cache_files keys_zone=c:1m;\n&|' \
        's|fastcgi_buffering off;|fastcgi_cache c; fastcgi_cache_key $request_uri; fastcgi_cache_valid 200 1m; fastcgi_ignore_headers Cache-Control X-Accel-Buffering;|'
    doctor cache --ask cache
    names_fault cache
    figure_is cached=yes
}

@test "an abort that nginx does not pass on" {
    # Over TCP: on a Unix socket a client that closes is a hang-up, which nginx cannot ignore.
    path deaf "s|listen unix:deaf.sock;|&listen 127.0.0.1:$(free_port);|" 's|fastcgi_ignore_client_abort off;|fastcgi_ignore_client_abort on;|' 's|fastcgi_buffering off;|fastcgi_ignore_headers X-Accel-Buffering;|'
    doctor deaf --ask abort
    # It notices when a buffer is full and cannot be written, and not at all in a short stream.
    names_fault 'abort in decode'
    names_fault 'abort in gap'
    names_fault 'abort in prefill'
    [ "$(sed -n 's/^abort_decode_extra=//p' figures)" -gt 20 ]
    figure_is abort_gap=done
    figure_is abort_prefill=done
    figure_is abort_gap_class=fault
    figure_is abort_ping_class=none
    # Without buffering, nginx notices when it next writes: soon in decode, late in a silence.
    path late "s|listen unix:late.sock;|&listen 127.0.0.1:$(free_port);|" 's|fastcgi_ignore_client_abort off;|fastcgi_ignore_client_abort on;|'
    doctor late --ask abort
    [ "$status" -eq 0 ]
    [[ "$(one_line)" =~ "limit abort in gap "[^.]*"noticed only when tokens came again" ]]
    [[ "$(one_line)" =~ "note abort in gap with a comment every 250 ms in the silence (ping_ms): "[a-z]*" within" ]]
    figure_is abort_gap_class=limit
    figure_is abort_ping_class=ok
}

@test "a client that reads nothing: sndbuf says how much is generated for it" {
    path large "s|listen unix:large.sock;|&listen 127.0.0.1:$(free_port);|"
    doctor large --ask slow-reader
    [ "$status" -eq 0 ]
    [[ "$(one_line)" == *"note slow reader about "*" KB are generated for a client that reads nothing before the server feels it"* ]]
    absorbed=$(sed -n 's/^absorbed_kb=//p' figures)
    path small "s|listen unix:small.sock;|&listen 127.0.0.1:$(free_port) sndbuf=32k;|"
    doctor small --ask slow-reader
    [ "$status" -eq 0 ]
    [ $(($(sed -n 's/^absorbed_kb=//p' figures) * 2)) -lt "$absorbed" ]
}

@test "JSON, and the files of --keep" {
    run --separate-stderr "$ROOT/scripts/doctor" http://localhost/stream --unix-socket http.sock --ask stream,abort --json --keep "kept here"
    [ "$status" -eq 0 ]
    jq -e '.figures.verdict == "clean" and .figures.stream == "clean" and (.findings | length >= 4)' <<<"$output"
    [ -s "kept here/slow.tsv" ]
    grep -qx verdict=clean "kept here/figures.txt"
    if command -v gnuplot; then
        [ -s "kept here/timeline.png" ]
        [ -s "kept here/timeline.svg" ]
    fi
}

@test "what it cannot examine, and usage" {
    doctor nowhere
    [ "$status" -eq 3 ]
    run --separate-stderr "$ROOT/scripts/doctor" http://localhost/nothing --unix-socket http.sock
    [ "$status" -eq 3 ]
    [[ "$stderr" == *"nothing to examine: HTTP status 404"* ]]
    for arguments in "--ask stream,nose" "--origin /nowhere" "--silence 0" "--keep-trace x" "--tokens 5" "--prompt x"; do
        # shellcheck disable=SC2086
        run --separate-stderr "$ROOT/scripts/doctor" http://localhost/stream --unix-socket http.sock $arguments
        echo "$arguments: $stderr"
        [ "$status" -eq 2 ]
    done
    run --separate-stderr "$ROOT/scripts/doctor" http://localhost/stream --unix-socket http.sock --origin http://127.0.0.1:1
    [ "$status" -eq 3 ]
}
