# Reads the hex trace of one request (curl --trace FILE --trace-time) and tells what arrived when:
#
#     LC_ALL=C awk -f json.awk -f trace_clock.awk -f trace_events.awk FILE
#
# Output, tab-separated; US is microseconds since the request was sent:
#
#     head   US  STATUS  CONTENT-TYPE           the response's head is complete
#     body   US                                 its first body byte
#     encoding   NAME                           the body is compressed: nothing in it can be read
#     event  US  READ  KIND  TOKENS  DATA       an SSE event is complete
#     usage  US  COMPLETION  PROMPT  REASONING  the server's own count of tokens, with that event
#     end    US  HOW   READS BYTES   PARTIAL    HOW the body ended: chunks, length, close or cut;
#                                               PARTIAL is 1 if an event was begun and not completed
#
# KIND is token, reasoning (text of a model that thinks aloud: no token of the answer), done, error
# (`event: error`, or a JSON with a member "error"), bad (not JSON) or other (a role, usage, an empty
# delta). READ numbers curl's reads of the body: events with the same READ arrived together. DATA is
# the event's data, its newlines as spaces.
#
# TOKENS is, for a token, the member "n"; or by how much the server's own count has grown, where every
# event tells it; else 1. It is 0 for anything else.
#
# -v format=json: every event is JSON; text: every event but [DONE] is a token; auto (the default):
# text if the first event does not begin as an object does.
#
# "Sent" is curl's first "=> Send header" line of the last request in the trace: connecting and
# redirects before it are not counted.
#
# How it works: the body stays hex text ("64 61 74 ") until a line of it is complete. Every byte is
# three characters wide, so index(h, "0a ") finds newlines; no locale, no NUL and no half of
# a UTF-8 character can disturb it. Over HTTP/1.1 curl's "Recv data" is the bytes before de-chunking
# (curl 7.88 to 8.x), so the chunk sizes are taken out here.

BEGIN {
    OFS = "\t"
    for (i = 1; i < 256; i++)
        CHAR[sprintf("%02x", i)] = sprintf("%c", i)
    CHAR["00"] = "?"                # awk cannot hold it, and no event that we read has one
    DIGITS = "0123456789abcdef"
    if (format == "")
        format = "auto"
    sent = -1
    new_response()
}

# 12:34:56.789012 <= Recv data, 95 bytes (0x5f)
/^[0-9][0-9]:[0-9][0-9]:[0-9][0-9]\.[0-9]+ / {
    now = clock($1)
    part = ""
    if ($2 == "=>" && $4 ~ /^header/) {
        # A request after a response starts anew: what was measured so far was a redirect's.
        if (status != "")
            new_response()
        if (sent < 0)
            sent = now
    } else if ($2 == "<=" && $3 == "Recv" && $4 == "header,") {
        part = "head"
        left = $5
    } else if ($2 == "<=" && $3 == "Recv" && $4 == "data,") {
        part = "body"
        left = $5
        reads++
        bytes += $5
        last = now
        if (reads == 1)
            print "body", micros(now - sent)
    }
    next
}

# 0010: 0a 64 61 74 61                                  .data
part != "" && left > 0 {
    n = left < 16 ? left : 16
    left -= n
    h = substr($0, index($0, ":") + 2, 3 * n)
    if (part == "head")
        head_bytes(h)
    else if (chunked)
        chunk_bytes(h)
    else
        body_bytes(h)
}

END {
    if (status == "")
        exit
    if (chunked)
        how = chunk == "end" ? "chunks" : "cut"
    else if (length_told >= 0)
        how = bytes >= length_told ? "length" : "cut"
    else
        how = "close"
    print "end", micros(last < 0 ? 0 : last - sent), how, reads, bytes, (big line != "" || has_data)
}

function new_response() {
    sent = -1
    status = ""
    type = ""
    chunked = 0
    length_told = -1
    head_line = ""
    reads = bytes = 0
    last = -1
    chunk = "size"                  # size, data, gap (the CRLF after the data), end
    size = ""
    line = big = ""
    skip_lf = has_data = is_error = 0
    data = ""
    at_start = 1
    spelling = format
    told = 0                        # the server's count with the event before
}

