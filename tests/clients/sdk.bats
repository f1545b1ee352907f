#!/usr/bin/env bats
# The clients of the OpenAI API that people use: what they make of replies and errors, and whether the
# server stops when they leave. What docs/clients.md says of them is said here.
#
# The drivers do all of cases.jq before the first test, in one process each; the tests judge.
#
# SC2016: what looks like a variable in single quotes is jq's. SC2154: harness.bash sets ROOT, GEN.
# SC1091: it is checked by itself. SC2030, SC2031: each test has an environment of its own.
# shellcheck disable=SC2016,SC2154,SC1091,SC2030,SC2031

load ../integration/harness

EVERY='openai_py openai_js ai langchain'
OPENAI='openai_py openai_js langchain' # LangChain's is openai's inside

setup_file() {
    local driver

    lab_open
    echo sk-local >keys
    chmod 600 keys
    start_responder --ttft-ms 5 --itl-ms 1 --api-key-file keys
    PORT=$(free_port)
    start_nginx "s|listen unix:http.sock;|listen unix:http.sock; listen 127.0.0.1:$PORT;|"
    TEXT=$(text_of words 10)
    TORTURE=$(text_of torture 60)
    export PORT TEXT TORTURE
    for driver in $EVERY; do
        jq -nc --arg driver "$driver" -f "$ROOT/tests/clients/cases.jq" >"$driver.cases"
        run_driver "$driver" <"$driver.cases" >"$driver.seen" 2>"$driver.out" || return 1
        wait_until 5 nothing_live # whatever it left behind it has closed by ending
    done
}

run_driver() {
    local here=$ROOT/tests/clients

    export URL=http://127.0.0.1:$PORT KEY=sk-local
    case $1 in
    openai_py) "$ROOT/build/clients/python/bin/python" "$here/openai_sdk.py" ;;
    openai_js) node "$here/openai_sdk.mjs" ;;
    ai) node "$here/ai_sdk.mjs" ;;
    langchain) "$ROOT/build/clients/python/bin/python" "$here/langchain_sdk.py" ;;
    esac
}

nothing_live() {
    get /_debug/generated | jq -e '.ledger | .queued == 0 and .running == 0' >/dev/null
}

# sees DRIVERS CASES JQ: that JQ is true of what each of them saw in each of these; $text is gen's of
# 10 tokens, $torture that of 60.
sees() {
    local driver name seen

    for driver in $1; do
        for name in $2; do
            seen=$(jq -c --arg name "$name" 'select(.name == $name)' "$driver.seen")
            jq -e --arg text "$TEXT" --arg torture "$TORTURE" "$3" <<<"$seen" >/dev/null || {
                echo "$driver, $name: not true: $3"
                echo "${seen:-not done}"
                return 1
            }
        done
    done
}

text_of() { # VOCAB TOKENS [PROMPT]
    "$GEN" --format json --prompt "${3-hello}" --tokens "$2" --vocab "$1" | jq -j '.tokens | add'
}

@test "each case was done, by each client" {
    for driver in $EVERY; do
        diff <(jq .name "$driver.cases") <(jq .name "$driver.seen")
    done
}

@test "chat: gen's text, why it ended, and the usage that was asked for; one request" {
    sees "$EVERY" 'chat chat-whole' '.text == $text and .error == null and .accepted == 1 and
        .finish == "length" and .row.outcome == "done" and .row.generated == 10'
    sees "$EVERY" chat '.pieces == 10'
    sees 'openai_py openai_js' 'chat chat-whole' \
        '.usage == {prompt_tokens: 1, completion_tokens: 10, total_tokens: 11}'
    sees ai 'chat chat-whole' '.usage | .inputTokens == 1 and .outputTokens == 10'
    sees langchain 'chat chat-whole' '.usage | .input_tokens == 1 and .output_tokens == 10'
    sees 'openai_py langchain' async-chat '.text == $text and .pieces == 10'
}

@test "completions: the same" {
    sees "$OPENAI" 'completions completions-whole' '.text == $text and .error == null and
        .row.outcome == "done" and .row.route == "completions"'
    sees 'openai_py openai_js' 'completions completions-whole' \
        '.finish == "length" and .usage.completion_tokens == 10'
    # It makes a conversation of the prompt, whatever the model is.
    framed=$(text_of words 10 $'user:\nhello\n\nassistant:\n')
    export framed
    sees ai 'completions completions-whole' '.text == env.framed and .finish == "length" and
        .usage.outputTokens == 10 and .row.route == "completions"'
}

@test "no usage in a stream that did not ask for it" {
    sees "$OPENAI" no-usage '.usage == null and .text == $text'
    sees ai no-usage '.usage.outputTokens == null and .text == $text'
}

@test "torture, in each legal spelling" {
    sees "$EVERY" 'torture torture-whole wire-crlf wire-cr wire-nospace wire-comments wire-multiline
        wire-bom wire-drip' '.text == $torture and .error == null'
}

