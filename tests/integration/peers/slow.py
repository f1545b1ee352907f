"""Clients that do not read, or slowly, and those beside them."""

import json
import os
import statistics
import time

import fastcgi
import lab


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def gaps_of_a_stream():
    """Gaps between the tokens of a stream of 5 ms, in ms."""
    stream = lab.Stream(prompt="beside", max_tokens=200, ttft_ms=0, itl_ms=5)
    times = []
    for _ in range(200):
        lab.token_of(stream.next())
        times.append(time.monotonic())
    lab.check(stream.whole() == [], "more than 200 tokens")
    return [(after - before) * 1000 for before, after in zip(times, times[1:])]


def figures(gaps):
    return {"p50": statistics.median(gaps), "p99": lab.percentile(gaps, 99)}


def never_read(pid):
    alone = [figures(gaps_of_a_stream()) for _ in range(2)]
    memory = resident_kib(pid)
    idle = [lab.Stream(prompt=f"idle {number}", max_tokens=100000, ttft_ms=0, itl_ms=0)
            for number in range(20)]
    beside = [figures(gaps_of_a_stream())]  # while their buffers fill, and after
    lab.check(lab.books()["running"] == 20, "they should be paused, and live:", lab.books())
    tokens = lab.books()["generated"]
    beside.append(figures(gaps_of_a_stream()))
    rows = [lab.ledger(stream.id) for stream in idle]
    lab.check(all(row["outcome"] == "live" for row in rows), "they have 3 s")
    # Two looks a second apart: nothing is made for those that do not read.
    lab.check(lab.books()["generated"] - tokens == 200, "tokens ahead of the sockets:", tokens,
              lab.books())
    grown = resident_kib(pid) - memory
    began = time.monotonic()
    ttft = []
    for _ in range(10):
        ttft.append(lab.served() * 1000)
    print(f"alone {alone}\nbeside 20 that do not read {beside}\n"
          f"memory +{grown} KiB, a small reply in {max(ttft):.1f} ms")
    lab.check(grown < 20 * 256 * lab.SLOW, f"memory grew by {grown} KiB")
    # The better of two: what else runs here must not be taken for a delay by slow readers.
    p50 = [min(run["p50"] for run in runs) for runs in (alone, beside)]
    p99 = [min(run["p99"] for run in runs) for runs in (alone, beside)]
    lab.check(p50[1] < 1.2 * p50[0] + 0.5, "the median gap:", p50)
    lab.check(p99[1] < 2 * p99[0] + 2 * lab.SLOW, "the p99 gap:", p99)
    lab.check(min(ttft) < 50 * lab.SLOW, "the others are served late:", ttft)
    for stream in idle:
        row = lab.ended(stream.id, 10)
        lab.check(row["outcome"] == "stalled" and row["detected_by"] is None, row)
        lab.check(0 < row["generated"] == row["delivered"] < 100000, row)
    lab.check(time.monotonic() - began < 10 * lab.SLOW, "the stall timeout is late")
    # What was sent before can still be read; then it ends without [DONE].
    tokens, last = 0, None
    while (event := idle[0].next()) is not None:
        last = event
        tokens += event[0] == "message"
    lab.check(last != ("message", "[DONE]"), "a stalled stream was told [DONE]")
    lab.check(tokens <= lab.ledger(idle[0].id)["generated"], "more was read than was generated")
    for stream in idle:
        stream.close()
    lab.served()
    lab.all_quiet()


def reads_slowly():
    stream = lab.Stream(prompt="slow", max_tokens=30000, ttft_ms=0, itl_ms=0)
    tokens = 0
    while (event := stream.next()) != ("message", "[DONE]"):
        lab.token_of(event)
        tokens += 1
        if tokens % 3000 == 0:
            time.sleep(0.2)  # the reader's own slowness, not a wait for something
    lab.check(tokens == 30000, tokens, "tokens")
    row = lab.ended(stream.id)
    lab.check(row["outcome"] == "done" and row["delivered"] == 30000, row)


def paused(stream):
    """Wait until the buffers on the way are full, and the generation stands still."""
    def stands_still():
        before = lab.ledger(stream.id)
        time.sleep(0.1)  # the time in which, at this pace, thousands would be made
        return before and 0 < before["generated"] == lab.ledger(stream.id)["generated"]
    lab.wait_until(stands_still, "a pause, as nobody reads")
    lab.check(lab.ledger(stream.id)["outcome"] == "live", "it was not paused")


def stops_and_goes_on():
    stream = lab.Stream(prompt="slow", max_tokens=100000, ttft_ms=0, itl_ms=0)
    paused(stream)
    tokens = stream.whole()
    lab.check(len(tokens) == 100000, len(tokens), "tokens")
    lab.check(lab.ended(stream.id)["outcome"] == "done", lab.ledger(stream.id))


def big_generate():
    body = json.dumps({"prompt": "big", "max_tokens": 100000, "vocab": "torture", "ttft_ms": 0,
                       "itl_ms": 0}).encode()
    peer = lab.connect()
    # Small buffers, or all of the reply fits between the two.
    peer.sendall(b"POST /generate HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: big\r\n"
                 b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" %
                 (len(body), body))
    row = lab.wait_until(lambda: (found := lab.ledger("big")) and found["generated"] == 100000 and
                         found, "100,000 tokens", 20)
    lab.check(row["outcome"] == "live", "it all went into buffers, which shows nothing:", row)
    lab.served()
    row = lab.ended("big", 10)
    lab.check(row["outcome"] == "stalled", row)
    lab.check(row["delivered"] == 0 and row["discarded"] == 100000, row)
    peer.close()
    lab.all_quiet()


def slow_one_leaves():
    stream = lab.Stream(prompt="slow", max_tokens=100000, ttft_ms=0, itl_ms=0)
    paused(stream)
    left_at = time.monotonic()
    stream.close()
    row = lab.ended(stream.id)
    late = row["duration_ms"] - (left_at - stream.sent_at) * 1000
    lab.check(row["outcome"] == "cancelled" and late < 100 * lab.SLOW, f"{late:.1f} ms", row)
    lab.all_quiet()


def hold_open(count):
    """Streams that nobody reads, and a request that never gets whole, until `held` is gone."""
    streams = [lab.Stream(prompt="held", max_tokens=100000, ttft_ms=0, itl_ms=0)
               for _ in range(int(count))]
    half = fastcgi.Wire().send(fastcgi.begin() + b"\1\4\0\1")
    paused(streams[0])
    with open("held", "w", encoding="ascii"):
        pass
    lab.wait_until(lambda: not os.path.exists("held"), "the end of the responder", 20)
    for peer in *streams, half:
        peer.close()


if __name__ == "__main__":
    lab.main(globals())
