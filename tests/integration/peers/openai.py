"""The OpenAI-compatible endpoints, as their clients use them, and as they should not."""

import json
import random
import time

import cancel
import lab
import same

COMPLETIONS = "/v1/completions"
CHAT = "/v1/chat/completions"


def body_of(path, prompt, **members):
    if path == COMPLETIONS:
        return {"prompt": prompt} | members
    return {"messages": [{"role": "user", "content": prompt}]} | members


def shape(reply, path, kind):
    """What every object of a reply has, and how it is spelled."""
    prefix = "cmpl-" if path == COMPLETIONS else "chatcmpl-"
    lab.check(reply["id"].startswith(prefix) and len(reply["id"]) > len(prefix), reply)
    lab.check(reply["object"] == kind and isinstance(reply["model"], str), reply)
    lab.check(abs(reply["created"] - time.time()) < 3600, "created", reply)


def whole(connection, path, prompt, **members):
    """A reply in one piece: text, why it ended, usage."""
    status, headers, body = connection.ask("POST", path, body_of(path, prompt, **members))
    lab.check(status == 200, status, body)
    reply = json.loads(body)
    shape(reply, path, "text_completion" if path == COMPLETIONS else "chat.completion")
    lab.check(list(reply) == ["id", "object", "created", "model", "choices", "usage"], reply)
    lab.check(reply["id"].endswith("-" + headers["X-Request-Id"]), reply["id"], headers)
    choice, = reply["choices"]
    lab.check(choice["index"] == 0 and choice["logprobs"] is None, choice)
    if path == COMPLETIONS:
        text = choice["text"]
    else:
        lab.check(choice["message"]["role"] == "assistant", choice)
        text = choice["message"]["content"]
    return text, choice["finish_reason"], reply["usage"]


class Reader:
    """Takes the events of a stream, and checks what each may be at its place."""

    def __init__(self, path, tells_usage=False):
        self.path = path
        self.tells_usage = tells_usage
        self.texts = []
        self.extras = []
        self.finish = self.usage = self.error = self.id = None
        self.role = self.done = False

    def take(self, event):
        kind, data = event
        lab.check(kind == "message" and not self.done and self.error is None, event)
        if data == "[DONE]":
            lab.check(self.finish and (self.usage is not None) == self.tells_usage,
                      "[DONE] before the rest:", vars(self))
            self.done = True
            return
        chunk = json.loads(data)
        if "error" in chunk:
            lab.check(list(chunk) == ["error"], chunk)
            self.error = chunk["error"]
            return
        shape(chunk, self.path,
              "text_completion" if self.path == COMPLETIONS else "chat.completion.chunk")
        lab.check(self.id in (None, chunk["id"]), "another id:", chunk)
        self.id = chunk["id"]
        lab.check(("usage" in chunk) == self.tells_usage, "usage:", chunk)
        if chunk["choices"]:
            lab.check(chunk.get("usage") is None and self.usage is None, chunk)
            self.take_choice(*chunk["choices"])
            self.extras.append(chunk.get("runnel"))
        else:
            lab.check(self.finish, "usage before the end:", chunk)
            self.usage = chunk["usage"]

    def take_choice(self, choice):
        lab.check(choice["index"] == 0 and choice["logprobs"] is None, choice)
        lab.check(self.finish is None, "a choice after the last:", choice)
        self.finish = choice["finish_reason"]
        if self.path == COMPLETIONS:
            text = choice["text"]
        else:
            delta = choice["delta"]
            text = delta.get("content", "")
            if "role" in delta:
                lab.check(delta == {"role": "assistant", "content": ""} and not self.role and
                          not self.texts, "a role:", delta)
                self.role = True
            lab.check(self.role, "text before the role:", choice)
        if self.finish is None and not (self.path == CHAT and "role" in choice["delta"]):
            lab.check(text, "no text:", choice)
            self.texts.append(text)
        else:
            lab.check(not text, "text where none belongs:", choice)

    @property
    def text(self):
        return "".join(self.texts)


