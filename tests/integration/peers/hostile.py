"""Peers on the FastCGI socket that no web server would be."""

import json
import os
import random
import signal
import struct
import time

import lab
from fastcgi import (ABORT, BEGIN, CANT_MPX_CONN, END, GET_VALUES, GET_VALUES_RESULT, KEEP, PARAMS,
                     STDIN, STDOUT, UNKNOWN, UNKNOWN_ROLE, Wire, begin, pair, params, record,
                     records, request, stream_of, take_tokens)

HELLO = b'{"prompt":"hello","max_tokens":4}'
TEXT = "The sailor rested and"


def still_served():
    """The next request, through nginx, in under 100 ms."""
    took = lab.served() * 1000
    lab.check(took < 100 * lab.SLOW, f"served after {took:.0f} ms")
    return took


def whole_request(**more):
    return request("/generate", method="POST", body=HELLO, **more)


def served_on(wire, request_id=1):
    status, _, body = wire.reply(request_id)
    lab.check(status == 200 and json.loads(body)["text"] == TEXT, status, body)


def crowd():
    values = record(GET_VALUES, 0, pair("FCGI_MAX_CONNS", "") * 20)
    half = begin() + record(PARAMS, 1, params("/stream"))[:-20]
    everybody = []
    for _ in range(50):
        for said in b"", b"GET /stream?prompt=a HTTP/1.1\r\nHost: localhost\r\n\r\n", values, half:
            everybody.append((said, Wire().send(said)))
    took = still_served()
    for said, wire in everybody:
        if said.startswith(b"GET"):
            lab.check(wire.is_closed(), "HTTP was answered")
        if said is values:
            kind, request_id, content = wire.next()
            lab.check((kind, request_id) == (GET_VALUES_RESULT, 0), kind, request_id)
            lab.check(content == pair("FCGI_MAX_CONNS", "16384"), content)
    # The half-way ones may still go on, all of them.
    for said, wire in everybody:
        if said is half:
            wire.send(record(PARAMS, 1, params("/healthz"))[-20:])
            wire.close()
    for _, wire in everybody:
        wire.close()
    print(f"beside 200 of them, a request took {took:.1f} ms")
    still_served()


def stopped_early():
    wires = [Wire().send(begin()[:1 + number % 15]) for number in range(500)]
    still_served()
    for wire in wires:
        wire.close()
    still_served()


def read_timeout():
    silent = Wire()
    half = Wire().send(begin() + record(PARAMS, 1, params("/stream"))[:-20])
    began = time.monotonic()
    lab.check(half.is_closed(), "it was answered")
    took = time.monotonic() - began
    lab.check(2.9 < took < 3 + 3 * lab.SLOW, f"closed after {took:.1f} s, --read-timeout-s is 3")
    silent.send(whole_request())
    served_on(silent)


def management():
    wire = Wire()
    names = "FCGI_MAX_CONNS", "FCGI_MAX_REQS", "FCGI_MPXS_CONNS"
    asked = b"".join(pair(name, "") for name in names + ("OTHER",))
    for _ in range(2):
        kind, request_id, content = wire.send(record(GET_VALUES, 0, asked, padding=5)).next()
        lab.check((kind, request_id) == (GET_VALUES_RESULT, 0), kind)
        lab.check(content == pair(names[0], "16384") + pair(names[1], "16384") +
                  pair(names[2], "0"), content)
    kind, _, content = wire.send(record(GET_VALUES, 0)).next()
    lab.check((kind, content) == (GET_VALUES_RESULT, b""), kind, content)
    for number in 12, 77, 255:
        kind, request_id, content = wire.send(record(number, 0, b"x" * 10)).next()
        lab.check((kind, request_id, content[0]) == (UNKNOWN, 0, number), kind, content)
    wire.send(whole_request())
    served_on(wire)
    # As long as the protocol allows, and lengths that point behind the end.
    for content in b"\xff" * 1000, b"\x80\x00\x00\xff" * 10, b"\x7f\x7f", b"\xff\xff\xff\xff" * 2:
        wire = Wire().send(record(GET_VALUES, 0, content))
        got = wire.next()
        lab.check(got is None or got[0] == GET_VALUES_RESULT, got)
    lab.check(Wire().send(record(GET_VALUES, 0, bytes(65535))).is_closed(), "64 KiB of it")
    still_served()