@test "400: the client's own error, with the parameter; no request counted" {
    sees "$OPENAI" 'bad-number bad-number-whole unsupported' '.error.status == 400 and .accepted == 0 and
        (.error.bases | index("BadRequestError") and index("APIError"))'
    sees ai 'bad-number bad-number-whole unsupported' \
        '.error.type == "APICallError" and .error.status == 400 and .accepted == 0'
    sees 'openai_py openai_js ai' 'bad-number bad-number-whole' \
        '.error.param == "max_tokens" and .error.code == "out_of_range"'
    sees langchain bad-number '.error.param == "max_completion_tokens"' # its name for it
    sees "$EVERY" unsupported '.error.param == "n" and .error.code == "unsupported_value"'
}

@test "401 with a wrong key" {
    sees "$OPENAI" 'wrong-key wrong-key-whole' '.error.status == 401 and .accepted == 0 and
        .error.code == "invalid_api_key" and (.error.bases | index("AuthenticationError"))'
    sees ai 'wrong-key wrong-key-whole' '.error.status == 401 and .accepted == 0 and
        .error.type == "APICallError" and .error.code == "invalid_api_key"'
}

@test "429 and 503: typed, and asked again as often as the client was told" {
    sees "$EVERY" 'status-503 status-503-whole' '.error.status == 503 and .accepted == 1'
    sees "$EVERY" status-429 '.error.status == 429 and .accepted == 1'
    sees "$OPENAI" status-429 '.error.bases | index("RateLimitError")'
    sees "$OPENAI" status-503 '.error.bases | index("InternalServerError")'
    sees ai 'status-429 status-503' '.error.type == "APICallError"'
    sees "$OPENAI" retries '.accepted == 3 and .error.status == 503'
    sees ai retries '.accepted == 3 and .error.type == "RetryError"'
}

@test "an error in mid-stream is raised, after the text before it" {
    before=$(text_of words 3)
    export before
    sees "$EVERY" error '.text == env.before and .error.code == "fault" and .error.param == "fault" and
        .error.message == "this error was asked for with fault=error@3" and .row.outcome == "failed"'
    sees "$OPENAI" error '.error.type == "APIError"'
    sees ai error '.error.type == null' # the server's object as it is, no instance of Error
}

@test "a stream that ends too soon: the AI SDK says so, the others look content" {
    before=$(text_of words 3)
    export before
    sees "$EVERY" 'eof reset' '.text == env.before and .row.outcome == "failed"'
    sees "$OPENAI" 'eof reset' '.error == null and .finish == null'
    sees ai 'eof reset' '.error.type == "InvalidResponseDataError"'
}

@test "a missing [DONE] is noticed by none" {
    sees "$EVERY" nodone '.text == $text and .error == null and .finish == "length"'
}

@test "a chunk that is no JSON" {
    before=$(text_of words 3)
    export before
    sees openai_js garble '.text == env.before and .error.type == "SyntaxError"'
    sees 'openai_py langchain' garble '.text == env.before and .error.type == "JSONDecodeError"'
    # It tells, but goes on reading, and leaves the token out.
    sees ai garble '.pieces == 9 and .error.type == "JSONParseError" and .row.outcome == "done"'
}

@test "who leaves in mid-stream: cancelled, and hardly a further token" {
    left='.row.outcome == "cancelled" and .row.phase == "decode" and .row.generated <= 35 and .pieces == 5'
    sees openai_py 'leave-close leave-with async-leave-close async-leave-cancel' "$left"
    sees openai_js 'leave-break leave-abort leave-stream' "$left"
    sees ai leave-abort "$left"
    sees langchain 'leave-close async-leave-close async-leave-cancel' "$left"
}

@test "who leaves in the prefill: cancelled, and no token" {
    left='.row.outcome == "cancelled" and .row.phase == "prefill" and .row.generated == 0 and .pieces == 0'
    sees 'openai_js ai' 'leave-before leave-before-whole' "$left"
    sees 'openai_py langchain' 'async-leave-before async-leave-before-whole' "$left"
}

@test "what Node.js clients make of their own abort: a stream ends, a reply in one piece throws" {
    sees 'openai_js ai' 'leave-abort leave-before' '.error == null'
    sees openai_js leave-before-whole '.error.type == "APIUserAbortError"'
    sees ai leave-before-whole '.error.type == "DOMException"'
}

@test "who only stops reading: the server goes on, as long as the client lives" {
    goes_on='.row.outcome == "live" and .row.generated > 35 and .error == null'
    sees openai_py 'leave-break async-leave-break' "$goes_on"
    sees langchain 'leave-break async-leave-break' "$goes_on"
    sees openai_js leave-forget "$goes_on"
    sees ai leave-break "$goes_on" # textStream is one of two branches; the other reads on
    for driver in $EVERY; do
        for name in $(jq -r 'select(.row.outcome == "live") | .name' "$driver.seen"); do
            ledger_is "$name" '.outcome == "cancelled" or .outcome == "done"'
        done
    done
}

@test "a client's own timeout: typed, and cancelled" {
    sees 'openai_py langchain' 'timeout timeout-stall' '.row.outcome == "cancelled" and
        (.error.bases | index("APITimeoutError"))'
    sees openai_js timeout \
        '.row.outcome == "cancelled" and .error.type == "APIConnectionTimeoutError"'
}

@test "openai for Python: .stream() takes a reply that max_tokens ended for an error" {
    sees openai_py helper '.error.type == "LengthFinishReasonError" and .text == $text and
        .row.outcome == "done"'
}

@test "the books hold after all of this" {
    wait_until 5 books_hold
}