def streamed(connection, path, prompt, stream_options=None, **members):
    tells_usage = bool(stream_options and stream_options.get("include_usage"))
    if stream_options is not None:
        members["stream_options"] = stream_options
    body = body_of(path, prompt, stream=True, **members)
    status, headers, body = connection.ask("POST", path, body)
    lab.check(status == 200, status, body)
    lab.check(headers["Content-Type"] == "text/event-stream; charset=utf-8", headers)
    lab.check(headers["X-Accel-Buffering"] == "no", headers)
    events = lab.Events()
    reader = Reader(path, tells_usage)
    for event in events.feed(body):
        reader.take(event)
    lab.check(not events.rest, "the rest is", events.rest)
    return reader


def complete(reader):
    lab.check(reader.done, "no [DONE]:", vars(reader))
    return reader


class Live(lab.Stream):
    """One streamed reply, event by event as it comes."""

    def __init__(self, path, prompt="hello", headers="", **members):
        self.peer = lab.connect()
        self.id = f"live-{id(self):x}-{time.monotonic_ns()}"
        self.reader = Reader(path)
        body = json.dumps(body_of(path, prompt, **members))
        self.sent_at = time.monotonic()
        self.peer.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}"
                          f"Content-Type: application/json\r\nX-Request-Id: {self.id}\r\n"
                          f"Content-Length: {len(body.encode())}\r\n\r\n{body}".encode())
        self.begin()

    def take(self, count):
        while len(self.reader.texts) < count:
            event = self.next()
            lab.check(event is not None, "it ended after", self.reader.texts)
            self.reader.take(event)


# --- the same text ---

def prompts(count):
    connection = lab.Connection()
    for prompt, controls in same.random_prompts(int(count)):
        max_tokens = controls["max_tokens"]
        expected = same.printed(prompt, **controls)
        what = f"{prompt!r} {controls}"
        lab.check("".join(same.streamed(connection, prompt, **controls)) == expected, what)
        lab.check(same.whole(connection, prompt, **controls) == expected, what)
        members = {"max_tokens": max_tokens, "seed": controls["seed"],
                   "runnel": {"vocab": controls["vocab"]}}
        prompt_tokens = set()
        for path in COMPLETIONS, CHAT:
            text, finish, usage = whole(connection, path, prompt, **members)
            lab.check(text == expected and finish == "length", path, what, "differs from gen")
            lab.check(usage["completion_tokens"] == max_tokens, path, what, usage)
            lab.check(usage["total_tokens"] == usage["prompt_tokens"] + max_tokens, usage)
            reader = complete(streamed(connection, path, prompt,
                                       stream_options={"include_usage": True}, **members))
            lab.check(reader.text == expected and reader.finish == "length", path, what)
            lab.check(len(reader.texts) == max_tokens, path, what, len(reader.texts), "events")
            lab.check(reader.usage == usage, path, what, reader.usage, usage)
            prompt_tokens.add(usage["prompt_tokens"])
        lab.check(len(prompt_tokens) == 1, what, prompt_tokens)


def conversations():
    """Several messages are the documented text, and roles and parts are in it."""
    connection = lab.Connection()
    say = lambda role, content: {"role": role, "content": content}
    part = lambda text: {"type": "text", "text": text}
    for messages, prompt in [
            ([say("user", [part("hel"), part("lo")])], "hello"),
            ([say("system", "hello")], "system: hello"),
            ([say("developer", "Be\nbrief."), say("user", "ä")], "developer: Be\nbrief.\nuser: ä"),
            ([say("user", "a"), say("assistant", None), say("tool", "4")],
             "user: a\nassistant: \ntool: 4")]:
        status, _, body = connection.ask("POST", CHAT, {"messages": messages, "max_tokens": 9})
        lab.check(status == 200, body)
        text = json.loads(body)["choices"][0]["message"]["content"]
        lab.check(text == same.printed(prompt, 9), messages)


# --- stop sequences ---

