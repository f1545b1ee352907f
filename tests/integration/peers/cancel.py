"""Clients that leave, and what the ledger then tells."""

import json
import os
import statistics
import subprocess
import threading
import time

import fastcgi
import lab

REPEATS = 10


def fate(row, detected_by=("hangup",)):
    lab.check(row["outcome"] == "cancelled" and row["detected_by"] in detected_by, row)
    lab.check(row["delivered"] + row["discarded"] == row["generated"], row)
    return row


# A token that falls due in the moment of the close is written before the hang-up is seen.
IN_DECODE = "hangup", "write"


def aftermath():
    """The next request is served, and nothing is live."""
    lab.served()
    lab.all_quiet()


def ended_in_time(row, sent_at, left_at):
    """50 ms from the close to the end of the generation, by the ledger's own duration."""
    late = row["duration_ms"] - (left_at - sent_at) * 1000
    lab.check(late < 50 * lab.SLOW, f"ended {late:.1f} ms after the client had left:", row)
    return late


def after_five(itl_ms):
    itl_ms = float(itl_ms)
    counts = []
    for _ in range(REPEATS):
        stream = lab.Stream(prompt="hello", max_tokens=100, ttft_ms=20, itl_ms=itl_ms)
        stream.take(5)
        # A client that was not scheduled for a while finds more here than it asked for.
        seen = 5 + stream.arrived()
        left_at = time.monotonic()
        stream.close()
        row = fate(lab.ended(stream.id), IN_DECODE)
        counts.append(row["generated"] - (seen - 5))
        # A token may be under way while the client leaves, and what falls due in the time that
        # two wake-ups take: of nginx and of the responder.
        late = max(0, ended_in_time(row, stream.sent_at, left_at))
        lab.check(row["generated"] <= seen + 1 + late / itl_ms, "seen", seen, row)
        aftermath()
    print(f"itl {itl_ms} ms: generated {counts}, median {statistics.median(counts)}")
    lab.check(statistics.median(counts) <= (6 if lab.SLOW == 1 or itl_ms >= 5 else 8), counts)
    if itl_ms >= 20:
        lab.check(max(counts) <= 6, counts)


def in_prefill():
    lateness = []
    for _ in range(REPEATS):
        stream = lab.Stream(prompt="hello", max_tokens=100, ttft_ms=3000, itl_ms=20)
        lab.reached(stream.id, "prefill")
        left_at = time.monotonic()
        stream.close()
        row = fate(lab.ended(stream.id))
        lab.check(row["generated"] == 0 and row["phase"] == "prefill" and row["ttft_ms"] is None,
                  row)
        lateness.append(ended_in_time(row, stream.sent_at, left_at))
        aftermath()
    print("ended after the close, ms:", [f"{late:.2f}" for late in lateness])


def in_gap():
    stream = lab.Stream(prompt="hello", max_tokens=100, ttft_ms=0, itl_ms=3000)
    stream.take(1)
    left_at = time.monotonic()
    stream.close()
    row = fate(lab.ended(stream.id))
    lab.check(row["generated"] == 1 and row["phase"] == "decode", row)
    ended_in_time(row, stream.sent_at, left_at)
    aftermath()


def start_generate(request_id, **controls):
    """A POST /generate whose reply nobody waits for."""
    connection = lab.Connection()
    connection.request("POST", "/generate", json.dumps({"prompt": "hello"} | controls),
                       {"Content-Type": "application/json", "X-Request-Id": request_id})
    return connection


def in_generate():
    before = lab.all_quiet()
    sent_at = time.monotonic()
    connection = start_generate("whole", max_tokens=1000, ttft_ms=0, itl_ms=20)
    row = lab.wait_until(lambda: (found := lab.ledger("whole")) and found["generated"] >= 3 and
                         found, "three tokens")
    lab.check(row["delivered"] == 0, "delivered before its reply was sent:", row)
    sums = lab.books()
    lab.check(sums["held"] >= 3 and sums["running"] == 1, "held:", sums)
    left_at = time.monotonic()
    connection.close()
    row = fate(lab.ended("whole"))
    ended_in_time(row, sent_at, left_at)
    lab.check(row["route"] == "generate" and row["delivered"] == 0, row)
    lab.check(row["generated"] == row["discarded"] <= 3 + (left_at - sent_at) * 50 * 1.5, row)
    aftermath()
    after = lab.books()
    lab.check(after["discarded"] - before["discarded"] == row["discarded"], before, after)


