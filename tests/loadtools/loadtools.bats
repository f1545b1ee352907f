#!/usr/bin/env bats
# Load tools: the commands of docs/clients.md report what the ledger counted, and a tool that is killed
# in mid-run leaves nothing behind.
#
# SC2016: what looks like a variable in single quotes is jq's. SC2154: harness.bash sets ROOT, GEN.
# SC1091: it is checked by itself.
# shellcheck disable=SC2016,SC2154,SC1091

load ../integration/harness
load ../lib/snippets

setup_file() {
    lab_open
    start_responder --ttft-ms 5 --itl-ms 1
    PORT=$(free_port)
    export PORT
    start_nginx "s|listen unix:http.sock;|listen unix:http.sock; listen 127.0.0.1:$PORT;|"
    ln -s "$ROOT/build" build
    unset HF_HUB_OFFLINE TRANSFORMERS_OFFLINE
}

sums() { get /_debug/generated | jq -c .ledger; }

# grown BEFORE JQ: whether that is true of the growth of each sum since then.
grown() {
    jq -e --argjson before "$1" "with_entries(.value -= \$before[.key]) | $2" <<<"$(sums)"
}

running_is() { sums | jq -e ".running == $1" >/dev/null; }

# texts_are_gens: of each {prompt, text} on standard input.
texts_are_gens() {
    local pair count=0

    while read -r pair; do
        "$GEN" --format json --tokens 20 --prompt "$(jq -r .prompt <<<"$pair")" >gen.json
        jq -e --slurpfile gen gen.json '.text == ($gen[0].tokens | add)' <<<"$pair" >/dev/null || {
            echo "not gen's: $pair"
            return 1
        }
        count=$((count + 1))
    done
    [ "$count" -gt 0 ]
}

# start_long NAME: the page's command in a session of its own, with requests that last for minutes, until
# two of them run; sets LONG. A shell gives what it starts behind itself no SIGINT, env does.
start_long() {
    snippet "$1" "$PORT"
    sed -i -e 's/"itl_ms":5/"itl_ms":100/' -e 's/--osl 20/--osl 2000/' \
        -e 's/output_tokens=20/output_tokens=2000/' -e 's/^build/exec build/' "$1"
    env --default-signal=INT setsid sh "$1" >"$1.out" 2>&1 3>&- &
    LONG=$!
    owned "$LONG"
    wait_until 120 under_way
    running_is 2
}

under_way() { running_is 2 || has_ended "$LONG"; }

# ended: that all of the session has ended; a zombie has.
# shellcheck disable=SC2009 # pgrep does not tell a zombie
ended() { ! ps -o stat= --sid "$LONG" | grep -qv '^Z'; }

kill_group() {
    kill -s KILL -- "-$LONG"
    wait_until 10 ended
}