def expected_until(text, tokens, stops):
    """What is left of a text, and how many tokens it takes to know; by plain search."""
    ends = [(text.index(stop) + len(stop), -len(stop), stop) for stop in stops if stop in text]
    if not ends:
        return text, "length", len(tokens)
    end, _, stop = min((len(text[:end].encode()), least, stop) for end, least, stop in ends)
    length = 0
    for number, token in enumerate(tokens):
        length += len(token.encode())
        if length >= end:
            return text[:text.index(stop)], "stop", number + 1
    raise lab.Failure("unreachable")


def stops(count):
    dice = random.Random(11)
    connection = lab.Connection()
    stopped = 0
    for number in range(int(count)):
        prompt = f"stop {number}"
        vocab = dice.choice(["words", "torture"])
        tokens = same.streamed(connection, prompt, max_tokens=40, vocab=vocab)
        text = "".join(tokens)
        sequences = []
        for _ in range(dice.randint(1, 4)):
            at = dice.choice([0, dice.randrange(len(text))])
            sequence = text[at:at + dice.randint(1, 30)]
            sequences.append(sequence + dice.choice(["", "", "\U0001f9ff"]))
        expected, finish, generated = expected_until(text, tokens, sequences)
        stopped += finish == "stop"
        stop = sequences if len(sequences) > 1 or number % 2 else sequences[0]
        members = {"max_tokens": 40, "stop": stop,
                   "runnel": {"vocab": vocab, "chunk": dice.choice([1, 1, 3])}}
        for path in COMPLETIONS, CHAT:
            what = f"{path} {prompt} {members}"
            text_got, finish_got, usage = whole(connection, path, prompt, **members)
            lab.check((text_got, finish_got) == (expected, finish), what, repr(text_got),
                      "instead of", repr(expected))
            lab.check(usage["completion_tokens"] == generated, what, usage, generated)
            reader = complete(streamed(connection, path, prompt,
                                       stream_options={"include_usage": True}, **members))
            lab.check((reader.text, reader.finish) == (expected, finish), what, reader.texts)
            lab.check(reader.usage == usage, what, reader.usage, usage)
            row = lab.ended(reader.id.split("-", 1)[1])
            lab.check(row["generated"] == row["delivered"] == generated and
                      row["requested"] == 40 and row["outcome"] == "done", what, row)
    lab.check(stopped > int(count) / 3, stopped, "stopped")


def held_back():
    """Tokens that may begin a stop sequence come when it is known that they do not, each in its
    own event; meanwhile the ledger holds them."""
    tokens = same.printed("hello", 9)
    stream = Live(CHAT, max_tokens=9, stream=True, stop=tokens[:20] + "#",
                  runnel={"fault": "stall@2:1500", "stamps": 1})
    row = lab.wait_until(lambda: (found := lab.ledger(stream.id)) and found["generated"] == 2 and
                         found, "two tokens")
    lab.check(row["delivered"] == 0, row)
    lab.check(lab.books()["held"] == 2, "held", lab.books())
    while (event := stream.next()) is not None:
        stream.reader.take(event)
    reader = complete(stream.reader)
    lab.check(reader.text == tokens and len(reader.texts) == 9, reader.texts)
    stamps = [extra for extra in reader.extras if extra]
    lab.check([stamp["i"] for stamp in stamps] == list(range(9)), stamps)
    due = [stamp["due_us"] for stamp in stamps]
    lab.check([b - a for a, b in zip(due, due[1:])] == [0, 1500000] + [0] * 6,
              "each has its due time:", due)
    late = [stamp["t_us"] - stamp["due_us"] for stamp in stamps]
    lab.check(min(late[:2]) >= 1500000, "the first two were not held back:", late)
    lab.check(lab.ended(stream.id)["delivered"] == 9, lab.ledger(stream.id))
    # The client leaves while some are held: those are discarded.
    stream = Live(COMPLETIONS, max_tokens=9, stream=True, stop=tokens[:30],
                  runnel={"fault": "stall@2:60000"})
    lab.wait_until(lambda: (lab.ledger(stream.id) or {"generated": 0})["generated"] == 2, "two")
    stream.close()
    row = lab.ended(stream.id)
    lab.check(row["outcome"] == "cancelled" and row["delivered"] == 0 and
              row["discarded"] == row["generated"] == 2, row)


