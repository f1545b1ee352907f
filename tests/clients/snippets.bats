#!/usr/bin/env bats
# The code blocks of docs/clients.md work as they stand there.
#
# SC2154: harness.bash sets ROOT, GEN. SC1091: it is checked by itself.
# shellcheck disable=SC2154,SC1091

load ../integration/harness
load ../lib/snippets

setup_file() {
    lab_open
    start_responder
    PORT=$(free_port)
    export PORT
    start_nginx "s|listen unix:http.sock;|listen unix:http.sock; listen 127.0.0.1:$PORT;|"
    ln -s "$ROOT/tests/clients/node_modules" node_modules # where a module looks for its imports
    "$GEN" --format text --prompt hello --tokens 20 --seed 7 >want
}

# each_prints ENDING INTERPRETER: gen's text, and all of it was generated for one request.
each_prints() {
    local name names before

    names=$(snippet_names "$1")
    [ -n "$names" ]
    for name in $names; do
        snippet "$name" "$PORT"
        before=$(get /_debug/generated | jq .ledger.accepted)
        "$2" "$name" >"$name.text" 2>"$name.out" || {
            cat "$name.out"
            return 1
        }
        cmp "$name.text" want
        get /_debug/generated | jq -e --argjson before "$before" \
            '.ledger | .accepted == $before + 1 and .done == .accepted'
    done
}

@test "each block has a name, by which a test finds it" {
    [ "$(grep -cE '^```(python|js|sh)$' "$CLIENTS_PAGE")" = "$(snippet_names py mjs sh | wc -l)" ]
}

@test "the Python blocks print gen's text" {
    each_prints py "$ROOT/build/clients/python/bin/python"
}

@test "the JavaScript blocks print gen's text" {
    each_prints mjs node
}
