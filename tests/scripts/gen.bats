#!/usr/bin/env bats
# The gen command line: what it prints, what it refuses, and what it says when it could not write.
# Requires jq, to read the JSON as a client would.
#
# SC2016: the inner shell expands $1. SC2094: json and text are file names after > only.
# SC2154: bats sets stderr and stderr_lines.
# shellcheck disable=SC2016,SC2094,SC2154

bats_require_minimum_version 1.5.0

setup() {
    # Absolute, for each test works in a folder of its own.
    GEN=$(realpath -m "${BUILD:-$BATS_TEST_DIRNAME/../../build}/bin/gen")
    [ -x "$GEN" ] || {
        echo "no $GEN: run make first" >&2
        return 1
    }
    cd "$BATS_TEST_TMPDIR" || return 1
}

# refused NAME ARGUMENT...: exit 2, nothing on stdout, one sentence on stderr that names NAME.
refused() {
    name=$1
    shift
    run --separate-stderr "$GEN" "$@"
    [ "$status" -eq 2 ]
    [ -z "$output" ]
    [ "${#stderr_lines[@]}" -eq 1 ]
    [[ "$stderr" == "gen: "*"$name"* ]]
}

@test "the same arguments give the same bytes, in every format and vocabulary" {
    for vocab in words torture; do
        for format in lines text json; do
            for file in one two; do
                "$GEN" --prompt hello --tokens 500 --vocab $vocab --format $format >$file
            done
            cmp one two
        done
    done
}

@test "the output for a known prompt is the recorded one" {
    run -0 "$GEN" --prompt hello --tokens 16 --format text
    [ "$output" = "The sailor rested and the herons stood. Carefully, the sailor wrapped the map," ]
}

@test "fewer tokens are a prefix of more" {
    for vocab in words torture; do
        "$GEN" --prompt hello --tokens 500 --vocab $vocab --format text >many
        for n in 1 2 7 8 9 499; do
            "$GEN" --prompt hello --tokens $n --vocab $vocab --format text >few
            cmp few <(head -c "$(wc -c <few)" many)
        done
    done
}

@test "lines is the default format, words the default vocabulary, 0 the default seed" {
    "$GEN" --prompt hello --tokens 100 >plain
    "$GEN" --prompt hello --tokens 100 --format lines --vocab words --seed 0 >spelled
    cmp plain spelled
}

@test "another prompt and another seed give other tokens" {
    "$GEN" --prompt hello --tokens 100 >plain
    "$GEN" --prompt hello --tokens 100 --seed 1 >seeded
    "$GEN" --prompt hellp --tokens 100 >other
    run -1 cmp -s plain seeded
    run -1 cmp -s plain other
    run -1 cmp -s seeded other
}

@test "lines has one line a token, whatever the token is made of" {
    for vocab in words torture; do
        "$GEN" --prompt hello --tokens 1000 --vocab $vocab >lines
        [ "$(wc -l <lines)" -eq 1000 ]
        # A quote and a backslash apart, nothing is left that a JSON string may not hold.
        sed 's/.*/"&"/' lines | jq -e . >/dev/null
    done
}

@test "lines leaves no character that any splitter of lines knows" {
    "$GEN" --prompt hello --tokens 89 --vocab torture >lines
    [ "$(tr -d '\n' <lines | LC_ALL=C tr -cd '\000-\037\177' | wc -c)" -eq 0 ]
    run -1 env LC_ALL=C grep -e $'\xc2\x85' -e $'\xe2\x80\xa8' -e $'\xe2\x80\xa9' lines
}

@test "text is the tokens of lines, unescaped and joined, and nothing else" {
    for vocab in words torture; do
        "$GEN" --prompt hello --tokens 500 --vocab $vocab --format text >text
        "$GEN" --prompt hello --tokens 500 --vocab $vocab --format lines |
            sed 's/.*/"&"/' | jq -j . >joined
        cmp text joined
    done
}

@test "json agrees with lines and with text" {
    for vocab in words torture; do
        "$GEN" --prompt hello --tokens 500 --vocab $vocab --format text >text
        "$GEN" --prompt hello --tokens 500 --vocab $vocab --format lines |
            sed 's/.*/"&"/' | jq -c . >tokens
        "$GEN" --prompt hello --tokens 500 --vocab $vocab --format json >json
        [ "$(wc -l <json)" -eq 1 ]
        jq -c '.tokens[]' json | cmp - tokens
        jq -j '.text' json | cmp - text
        jq -e '.text == (.tokens | add)' json
    done
}

@test "json tells what was asked" {
    prompt='say "hi",	caf'$'\xc3\xa9'$'\n''\end'
    "$GEN" --prompt "$prompt" --tokens 3 --seed 18446744073709551615 --vocab torture \
        --format json >json
    jq -e --arg prompt "$prompt" '.prompt == $prompt' json
    jq -e '.seed == "18446744073709551615"' json
    jq -e '.vocab == "torture"' json
    jq -e '.completion_tokens == 3 and (.tokens | length) == 3' json
    jq -e '.prompt_tokens == 8' json
    jq -e 'keys_unsorted == ["prompt","seed","vocab","prompt_tokens","completion_tokens","tokens","text"]' json
}