# --- pace ---

def first_event():
    """The role comes with the first token: in the same read, and not before it is due."""
    stream = Live(CHAT, max_tokens=2, stream=True, runnel={"ttft_ms": 1000, "itl_ms": 1000})
    while stream.status is None:
        stream.read()
    lab.check(not stream.waiting, "an event with the head:", stream.waiting)
    stream.read()
    lab.check(len(stream.waiting) == 2, "with the first token:", stream.waiting)
    lab.check(time.monotonic() - stream.sent_at >= 1, "before it was due")
    stream.take(2)
    lab.check(stream.reader.role, "no role")


def whole_is_paced():
    for path in COMPLETIONS, CHAT:
        connection = lab.Connection()
        began = time.monotonic()
        whole(connection, path, "hello", max_tokens=4, runnel={"ttft_ms": 200, "itl_ms": 50})
        took = time.monotonic() - began
        lab.check(took >= 0.35, path, "took", took, "s instead of 0.35")


# --- leaving ---

def leaves_stream():
    for path, route in (COMPLETIONS, "completions"), (CHAT, "chat"):
        for stop in None, ["no such text"]:
            stream = Live(path, max_tokens=100, stream=True, stop=stop,
                          runnel={"ttft_ms": 20, "itl_ms": 20})
            stream.take(5)
            seen = len(stream.reader.texts) + stream.arrived()
            left_at = time.monotonic()
            stream.close()
            row = cancel.fate(lab.ended(stream.id), cancel.IN_DECODE)
            late = max(0, cancel.ended_in_time(row, stream.sent_at, left_at))
            lab.check(row["generated"] <= seen + 1 + late / 20, "seen", seen, row)
            lab.check(row["route"] == route, row)
            stream = Live(path, max_tokens=100, stream=True, runnel={"ttft_ms": 3000})
            lab.reached(stream.id, "prefill")
            stream.close()
            row = cancel.fate(lab.ended(stream.id))
            lab.check(row["generated"] == 0 and row["phase"] == "prefill", row)
            cancel.aftermath()


def leaves_whole():
    for path, route in (COMPLETIONS, "completions"), (CHAT, "chat"):
        request_id = f"whole-{route}"
        sent_at = time.monotonic()
        connection = lab.Connection()
        connection.request("POST", path, json.dumps(body_of(
            path, "hello", max_tokens=1000, stop=["no such text"],
            runnel={"ttft_ms": 0, "itl_ms": 20})),
            {"Content-Type": "application/json", "X-Request-Id": request_id})
        row = lab.wait_until(lambda: (found := lab.ledger(request_id)) and
                             found["generated"] >= 3 and found, "three tokens")
        lab.check(row["delivered"] == 0, row)
        left_at = time.monotonic()
        connection.close()
        row = cancel.fate(lab.ended(request_id))
        cancel.ended_in_time(row, sent_at, left_at)
        lab.check(row["route"] == route and row["generated"] == row["discarded"], row)
        lab.check(row["generated"] <= 3 + (left_at - sent_at) * 50 * 1.5, row)
        cancel.aftermath()


# --- controls ---

def with_headers(path, headers, **members):
    connection = lab.Connection()
    status, reply_headers, body = connection.ask(
        "POST", path, body_of(path, "hello", **members), headers)
    return status, reply_headers, body


