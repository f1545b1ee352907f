# The cases of sdk.bats for one driver ($driver); what a case may have is told in drive.mjs.
#
# Each is named, and is the request of that name in the ledger.

def python: $driver == "openai_py" or $driver == "langchain";
def ours($drivers): select($drivers | index($driver));

# 500 tokens in 20 s: who did not leave is found out long before the end.
def long: {max_tokens: 500, runnel: {itl_ms: 40}};
def leave($how): {name: "leave-\($how)", leave: $how, after: 5} + long;
def fault($name; $fault): {name: $name, runnel: {$fault}};
def async: .name = "async-\(.name)" | .client = "async";

[
    # what is asked for
    {name: "chat", usage: true},
    {name: "completions", api: "completions", usage: true},
    {name: "chat-whole", stream: false},
    {name: "completions-whole", api: "completions", stream: false},
    {name: "no-usage"},
    {name: "torture", max_tokens: 60, runnel: {vocab: "torture"}},
    {name: "torture-whole", stream: false, max_tokens: 60, runnel: {vocab: "torture"}},
    ("crlf", "cr", "nospace", "comments", "multiline", "bom", "drip"
        | {name: "wire-\(.)", max_tokens: 60, runnel: {vocab: "torture", wire: .}}),

    # errors
    {name: "bad-number", max_tokens: 100001},
    {name: "bad-number-whole", max_tokens: 100001, stream: false},
    {name: "unsupported", body: {n: 2}},
    {name: "wrong-key", key: "sk-wrong"},
    {name: "wrong-key-whole", key: "sk-wrong", stream: false},
    fault("status-429"; "status:429"),
    fault("status-503"; "status:503"),
    (fault("status-503-whole"; "status:503") + {stream: false}),
    (fault("retries"; "status:503") + {retries: 2}),
    fault("error"; "error@3"),
    fault("eof"; "eof@3"),
    fault("reset"; "reset@3"),
    fault("nodone"; "nodone"),
    fault("garble"; "garble@3"),

    # leaving
    leave("break"),
    (leave("abort", "before") | ours(["openai_js", "ai"])),
    (leave("stream", "forget") | ours(["openai_js"])),
    (leave("close") | ours(["openai_py", "langchain"])),
    (leave("with") | ours(["openai_py"])),
    (leave("break", "close", "cancel") | select(python) | async),
    (leave("before") | select(python) | async)
] | map(
    if .leave == "before" then
        # in the prefill, for a stream and for a reply in one piece
        (. + {after: 200, max_tokens: 10, runnel: {ttft_ms: 5000}}) | ., (.name += "-whole" | .stream = false)
    else . end
) + [
    ({name: "timeout", timeout_ms: 300, stream: false} + long | ours(["openai_js", "openai_py", "langchain"])),
    ({name: "timeout-stall", timeout_ms: 300, runnel: {fault: "stall@3:20000"}} | select(python)),
    ({name: "async-chat", usage: true, client: "async"} | select(python)),
    ({name: "helper", api: "helper"} | ours(["openai_py"]))
] | .[]
