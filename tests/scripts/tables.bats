#!/usr/bin/env bats
# The tables of scripts/proxies, from figures of real beds and of one of which nothing is known.
#
# SC2030, SC2031: each test is a subshell, and sets its own output.
# shellcheck disable=SC2030,SC2031

bats_require_minimum_version 1.5.0
load awk.bash

@test "the tables of the proxies, as text and as Markdown" {
    local awk form tables=$BATS_TEST_DIRNAME/tables

    for awk in "${AWKS[@]}"; do
        for form in text markdown; do
            program "$awk" proxies_table -v form=$form "$tables/proxies.tsv" >"$BATS_TEST_TMPDIR/table"
            same "$awk, $form" "$tables/proxies.$form.expected" "$BATS_TEST_TMPDIR/table"
        done
    done
}