def each_control():
    """Each control does the same in `runnel` and as a header."""
    quick = {"ttft_ms": 0, "itl_ms": 0}
    header = lambda name: "X-Runnel-" + name.replace("_", "-").title()
    for path in COMPLETIONS, CHAT:
        for name, value, is_so in [
                ("ttft_ms", 120, lambda row, body: row["ttft_ms"] >= 120),
                ("itl_ms", 40, lambda row, body: row["duration_ms"] >= 2 * 40),
                ("seed", 7, lambda row, body: texts(body) == same.printed("hello", 3, seed=7)),
                ("vocab", "torture",
                 lambda row, body: texts(body) == same.printed("hello", 3, "torture")),
                ("prefill_us_per_token", 90000, lambda row, body: row["ttft_ms"] >= 90),
                ("chunk", 2, lambda row, body: b'"runnel":{"n":2}' in body),
                ("stamps", 1, lambda row, body: body.count(b',"runnel":{"i":') == 3),
                ("ids", 1, lambda row, body: b"id: 3\ndata: " in body and b"id: done\n" in body),
                ("ping_ms", 20, lambda row, body: b": ping\n\n" in body),
                ("fault", "dup@1", lambda row, body: body.count(b'" sailor"') == 2),
                ("wire", "crlf", lambda row, body: body.endswith(b"data: [DONE]\r\n\r\n")),
                ("wire", "multiline", lambda row, body: body.startswith(b"data: {\ndata: ")),
                ("wire", "bom", lambda row, body: body.startswith(b"\xef\xbb\xbf")),
                ("hints", 0, None),
                ("jitter", "uniform:100", None)]:
            controls = {name: value}
            if name == "ping_ms":
                controls["ttft_ms"] = 100
            for in_header in False, True:
                members = {"max_tokens": 3, "stream": True}
                headers = {}
                if in_header:
                    headers = {header(key): str(item) for key, item in (quick | controls).items()}
                else:
                    members["runnel"] = quick | controls
                status, reply_headers, body = with_headers(path, headers, **members)
                what = f"{path} {controls} {'header' if in_header else 'body'}:"
                lab.check(status == 200, what, status, body)
                row = lab.ended(reply_headers["X-Request-Id"])
                lab.check(is_so is None or is_so(row, body), what, row, body)
                lab.check(("X-Accel-Buffering" in reply_headers) == (name != "hints"), what,
                          reply_headers)


def texts(body):
    reader = lab.Events()
    text = ""
    for _, data in reader.feed(body):
        if data != "[DONE]":
            for choice in json.loads(data)["choices"]:
                text += choice.get("text") or choice.get("delta", {}).get("content") or ""
    return text


def jitter_is_the_same():
    """The schedule of a prompt is that of /stream."""
    def gaps(stamps):
        due = [stamp["due_us"] for stamp in stamps]
        return [b - a for a, b in zip(due, due[1:])]
    controls = {"ttft_ms": 0, "itl_ms": 2, "jitter": "normal:50", "stamps": 1}
    connection = lab.Connection()
    _, _, body = connection.ask("GET", lab.target("/stream", prompt="hello", max_tokens=20,
                                                  **controls))
    expected = gaps([json.loads(data) for _, data in lab.Events().feed(body) if data != "[DONE]"])
    lab.check(len(set(expected)) > 10, expected)
    for path in COMPLETIONS, CHAT:
        reader = complete(streamed(connection, path, "hello", max_tokens=20, runnel=controls))
        lab.check(gaps([extra for extra in reader.extras if extra]) == expected, path)


def precedence():
    """`runnel` wins over the body's own seed, and the body over headers."""
    for headers, members, seed in [
            ({"X-Runnel-Seed": "1"}, {}, 1),
            ({"X-Runnel-Seed": "1"}, {"seed": 2}, 2),
            ({"X-Runnel-Seed": "1"}, {"runnel": {"seed": 3}}, 3),
            ({}, {"runnel": {"seed": 3}, "seed": 2}, 3),
            ({"X-Runnel-Seed": ""}, {}, 0)]:
        for path in COMPLETIONS, CHAT:
            _, _, body = with_headers(path, headers, max_tokens=5, stream=True, **members)
            lab.check(texts(body) == same.printed("hello", 5, seed=seed), path, headers, members)


