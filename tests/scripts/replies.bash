# The server of canned replies (replies.py) for a file of tests, and a folder for each test.
# shellcheck shell=bash disable=SC2154 # status is bats's

setup_file() {
    export SCRIPTS=$BATS_TEST_DIRNAME/../../scripts
    python3 "$BATS_TEST_DIRNAME/replies.py" >"$BATS_FILE_TMPDIR/port" 3>&- 4>&- &
    export REPLIES=$!
    until [ -s "$BATS_FILE_TMPDIR/port" ]; do
        kill -0 "$REPLIES" || return 1
        sleep 0.02
    done
    BASE=http://127.0.0.1:$(cat "$BATS_FILE_TMPDIR/port")
    export BASE
}

teardown_file() { kill "$REPLIES"; }

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    export TMPDIR=$BATS_TEST_TMPDIR
}

# Every test also proves that no temporary folder is left.
teardown() {
    run compgen -G "$BATS_TEST_TMPDIR/runnel-*"
    [ "$status" -eq 1 ]
}