@test "the locale changes nothing" {
    "$GEN" --prompt hello --tokens 200 --vocab torture --format json >plain
    for locale in C POSIX C.UTF-8 de_DE.UTF-8 tr_TR.UTF-8 ja_JP.SJIS; do
        LC_ALL=$locale LANG=$locale "$GEN" --prompt hello --tokens 200 --vocab torture \
            --format json >other
        cmp plain other
    done
}

@test "the largest prompt is taken, one byte more is refused" {
    # The size in bytes is the limit, not the size in characters.
    half=$(printf '%32768s' '' | sed $'s/ /\xc3\xa9/g')
    "$GEN" --prompt "$half" --tokens 1
    refused --prompt --prompt "${half}x" --tokens 1
    [[ "$stderr" == *65537*65536* ]]
}

@test "a prompt that is missing, empty or malformed is refused" {
    refused --prompt --tokens 5
    refused --prompt --prompt "" --tokens 5
    refused --prompt --prompt $'ab\xff' --tokens 5
    [[ "$stderr" == *"byte 2"* ]]
    refused --prompt --prompt $'\xed\xa0\x80' --tokens 5  # a surrogate
    refused --prompt --prompt $'\xc0\xaf' --tokens 5      # an overlong slash
    refused --prompt --prompt $'caf\xc3' --tokens 5       # cut short
}

@test "a number of tokens that is missing, malformed or out of range is refused" {
    refused --tokens --prompt x
    for bad in "" 0 +5 -1 1e3 20abc 0x10 " 20" "20 " 2.0 10000001 99999999999999999999; do
        refused --tokens --prompt x --tokens "$bad"
        [[ "$stderr" == *"\"$bad\""* && "$stderr" == *"1 to 10000000"* ]]
    done
}

@test "a seed that is malformed or out of range is refused" {
    for bad in "" +5 -1 1e3 7abc 0x10 18446744073709551616; do
        refused --seed --prompt x --tokens 5 --seed "$bad"
        [[ "$stderr" == *"\"$bad\""* && "$stderr" == *"0 to 18446744073709551615"* ]]
    done
}

@test "a vocabulary or a format that does not exist is refused, and those that do are named" {
    refused --vocab --prompt x --tokens 5 --vocab Words
    [[ "$stderr" == *Words*words*torture* ]]
    refused --vocab --prompt x --tokens 5 --vocab ""
    refused --format --prompt x --tokens 5 --format yaml
    [[ "$stderr" == *yaml*lines*text*json* ]]
}

@test "an unknown option, a missing value, a value too many and a stray argument are refused" {
    refused --bogus --prompt x --tokens 5 --bogus
    refused -x --prompt x --tokens 5 -x
    refused --tokens --prompt x --tokens
    refused --help --help=yes
    refused "stray words" --prompt x --tokens 5 "stray words"
    refused --prompt
}

@test "a refused value cannot play with the terminal" {
    refused --seed --prompt x --tokens 5 --seed $'\e[31m\xff'
    [[ "$stderr" == *'\x1b[31m\xff'* ]]
    refused --seed --prompt x --tokens 5 --seed "$(printf '%100s' '' | tr ' ' 9)"
    [[ "$stderr" == *999...* ]]
}

@test "an option's value may look like an option" {
    "$GEN" --prompt --help --tokens 3 --format json >json
    jq -e '.prompt == "--help"' json
}

@test "--help has examples and exit status, --version a version" {
    run -0 --separate-stderr "$GEN" --help
    [[ "$output" == *--prompt*--tokens*--seed*--vocab*--format*Examples*"Exit status"* ]]
    [ -z "$stderr" ]
    run -0 "$GEN" --version
    [[ "$output" =~ ^gen\ \(runnel\)\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
}

@test "a full disk is exit 3 and a sentence, for a short output and a long one" {
    for n in 1 100000; do
        for format in lines text json; do
            run -3 bash -c '"$1" --prompt x --tokens $2 --format $3 2>&1 >/dev/full' \
                - "$GEN" $n $format
            [[ "$output" == "gen: cannot write"*"No space left"* ]]
        done
    done
    run -3 bash -c '"$1" --help 2>&1 >/dev/full' - "$GEN"
}

@test "a closed pipe is exit 3 and a sentence, and ends the work early" {
    run -3 bash -c '"$1" --prompt x --tokens 10000000 2>error | head -c 10 >first
        exit ${PIPESTATUS[0]}' - "$GEN"
    [ "$(wc -c <first)" -eq 10 ]
    grep -q '^gen: cannot write .*Broken pipe$' error
}

@test "a closed standard output is exit 3" {
    run -3 bash -c '"$1" --prompt x --tokens 5 2>&1 >&-' - "$GEN"
}