def resumed():
    """After any event, what was missing; the id and the time are the new request's."""
    def events_of(path, last_id, **members):
        headers = {} if last_id is None else {"Last-Event-ID": last_id}
        status, _, body = with_headers(path, headers | {"X-Request-Id": "same-id"}, stream=True,
                                       max_tokens=12, **members)
        created = body.split(b'"created":')[1].split(b",")[0] if status == 200 else b""
        return status, body.replace(created, b"0") if created else body
    for path in COMPLETIONS, CHAT:
        for stop in None, ["herons stood"]:
            members = {"stop": stop, "runnel": {"ids": 1, "ttft_ms": 0, "itl_ms": 0}}
            status, everything = events_of(path, None, **members)
            lab.check(status == 200 and everything.endswith(b"id: done\ndata: [DONE]\n\n"), path)
            ids = [line[4:].decode() for line in everything.split(b"\n")
                   if line.startswith(b"id: ")]
            lab.check(len(ids) > 5, ids)
            for last_id in ids[:-1]:
                status, rest = events_of(path, last_id, **members)
                lab.check(status == 200, status, rest)
                start = everything.index(f"id: {last_id}\n".encode())
                start = everything.index(b"\n\n", start) + 2
                lab.check(everything[start:] == rest, path, stop, "after", last_id, rest,
                          "instead of", everything[start:])
            lab.check(events_of(path, "done", **members) == (204, b""), path, "after all of it")
            status, body = events_of(path, "13", **members)
            lab.check(status == 400, status, body)


# --- errors ---

def is_error(status, headers, body, code=None, param=None):
    lab.check(headers["Content-Type"] == "application/json" and headers["X-Request-Id"], headers)
    error = json.loads(body)["error"]
    lab.check(list(error) == ["message", "type", "param", "code"] and len(error["message"]) > 10,
              error)
    lab.check(code is None or error["code"] == code, error, "instead of", code)
    lab.check(param is None or error["param"] == param, error, "instead of", param)


VALUES = ["null", "true", "false", "0", "1", "-1", "1.5", "1e3", "1e999", "-0", "18446744073709551616",
          '""', '"x"', '"none"', "[]", "{}", "[[]]", "[{}]", '[""]', "[null]", "[1,2]", '["a","b"]',
          '{"type":"text"}', '{"a":{"b":[1,{"c":null}]}}', '"\\u0000"', '"\\ud800"', '"\\ud83d\\ude00"',
          "[" * 900 + "]" * 900, '"' + "x" * 70000 + '"', '{"ttft_ms":0}', '{"include_usage":true}']
NAMES = ["model", "prompt", "messages", "max_tokens", "max_completion_tokens", "stream",
         "stream_options", "stop", "seed", "runnel", "n", "best_of", "echo", "suffix", "logprobs",
         "top_logprobs", "tools", "tool_choice", "functions", "response_format", "modalities",
         "audio", "web_search_options", "temperature", "top_p", "presence_penalty",
         "frequency_penalty", "logit_bias", "user", "metadata", "store", "service_tier",
         "reasoning_effort", "prediction", "parallel_tool_calls", "unknown"]


def wrong_values():
    """Each member with each kind of value: an answer each time, and never a 500."""
    connection = lab.Connection()
    before = lab.books()["accepted"]
    taken = 0
    for path in COMPLETIONS, CHAT:
        needed = {"prompt": '"a"', "max_tokens": "1"}
        if path == CHAT:
            needed["messages"] = '[{"role":"user","content":"a"}]'
        for name in NAMES:
            for value in VALUES:
                members = needed | {name: value}
                if name == "max_completion_tokens":
                    del members["max_tokens"]
                body = "{" + ",".join(f'"{key}":{item}' for key, item in members.items()) + "}"
                status, headers, reply = connection.ask("POST", path, body)
                lab.check(status in (200, 400), name, value[:100], status, reply[:200])
                taken += status == 200
                if status == 400:
                    is_error(status, headers, reply)
                if name == "unknown" and not value.startswith('"\\u0000') \
                        and value != '"\\ud800"':
                    lab.check(status == 200, value[:100], reply)
    lab.check(lab.all_quiet()["accepted"] - before == taken, "accepted, but not taken")


