#!/usr/bin/env bats
# The live page before a responder that does not notice who has left.
#
# SC2154: harness.bash sets ROOT. SC1091: it is checked by itself.
# shellcheck disable=SC2154,SC1091

load ../integration/harness

setup_file() {
    lab_open
    CHROMIUM=$(command -v "${CHROMIUM:-chromium}") || { echo "no chromium: run scripts/deps --clients" >&2; return 1; }
    SHOTS=$ROOT/build/browser
    URL=http://127.0.0.1:$(free_port)
    export CHROMIUM SHOTS URL
    start_responder --ignore-cancel
    start_nginx "s|listen unix:http.sock;|& listen ${URL#http://};|" \
        's|fastcgi_ignore_client_abort off;|fastcgi_ignore_client_abort on;|'
}

@test "after a stop the page shows how the server goes on generating" {
    node "$ROOT/tests/browser/visit.mjs" streams damage
}
