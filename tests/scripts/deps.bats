#!/usr/bin/env bats
# scripts/deps: what it finds missing, and what it says when it may not install. Nothing is installed:
# dpkg-query, id, sudo and apt-get are stand-ins.
#
# SC2016: they expand their own variables.
# shellcheck disable=SC2016

bats_require_minimum_version 1.5.0

setup() {
    SCRIPTS=$BATS_TEST_DIRNAME/../../scripts
    mkdir "$BATS_TEST_TMPDIR/bin"
    PATH=$BATS_TEST_TMPDIR/bin:$PATH
    stand_in sudo 'exit 1'
    stand_in apt-get 'echo "$@" >>"$BATS_TEST_TMPDIR/apt-get.log"; exit 100'
}

stand_in() {
    printf '#!/bin/sh\n%s\n' "$2" >"$BATS_TEST_TMPDIR/bin/$1"
    chmod 755 "$BATS_TEST_TMPDIR/bin/$1"
}

@test "nothing is missing where the tests run" {
    run "$SCRIPTS/deps" --test
    [ "$status" -eq 0 ]
    [ "$output" = "deps: nothing is missing" ]
    [ ! -e "$BATS_TEST_TMPDIR/apt-get.log" ]
}

@test "--check names what is missing, and installs nothing" {
    stand_in dpkg-query 'case "$*" in *libcjson-dev*) printf "not-installed" ;; *) printf installed ;; esac'
    run "$SCRIPTS/deps" --check
    [ "$status" -eq 1 ]
    [ "$output" = "deps: missing: libcjson-dev" ]
    [ ! -e "$BATS_TEST_TMPDIR/apt-get.log" ]
}

@test "without root or sudo: the line to run, and exit 3" {
    stand_in dpkg-query 'case "$*" in *libcjson-dev* | *libfcgi-dev*) exit 1 ;; *) printf installed ;; esac'
    stand_in id 'echo 1000'
    run "$SCRIPTS/deps"
    [ "$status" -eq 3 ]
    [[ "$output" == *"run this as root: apt-get update && apt-get install -y --no-install-recommends libfcgi-dev libcjson-dev" ]]
    [ ! -e "$BATS_TEST_TMPDIR/apt-get.log" ]
}

@test "an installation that fails is told, and leaves services as they were" {
    [ "$(id -u)" -eq 0 ] || skip "not root"
    before=$(ls -l /usr/sbin/policy-rc.d 2>&1) || :
    stand_in dpkg-query 'exit 1'
    run "$SCRIPTS/deps"
    [ "$status" -eq 3 ]
    [[ "$output" == *"apt-get install failed"* ]]
    grep -q 'install -y --no-install-recommends .*libfcgi-dev' "$BATS_TEST_TMPDIR/apt-get.log"
    [ "$(ls -l /usr/sbin/policy-rc.d 2>&1)" = "$before" ]
}