function text_of(h,    byte, n, i, s) {
    n = split(h, byte, " ")
    s = ""
    for (i = 1; i <= n; i++)
        s = s CHAR[byte[i]]
    return s
}

# --- the head ---

function head_bytes(h,    i) {
    while ((i = index(h, "0a ")) > 0) {
        head_seen(text_of(head_line substr(h, 1, i - 1)))
        head_line = ""
        h = substr(h, i + 3)
    }
    head_line = head_line h
}

function head_seen(s,    name, value) {
    sub(/\r$/, "", s)
    if (s ~ /^HTTP\//) {
        split(s, word, " ")
        status = word[2]
        type = ""
        chunked = 0
        length_told = -1
    } else if (s == "") {
        if (status < 200)
            status = ""             # 100 Continue: the real head follows
        else if (reads == 0)        # and not a trailer
            print "head", micros(now - sent), status, type
    } else {
        name = tolower(substr(s, 1, index(s, ":") - 1))
        value = substr(s, index(s, ":") + 1)
        gsub(/^[ \t]+|[ \t]+$/, "", value)
        if (name == "content-type")
            type = value
        else if (name == "content-encoding" && tolower(value) != "identity")
            print "encoding", value
        else if (name == "content-length")
            length_told = value + 0
        else if (name == "transfer-encoding")
            chunked = tolower(value) ~ /chunked/
    }
}

# --- chunked transfer ---

function chunk_bytes(h,    i, n) {
    while (h != "") {
        if (chunk == "data") {
            n = length(h) / 3
            if (n < chunk_left) {
                chunk_left -= n
                body_bytes(h)
                return
            }
            body_bytes(substr(h, 1, 3 * chunk_left))
            h = substr(h, 3 * chunk_left + 1)
            chunk = "gap"
        } else if (chunk == "end") {
            return
        } else {
            i = index(h, "0a ")
            if (i == 0) {
                size = size h
                return
            }
            size = size substr(h, 1, i - 1)
            h = substr(h, i + 3)
            if (chunk == "gap")
                chunk = "size"
            else {
                chunk_left = size_of(text_of(size))
                chunk = chunk_left > 0 ? "data" : "end"
            }
            size = ""
        }
    }
}

# The size in hex; an extension (";...") and the CR end it.
function size_of(s,    i, d, v) {
    v = 0
    for (i = 1; (d = index(DIGITS, tolower(substr(s, i, 1)))) > 0 && i <= length(s); i++)
        v = v * 16 + d - 1
    return v
}

# --- lines and events (WHATWG HTML, 9.2.6: CR, LF and CRLF all end a line) ---

function body_bytes(h,    lf, cr, i) {
    while (h != "") {
        if (skip_lf) {
            skip_lf = 0
            if (substr(h, 1, 3) == "0a ") {
                h = substr(h, 4)
                continue
            }
        }
        lf = index(h, "0a ")
        cr = index(h, "0d ")
        if (lf == 0 && cr == 0) {
            line = line h
            # Two levels, so that a long line is not copied once for each 16 bytes of it.
            if (length(line) > 6144) {
                big = big line
                line = ""
            }
            return
        }
        skip_lf = cr > 0 && (lf == 0 || cr < lf)
        i = skip_lf ? cr : lf
        line_seen(big line substr(h, 1, i - 1))
        big = line = ""
        h = substr(h, i + 3)
    }
}

function line_seen(h,    value) {
    if (at_start) {
        at_start = 0
        if (substr(h, 1, 9) == "ef bb bf ")
            h = substr(h, 10)
    }
    if (h == "")
        event_seen()
    else if (substr(h, 1, 15) == "64 61 74 61 3a " || h == "64 61 74 61 ") {        # data:
        value = text_of(without_space(substr(h, 16)))
        data = has_data ? data "\n" value : value
        has_data = 1
    } else if (substr(h, 1, 18) == "65 76 65 6e 74 3a ")                            # event:
        is_error = text_of(without_space(substr(h, 19))) == "error"
}