def own_responder(name, *flags):
    """A responder of its own, spoken to in FastCGI: its flags are not those of the file's."""
    log = open(f"{name}.log", "ab")
    process = subprocess.Popen([os.environ["RUNNEL"], "--listen", f"unix:{name}.sock", *flags],
                               stdout=log, stderr=log)
    def ready():
        lab.check(process.poll() is None, f"the responder of {name} has died, see {name}.log")
        try:
            return fastcgi.Wire(f"{name}.sock")
        except OSError:
            return None
    lab.wait_until(ready, f"{name}.sock").close()
    return process


def end_responder(process):
    process.terminate()
    lab.check(process.wait(10 * lab.SLOW) == 0, "it ended with", process.returncode)


def row_at(socket, request_id):
    status, _, body = fastcgi.Wire(socket).send(
        fastcgi.request("/_debug/generated", f"id={request_id}")).reply()
    return json.loads(body) if status == 200 else None


def sums_at(socket):
    _, _, body = fastcgi.Wire(socket).send(fastcgi.request("/_debug/generated")).reply()
    return json.loads(body)["ledger"]


def ask_at(socket, request_id, **controls):
    query = lab.target("", prompt="hello", **controls)[1:]
    return fastcgi.Wire(socket).send(
        fastcgi.request("/stream", query, HTTP_X_REQUEST_ID=request_id))


def phase_at(socket, request_id, phase):
    return lab.wait_until(lambda: (row := row_at(socket, request_id)) and row["phase"] == phase and
                          row, f"{request_id} in {phase}")


def ended_at(socket, request_id):
    return lab.wait_until(lambda: (row := row_at(socket, request_id)) and
                          row["outcome"] != "live" and row, f"the end of {request_id}")


def while_queued():
    process = own_responder("one", "--slots", "1", "--queue", "5")
    socket = "one.sock"
    occupant = ask_at(socket, "occupant", max_tokens=100000, ttft_ms=0, itl_ms=20)
    phase_at(socket, "occupant", "decode")
    waiting = {}
    for name in "abcde":
        waiting[name] = ask_at(socket, name, max_tokens=2, ttft_ms=0, itl_ms=0)
        phase_at(socket, name, "queued")
    lab.check(sums_at(socket)["queued"] == 5, sums_at(socket))
    status, head, _ = ask_at(socket, "shed", max_tokens=2).reply()
    lab.check(status == 503 and b"Retry-After: " in head, "a full queue says", status, head)
    lab.check(row_at(socket, "shed")["outcome"] == "shed", row_at(socket, "shed"))
    for name in "ace":
        sent_and_left = time.monotonic()
        waiting[name].close()
        row = fate(ended_at(socket, name))
        lab.check(row["phase"] == "queued" and row["generated"] == 0, row)
        lab.check(time.monotonic() - sent_and_left < 1 * lab.SLOW, "noticed late:", row)
    lab.check(sums_at(socket)["queued"] == 2, sums_at(socket))
    lab.check(row_at(socket, "occupant")["outcome"] == "live", "the occupant was hurt")
    occupant.close()
    for name in "bd":
        status, _, body = waiting[name].reply()
        lab.check(status == 200 and body.endswith(b"data: [DONE]\n\n"), name, status, body)
    starts = [row_at(socket, name)["ttft_ms"] for name in "bd"]
    lab.check(starts[0] > 0 and starts[1] > 0, "the wait is part of the TTFT:", starts)
    lab.check(fate(row_at(socket, "occupant"))["phase"] == "decode", "the occupant")
    quiet_at(socket)
    end_responder(process)


def quiet_at(socket):
    def probe():
        sums = sums_at(socket)
        lab.reconcile(sums)
        return sums["queued"] == sums["running"] == sums["held"] == 0
    lab.wait_until(probe, "nothing live")


def hands_over():
    process = own_responder("next", "--slots", "1")
    socket = "next.sock"
    first = ask_at(socket, "first", max_tokens=100000, ttft_ms=0, itl_ms=20)
    phase_at(socket, "first", "decode")
    second = ask_at(socket, "second", max_tokens=3, ttft_ms=0, itl_ms=0)
    phase_at(socket, "second", "queued")
    left_at = time.monotonic()
    first.close()
    status, _, body = second.reply()
    took = (time.monotonic() - left_at) * 1000
    lab.check(status == 200 and body.endswith(b"data: [DONE]\n\n"), status, body)
    lab.check(took < 50 * lab.SLOW, f"the next one was served {took:.1f} ms after the close")
    quiet_at(socket)
    end_responder(process)


