#!/usr/bin/env bats
# The live page as nginx serves it: files, headers, methods, and what is said when it is not there.
#
# SC2154: code is set by ask.
# shellcheck disable=SC2154

load harness

setup_file() {
    lab_open
    start_responder
    start_nginx
}

# The files that the page names, and those that they name.
page_files() {
    get / | grep -o '"/web/[^"]*"' | tr -d '"'
    grep -ho "'[./]*[a-z/]*\.js'" "$ROOT"/fcgi-app/web/*.js | tr -d "'" | sed 's|^\./|/web/|'
}

has_headers() {
    [ "$(header Content-Security-Policy)" = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" ]
    [ "$(header X-Content-Type-Options)" = nosniff ]
    [ "$(header Referrer-Policy)" = no-referrer ]
    [ "$(header Cache-Control)" = no-cache ]
    [ "$(header Cross-Origin-Opener-Policy)" = same-origin ]
    [ "$(header Cross-Origin-Embedder-Policy)" = require-corp ]
    [ -n "$(header ETag)" ]
}

@test "the page and all that it names, with their types and headers" {
    ask /
    [ "$code" = 200 ]
    [ "$(header Content-Type)" = 'text/html; charset=utf-8' ]
    has_headers
    cmp body "$ROOT/fcgi-app/web/index.html"
    files=$(page_files | sort -u)
    [ "$(wc -l <<<"$files")" -ge 8 ]
    for file in $files; do
        ask "$file"
        [ "$code" = 200 ]
        has_headers
        cmp body "$ROOT/fcgi-app$file"
        case $file in
        *.css) [ "$(header Content-Type)" = 'text/css; charset=utf-8' ] ;;
        *.js) [ "$(header Content-Type)" = 'text/javascript; charset=utf-8' ] ;;
        *.svg) [ "$(header Content-Type)" = 'image/svg+xml; charset=utf-8' ] ;;
        *) false ;;
        esac
    done
    # Each file is one of them: nothing is served that nothing needs.
    [ "$(wc -l <<<"$files")" = "$(($(find "$ROOT/fcgi-app/web" -type f | wc -l) - 1))" ]
}

@test "the page names nothing of elsewhere, and has no script or style of its own" {
    ! grep -rnE 'https?://|//[a-z]+\.|@import|url\(' "$ROOT/fcgi-app/web" --include='*.css' --include='*.js' ||
        false
    ! grep -nE '<style|style=|<script>|javascript:| on[a-z]+=' "$ROOT/fcgi-app/web/index.html" || false
    ! grep -oE '(href|src)="[^"]*"' "$ROOT/fcgi-app/web/index.html" | grep -v '="/web/' || false
}

@test "HEAD, and 304 for what has not changed" {
    for path in / /web/app.js; do
        ask "$path"
        size=$(wc -c <body)
        etag=$(header ETag)
        ask "$path" -I
        [ "$code" = 200 ]
        [ "$(header Content-Length)" = "$size" ]
        has_headers
        rm body
        ask "$path" -H "If-None-Match: $etag"
        [ "$code" = 304 ]
        [ ! -e body ] || [ ! -s body ]
        ask "$path" -H 'If-None-Match: "other"'
        [ "$code" = 200 ]
    done
}

@test "another method: 405 with Allow" {
    for path in / /web/app.js; do
        for method in POST PUT DELETE PATCH OPTIONS; do
            ask "$path" -X "$method"
            [ "$code" = 405 ]
            [ "$(header Allow)" = 'GET, HEAD' ]
            [ "$(jq -r .error.code body)" = method_not_allowed ]
            [ -n "$(header X-Request-Id)" ]
        done
    done
    ask /stream -X TRACE # nginx's own 405 of another route does not claim to know its methods
    [ "$code" = 405 ]
    [ -z "$(header Allow)" ]
}

@test "no other file: 404" {
    for path in /web/nothing.js /web/app.js/ /web/../nginx.conf /web/%2e%2e/nginx.conf /web/..%2fnginx.conf \
        /web../nginx.conf /web /web/.. /nginx.conf /app.js; do
        ask "$path" --path-as-is
        [ "$code" = 404 ] || [ "$path" = /web/.. ] || { echo "$path: $code" && false; }
        ! grep -q worker_processes body
    done
}

@test "without the folder: a 404 that says where nginx looks" {
    mv web away
    ask /
    mv away web
    [ "$code" = 404 ]
    [ "$(header Content-Type)" = application/json ]
    [[ "$(jq -r .error.message body)" == *'the folder web of its prefix'*scripts/up* ]]
    ask /stream?prompt=hello\&max_tokens=1
    [ "$code" = 200 ]
}

@test "a folder that nginx may not read: the same 404, not a word of access" {
    [ "$(id -u)" = 0 ] || skip 'its workers are then of the same user'
    chmod 700 web
    ask /
    chmod 755 web
    [ "$code" = 404 ]
    [ "$(jq -r .error.code body)" = not_found ]
}
