#!/usr/bin/env bats
# The live page in a headless Chromium: what arrives, what goes wrong, and who can use it. Each case
# leaves pictures in build/browser.
#
# CHROMIUM  the browser (chromium)
# SC2154: harness.bash sets ROOT, LAB, PYTHON. SC1091: it is checked by itself.
# shellcheck disable=SC2154,SC1091

load ../integration/harness

setup_file() {
    lab_open
    CHROMIUM=$(command -v "${CHROMIUM:-chromium}") || { echo "no chromium: run scripts/deps --clients" >&2; return 1; }
    SHOTS=$ROOT/build/browser
    export CHROMIUM SHOTS
    start_responder
    URL=http://127.0.0.1:$(free_port)
    FRONT_URL=http://127.0.0.1:$(free_port)
    FAR_URL=http://127.0.0.1:$(free_port)
    export URL FRONT_URL FAR_URL
    start_nginx "s|listen unix:http.sock;|& listen ${URL#http://};|"
    start_front
}

# A second nginx: in front of the first as most people have it (/deaf/), as it should be, and far from
# its clients, as the first takes it.
start_front() {
    front_conf front <<END
server {
    listen ${FRONT_URL#http://};
    location / { proxy_pass $URL; }
    location /deaf/ {
        proxy_pass $URL/;
        proxy_ignore_headers X-Accel-Buffering;
    }
    location /dead/ { return 444; }
    location /broken/ { proxy_pass http://unix:nobody.sock; }
}
END
    [ "$(id -u)" != 0 ] || sed -i '1i user www-data;' front.conf
    other_nginx front
    FRONT_PID=$OTHER_PID
    derive_conf "s|listen unix:http.sock;|listen ${FAR_URL#http://};|" 's|^pid nginx.pid|pid far.pid|' \
        's|^ *server_name _;|&\nset_real_ip_from 127.0.0.1; real_ip_header X-Test-Address;|' >far.conf
    other_nginx far
    FAR_PID=$OTHER_PID
    export FRONT_PID FAR_PID
    wait_ready 'the nginx in front' "$FRONT_PID" curl -sf "$FRONT_URL/healthz"
    wait_ready 'the far nginx' "$FAR_PID" curl -sf "$FAR_URL/healthz"
}

teardown_file() {
    local pid

    for pid in "${FRONT_PID:-}" "${FAR_PID:-}"; do
        [ -n "$pid" ] || continue
        kill -s TERM "$pid" 2>/dev/null || true
        wait_until 5 has_ended "$pid" || kill -s KILL "$pid"
    done
    lab_close
}

visit() { node "$ROOT/tests/browser/visit.mjs" "$@"; }

@test "the modules by themselves: every spelling, cut at every byte; the figures" {
    node "$ROOT/tests/browser/modules.mjs"
}

@test "a stream: the text is gen's, a dot a token, figures by their definitions" { visit streams stream; }
@test "stop: the page shows the ledger's own figures, and little was generated" { visit streams stop; }
@test "resume: after stops and cuts the text is whole, and nothing comes twice" { visit streams resume; }
@test "each spelling of the wire, with pings and chunks, words and torture" { visit streams wires; }
@test "each jitter" { visit streams jitter; }
@test "20,000 tokens, one a millisecond; a text that is longer than the page keeps" { visit streams many; }

@test "each fault shows its state" { visit faults each; }
@test "an event that cannot be read is told with its number" { visit faults garble; }
@test "a doubled event without ids is more than was asked for" { visit faults dupWithoutIds; }
@test "an HTTP error is told with the server's message" { visit faults status; }
@test "a wrong value: the server's words, and the control that they are about" { visit faults refused; }
@test "another path: no stream, no reply, a broken proxy, another server" { visit faults paths; }
@test "the ledger is refused to browsers far away, and the page says why" { visit faults far; }

@test "the keyboard does everything, and its focus is seen" { visit looks keyboard; }
@test "a pointer reads each token off the timeline" { visit looks pointer; }
@test "states are told aloud, tokens are not" { visit looks aloud; }
@test "axe has nothing to say: light and wide, dark and narrow, in each state" { visit looks axe; }
@test "320 pixels: nothing to scroll sideways, Stop at hand" { visit looks narrow; }
@test "light and dark" { visit looks schemes; }
@test "nothing moves where motion is to be reduced" { visit looks motion; }
@test "the address keeps a set-up" { visit looks bookmark; }
@test "the policy: no other origin, no inline script or style" { visit looks policy; }
@test "a buffering proxy is a staircase" { visit looks buffering; }
@test "the pictures of docs/page.md" { visit looks pictures; }