function without_space(h) {
    return substr(h, 1, 3) == "20 " ? substr(h, 4) : h
}

function event_seen(    kind, n) {
    if (has_data) {
        if (spelling == "auto" && data != "[DONE]")
            spelling = data ~ /^[ \t\n]*\{/ ? "json" : "text"
        n = 0
        if (is_error)
            kind = "error"
        else if (data == "[DONE]")
            kind = "done"
        else if (spelling == "text")
            kind = (n = data != "") ? "token" : "other"
        else if (!json_parse(data))
            kind = "bad"
        else if (("error" in JSON_TYPE && JSON_RAW["error"] != "null") || JSON_RAW["type"] == "response.failed")
            kind = "error"
        else
            kind = "json"
        gsub(/[\t\n\r]/, " ", data)
        if (kind == "json")
            json_event()
        else
            tell(kind, n)
    }
    has_data = is_error = 0
    data = ""
}

function tell(kind, n) {
    print "event", micros(now - sent), reads, kind, n, data
}

function json_event(    n) {
    read_usage()
    n = tokens_in()
    if (n > 0)
        tell("token", n)
    if (is_end())
        tell("done", 0)
    else if (n == 0)
        tell(reasons() ? "reasoning" : "other", 0)
    if (counted >= 0) {
        told = counted
        print "usage", micros(now - sent), counted, prompt_counted, reasoning_counted
    }
}

# How many tokens have there been up to this event, by the server's count? -1 if it does not tell.
function read_usage() {
    counted = -1
    if (is_number("usage.completion_tokens"))
        usage_of("usage.", "completion_tokens", "prompt_tokens")
    else if (is_number("usage.output_tokens"))
        usage_of("usage.", "output_tokens", "input_tokens")
    else if (is_number("response.usage.output_tokens"))
        usage_of("response.usage.", "output_tokens", "input_tokens")
    else if (is_number("tokens_predicted"))
        usage_of("", "tokens_predicted", "tokens_evaluated")
}

function usage_of(where, completion, prompt) {
    counted = JSON_RAW[where completion] + 0
    prompt_counted = JSON_RAW[where prompt] + 0
    reasoning_counted = JSON_RAW[where completion "_details.reasoning_tokens"] + 0
}

# The last event of what has no [DONE]: llama.cpp's own stream, and those of events with a "type".
function is_end() {
    return JSON_RAW["stop"] == "true" || \
           JSON_RAW["type"] ~ /^(message_stop|response\.completed|response\.incomplete)$/
}

# How many tokens does the parsed event bring? Of OpenAI-style replies, one for a delta that is not
# empty, unless a usage beside it says more.
function tokens_in() {
    if ("token" in JSON_TYPE)
        return JSON_TYPE["n"] == "number" ? believable(JSON_RAW["n"]) : 1
    if (repeats() || JSON_RAW["type"] ~ /^response\.reasoning/)
        return 0
    if (!(filled("choices.0.text") || filled("choices.0.delta.content") || \
          filled("choices.0.delta.tool_calls.0.function.arguments") || \
          filled("content") || filled("text") || filled("delta") || filled("delta.text") || \
          filled("delta.partial_json")))
        return 0
    return counted >= 0 ? believable(counted - told) : 1
}

# An event of the Responses API that is no delta has a part's whole text once more.
function repeats() {
    return JSON_RAW["type"] ~ /^response\./ && JSON_RAW["type"] !~ /\.delta$/
}

# A count of tokens in one event: what cannot be one must not become a billion gaps of 0.
function believable(n) {
    return n >= 1 && n <= 65536 ? int(n) : 1
}

function reasons() {
    return filled("choices.0.delta.reasoning_content") || filled("choices.0.delta.reasoning") || \
           filled("delta.thinking") || (JSON_RAW["type"] ~ /^response\.reasoning.*\.delta$/ && filled("delta"))
}

function filled(path) {
    return JSON_TYPE[path] == "string" && JSON_RAW[path] != ""
}

function is_number(path) {
    return JSON_TYPE[path] == "number"
}
