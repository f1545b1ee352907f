#!/usr/bin/env python3
"""Makes curl traces whose every byte and time is chosen, and what must be read in them.

    trace.py FOLDER        FOLDER/NAME.trace and FOLDER/NAME.expected for every case below

The expectation comes from a reader of its own, which takes the body one byte at a time and leaves JSON
to Python: the awk program works on hex text and shares no idea with it.
"""
import json
import pathlib
import sys

HEAD = [b"HTTP/1.1 200 OK\r\n", b"Content-Type: text/event-stream; charset=utf-8\r\n"]
CHUNKED = [b"Transfer-Encoding: chunked\r\n"]
START = 10 * 3600 * 10**6          # 10:00:00
FIRST = 200_000
GAP = 25_000


def token(text, **more):
    return json.dumps({"token": text, **more}, ensure_ascii=False).encode()


def event(data, eol=b"\n", prefix=b"data: "):
    return prefix + data + eol + eol


def chunk(data, extension=b""):
    return b"%x%s\r\n%s\r\n" % (len(data), extension, data)


# --- the trace, as curl writes it ---

def stamp(us):
    us %= 86400 * 10**6
    return "%02d:%02d:%02d.%06d" % (us // 3600 // 10**6, us // 60 // 10**6 % 60, us // 10**6 % 60, us % 10**6)


def entry(us, what, data):
    out = ["%s %s, %d bytes (0x%x)\n" % (stamp(us), what, len(data), len(data))]
    for at in range(0, len(data), 16):
        part = data[at:at + 16]
        text = "".join(chr(c) if 32 <= c < 127 else "." for c in part)
        out.append("%04x: %-48s%s\n" % (at, "".join("%02x " % c for c in part), text))
    return "".join(out)


def trace(reads, head, start, before=""):
    out = [before, "%s == Info:   Trying 127.0.0.1:8170...\n" % stamp(start - 500)]
    out.append(entry(start, "=> Send header", b"GET /stream?prompt=a HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    out += [entry(start + 1000, "<= Recv header", line) for line in head + [b"\r\n"]]
    out += [entry(start + us, "<= Recv data", data) for us, data in reads]
    return "".join(out) + "%s == Info: Connection #0 to host localhost left intact\n" % stamp(start + 10**7)


# --- the other reader ---

class Reader:
    def __init__(self, head):
        fields = {k.strip().lower(): v.strip() for k, v in (line.split(b":", 1) for line in head[1:])}
        self.chunked = fields.get(b"transfer-encoding") == b"chunked"
        self.length = int(fields[b"content-length"]) if b"content-length" in fields else None
        self.out = ["encoding\t" + fields[b"content-encoding"].decode()] if b"content-encoding" in fields else []
        self.out += ["head\t1000\t%s\t%s" % (head[0].split()[1].decode(), fields.get(b"content-type", b"").decode())]
        self.state, self.size, self.left = "size", b"", 0
        self.line, self.previous, self.first = b"", b"", True
        self.data, self.name = [], b""
        self.reads = self.bytes = self.last = 0
        self.text, self.told = None, 0

    def read(self, us, data):
        self.reads += 1
        self.bytes += len(data)
        self.last = us
        if self.reads == 1:
            self.out.append("body\t%d" % us)
        for byte in data:
            (self.wire_byte if self.chunked else self.body_byte)(bytes([byte]))

    def wire_byte(self, c):
        if self.state == "data":
            self.left -= 1
            self.body_byte(c)
            if self.left == 0:
                self.state = "gap"
        elif self.state != "end" and c == b"\n":
            if self.state == "gap":
                self.state = "size"
            else:
                self.left = int(self.size.split(b";")[0], 16)
                self.state = "data" if self.left else "end"
            self.size = b""
        elif self.state == "size":
            self.size += c

    def body_byte(self, c):
        previous, self.previous = self.previous, c
        if c == b"\n" and previous == b"\r":
            return
        if c not in b"\r\n":
            self.line += c
            return
        line, self.line = self.line, b""
        if self.first and line.startswith(b"\xef\xbb\xbf"):
            line = line[3:]
        self.first = False
        field, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if line == b"":
            self.dispatch()
        elif field == b"data":
            self.data.append(value)
        elif field == b"event":
            self.name = value

    def dispatch(self):
        if self.data:
            data = b"\n".join(self.data)
            if self.text is None and data != b"[DONE]":
                self.text = not data.lstrip(b" \t\n").startswith(b"{")
            events, usage = self.events_of(data)
            for space in b"\t\n\r":
                data = data.replace(bytes([space]), b" ")
            for kind, count in events:
                self.out.append("event\t%d\t%d\t%s\t%d\t%s" % (
                    self.last, self.reads, kind, count, data.replace(b"\0", b"?").decode("latin-1")))
            if usage:
                self.out.append("usage\t%d\t%d\t%d\t%d" % (self.last, *usage))
        self.data, self.name = [], b""

    def events_of(self, data):
        """([(kind, tokens)], usage or None): one event of the stream, two if its last one has text."""
        if self.name == b"error":
            return [("error", 0)], None
        if data == b"[DONE]":
            return [("done", 0)], None
        if self.text:
            return [("token", 1) if data else ("other", 0)], None
        try:
            value = json.loads(data.decode("latin-1"), strict=False)
        except ValueError:
            return [("bad", 0)], None
        if not isinstance(value, dict):
            return [("other", 0)], None
        if value.get("error"):
            return [("error", 0)], None
        kind = value.get("type", "")
        if kind == "response.failed":
            return [("error", 0)], None
        usage = self.usage_of(value)
        told, self.told = self.told, usage[0] if usage else self.told
        full, thought = self.texts_of(value)
        if kind.startswith("response.") and not kind.endswith(".delta"):
            full = thought = None               # the whole text of a part again
        elif kind.startswith("response.reasoning"):
            full, thought = None, full
        if "token" in value:
            events = [("token", value.get("n", 1))]
        elif full:
            events = [("token", max(1, self.told - told if usage else 1))]
        else:
            events = [("reasoning" if thought else "other", 0)]
        if value.get("stop") is True or kind in ("message_stop", "response.completed", "response.incomplete"):
            events = [event for event in events if event[0] == "token"] + [("done", 0)]
        return events, usage

    @staticmethod
    def usage_of(value):
        """(completion, prompt, reasoning) of what counts the tokens of the stream so far, or None."""
        if "tokens_predicted" in value:
            return value["tokens_predicted"], value.get("tokens_evaluated", 0), 0
        usage = value.get("usage") or value.get("response", {}).get("usage") or {}
        for out, into in (("completion", "prompt"), ("output", "input")):
            if out + "_tokens" in usage:
                thought = usage.get(out + "_tokens_details", {}).get("reasoning_tokens", 0)
                return usage[out + "_tokens"], usage.get(into + "_tokens", 0), thought
        return None

    @staticmethod
    def texts_of(value):
        """The text of the answer and the text of a reasoning, in every API that is known."""
        choice = (value.get("choices") or [{}])[0]
        delta = choice.get("delta", {})
        call = (delta.get("tool_calls") or [{}])[0].get("function", {})
        own = value.get("delta")
        own = own if isinstance(own, dict) else {"text": own}
        return (choice.get("text") or delta.get("content") or call.get("arguments") or value.get("content")
                or value.get("text") or own.get("text") or own.get("partial_json"),
                delta.get("reasoning_content") or delta.get("reasoning") or own.get("thinking"))

    def end(self):
        if self.chunked:
            how = "chunks" if self.state == "end" else "cut"
        elif self.length is not None:
            how = "length" if self.bytes >= self.length else "cut"
        else:
            how = "close"
        partial = 1 if self.line or self.data else 0
        self.out.append("end\t%d\t%s\t%d\t%d\t%d" % (self.last, how, self.reads, self.bytes, partial))
        return "\n".join(self.out) + "\n"


# --- the cases ---

def paced(parts):
    return [(FIRST + i * GAP, part) for i, part in enumerate(parts)]


def split_at(data, k):
    return paced([part for part in (data[:k], data[k:]) if part])


def chunked(events, extension=b""):
    return [chunk(e, extension) for e in events] + [b"0\r\n\r\n"]


def cases():
    """Yields (name, head, reads, start, text before the trace)."""
    def case(name, reads, head=None, start=START, before=""):
        return name, HEAD + CHUNKED if head is None else head, reads, start, before

    three = [event(token(t)) for t in ("a", " bé", " 漢😀")]
    done = event(b"[DONE]")
    whole = b"".join(chunked(three + [done]))
    for k in range(1, len(whole)):
        yield case("split-chunked-%03d" % k, split_at(whole, k))

    for name, eol in (("crlf", b"\r\n"), ("cr", b"\r"), ("lf", b"\n")):
        body = b": hi" + eol + b"".join(event(token(t), eol) for t in ("a", " é")) + event(b"[DONE]", eol)
        head = HEAD + [b"Content-Length: %d\r\n" % len(body)]
        for k in range(1, len(body)):
            yield case("split-%s-%03d" % (name, k), split_at(body, k), head)
        yield case("close-%s" % name, paced([body]), HEAD)

    yield case("one-read-each", paced(chunked(three + [done])))
    yield case("all-in-one-read", paced([whole]))
    yield case("one-byte-reads", [(FIRST + i * 10, whole[i:i + 1]) for i in range(len(whole))])
    yield case("two-in-one-chunk", paced(chunked([three[0] + three[1], three[2] + done])))
    yield case("chunk-extension", paced(chunked(three + [done], b";a=b")))
    yield case("chunk-upper-case", paced([chunk(event(token("0" * 22))).replace(b"2b", b"2B", 1)] + chunked([done])))
    yield case("no-space", paced(chunked([event(token("a"), prefix=b"data:"), event(b"[DONE]", prefix=b"data:")])))
    yield case("two-spaces", paced(chunked([event(token("a"), prefix=b"data:  "), done])))
    yield case("multi-line", paced(chunked([b'data: {"token":\ndata: "a"}\n\n', done])))
    yield case("bom", paced(chunked([b"\xef\xbb\xbf" + three[0], done])))
    yield case("comments", paced(chunked([b": ping\n\n", b":\n", three[0], b": ping\n\n", three[1], done])))
    yield case("fields", paced(chunked([b"id: 1\nretry: 5\nevent: x\n" + three[0], b"id: 2\nfoo: bar\ndata\n\n", b"id\n" + done])))
    yield case("no-data", paced(chunked([b"event: error\n\n", three[0], done])))
    yield case("midnight", paced(chunked(three + [done])), start=86400 * 10**6 - 210_000)
    yield case("eight-and-nine", paced(chunked(three + [done])), start=(8 * 3600 + 9 * 60 + 8) * 10**6 + 99)
    yield case("hours-long", [(FIRST + i * 3600 * 10**6, part) for i, part in enumerate(chunked(three + [done]))])
    yield case("no-done", paced(chunked(three)))
    yield case("cut", paced(chunked(three + [done])[:2]))
    yield case("cut-in-event", paced([chunk(three[0]), b"1c\r\ndata: {\"tok"]))
    yield case("cut-before-blank-line", paced([chunk(three[0]), chunk(three[1][:-1])]))
    yield case("cut-after-done", paced(chunked(three + [done])[:-1]))
    yield case("short-body", paced([three[0] + done]), HEAD + [b"Content-Length: 1000\r\n"])
    error = b'event: error\ndata: {"error":{"message":"no \\"luck\\"","type":"x","param":null,"code":"y"}}\n\n'
    yield case("error-event", paced(chunked([three[0], error])))
    yield case("error-json", paced(chunked([three[0], event(b'{"error":{"message":"openai"}}')])))
    yield case("error-null", paced(chunked([event(b'{"token":"a","error":null}'), done])))
    yield case("garbled", paced(chunked([three[0], event(b'{"token":"b"'), three[2], done])))
    yield case("after-done", paced(chunked([three[0], done, three[1]])))
    yield case("single-token", paced(chunked([three[0], done])))
    yield case("no-token", paced(chunked([done])))
    yield case("several-tokens", paced(chunked([event(token("a b", n=2)), event(token(" c d e", n=3)), done])))
    yield case("empty-body", [], HEAD + [b"Content-Length: 0\r\n"])
    yield case("nul", paced(chunked([event(b'{"token":"a"} \0'.replace(b" ", b"")), done])))
    torture = ["\"", "\\", "\\\"", "\\n", "\n\t", "\u2028\u2029", "é漢😀", "}{][,:", "\"n\":7", "data: x", "[DONE]", "%s%d"]
    yield case("torture", paced(chunked([event(token(t)) for t in torture] +
                                        [event(json.dumps({"token": t}).encode()) for t in torture] + [done])))
    yield case("long-event", paced([part for e in (event(token("x y" * 30000)), done) for part in cut_every(chunk(e), 16384)] +
                                   [b"0\r\n\r\n"]))
    yield from dialects(case, done)
    chat = ['{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}',
            '{"choices":[{"index":0,"delta":{"content":"Hi"}}]}',
            '{"choices":[{"index":0,"delta":{"content":" \\"you\\""}}],"usage":null}',
            '{"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}',
            '{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
            '{"choices":[],"usage":{"completion_tokens":2}}']
    yield case("chat", paced(chunked([event(c.encode()) for c in chat] + [done])))
    yield case("completions", paced(chunked([event(b'{"choices":[{"text":" a"}]}'), event(b'{"choices":[{"text":""}]}'), done])))
    early = "".join(entry(START + 100, "<= Recv header", line) for line in (b"HTTP/1.1 100 Continue\r\n", b"\r\n"))
    sent = entry(START, "=> Send header", b"POST /stream HTTP/1.1\r\n\r\n")
    name, head, reads, start, _ = case("continue", paced(chunked(three + [done])))
    yield name, head, reads, start, ("late head", sent + early)
    moved = sent + "".join(entry(START + 100, "<= Recv header", line)
                           for line in (b"HTTP/1.1 302 Found\r\n", b"Location: /x\r\n", b"Content-Length: 5\r\n", b"\r\n"))
    moved += entry(START + 200, "<= Recv data", b"moved")
    name, head, reads, start, _ = case("redirect", paced(chunked(three + [done])), start=START + 5 * 10**6)
    yield name, head, reads, start, ("again", moved)
    yield case("status-400", [(2000, b'{"error":{"message":"no"}}')],
               [b"HTTP/1.1 400 Bad Request\r\n", b"Content-Type: application/json\r\n", b"Content-Length: 26\r\n"])


def dialects(case, done):
    """The streams of other servers: what is a token there, and what ends them."""
    usage = ['{"choices":[{"delta":{"role":"assistant","content":""}}],"usage":{"prompt_tokens":7,"completion_tokens":0}}',
             '{"choices":[{"delta":{"content":"a b"}}],"usage":{"prompt_tokens":7,"completion_tokens":2}}',
             '{"choices":[{"delta":{"reasoning_content":"h"}}],"usage":{"completion_tokens":4}}',
             '{"choices":[{"delta":{"content":" c d e"}}],"usage":{"completion_tokens":7}}',
             '{"choices":[{"delta":{"content":" f"}}],"usage":{"completion_tokens":7}}',
             '{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":8,"completion_tokens_details":{"reasoning_tokens":2}}}']
    whole = b"".join(chunked([event(u.encode()) for u in usage] + [done]))
    for k in range(1, len(whole)):
        yield case("split-usage-%03d" % k, split_at(whole, k))
    call = ['{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":""}}]}}]}',
            '{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"a\\""}}]}}]}',
            '{"choices":[{"delta":{"reasoning":"hm"}}]}']
    yield case("tool-call", paced(chunked([event(c.encode()) for c in call] + [done])))
    llama = ['{"index":0,"content":"Hi","tokens":[5],"stop":false}', '{"content":"","stop":false}',
             '{"content":" you","stop":true,"tokens_predicted":2}']
    counted = ['{"content":"Hi","stop":false,"tokens_predicted":1,"tokens_evaluated":9}',
               '{"content":" \u00e9","stop":false,"tokens_predicted":4,"tokens_evaluated":9}',
               '{"content":"","stop":true,"tokens_predicted":5,"tokens_evaluated":9}']
    yield case("llama.cpp-counted", paced(chunked([event(c.encode()) for c in counted])))
    yield case("llama.cpp", paced(chunked([event(c.encode()) for c in llama])))
    blocks = [b'event: message_start\ndata: {"type":"message_start","message":{"role":"assistant","content":[]}}\n\n',
              b'event: ping\ndata: {"type": "ping"}\n\n',
              event(b'{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}'),
              event(b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}'),
              event(b'{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}'),
              b'event: message_stop\ndata: {"type":"message_stop"}\n\n']
    yield case("message-stop", paced(chunked(blocks)))
    call = [event(b'{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","name":"f","input":{}}}'),
            event(b'{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\\"a"}}'),
            event(b'{"type":"message_stop"}')]
    yield case("message-tool", paced(chunked(call)))
    answer = [event(b'{"type":"response.created","response":{"error":null,"usage":null}}'),
              event(b'{"type":"response.content_part.added","part":{"type":"output_text","text":""}}'),
              event(b'{"type":"response.reasoning_text.delta","delta":"hm"}'),
              event(b'{"type":"response.reasoning_text.done","text":"hm"}'),
              event(b'{"type":"response.output_text.delta","delta":"Hi"}'),
              event(b'{"type":"response.output_text.delta","delta":" you"}'),
              event(b'{"type":"response.output_text.done","text":"Hi you"}')]
    usage = b'{"input_tokens":7,"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2}}'
    for name in (b"completed", b"incomplete"):
        last = event(b'{"type":"response.%s","response":{"error":null,"usage":%s}}' % (name, usage))
        yield case("response-" + name.decode(), paced(chunked(answer + [last])))
    failed = event(b'{"type":"response.failed","response":{"error":{"message":"no room"}}}')
    yield case("response-failed", paced(chunked(answer + [failed])))
    words = [event(b"hello"), event(b"42"), event(b'{"token":"not here"}'), event(b'"quoted"'), b"data:\n\n"]
    yield case("plain-text", paced(chunked(words + [done])))
    yield case("plain-text-no-done", paced(chunked(words)))
    yield case("plain-text-close", paced(words), HEAD)
    yield case("gzip", paced(chunked([b"\x1f\x8b\x08\x00", b"\xca\x4c\x0a\x0d"])), HEAD + CHUNKED + [b"Content-Encoding: gzip\r\n"])


def cut_every(data, n):
    return [data[i:i + n] for i in range(0, len(data), n)]


def many(n):
    events = [event(token(" word%d" % i)) for i in range(n)] + [event(b"[DONE]")]
    return "many-%d" % n, HEAD + CHUNKED, paced(chunked(events)), START, ""


def write(folder, name, head, reads, start, before):
    reader = Reader(head)
    for us, data in reads:
        reader.read(us, data)
    expected = reader.end()
    if before and before[0] == "late head":         # of the same request: no second "=> Send header"
        text = before[1] + "".join(trace(reads, head, start).partition(stamp(start + 1000) + " <=")[1:])
    elif before:
        text = trace(reads, head, start, before[1])
        expected = "head\t100\t302\t\nbody\t200\n" + expected
    else:
        text = trace(reads, head, start)
    (folder / (name + ".trace")).write_bytes(text.encode("latin-1"))
    (folder / (name + ".expected")).write_bytes(expected.encode("latin-1"))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for one in list(cases()) + [many(10000)]:
        write(pathlib.Path(sys.argv[1]), *one)