def each_way(port):
    for address in lab.HTTP, int(port):
        for leave in "close", "reset", "half_close":
            stream = lab.Stream(address=address, prompt="hello", max_tokens=100, ttft_ms=20,
                                itl_ms=20)
            stream.take(5)
            left_at = time.monotonic()
            getattr(stream, leave)()
            row = fate(lab.ended(stream.id), IN_DECODE)
            lab.check(row["generated"] <= 6, address, leave, row)
            ended_in_time(row, stream.sent_at, left_at)
            if leave == "half_close":
                while not stream.ended:
                    stream.read()
                lab.check(("message", "[DONE]") not in stream.waiting, "it was told [DONE]")
                stream.close()
            aftermath()


def many(count, itl_ms):
    """All close at the same moment; those that are in prefill have generated nothing."""
    count, itl_ms = int(count), float(itl_ms)
    before = lab.all_quiet()
    decode = itl_ms < 1000
    streams = [lab.Stream(prompt=f"many {number}", max_tokens=1000,
                          ttft_ms=0 if decode else 60000, itl_ms=itl_ms)
               for number in range(count)]
    for stream in streams if decode else []:
        stream.take(5)
    lab.wait_until(lambda: lab.books()["running"] == count, f"{count} running")
    for stream in streams:
        stream.close()
    left_at = time.monotonic()
    after = lab.all_quiet()
    took = time.monotonic() - left_at
    lab.check(after["cancelled"] - before["cancelled"] == count, before, after)
    lab.check(took < 1 * lab.SLOW, f"it took {took:.2f} s until nothing was live")
    for stream in streams:
        row = fate(lab.ledger(stream.id), IN_DECODE if decode else ("hangup",))
        lab.check(decode or row["generated"] == 0, row)
    if not decode:
        lab.check(after["generated"] == before["generated"], before, after)
    aftermath()
    print(f"{count} gone {took * 1000:.0f} ms after the last close")


def at_once():
    """Closed as soon as it is sent: noticed by whoever has it then, nginx, intake or engine."""
    before = lab.all_quiet()
    for number in range(100):
        stream = lab.Stream(prompt=f"at once {number}", max_tokens=1000, ttft_ms=200, itl_ms=20)
        if number % 3 == 1:
            stream.reset()
        else:
            stream.close()
    aftermath()
    after = lab.all_quiet()
    lab.check(after["generated"] - before["generated"] == 4, "tokens for nobody:", before, after)
    lab.check(after["accepted"] - before["accepted"] ==
              after["cancelled"] - before["cancelled"] + 1, before, after)


def among_others():
    others = [lab.Stream(prompt=f"other {number}", max_tokens=100, ttft_ms=50, itl_ms=10)
              for number in range(20)]
    texts = [None] * len(others)
    def read(number):
        try:
            texts[number] = "".join(others[number].whole())
        except lab.Failure as failure:
            texts[number] = failure
    readers = [threading.Thread(target=read, args=(number,)) for number in range(len(others))]
    for reader in readers:
        reader.start()
    for _ in range(10):
        stream = lab.Stream(prompt="hello", max_tokens=1000, ttft_ms=0, itl_ms=5)
        stream.take(3)
        stream.close()
        fate(lab.ended(stream.id), IN_DECODE)
    for reader in readers:
        reader.join()
    for number, text in enumerate(texts):
        _, _, body = lab.ask("POST", "/generate", {"prompt": f"other {number}", "max_tokens": 100,
                                                   "ttft_ms": 0, "itl_ms": 0})
        lab.check(text == json.loads(body)["text"], "stream", number, "was disturbed:", text)
    aftermath()


def ignored(socket):
    wire = ask_at(socket, "left", max_tokens=50, ttft_ms=0, itl_ms=5)
    fastcgi.take_tokens(wire, 3)
    wire.close()
    row = ended_at(socket, "left")
    lab.check(row["outcome"] == "cancelled" and row["generated"] == 50, row)
    lab.check(row["discarded"] > 40 and row["delivered"] + row["discarded"] == 50, row)
    quiet_at(socket)


if __name__ == "__main__":
    lab.main(globals())
