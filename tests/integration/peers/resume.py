"""Streams with ids: what comes after a disconnect is byte for byte what would have come."""

import random

import lab


def raw(last_id=None, stop_after=None, **controls):
    """The bytes of a stream, whole events, and the last id; up to `stop_after` events, then close."""
    peer = lab.connect()
    head = "" if last_id is None else f"Last-Event-ID: {last_id}\r\n"
    peer.sendall(f"GET {lab.target('/stream', ids=1, **controls)} HTTP/1.1\r\nHost: localhost\r\n"
                 f"Connection: close\r\n{head}\r\n".encode())
    received = b""
    chunks = lab.Chunks()
    body = b""
    while data := peer.recv(65536):
        if chunks is not None and b"\r\n\r\n" not in received:
            received += data
            if b"\r\n\r\n" not in received:
                continue
            data = received.split(b"\r\n\r\n", 1)[1]
        body += chunks.feed(data)
        if stop_after is not None and body.count(b"\n\n") >= stop_after:
            break
    peer.close()
    status = int(received.split(b" ", 2)[1])
    events = body.split(b"\n\n")[:-1]
    if stop_after is not None:
        events = events[:stop_after]
    ids = [line[4:].decode() for event in events for line in event.split(b"\n")
           if line.startswith(b"id: ")]
    return status, b"".join(event + b"\n\n" for event in events), ids[-1] if ids else None


def identical():
    """Two disconnects in a row, at random events, twenty times."""
    chance = random.Random(7)
    for number in range(20):
        controls = {"prompt": f"resume {number}", "max_tokens": chance.randint(12, 90),
                    "vocab": chance.choice(("words", "torture")), "chunk": chance.choice((1, 1, 3)),
                    "ttft_ms": 0, "itl_ms": chance.choice((0, 1)),
                    "jitter": chance.choice(("none", "normal:40"))}
        status, whole, last = raw(**controls)
        lab.check(status == 200 and last == "done", "whole", status, last)
        _, first, at = raw(stop_after=chance.randint(1, 3), **controls)
        _, second, at = raw(last_id=at, stop_after=1, **controls)
        _, third, last = raw(last_id=at, **controls)
        lab.check(first + second + third == whole, "pieces differ from the whole:", controls)
        lab.check(last == "done", "the end", last)
    status, body, _ = raw(last_id="done", **controls)
    lab.check(status == 204 and body == b"", "one that has all of it:", status, body)


def counted():
    """A resumed stream generates, and counts, only what was missing."""
    before = lab.books()["generated"]
    raw(last_id="7", prompt="count", max_tokens=10, ttft_ms=0, itl_ms=0)
    lab.check(lab.all_quiet()["generated"] - before == 3, "three were missing")
    _, body, _ = raw(last_id="10", prompt="count", max_tokens=10, ttft_ms=0, itl_ms=0)
    lab.check(body == b"id: done\ndata: [DONE]\n\n", "nothing but the end is missing:", body)
    lab.check(lab.all_quiet()["generated"] - before == 3, "and nothing was generated")


def past_fault():
    """A fault hits once: whoever resumes where it was gets past it."""
    for fault, last in (("error@4", "4"), ("reset@4", "4"), ("eof@4", "4")):
        controls = {"prompt": "past", "max_tokens": 9, "ttft_ms": 0, "itl_ms": 0}
        _, whole, _ = raw(**controls)
        _, first, at = raw(fault=fault, **controls)
        lab.check(at == last, fault, "stops at", at)
        _, second, _ = raw(last_id=at, fault=fault, **controls)
        first = first[:first.rfind(b"event: error")] if b"event: error" in first else first
        lab.check(first + second == whole, fault, "and its rest are the whole")


def bad():
    for last in ("11", "-1", "x", "1e1", "done2", "99999999999999999999"):
        status, _, _ = raw(last_id=last, prompt="bad", max_tokens=10)
        lab.check(status == 400, last, "gets", status)


lab.main({function.__name__: function for function in (identical, counted, past_fault, bad)})
