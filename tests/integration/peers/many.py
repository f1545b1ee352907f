"""Many streams at once, read by one thread with epoll.

What comes is kept with its time and looked at afterwards: a client that parses while it reads
measures itself.
"""

import gc
import os
import select
import time

import lab
import same

OTHERS_MAX = 0.1  # more of the processors in other hands shows in every gap
IDLE_MIN = 0.25
TRIES = 3  # one hiccup of a second's length is no finding


def open_stream(number, start_ms, itl_ms, tokens):
    peer = lab.connect()
    query = lab.target("/stream", prompt=f"many {number}", max_tokens=tokens, ttft_ms=start_ms,
                       itl_ms=itl_ms)
    peer.sendall(f"GET {query} HTTP/1.1\r\nHost: localhost\r\n"
                 f"X-Request-Id: many-{number}\r\n\r\n".encode())
    peer.setblocking(False)
    return peer


def collect(peers):
    """For each stream, its reads as (time, bytes). Ends at the last chunk of each."""
    poll = select.epoll()
    reads = {peer.fileno(): [] for peer in peers}
    for descriptor in reads:
        poll.register(descriptor, select.EPOLLIN)
    left = len(peers)
    # The loop runs 50,000 times a second beside what it measures: no lookups, no large buffers.
    now, read, wait = time.monotonic, os.read, poll.poll
    keep = {descriptor: reads[descriptor].append for descriptor in reads}
    end = now() + 60 * lab.SLOW
    gc.disable()
    while left and now() < end:
        for descriptor, _ in wait(1, 1000):
            data = read(descriptor, 4096)
            keep[descriptor]((now(), data))
            if not data or data.endswith(b"0\r\n\r\n"):
                poll.unregister(descriptor)
                left -= 1
    gc.enable()
    lab.check(left == 0, left, "streams have not ended")
    return [reads[peer.fileno()] for peer in peers]


def tokens_of(reads):
    """(tokens, the time of each): that of the read which brought its last byte."""
    stream = lab.Stream.__new__(lab.Stream)
    stream.begin()
    times = []
    for at, data in reads:
        stream.feed(data)
        times += [at] * (len(stream.waiting) - len(times))
    lab.check(stream.status == 200, "status", stream.status)
    lab.check(stream.chunks.ended and not stream.events.rest, "the reply was cut")
    *events, last = stream.waiting
    lab.check(last == ("message", "[DONE]"), "the last event is", last)
    return [lab.token_of(event) for event in events], times[:-1]


def ticks_of(pids):
    """Processor time that these have used, in clock ticks."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total


class Quiet:
    """How much of the processors others take meanwhile, and how much is left idle: what is late on
    a machine that is full, with others' work or with ours on a slow day, says nothing of pace."""

    def __init__(self, pids):
        self.pids = pids
        self.began = time.monotonic()
        self.before = self.ticks()

    def ticks(self):
        """(of others, idle), in clock ticks."""
        with open("/proc/stat", encoding="ascii") as stat:
            user, nice, system, idle, _, irq, softirq, steal, *_ = \
                (int(field) for field in stat.readline().split()[1:])
        return user + nice + system + irq + softirq + steal - ticks_of(self.pids), idle

    def shares(self):
        whole = (time.monotonic() - self.began) * os.cpu_count() * os.sysconf("SC_CLK_TCK")
        return [max(0, now - before) / whole for now, before in zip(self.ticks(), self.before)]


def run(count, itl_ms, tokens, first, pids):
    """(median gap by the pace asked for, coalesced share, whether the machine had room for it),
    once all has been checked."""
    # Spread over one gap, and late enough that all are open before the first token.
    start_ms = 1500 * lab.SLOW
    began = time.monotonic()
    peers = []
    for number in range(count):
        spent_ms = (time.monotonic() - began) * 1000
        due_ms = start_ms + itl_ms * number / count - spent_ms
        peers.append(open_stream(first + number, f"{max(0, due_ms):.3f}", itl_ms, tokens))
    opened = time.monotonic() - began
    quiet = Quiet(["self", *pids])
    collected = collect(peers)
    others, idle = quiet.shares()
    for peer in peers:
        peer.close()
    gaps = []
    for number, reads in enumerate(collected):
        got, times = tokens_of(reads)
        lab.check(len(got) == tokens, "stream", number, "has", len(got), "tokens")
        if number % 20 == 0:
            lab.check("".join(got) == same.printed(f"many {first + number}", tokens), "stream",
                      number, "has another text")
        gaps += [(after - before) * 1000 for before, after in zip(times, times[1:])]
    p99 = lab.percentile(gaps, 99)
    coalesced = sum(gap == 0 for gap in gaps) / len(gaps)
    print(f"{count} streams of {tokens} tokens, opened in {opened:.2f} s: gap p50 "
          f"{lab.percentile(gaps, 50):.2f}, p99 {p99:.2f}, max {max(gaps):.2f} ms, "
          f"{coalesced:.2%} coalesced (n={len(gaps)}); others had {others:.0%} of the processors, {idle:.0%} were idle")
    has_room = others <= OTHERS_MAX and idle >= IDLE_MIN
    return lab.percentile(gaps, 50) / itl_ms, coalesced, has_room


def streams(count, rate, tokens, *pids):
    count, itl_ms, tokens = int(count), 1000 / float(rate), int(tokens)
    for attempt in range(TRIES):
        pace, coalesced, had_room = run(count, itl_ms, tokens, attempt * count, pids)
        sums = lab.all_quiet()
        lab.check(sums["done"] == (attempt + 1) * count == sums["accepted"], sums)
        lab.check(sums["generated"] == sums["delivered"] == sums["done"] * tokens, sums)
        if lab.SLOW > 1 or not had_room:
            print("the pace is not judged: a sanitizer, or a machine without room")
            return
        # The tail is the machine's (it is printed); what is ours is a ratio.
        if abs(pace - 1) < 0.05 and coalesced < 0.05:
            return
    lab.check(False, f"a median gap of {pace:.2f} times the pace, {coalesced:.1%} coalesced")


if __name__ == "__main__":
    lab.main(globals())