def wrong_bodies():
    connection = lab.Connection()
    before = lab.books()["accepted"]
    user = '{"role":"user","content":"a"}'
    for path in COMPLETIONS, CHAT:
        for body, code in [
                (b"", "empty_body"), (b"  \r\n", "empty_body"), (b"[]", "not_an_object"),
                (b"{", "bad_json"), (b'{"prompt":"a"', "bad_json"), (b"null", "not_an_object"),
                (b'{"prompt":"\xff"}', "bad_utf8"), (b'{"messages":[{"role":"\xc3"}]}', "bad_utf8"),
                (b'{"prompt":"\xed\xa0\x80"}', "bad_utf8"), (b'{"prompt":"a\\u0000"}', "nul_byte"),
                (b'{"prompt":"a","n":01}', "bad_json"), (b'{"prompt":"a"}{}', "bad_json"),
                (b'{"x":' + b"[" * 2000 + b"]" * 2000 + b"}", "bad_json"),
                (b'{"x":' + b"[" * 500000, "bad_json"),
                (b'{"x":' + b'{"x":' * 150000, "bad_json"),
                (b'{"model":"a","model":"b"}', "given_twice"),
                (b'{"stop":[' + b'"a",' * 200000 + b'"a"]}', "too_many"),
                (b'{"model":"' + b"x" * 129 + b'"}', "too_long"),
                (b'{"stop":"' + b"x" * 257 + b'"}', "too_long")]:
            status, headers, reply = connection.ask("POST", path, body)
            lab.check(status == 400, path, body[:100], status, reply)
            is_error(status, headers, reply, code)
        big = b'{"prompt":"' + b"x" * (1 << 20) + b'"}'
        status, headers, reply = connection.ask("POST", path, big)
        lab.check(status == 413, status)
        is_error(status, headers, reply, "too_large")
        status, headers, reply = connection.ask("POST", path, "prompt=a",
                                                {"Content-Type": "text/plain"})
        lab.check(status == 415, status)
        is_error(status, headers, reply, "not_json")
        for method in "GET", "PUT", "DELETE", "OPTIONS":
            status, headers, reply = connection.ask(method, path)
            lab.check(status == 405 and headers["Allow"] == "POST", method, status, headers)
    for body, code, param in [
            ('{"prompt":[' + "1," * 300000 + "1]}", "unsupported_value", "prompt"),
            ('{"prompt":[[1,2],[3]]}', "unsupported_value", "prompt")]:
        status, headers, reply = connection.ask("POST", COMPLETIONS, body)
        is_error(status, headers, reply, code, param)
    for messages, code, param in [
            (user + ("," + user) * 30000, "too_long", "messages"),
            ("[]," * 200000 + "[]", "wrong_type", "messages[0]"),
            (user + ',{"role":"user","content":[{"type":"image_url","image_url":{}}]}',
             "unsupported_value", "messages[1].content[0].type"),
            (user + ',{"role":"user","role":"system","content":"a"}', "given_twice",
             "messages[1].role"),
            ('{"role":"user","content":[' + '{"type":"text","text":""},' * 30000 +
             '{"type":"text"}]}', "wrong_type", "messages[0].content[30000].text")]:
        status, headers, reply = connection.ask("POST", CHAT, '{"messages":[' + messages + "]}")
        lab.check(status == 400, messages[:100], status, reply)
        is_error(status, headers, reply, code, param)
    lab.check(lab.books()["accepted"] == before, "a refused request was counted as accepted")
    lab.served()


