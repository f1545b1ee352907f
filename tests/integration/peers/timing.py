"""When tokens are due: the schedule of a request, alone and among others, and who shares with whom."""

import json
import selectors
import time

import lab


def dues(address=lab.HTTP, **controls):
    """The due times of a stream's events, from its stamps, and the stream."""
    stream = lab.Stream(address=address, stamps=1, **controls)
    found = []
    while (event := stream.next()) is not None:
        if event == ("message", "[DONE]"):
            break
        fields = json.loads(event[1])
        lab.check(fields["t_us"] >= fields["due_us"], "sent before it was due:", fields)
        lab.check(fields["i"] == sum(n for n, _ in found), "the index:", fields)
        found.append((fields.get("n", 1), fields["due_us"]))
    stream.close()
    return [due for _, due in found]


def gaps(moments):
    return [later - earlier for earlier, later in zip(moments, moments[1:])]


SUBJECT = {"prompt": "determinism", "max_tokens": 60, "ttft_ms": 20, "itl_ms": 10,
           "jitter": "lognormal:60", "vocab": "torture"}


def constant():
    lab.check(set(gaps(dues(prompt="c", max_tokens=200, ttft_ms=3, itl_ms=0.5))) == {500},
              "constant gaps")
    lab.check(set(gaps(dues(prompt="c", max_tokens=40, ttft_ms=3, itl_ms=2, chunk=4))) == {8000},
              "a chunk of four is four gaps")


def shapes():
    """The shapes, by their moments: 4,000 draws, bounds of many standard errors."""
    itl_us = 200
    base = {"max_tokens": 4001, "ttft_ms": 0, "itl_ms": itl_us / 1000}
    drawn = {jitter: [gap / itl_us for gap in gaps(dues(prompt="shapes", jitter=jitter, **base))]
             for jitter in ("uniform:50", "normal:20", "lognormal:80", "none")}
    lab.check(set(drawn["none"]) == {1}, "none")
    lab.check(0.5 <= min(drawn["uniform:50"]) < 0.52 and 1.48 < max(drawn["uniform:50"]) <= 1.5,
              "uniform:50 is within a half", min(drawn["uniform:50"]), max(drawn["uniform:50"]))
    for jitter, deviation in (("uniform:50", 0.289), ("normal:20", 0.2), ("lognormal:80", 0.8)):
        values = drawn[jitter]
        mean = sum(values) / len(values)
        spread = (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5
        lab.check(abs(mean - 1) < deviation * 0.1, jitter, "has the mean", mean)
        lab.check(abs(spread - deviation) < deviation * 0.25, jitter, "has the deviation", spread)
    lab.check(lab.percentile(drawn["lognormal:80"], 50) < 0.9, "lognormal leans to the left")
    again = gaps(dues(prompt="shapes", jitter="normal:20", **base))
    lab.check([gap / itl_us for gap in again] == drawn["normal:20"],
              "the same request has the same schedule")
    other = gaps(dues(prompt="shapes", jitter="normal:20", seed=1, **base))
    lab.check(other != again, "another seed has another")


def prefill():
    began = time.monotonic()
    stream = lab.Stream(prompt="one two three, four", max_tokens=1, ttft_ms=10,
                        prefill_us_per_token=20000)
    stream.whole()
    took_ms = (time.monotonic() - began) * 1000
    row = lab.ended(stream.id)
    lab.check(110 <= row["ttft_ms"] <= took_ms, "10 ms and 5 prompt tokens of 20 ms:", row)


def crowd(others):
    """The schedule and the bytes of one request, alone and among others."""
    alone = gaps(dues(**SUBJECT))
    text = lab.Stream(**SUBJECT).whole()
    held = [lab.Stream(prompt=f"other {i}", max_tokens=2000, ttft_ms=0, itl_ms=20)
            for i in range(int(others))]
    lab.wait_until(lambda: lab.books()["running"] == int(others), "the others are live", 20)
    among = gaps(dues(**SUBJECT))
    lab.check(lab.Stream(**SUBJECT).whole() == text, "the same bytes among others")
    lab.check(lab.books()["running"] >= int(others) // 2, "the others still live")
    lab.check(among == alone, "the same schedule among others")
    for stream in held:
        stream.close()
    lab.all_quiet(20)


def batch(extra_us):
    """--itl-per-running-us: each running request adds to every gap."""
    held = [lab.Stream(prompt="held", max_tokens=1, ttft_ms=60000) for _ in range(10)]
    lab.wait_until(lambda: lab.books()["running"] == 10, "ten are running")
    found = gaps(dues(prompt="c", max_tokens=10, ttft_ms=0, itl_ms=2))
    lab.check(set(found) == {2000 + 11 * int(extra_us)}, "eleven share the batch:", found)
    for stream in held:
        stream.close()
    lab.all_quiet()
    found = gaps(dues(prompt="c", max_tokens=10, ttft_ms=0, itl_ms=2))
    lab.check(set(found) == {2000 + int(extra_us)}, "one has it alone:", found)


def trace(figures):
    """--timing-trace: the figures, and again from the second."""
    first, *recorded = [int(figure) for figure in figures.split(",")]
    count = 2 * len(recorded) + 2
    stream = lab.Stream(prompt="c", max_tokens=1)
    stream.whole()
    lab.check(lab.ended(stream.id)["ttft_ms"] * 1000 >= first, "the first figure is the TTFT")
    found = gaps(dues(prompt="c", max_tokens=count))
    want = (recorded * 3)[:count - 1]
    lab.check(found == want, "the trace:", found, want)
    lab.check(set(gaps(dues(prompt="c", max_tokens=9, itl_ms=1))) == {1000},
              "a request that says its pace has it")


def fair():
    """50 unpaced streams at once: the slowest first token, against the fastest."""
    selector = selectors.DefaultSelector()
    streams = [lab.Stream(prompt=f"fair {i}", max_tokens=4000, ttft_ms=20, itl_ms=0)
               for i in range(50)]
    for stream in streams:
        selector.register(stream.peer, selectors.EVENT_READ, stream)
    live = len(streams)
    while live:
        for key, _ in selector.select(30):
            if not key.data.read():
                selector.unregister(key.data.peer)
                live -= 1
    ttft = sorted(lab.ended(stream.id)["ttft_ms"] for stream in streams)
    durations = sorted(lab.ended(stream.id)["duration_ms"] for stream in streams)
    print(f"# first token after {ttft[0]:.3f} to {ttft[-1]:.3f} ms, "
          f"last after {durations[0]:.1f} to {durations[-1]:.1f} ms")
    # One turn is one token each: a first token waits for one round of the others. All of them are
    # here before the first is due; served one after the other, the last would wait for a second.
    lab.check(ttft[-1] <= 10 * ttft[0], "first tokens:", ttft)


lab.main({function.__name__: function for function in
          (constant, shapes, prefill, crowd, batch, trace, fair)})
