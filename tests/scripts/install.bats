#!/usr/bin/env bats
# make install: what is put where, that it runs from there, and that make uninstall takes it away.
#
# SC2030, SC2031: each test is a subshell. SC2154: bats sets stderr.
# shellcheck disable=SC2030,SC2031,SC2154

bats_require_minimum_version 1.5.0
load server.bash

# Not below bats' own folder: the responder's user may not enter that.
setup_file() {
    FOLDER=$(mktemp -d "${TMPDIR:-/tmp}/runnel install.XXXXXX")
    chmod 755 "$FOLDER"
    export FOLDER DESTDIR=$FOLDER/root
    export DEST=$DESTDIR/usr/local
    mkdir -p "$DEST/bin"
    echo "somebody else's" >"$DEST/bin/runner"
    make_target install
}

teardown_file() { rm -rf "$FOLDER"; }

setup() { PATH=$DEST/bin:$PATH; }

# As from a shell of its own: make must not look for the jobs of the make that runs the tests.
make_target() { env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make -s -C "$ROOT" "$1" DESTDIR="$DESTDIR" 3>&-; }

# The beds of proxies are in the source tree, and so it stays there.
commands() { find "$ROOT/scripts" -maxdepth 1 -type f -perm -u+x ! -name proxies -printf 'runnel-%f\n' | sort; }

@test "programs, commands and pages; nothing is writable for others, nothing names the source tree" {
    [ -x "$DEST/bin/runnel" ]
    [ -x "$DEST/bin/runnel-gen" ]
    [ -x "$DEST/bin/runnel-load" ]
    for command in $(commands); do
        [ -x "$DEST/bin/$command" ]
        [[ "$(readlink "$DEST/bin/$command")" != /* ]]
    done
    diff <(cd "$ROOT/docs/man" && find . ! -name runnel-proxies.1 | sort) <(cd "$DEST/share/man/man1" && find . | sort)
    diff -r "$ROOT/fcgi-app/web" "$DEST/share/runnel/web"
    [ -z "$(find "$DESTDIR" -perm /022 ! -type l)" ]
    run ! grep -rIl -F "$ROOT" "$DESTDIR"
    [ "$(runnel --version)" = "$("$ROOT/build/bin/runnel" --version)" ]
    [ "$(runnel-gen --prompt hello --tokens 2 --format text)" = "The sailor" ]
}

@test "--help, usage and hints speak of the installed commands" {
    for command in $(commands); do
        run --separate-stderr "$command" --help
        [ "$status" -eq 0 ]
        [[ "$output" == *"    $command"* ]]
        [[ "$output" != *scripts/* && ! "$output" =~ make\ (up|down|lab|first) ]]
    done
    RUNNEL_PORT=1 run --separate-stderr runnel-measure
    [ "$status" -eq 3 ]
    [[ "$stderr" == "runnel-measure: nothing answers at "*"run runnel-up first" ]]
    run --separate-stderr runnel-measure --nonsense
    [ "$status" -eq 2 ]
}

@test "the instruments measure canned replies, from anywhere" {
    python3 "$BATS_TEST_DIRNAME/replies.py" >"$BATS_TEST_TMPDIR/port" 3>&- 4>&- &
    replies=$!
    until [ -s "$BATS_TEST_TMPDIR/port" ]; do
        kill -0 "$replies"
        sleep 0.02
    done
    url=http://127.0.0.1:$(cat "$BATS_TEST_TMPDIR/port")
    cd /
    TMPDIR=$BATS_TEST_TMPDIR runnel-measure "$url/whole?n=30" --runs 2 --json >"$BATS_TEST_TMPDIR/json"
    jq -e '.tokens == 60 and .itl_ms.count == 58' "$BATS_TEST_TMPDIR/json"
    ln -s "$DEST/bin/runnel-report" "$BATS_TEST_TMPDIR/again"
    "$BATS_TEST_TMPDIR/again" "$url/chat" -d '{}' --keep-events "$BATS_TEST_TMPDIR/events" >"$BATS_TEST_TMPDIR/report"
    grep -x tokens=25 "$BATS_TEST_TMPDIR/report"
    if command -v gnuplot; then
        runnel-plot "$BATS_TEST_TMPDIR/events" --out "$BATS_TEST_TMPDIR" --format svg
        [ -s "$BATS_TEST_TMPDIR/timeline.svg" ]
    fi
    kill "$replies"
}

@test "the server comes up from the installed files, the lab passes, and down ends it" {
    RUNNEL_PREFIX=$FOLDER/server
    RUNNEL_PORT=$(free_port)
    LS_DIR=$FOLDER/ls
    export RUNNEL_PREFIX RUNNEL_PORT LS_DIR
    unset RUNNEL GEN
    runnel-up 3>&- 4>&-
    pid=$(cat "$RUNNEL_PREFIX/runnel.pid")
    [ "$(readlink "/proc/$pid/exe")" = "$DEST/bin/runnel" ]
    run runnel-lab
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "$output" == *"(runnel-down stops it)"* ]]
    runnel-down --now 3>&- 4>&-
    [ ! -e "/proc/$pid" ] || [ "$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$pid/status")" = Z ]
    [ ! -e "$RUNNEL_PREFIX/runnel.sock" ]
}

@test "without its files up says what is missing, not to run make" {
    mv "$DEST/bin/runnel" "$FOLDER/aside"
    run --separate-stderr runnel-up
    mv "$FOLDER/aside" "$DEST/bin/runnel"
    [ "$status" -eq 3 ]
    [[ "$stderr" == "runnel-up: $DEST/bin/runnel is not there"* && "$stderr" != *make* ]]
}

@test "the pages can be read as man reads them" {
    for page in "$DEST"/share/man/man1/*.1; do
        name=$(basename "$page" .1)
        mandoc -T ascii "$page" | col -b >"$BATS_TEST_TMPDIR/text"
        grep -qx 'NAME' "$BATS_TEST_TMPDIR/text"
        grep -q "^ *$name - " "$BATS_TEST_TMPDIR/text"
    done
    command -v man || skip "no man"
    MANPATH=$DEST/share/man MANPAGER=cat man runnel-measure | grep -q 'time to first token'
}

# The last one: nothing is installed afterwards.
@test "uninstall takes away all that install has put there, and nothing else; twice is fine" {
    make_target uninstall
    [ "$(find "$DESTDIR" ! -type d)" = "$DEST/bin/runner" ]
    [ -z "$(find "$DESTDIR" -name '*runnel*')" ]
    make_target uninstall
}