def streams_only():
    connection = lab.Connection()
    for path in COMPLETIONS, CHAT:
        for control in [{"stamps": 1}, {"ids": 1}, {"hints": 0}, {"ping_ms": 5}, {"wire": "cr"},
                        {"fault": "eof@1"}, {"fault": "nodone"}]:
            status, headers, reply = connection.ask("POST", path, body_of(path, "a", runnel=control))
            lab.check(status == 400, control, status, reply)
            is_error(status, headers, reply, "streams_only", *control)


def faults():
    connection = lab.Connection()
    expected = same.printed("hello", 8)
    for path in COMPLETIONS, CHAT:
        reader = streamed(connection, path, "hello", max_tokens=8, runnel={"fault": "error@3"})
        lab.check(reader.error["code"] == "fault" and len(reader.texts) == 3 and not reader.done and
                  reader.finish is None, vars(reader))
        lab.check(list(reader.error) == ["message", "type", "param", "code"], reader.error)
        reader = streamed(connection, path, "hello", max_tokens=8, runnel={"fault": "eof@3"})
        lab.check(len(reader.texts) == 3 and reader.finish is None and not reader.done, vars(reader))
        reader = streamed(connection, path, "hello", max_tokens=8, runnel={"fault": "nodone"})
        lab.check(reader.text == expected and reader.finish == "length" and not reader.done,
                  vars(reader))
        body = body_of(path, "hello", max_tokens=8, stream=True, runnel={"fault": "garble@3"})
        _, _, reply = connection.ask("POST", path, body)
        bad = [data for _, data in lab.Events().feed(reply) if data.startswith("{") and
               not is_json(data)]
        lab.check(len(bad) == 1 and is_json(bad[0] + "}"), bad)
        for streams in False, True:
            for status_asked in 429, 500, 503:
                body = body_of(path, "hello", stream=streams,
                               runnel={"fault": f"status:{status_asked}"})
                status, headers, reply = connection.ask("POST", path, body)
                lab.check(status == status_asked, status, reply)
                is_error(status, headers, reply, "fault")
        body = body_of(path, "hello", max_tokens=8, runnel={"fault": "error@3"})
        status, headers, reply = connection.ask("POST", path, body)
        lab.check(status == 500, status, reply)
        is_error(status, headers, reply, "fault")


def is_json(text):
    try:
        json.loads(text)
        return True
    except ValueError:
        return False


def models():
    connection = lab.Connection()
    status, headers, body = connection.ask("GET", "/v1/models")
    lab.check(status == 200 and headers["Content-Type"] == "application/json", status, headers)
    listed = json.loads(body)
    lab.check(listed["object"] == "list", listed)
    model, = listed["data"]
    lab.check(model["id"] == "runnel" and model["object"] == "model" and
              isinstance(model["created"], int) and model["owned_by"], model)
    status, _, body = connection.ask("GET", "/v1/models/runnel")
    lab.check(status == 200 and json.loads(body) == model, body)
    for other in "gpt-4", "", "a/runnel", "runnel/", "run%6Eel%2F", "%22%0A":
        status, headers, body = connection.ask("GET", f"/v1/models/{other}")
        lab.check(status == 404, other, status, body)
        is_error(status, headers, body, "model_not_found", "model")
    status, _, _ = connection.ask("GET", "/v1/models/run%6Eel")
    lab.check(status == 200, status)
    status, headers, _ = connection.ask("POST", "/v1/models/runnel", "{}")
    lab.check(status == 405 and headers["Allow"] == "GET, HEAD", status)
    status, headers, body = connection.ask("GET", "/v1/nothing")
    is_error(status, headers, body, "not_found")
    # A request may name any model, and gets the name back.
    for name in "gpt-4o", "a/b:c", "ä\"\\\n", "x" * 128:
        for path in COMPLETIONS, CHAT:
            for streams in False, True:
                _, _, body = connection.ask("POST", path, body_of(path, "a", max_tokens=1,
                                                                  model=name, stream=streams))
                first = body if not streams else body.split(b"\n")[0].removeprefix(b"data: ")
                lab.check(json.loads(first)["model"] == name, body)


if __name__ == "__main__":
    lab.main(globals())