def abort():
    wire = Wire()
    request_id = stream_of(wire, prompt="abort", max_tokens=100, itl_ms=20)
    take_tokens(wire, 5)
    wire.send(record(ABORT, 1))
    while (got := wire.next()) is not None and got[0] == STDOUT:
        pass
    lab.check(got is None or got[0] == END, "after the abort:", got)
    row = lab.ended(request_id)
    lab.check(row["outcome"] == "cancelled" and row["detected_by"] == "abort", row)
    lab.check(row["generated"] <= 6, row)
    for phase, controls in [("prefill", {"ttft_ms": 3000}), ("decode", {"itl_ms": 3000})]:
        wire = Wire()
        request_id = stream_of(wire, prompt=phase, max_tokens=100, **controls)
        lab.reached(request_id, phase)
        sent_at = time.monotonic()
        wire.send(record(ABORT, 1))
        row = lab.ended(request_id)
        lab.check(row["detected_by"] == "abort" and row["phase"] == phase, row)
        lab.check(time.monotonic() - sent_at < 1 * lab.SLOW, "noticed late:", row)
    still_served()


def odd_aborts():
    wire = Wire()
    request_id = stream_of(wire, prompt="pieces", max_tokens=200, itl_ms=20)
    take_tokens(wire, 2)
    wire.send(record(ABORT, 7))  # of no request that there is
    take_tokens(wire, 5)
    lab.check(lab.ledger(request_id)["outcome"] == "live", "the abort of another one ended it")
    wire.close()
    lab.ended(request_id)

    wire = Wire()
    request_id = stream_of(wire, prompt="pieces", max_tokens=200, itl_ms=20)
    take_tokens(wire, 2)
    wire.send(record(ABORT, 1)[:3])
    take_tokens(wire, 3)
    lab.check(lab.ledger(request_id)["outcome"] == "live", "half an abort ended it")
    wire.send(record(ABORT, 1)[3:])
    lab.check(lab.ended(request_id)["detected_by"] == "abort", lab.ledger(request_id))

    # Together with the request, and before it is whole.
    wire = Wire()
    query = "prompt=a&max_tokens=100&itl_ms=20"
    wire.send(request("/stream", query, flags=KEEP, HTTP_X_REQUEST_ID="together") +
              record(ABORT, 1))
    lab.check(lab.ended("together")["detected_by"] == "abort", lab.ledger("together"))
    wire = Wire().send(begin(1, KEEP) + record(PARAMS, 1, params("/stream")) + record(ABORT, 1))
    got = wire.next()
    lab.check(got is not None and got[0] == END, "an abort half-way is answered with", got)
    wire.send(whole_request())
    served_on(wire)
    still_served()


def second_begin():
    # Another id, while the first is being read: refused, and the first goes on (section 5.5).
    first = whole_request(flags=KEEP)
    wire = Wire().send(begin(1, KEEP) + begin(2, KEEP))
    kind, request_id, content = wire.next()
    lab.check((kind, request_id, content[4]) == (END, 2, CANT_MPX_CONN), kind, request_id, content)
    wire.send(first[16:])
    served_on(wire)
    # The same id again: broken.
    lab.check(Wire().send(begin() + begin()).is_closed(), "the same id twice")
    # In mid-reply: it waits its turn, and is served behind the first.
    wire = Wire()
    stream_of(wire, prompt="first", max_tokens=10, itl_ms=20)
    wire.send(whole_request(request_id=2, flags=KEEP))
    out = take_tokens(wire, 10)
    lab.check(out.count(b"data: {") == 10, out)
    while (got := wire.next())[0] == STDOUT and got[1] == 1:
        pass
    lab.check(got[:2] == (END, 1), got)
    served_on(wire, 2)
    still_served()


def other_role():
    for role in 0, 2, 3, 65535:
        got = Wire().send(begin(role=role)).next()
        lab.check(got is None or (got[0], got[2][4]) == (END, UNKNOWN_ROLE), role, got)
    lab.check(Wire().send(record(BEGIN, 0, bytes([0, 1] + [0] * 6))).is_closed(), "id 0")
    lab.check(Wire().send(record(BEGIN, 1, b"\0\1\0")).is_closed(), "a short BEGIN")
    lab.check(Wire().send(b"\2" + begin()[1:]).is_closed(), "version 2")
    still_served()


