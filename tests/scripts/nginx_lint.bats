#!/usr/bin/env bats
# nginx-lint on configurations of many styles: what it finds in them (nginx/*.expected; UPDATE=1 rewrites
# those, to be reviewed), that nginx takes them, and its fixes, and sees them as it does.
#
# SC2030, SC2031: each test is a subshell, and sets its own variables. SC2154: run sets stderr. SC2016: $a is nginx's.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154

bats_require_minimum_version 1.5.0
load awk.bash

CONFS=$BATS_TEST_DIRNAME/nginx
LINT=$ROOT/scripts/nginx-lint
PATH=$PATH:/usr/sbin:/sbin

# Those that nginx takes here: it has no Lua, and does not begin with a server.
TAKEN="clean.conf cpanel.conf defaults.conf docker.conf filters.conf grammar.conf includes/nginx.conf
       ingress.conf inherit.conf plesk/nginx.conf regex.conf"
ALL_CONFS="$TAKEN lua.conf fragment.conf"

setup_file() {
    python3 "$BATS_TEST_DIRNAME/nginx_lint.py" adapt "$CONFS" "$BATS_FILE_TMPDIR/confs"
}

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
}

# The same defaults on every machine.
lint() { "$LINT" --nginx-version 1.22.1 "$@"; }

nginx_test() { nginx -p "$PWD/run/" -e error.log -c "$PWD/$1" "${@:2}"; }

# conf TEXT: a file x.conf.
conf() { printf '%s\n' "$1" >x.conf; }

# fails_with STATUS TEXT ARGUMENT...: and says it on standard error, by each awk.
fails_with() {
    local want=$1 text=$2 awk

    shift 2
    for awk in "${AWKS[@]}"; do
        RUNNEL_AWK=$awk run --separate-stderr timeout 300 "$LINT" "$@"
        echo "$awk: $status: $stderr"
        [ "$status" -eq "$want" ]
        [[ "$stderr" == *"$text"* ]]
        [ -z "$output" ]
    done
}

# finds EXPECTED ARGUMENT...: the checks, as "severity check" lines joined by commas, by each awk.
finds() {
    local want=$1 awk

    shift
    for awk in "${AWKS[@]}"; do
        RUNNEL_AWK=$awk run lint --tsv "$@"
        output=$(cut -f 1,2 <<<"$output" | sort -u | tr '\t\n' ' ,')
        echo "$awk: $output"
        [ "${output%,}" = "$want" ]
    done
}

# --- what is found ---

@test "each configuration gives its findings, by each awk" {
    local conf awk status

    cd "$CONFS"
    for conf in $ALL_CONFS; do
        for awk in "${AWKS[@]}"; do
            status=0
            RUNNEL_AWK=$awk lint "$conf" >"$BATS_TEST_TMPDIR/out" || status=$?
            echo "exit $status" >>"$BATS_TEST_TMPDIR/out"
            [ -z "${UPDATE:-}" ] || cp "$BATS_TEST_TMPDIR/out" "${conf%.conf}.expected"
            same "$awk: $conf" "${conf%.conf}.expected" "$BATS_TEST_TMPDIR/out"
        done
    done
}

@test "the shipped nginx.conf is clean" {
    local awk

    for awk in "${AWKS[@]}"; do
        RUNNEL_AWK=$awk run "$LINT" --all --nginx-version 1.22.1 --silence-s 4 "$ROOT/nginx.conf"
        echo "$output"
        [ "$status" -eq 0 ]
        [[ "$output" =~ ^[1-9][0-9]*\ locations\ checked:\ 0\ faults,\ 0\ warnings,\ 0\ notes$ ]]
        RUNNEL_AWK=$awk run "$LINT" --strict "$ROOT/nginx.conf"
        [ "$status" -eq 0 ]
        [[ "$output" =~ ^[1-9][0-9]*\ locations\ checked,\ 2\ probes\ left\ out:\ 0\ faults,\ 0\ warnings,\ 0\ notes$ ]]
    done
}

