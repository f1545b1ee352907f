# Reads the events of one request (trace_events.awk): was it a complete stream of tokens?
# Prints nothing and exits 0, or prints one sentence that says what was seen instead, and exits 1.
#
#     LC_ALL=C awk -f json.awk -f verdict.awk FILE          (error messages are read from their JSON)
#
# -v no_done=1: the server sends no [DONE]; a body that ended as its head promised is complete.

BEGIN { FS = "\t" }

$1 == "head" {
    status = $3
    type = $4
}

$1 == "encoding" { encoding = $2 }

$1 == "event" {
    events++
    if (done && $4 != "done" && why == "")
        why = "an event came after [DONE]"
    if ($4 == "token")
        tokens += $5
    else if ($4 == "reasoning")
        reasoning++
    else if ($4 == "done")
        done = 1
    else if ($4 == "error" && why == "") {
        json_parse($6)
        message = json_get("error.message") json_get("response.error.message")
        why = "an error event after " count(tokens, "token") ": " (message != "" ? message : $6)
    } else if ($4 == "bad" && why == "")
        why = "event " events " is not JSON: " substr($6, 1, 60)
}

$1 == "end" {
    how = $3
    partial = $6
}

END {
    if (status == "")
        fail("there was no HTTP response")
    if (status != 200)
        fail("HTTP status " status)
    if (tolower(type) !~ /^text\/event-stream/)
        fail("the reply is " (type == "" ? "of no declared type" : type) ", not text/event-stream")
    if (why != "")
        fail(why)
    if (encoding != "")
        fail("the body is compressed (" encoding "): ask without an Accept-Encoding header")
    if (!done && !no_done)
        fail("the stream ended after " count(tokens, "token") (partial ? " and a part of an event" : "") " without [DONE]")
    if (!done && how == "close")
        fail("neither [DONE] nor a length or a last chunk: nothing tells whether the stream is whole")
    if (how == "cut")
        fail("the body was cut short " (done ? "after [DONE]" : "after " count(tokens, "token")))
    if (tokens == 0)
        fail("the stream ended without a token" (reasoning ? " (" count(reasoning, "event") " of reasoning)" : ""))
}

function count(n, what) {
    return (n + 0) " " what (n == 1 ? "" : "s")
}

function fail(sentence) {
    print sentence
    exit 1
}