@test "AIPerf reports the requests and tokens of the ledger, and got gen's text" {
    snippet aiperf.sh "$PORT"
    before=$(sums)
    sh aiperf.sh >aiperf.out 2>&1
    jq -e '.request_count.avg == 20 and .error_request_count == null and
        .total_output_tokens.avg == 400' aiperf/profile_export_aiperf.json
    grown "$before" '.accepted == 20 and .done == 20 and .generated == 400'
    # Each by its id.
    for id in $(jq -r .metadata.x_request_id aiperf/profile_export.jsonl); do
        ledger_is "$id" '.outcome == "done" and .route == "chat" and .generated == 20'
    done
    jq -c '{prompt: .payload.messages[-1].content | (if type == "array" then map(.text) | add else . end),
        text: [.responses[].packets[].value | fromjson? | .choices[0].delta.content // empty] | add}' \
        aiperf/profile_export_raw.jsonl | texts_are_gens
}

# with_fault NAME FAULT: the page's command, with a fault in each request; whatever its exit status.
with_fault() {
    snippet "$1" "$PORT"
    sed -i "s/\"itl_ms\":5/\"fault\":\"$2\"/" "$1"
    grep -q "$2" "$1"
    sh "$1" >"$1.out" 2>&1 || true
}

@test "AIPerf: a cut stream and an error chunk are successes, a refusal is none" {
    for fault in eof@10 error@10; do
        before=$(sums)
        with_fault aiperf.sh "$fault"
        grown "$before" '.failed == 20 and .done == 0'
        jq -e '.request_count.avg == 20 and .error_request_count == null' aiperf/profile_export_aiperf.json
    done
    rm -r aiperf
    before=$(sums)
    with_fault aiperf.sh status:503
    grown "$before" '.failed == 20'
    [ ! -e aiperf/profile_export_aiperf.json ] || jq -e '.request_count == null' aiperf/profile_export_aiperf.json
}

@test "GuideLLM: cut after 10 of 20 tokens, or an error there: 20 tokens, a success; a refusal ends it" {
    for fault in eof@10 error@10; do
        before=$(sums)
        with_fault guidellm.sh "$fault"
        grown "$before" '.failed == 20 and .done == 3 and .generated == 203'
        jq -e '.benchmarks[0] | .request_totals.successful == 20 and .request_totals.errored == 0 and
            .metrics.output_token_count.successful.total_sum == 400' guidellm.json
    done
    rm guidellm.json
    before=$(sums)
    with_fault guidellm.sh status:503
    grown "$before" '.accepted == 1 and .failed == 1'
    [ ! -e guidellm.json ]
}

@test "AIPerf that is told to end, or killed: all its requests are cancelled" {
    for signal in INT TERM KILL; do
        before=$(sums)
        start_long aiperf.sh
        kill -s "$signal" "$LONG"
        wait_until 20 running_is 0
        grown "$before" '.cancelled == 2 and .done == 0'
        wait_until 20 ended
    done
}

@test "no token of the tokenizer is one that makes a prompt runnel refuses" {
    "$ROOT/build/loadtools/guidellm/bin/python" - "$ROOT/build/loadtools/tokenizer" 2>/dev/null >prompts.jsonl <<'EOF'
import json, sys
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
for token in tokenizer.get_vocab().values():
    print(json.dumps({"prompt": tokenizer.decode([token], skip_special_tokens=True) + "prompt"}))
EOF
    [ "$(wc -l <prompts.jsonl)" -gt 1000 ]
    jq -e -n '[inputs.prompt | select(explode | index(0))] == []' prompts.jsonl
}

@test "GuideLLM reports the requests and tokens of the ledger, and got gen's text" {
    snippet guidellm.sh "$PORT"
    before=$(sums)
    sh guidellm.sh >guidellm.out 2>&1
    jq -e '.benchmarks[0] | .request_totals == {successful: 20, errored: 0, incomplete: 0, total: 20} and
        .metrics.output_token_count.successful.total_sum == 400' guidellm.json
    # One token before, for the first process and for each worker.
    grown "$before" '.accepted == 23 and .done == 23 and .generated == 403'
    jq -c '.benchmarks[0].requests.successful[] | {prompt, text: .output}' guidellm.json | texts_are_gens
}

@test "GuideLLM that is told to end goes on; its whole group killed, all is cancelled" {
    before=$(sums)
    start_long guidellm.sh
    kill -s INT -- "-$LONG"
    generated=$(sums | jq .generated)
    wait_until 30 sums_pass "$((generated + 40))"
    running_is 2
    kill_group
    wait_until 10 running_is 0
    grown "$before" '.cancelled == 2 and .done == 3'

    before=$(sums)
    start_long guidellm.sh
    kill -s KILL "$LONG" # the first process alone
    wait_until 10 has_ended "$LONG"
    generated=$(sums | jq .generated)
    wait_until 30 sums_pass "$((generated + 40))"
    running_is 2
    kill_group
    wait_until 10 running_is 0
    grown "$before" '.cancelled == 2 and .done == 3'
}

sums_pass() { sums | jq -e ".generated > $1" >/dev/null; }

@test "the books hold after all of this" {
    wait_until 5 books_hold
}