@test "TSV has eleven columns, JSON the same findings" {
    local conf

    cd "$CONFS"
    for conf in $ALL_CONFS; do
        lint --tsv "$conf" >"$BATS_TEST_TMPDIR/tsv" || [ $? -eq 1 ]
        lint --json "$conf" >"$BATS_TEST_TMPDIR/json" || [ $? -eq 1 ]
        awk -F '\t' 'NF != 11 || /\t\t/ { print FILENAME ": " $0; exit 1 }' "$BATS_TEST_TMPDIR/tsv"
        jq -r '.findings[] | [.severity, .check, "\(.file):\(.line)", .server, .location, .pass // "-",
               (.directive // "-"), .reason, .fix.how // "-", (if .fix then "\(.fix.file):\(.fix.line)" else "-" end),
               (if .fix then .fix.lines | join(" \\n ") else "-" end)] | join("\t")' \
            "$BATS_TEST_TMPDIR/json" >"$BATS_TEST_TMPDIR/from-json"
        same "$conf" "$BATS_TEST_TMPDIR/tsv" "$BATS_TEST_TMPDIR/from-json"
        jq -e '[.findings[].severity] as $s | .faults == ([$s[] | select(. == "fault")] | length) and
               .warnings == ([$s[] | select(. == "warning")] | length) and
               .notes == ([$s[] | select(. == "note")] | length)' "$BATS_TEST_TMPDIR/json"
    done
}

@test "JSON stays JSON, whatever bytes the configuration has" {
    local awk

    printf 'server { listen 80; server_name "a\\"b\\\\c\303\251\377\355\240\200\364\220\200\200\001"; location "/\xf0\x9f\x98\x80\x9f" { proxy_pass http://x; } }\n' |
        tr -d '\001' >x.conf
    for awk in "${AWKS[@]}"; do
        RUNNEL_AWK=$awk lint --json x.conf >out || [ $? -eq 1 ]
        python3 -c 'import json, sys
found = json.load(open("out", encoding="utf-8"))["findings"][0]
assert found["server"] == "a\"b\\c\u00e9\ufffd" + "\ufffd" * 3 + "\ufffd" * 4 + ":80", ascii(found["server"])
assert found["location"] == "location /\U0001f600\ufffd", ascii(found["location"])'
    done
}

@test "exit status: faults 1, warnings 0 unless --strict" {
    conf 'server { location / { proxy_pass http://10.0.0.1; proxy_buffering off; } }'
    run lint x.conf
    [ "$status" -eq 0 ]
    run lint --strict x.conf
    [ "$status" -eq 1 ]
    conf 'server { location / { proxy_pass http://10.0.0.1; } }'
    run lint x.conf
    [ "$status" -eq 1 ]
    run lint --quiet x.conf
    [ "$status" -eq 1 ]
    [ "${#lines[@]}" -eq 1 ]
}

# --- options ---