def huge_params():
    status, _, _ = Wire().send(request("/healthz", "x=" + "a" * 100 * 1024)).reply()
    lab.check(status == 200, status)
    wire = Wire()
    try:
        wire.send(request("/healthz", "x=" + "a" * 200 * 1024))
    except (BrokenPipeError, ConnectionResetError):
        pass
    lab.check(wire.is_closed(), "200 KiB of params were read")
    # In records of one byte each, and many pairs.
    content = params("/healthz")
    pieces = b"".join(record(PARAMS, 1, content[at:at + 1]) for at in range(len(content)))
    status, _, _ = Wire().send(begin() + pieces + record(PARAMS, 1) + record(STDIN, 1)).reply()
    lab.check(status == 200, status)
    many = {f"X{number}": "y" for number in range(5000)}
    status, _, _ = Wire().send(request("/healthz", **many)).reply()
    lab.check(status == 200, status)
    still_served()


def malformed_params():
    """Lengths that point behind the end, and names that are none: closed, or answered as wrong."""
    good = params("/healthz")
    for bad in b"\x05", b"\xff", b"\x7f\x7f", b"\xff\xff\xff\xff\xff\xff\xff\xff", \
            b"\x80\x00\x00", b"\x01\x80", good + b"\x10\x10abc", b"\x00\x00" * 100, \
            pair("", "x"), pair("A=B", "x"), pair("A\0B", "x\0y"), good[:-1], \
            pair("REQUEST_METHOD", "GET\0") + good, b"\x80\x00\x00\x01\x7f\xff\xff\xffA":
        wire = Wire().send(begin() + records(PARAMS, 1, bad) + records(STDIN, 1, b""))
        got = wire.next()
        lab.check(got is None or got[0] in (STDOUT, END), bad, "->", got)
        wire.close()
    lab.check(Wire().send(begin() + record(STDIN, 1)).is_closed(), "no params at all")
    still_served()


def params_that_overflow():
    """Two lengths whose sum is too large for an int, with bytes behind them (CVE-2025-23016)."""
    for name, value in [(2 ** 31 - 1, 2 ** 31 - 1), (2 ** 31 - 1, 2 ** 31 - 2), (2 ** 31 - 1, 1),
                        (1, 2 ** 31 - 1), (2 ** 30, 2 ** 30), (2 ** 31 - 1, 0),
                        (0, 2 ** 31 - 1), (100, 2 ** 31 - 1 - 100)]:
        bad = struct.pack(">II", name | 1 << 31, value | 1 << 31) + b"A" * 20000
        began = time.monotonic()
        wire = Wire().send(begin() + records(PARAMS, 1, bad) + records(STDIN, 1, b""))
        got = wire.next()
        wire.close()
        lab.check(got is None or got[0] in (STDOUT, END), name, value, "->", got)
        took = (time.monotonic() - began) * 1000
        lab.check(took < 100 * lab.SLOW, name, value, f"took {took:.0f} ms: allocated as it says?")
    still_served()


def closed_at_every_byte():
    before = lab.all_quiet()
    whole = request("/stream", "prompt=hello&max_tokens=1000&itl_ms=20",
                    HTTP_X_REQUEST_ID="every-byte")
    for size in range(len(whole)):
        wire = Wire().send(whole[:size])
        if size % 2:
            wire.peer.shutdown(1)
            lab.check(wire.is_closed(), size, "bytes were answered")
        wire.close()
    still_served()
    after = lab.all_quiet()
    lab.check(after["accepted"] == before["accepted"] + 1, "a part was taken for a request:",
              before, after)
    Wire().send(whole).close()
    row = lab.ended("every-byte")
    lab.check(row["outcome"] == "cancelled", row)
    print(f"closed at {len(whole)} places")


def byte_by_byte():
    wire = Wire()
    for byte in whole_request():
        wire.send(bytes([byte]))
    served_on(wire)


def pipelined():
    wire = Wire().send(b"".join(whole_request(request_id=number, flags=KEEP)
                                for number in (1, 2, 300)))
    for number in 1, 2, 300:
        served_on(wire, number)
    # A stream, its follower cut in two by the reply, and errors and management between.
    follower = whole_request(request_id=2, flags=KEEP)
    wire.send(request("/stream", "prompt=a&max_tokens=5&itl_ms=10", flags=KEEP) + follower[:30])
    status, _, body = wire.reply()
    lab.check(status == 200 and body.endswith(b"data: [DONE]\n\n"), status, body)
    wire.send(follower[30:] + request("/nothing", flags=KEEP) +
              record(GET_VALUES, 0, pair("FCGI_MPXS_CONNS", "")))
    served_on(wire, 2)
    lab.check(wire.reply()[0] == 404, "the error between")
    lab.check(wire.next()[0] == GET_VALUES_RESULT, "the values between")
    for _ in range(300):
        served_on(wire.send(whole_request(flags=KEEP)))
    # More at once than is kept of what comes behind a request: served or closed, never mixed up.
    flood = Wire(timeout=20)
    try:
        flood.send(whole_request(flags=KEEP) * 100)
    except (BrokenPipeError, ConnectionResetError):
        pass
    for _ in range(100):
        try:
            served_on(flood)
        except lab.Failure as failure:
            lab.check("ends within a reply: b''" in str(failure), failure)
            break
    still_served()