@test "--silence-s: a timeout must be longer" {
    conf 'http { proxy_buffering off; proxy_http_version 1.1; proxy_pass_header X-Accel-Buffering; proxy_read_timeout 90;
        server { location / { proxy_pass http://10.0.0.1; } } }'
    finds "" x.conf
    finds "" --silence-s 89 x.conf
    finds "warning read-timeout" --silence-s 90 x.conf
    finds "warning read-timeout" --silence-s 600 x.conf
    sed -i 's/timeout 90/timeout 1m500ms/' x.conf
    finds "" x.conf
    sed -i 's/timeout 1m500ms/timeout 60000ms/' x.conf
    finds "warning read-timeout" x.conf
}

@test "--x-accel: with the header buffering is a note, unless nginx is deaf to it" {
    conf 'server { listen 80; proxy_http_version 1.1; proxy_read_timeout 1h; proxy_pass_header x-accel-buffering;
        gzip on; gzip_types text/event-stream; location / { proxy_pass http://10.0.0.1; } }'
    finds "fault compression,warning buffering" x.conf
    finds "note buffering,note compression" --x-accel x.conf
    sed -i 's/gzip on/proxy_ignore_headers Vary X-Accel-Buffering; gzip on/' x.conf
    finds "fault compression,warning buffering" --x-accel x.conf
    sed -i 's/proxy_http_version 1.1;//' x.conf
    finds "fault buffering,fault compression,warning http-version" --x-accel x.conf
}

@test "--nginx-version: since 1.29.7 upstreams are spoken to in HTTP/1.1, and kept" {
    conf 'http { upstream u { server 10.0.0.1; keepalive 8; } server { proxy_read_timeout 1h;
        location / { proxy_pass http://u; } } }'
    finds "fault buffering,note accel-header,note keepalive,warning http-version" --nginx-version 1.29.6 x.conf
    finds "note accel-header,warning buffering" --nginx-version 1.29.7 x.conf
    finds "note accel-header,warning buffering" --nginx-version 1.30.0 x.conf
    sed -i 's/server {/server { listen 443 ssl;/' x.conf
    finds "fault buffering,note accel-header,note http1-only" --nginx-version 1.30.0 x.conf
    fails_with 2 "--nginx-version: '1.30' is not like 1.22.1" --nginx-version 1.30 x.conf
}

@test "--type: the media type of the stream" {
    conf 'server { proxy_buffering off; proxy_http_version 1.1; proxy_read_timeout 1h; proxy_pass_header X-Accel-Buffering;
        gzip on; gzip_types application/x-ndjson; location / { proxy_pass http://10.0.0.1; } }'
    finds "" x.conf
    finds "note compression" --type Application/X-NDJSON x.conf
}

@test "probes, assets, websockets and subrequests are left out, with --all they are not" {
    cd "$CONFS"
    run lint --quiet docker.conf
    [ "$output" = "2 locations checked, 1 websocket left out: 0 faults, 3 warnings, 3 notes" ]
    run lint --quiet --all docker.conf
    [ "$output" = "3 locations checked: 1 fault, 5 warnings, 4 notes" ]
    run lint --quiet --all filters.conf
    [[ "$output" == "26 locations checked:"* ]]
}

@test "usage: what is wrong is named" {
    conf 'events { }'
    fails_with 2 "unknown option '--wrong'" --wrong
    fails_with 2 "one configuration at a time: 'x.conf' and 'y.conf'" x.conf y.conf
    fails_with 2 "one configuration at a time: 'x.conf' and '-'" x.conf -
    fails_with 2 "--silence-s: '60s' is not a number from 1 to 86400" --silence-s 60s x.conf
    fails_with 2 "--silence-s: 0 is not from 1 to 86400" --silence-s 0 x.conf
    fails_with 2 "--uri: 'v1' does not begin with a /" --uri v1 x.conf
    fails_with 2 "--uri: nginx would answer 400 to '/..'" --uri /.. x.conf
    fails_with 2 "there is no no-such-nginx" --nginx no-such-nginx
    run lint --help
    [ "$status" -eq 0 ]
    [[ "$output" == "nginx-lint: what in an nginx configuration"* ]]
}

@test "each check is in docs/nginx-lint.md, each option in the man page and in --help" {
    local name count=0

    # Names that are given to finding(), and the options of the script's own reader.
    while read -r name; do
        echo "$name"
        grep -q "^### .*\`$name\`" "$ROOT/docs/nginx-lint.md"
        count=$((count + 1))
    done < <(grep -o 'finding([^,]*, "[a-z0-9-]*"' "$PROGRAMS/nginx_checks.awk" | sed 's/.*"\(.*\)"/\1/' | sort -u)
    [ "$count" -gt 25 ]
    count=0
    while read -r name; do
        echo "$name"
        grep -q "^\.It Fl .*${name#-}" "$ROOT/docs/man/runnel-nginx-lint.1"
        grep -q "^#   .*$name" "$LINT"
        count=$((count + 1))
    done < <(sed -n '/^while/,/^done/s/^ *\(--[a-z|= -]*\)).*/\1/p' "$LINT" | grep -o -- '--[a-z-]*' | grep -v -x -- --help | sort -u)
    [ "$count" -eq 12 ]
}

@test "the man page is well-formed" {
    command -v man >/dev/null || skip "no man here"
    run --separate-stderr man --warnings -E UTF-8 -l "$ROOT/docs/man/runnel-nginx-lint.1"
    echo "$stderr"
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
}

# --- as nginx sees it ---

@test "nginx takes the configurations, and its dump gives the same findings" {
    local conf

    cd "$BATS_FILE_TMPDIR/confs"
    for conf in $TAKEN; do
        nginx_test "$conf" -t >"$BATS_TEST_TMPDIR/nginx" 2>&1 || { cat "$BATS_TEST_TMPDIR/nginx" && return 1; }
        nginx_test "$conf" -T >"$BATS_TEST_TMPDIR/dump" 2>"$BATS_TEST_TMPDIR/nginx"
        cat "$BATS_TEST_TMPDIR/nginx" "$BATS_TEST_TMPDIR/dump" >"$BATS_TEST_TMPDIR/both"
        lint --all --tsv "$PWD/$conf" >"$BATS_TEST_TMPDIR/of-files" || [ $? -eq 1 ]
        lint --all --tsv "$BATS_TEST_TMPDIR/dump" >"$BATS_TEST_TMPDIR/of-dump" || [ $? -eq 1 ]
        lint --all --tsv - <"$BATS_TEST_TMPDIR/both" >"$BATS_TEST_TMPDIR/of-both" || [ $? -eq 1 ]
        same "$conf, nginx -T" "$BATS_TEST_TMPDIR/of-files" "$BATS_TEST_TMPDIR/of-dump"
        same "$conf, nginx -T 2>&1" "$BATS_TEST_TMPDIR/of-files" "$BATS_TEST_TMPDIR/of-both"
    done
}

@test "the fixes are accepted by nginx, and then there is nothing left to find" {
    local conf round

    cp -r "$BATS_FILE_TMPDIR/confs" mended
    cd mended
    for conf in $TAKEN; do
        for round in 1 2 3; do
            lint --all --tsv "$conf" >tsv || [ $? -eq 1 ]
            [ -s tsv ] || break
            echo "$conf, round $round: $(wc -l <tsv) findings"
            python3 "$BATS_TEST_DIRNAME/nginx_lint.py" mend "$conf" tsv
            nginx_test "$conf" -t >nginx.out 2>&1 || { cat nginx.out && return 1; }
        done
        cat tsv
        [ ! -s tsv ]
    done
}

@test "without FILE, the installed nginx is asked" {
    cat >asked <<END
#!/bin/sh
exec nginx -p "$BATS_FILE_TMPDIR/confs/run/" -e error.log -c "$BATS_FILE_TMPDIR/confs/includes/nginx.conf" "\$@"
END
    chmod +x asked
    "$LINT" --tsv "$BATS_FILE_TMPDIR/confs/includes/nginx.conf" >of-files
    run --separate-stderr "$LINT" --tsv --nginx ./asked
    printf '%s\n' "$output" >of-nginx
    [ "$stderr" = "nginx-lint: running ./asked -T" ]
    same "nginx -T" of-files of-nginx

    printf '#!/bin/sh\nexec nginx -c /no/such/file -e /dev/stderr "$@"\n' >asked
    run "$LINT" --nginx ./asked
    [ "$status" -eq 3 ]
    [[ "$output" == *"/no/such/file"*"./asked -T failed"* ]]
}

@test "--uri: nginx and nginx-lint agree who serves random paths" {
    mkdir locations
    chmod 711 "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" . 2>/dev/null || true
    chmod 777 locations
    run python3 "$BATS_TEST_DIRNAME/nginx_lint.py" locations "$PWD/locations" "$LINT"
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$output" = "96 paths" ]
}

# served TEXT ARGUMENT...: the first line, by each awk.
served() {
    local want=$1 awk

    shift
    for awk in "${AWKS[@]}"; do
        RUNNEL_AWK=$awk run lint "$@" "$CONFS/regex.conf"
        echo "$awk: ${lines[0]}"
        [[ "${lines[0]}" == *"$want" ]]
    done
}

@test "--uri and --host: the location, named locations behind it, the server" {
    served 'is served by location ~ ^/v\d{1,3}/chat/ of ~^(?<tenant>[a-z]{2,8})\.example\.net$:80' --host acme.example.net --uri /v12/chat/x
    [[ "$output" == *"1 location checked: 0 faults, 1 warning"* ]]
    served "/v1234/chat/x is served by location / of ~^(?<tenant>[a-z]{2,8})\.example\.net$:80, which goes on to a named location" --host acme.example.net --uri /v1234/chat/x
    [[ "$output" == *"location @app of "* ]]
    [[ "$output" == *"1 location checked: 1 fault"* ]]
    served 'served by location ^~ /v2/ of ~^(?<tenant>[a-z]{2,8})\.example\.net$:80' --host X.EXAMPLE.ORG:80 --uri /v2/a.css
    served 'served by location ~* \.(?:css|js|png|svg|woff2?)$ of ~^(?<tenant>[a-z]{2,8})\.example\.net$:80' --host acme.example.net --uri /a/b.CSS
    served ' redirects /v2 to /v2/' --host acme.example.net --uri /v2
    served '_:80 has no location for /v2/: the server itself serves it' --host nobody --uri /v2/
    served 'which passes nothing on' --host acme.example.net --uri '/'
    lint --json --host acme.example.net --uri /v12/chat/x "$CONFS/regex.conf" >json
    jq -e '.served_by == [{"server": "~^(?<tenant>[a-z]{2,8})\\.example\\.net$:80", "location": "location ~ ^/v\\d{1,3}/chat/",
           "redirect": false}, {"server": "localhost:8088", "location": null, "redirect": false}]' json || { cat json && return 1; }
}

# --- includes ---

@test "includes: what is missing is told with its place, a pattern may match nothing" {
    mkdir d
    conf 'events { }
http {
    include none/*.conf;
    include d/a.conf;
}'
    fails_with 3 "x.conf:4: include: there is no d/a.conf" x.conf
    echo 'include d/b.conf; server { location / { proxy_pass http://10.0.0.1; } }' >d/a.conf
    fails_with 3 "d/a.conf:1: include: there is no d/b.conf" x.conf
    echo 'proxy_buffering off;' >d/b.conf
    finds "note accel-header,note connections,warning http-version,warning read-timeout" x.conf
    mkdir d/c.conf
    sed -i 's|include d/b.conf|include d/c.*|' d/a.conf
    fails_with 3 "d/c.conf cannot be read as a file" x.conf
    fails_with 3 "-:3: include none/*.conf is relative, and standard input has no folder" - <x.conf
}

@test "includes: a file that includes itself, by a detour too" {
    mkdir d
    conf 'include x.conf;'
    fails_with 3 "x.conf:1: include: x.conf includes itself" x.conf
    conf 'http { include d/*; }'
    echo 'include d/b;' >d/a
    echo 'server { include d/a; }' >d/b
    fails_with 3 "includes itself" x.conf
    for ((i = 0; i < 17; i++)); do
        echo "include d/$((i + 1)).x;" >"d/$i.x"
    done
    : >d/17.x
    conf 'include d/0.x;'
    fails_with 3 "d/15.x:1: includes are nested more than 16 deep" x.conf
    conf 'include d/2.x;'
    run lint x.conf
    [ "$status" -eq 0 ]
    # Each of fifteen includes the next one three times: fourteen million times.
    for ((i = 0; i < 15; i++)); do
        echo "include d/$((i + 1)).y; include d/$((i + 1)).y; include d/$((i + 1)).y;" >"d/$i.y"
    done
    : >d/15.y
    conf 'include d/0.y;'
    fails_with 3 "more than 10000 files are included" x.conf
}

@test "includes: in the order of their names, as often as they are named, in a file of any name" {
    mkdir 'a [1]*' d
    # The second file's buffering is in a block of its own; a name with a dot first does not match.
    echo 'upstream a { server 10.0.0.1; server 10.0.0.2; }' >d/b.conf
    echo 'broken {' >d/.hidden.conf
    echo 'server { listen 1; include "a [1]*/one \".inc"; location / { proxy_pass http://a; } }' >d/a.conf
    echo 'server { listen 2; include "a [1]*/one \".inc"; location / { proxy_pass http://a; } }' >d/c.conf
    echo 'proxy_buffering off; proxy_http_version 1.1; proxy_pass_header X-Accel-Buffering; proxy_read_timeout 2h;' >'a [1]*/one ".inc'
    conf 'http { include d/?.conf; }'
    # [1] matches "1" only: the folder's own name does not match itself, as in nginx.
    finds "fault buffering,note accel-header,warning http-version,warning next-upstream,warning read-timeout" x.conf
    mv 'a [1]*' 'a 1'
    finds "warning next-upstream" x.conf
    run lint --tsv x.conf
    [ "$(cut -f 4 <<<"$output" | tr '\n' ' ')" = "_:1 _:2 " ]
}

@test "lines that end in CR LF, in files and in dumps" {
    conf $'http {\r\n server {\r\n proxy_buffering\r\n off\r\n;\r\n include y.conf;\r\n } }\r'
    printf 'proxy_read_timeout 2h;\r\nlocation / {\r\n  proxy_pass http://10.0.0.1;\r\n}\r\n' >y.conf
    finds "note accel-header,warning http-version" x.conf
    { echo "# configuration file $PWD/x.conf:" && cat x.conf && echo "# configuration file $PWD/y.conf:" && cat y.conf; } >dump
    finds "note accel-header,warning http-version" dump
    sed -i 's/\r*$/\r/' dump
    finds "note accel-header,warning http-version" dump
}

# --- hostile input ---

@test "what cannot be read is told with its place" {
    conf 'http { server {'
    fails_with 3 "x.conf:1: the block is not closed: server" x.conf
    conf $'events { }\nhttp { }\n}'
    fails_with 3 'x.conf:3: unexpected "}": no block is open in this file' x.conf
    conf $'http {\n  proxy_buffering off\n}'
    fails_with 3 'x.conf:3: unexpected "}": the directive before it is not ended by ";": proxy_buffering' x.conf
    conf $'a;\n b "c'
    fails_with 3 'x.conf:2: a quote is not closed: "' x.conf
    conf $'a;\n b \'c" d;\n'
    fails_with 3 "x.conf:2: a quote is not closed: '" x.conf
    conf 'a "b"c;'
    fails_with 3 'x.conf:1: unexpected "c" behind a quoted word' x.conf
    conf 'a {;}'
    fails_with 3 'x.conf:1: unexpected ";"' x.conf
    conf '{}'
    fails_with 3 'x.conf:1: unexpected "{"' x.conf
    conf $'a b\nc'
    fails_with 3 'x.conf:1: the directive is not ended by ";" or a block: a' x.conf
    conf $'http {\n content_by_lua_block {\n x = "}" -- }\n'
    fails_with 3 "x.conf:2: the block is not closed: content_by_lua_block" x.conf
    conf 'server { location / { proxy_pass http://a; proxy_read_timeout 1x; } }'
    fails_with 3 'x.conf:1: proxy_read_timeout: "1x" is not a time' x.conf
    printf '\357\273\277events { }\n' >x.conf
    fails_with 3 "x.conf:1: the file begins with a byte order mark" x.conf
    printf 'a;\n\nb \000 c;\n' >x.conf
    fails_with 3 "x.conf:3: this is not text: a control character" x.conf
    fails_with 3 "not text" "$(command -v bats >/dev/null && readlink -f /bin/sh)"
    : >x.conf
    fails_with 3 "x.conf is empty" x.conf
    fails_with 3 "there is no y.conf" y.conf
    fails_with 3 ". is a folder" .
}

# grown COUNT TEXT: TEXT so often, on one line.
grown() { awk -v n="$1" -v s="$2" 'BEGIN { for (i = 0; i < n; i++) printf "%s", s }'; }

@test "ten megabytes of it are bounded, in time and memory" {
    local big=10000000

    grown $big b >x.conf
    fails_with 3 "x.conf:1: a word of more than 4096 bytes begins here" x.conf
    { printf 'a "' && grown $big b; } >x.conf
    fails_with 3 "x.conf:1: a word of more than 4096 bytes begins here" x.conf
    grown $((big / 2)) 'b ' >x.conf
    fails_with 3 "x.conf:1: a directive of more than 100000 words: b" x.conf
    grown $((big / 2)) 'a{' >x.conf
    fails_with 3 "x.conf:1: blocks are nested more than 50 deep" x.conf
    head -c $big /dev/zero | tr '\000' '\n' >x.conf
    fails_with 3 "x.conf:500001: the configuration has more than 500000 lines" x.conf
    head -c $big /dev/urandom >x.conf
    fails_with 3 "x.conf:" x.conf
    fails_with 3 "-: the configuration has more than 16 MiB" - < <(head -c 100000000 /dev/zero)
    # What takes seconds before it is too much, by one awk.
    AWKS=(mawk)
    grown $((big / 5)) 'a{}b;' >x.conf
    fails_with 3 "x.conf:1: more than 100000 blocks" x.conf
    { printf 'http { server {\n' && grown 11000 $'location /a { proxy_pass http://a; }\n' && printf '} }'; } >x.conf
    fails_with 3 "x.conf:10002: more than 10000 locations" x.conf
}

@test "a map of thirty thousand lines is read in linear time" {
    { printf 'http {\n map $a $b {\n' && seq -f '  "~^/x%.0f" v;' 30000 && printf ' }\n}\n'; } >x.conf
    for awk in "${AWKS[@]}"; do
        RUNNEL_AWK=$awk run timeout 300 "$LINT" x.conf
        [ "$status" -eq 0 ]
        [ "$output" = "no location here passes requests on: 0 faults, 0 warnings, 0 notes" ]
    done
}