def pipelined_into_the_drain(pid):
    """Kept connections whose next requests wait behind a live stream, when the drain cuts it."""
    wires = [Wire().send(request("/stream", "prompt=a&ttft_ms=60000", flags=KEEP) +
                         b"".join(whole_request(request_id=number, flags=KEEP)
                                  for number in range(2, 10)))
             for _ in range(200)]
    lab.wait_until(lambda: lab.books()["running"] == 200, "they are live")
    os.kill(int(pid), signal.SIGTERM)
    lab.wait_until(lambda: lab.ask("GET", "/healthz")[0] == 503, "it drains")
    os.kill(int(pid), signal.SIGTERM)
    for wire in wires:
        while wire.next() is not None:
            pass


def not_kept():
    wire = Wire().send(whole_request())
    served_on(wire)
    lab.check(wire.is_closed(), "it was kept")


def odd_but_allowed():
    content = params("/generate", "POST", CONTENT_TYPE="application/json",
                     CONTENT_LENGTH=str(len(HELLO)))
    for request_id in 1, 255, 256, 65535:
        wire = Wire().send(begin(request_id) +
                           record(PARAMS, request_id, content[:7], padding=255) +
                           record(PARAMS, request_id, content[7:], padding=1) +
                           record(PARAMS, request_id, padding=8) +
                           record(99, request_id + 1 & 0xffff or 5, b"of no type") +
                           record(STDIN, request_id, HELLO[:10], padding=3) +
                           record(STDIN, request_id, HELLO[10:]) +
                           record(STDIN, request_id, padding=7))
        served_on(wire, request_id)
    # A body shorter and longer than CONTENT_LENGTH says: answered in some way, never waited for.
    for said in 1, 10 ** 6:
        wire = Wire().send(begin() + records(PARAMS, 1, params("/generate", "POST",
                                                               CONTENT_LENGTH=str(said))) +
                           records(STDIN, 1, HELLO))
        lab.check(wire.reply()[0] in (200, 400), "a wrong CONTENT_LENGTH")
    # 1.5 MiB of body, read to its end before the answer.
    big = b'{"prompt":"a","x":"' + b"b" * 1500000 + b'"}'
    status, _, _ = Wire().send(request("/generate", method="POST", body=big)).reply()
    lab.check(status == 413, status)
    still_served()


def chatter():
    wire = Wire()
    request_id = stream_of(wire, prompt="chatter", max_tokens=30, itl_ms=10)
    for _ in range(10):
        take_tokens(wire, 1)
        wire.send(record(STDIN, 1, b"x" * 1000))
    take_tokens(wire, 10)
    row = lab.ended(request_id)
    lab.check(row["outcome"] == "done" and row["generated"] == 30, row)
    wire.close()
    wire = Wire()
    request_id = stream_of(wire, prompt="chatter", max_tokens=1000, itl_ms=10)
    take_tokens(wire, 1)
    wire.send(b"GET / HTTP/1.1\r\n\r\n")
    take_tokens(wire, 5)
    wire.close()  # seen, though unread bytes lie before it
    row = lab.ended(request_id)
    lab.check(row["outcome"] == "cancelled", row)
    still_served()


def noise():
    dice = random.Random(1138)
    whole = whole_request(flags=KEEP)
    for number in range(500):
        if number % 2:
            said = dice.randbytes(dice.choice([1, 8, 16, 100, 5000]))
        else:
            said = bytearray(whole)
            for _ in range(dice.choice([1, 2, 5])):
                said[dice.randrange(len(said))] = dice.randrange(256)
        wire = Wire()
        try:
            wire.send(bytes(said))
        except (BrokenPipeError, ConnectionResetError):
            pass
        wire.close()
    still_served()
    lab.all_quiet()


def few_descriptors(pid):
    lab.wait_until(lambda: len(os.listdir(f"/proc/{pid}/fd")) < 30, "closed connections")


if __name__ == "__main__":
    lab.main(globals())
