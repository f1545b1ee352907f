"""What the peers share: HTTP over a socket, a strict reader of event streams, the ledger.

A peer is a client that curl cannot be: it closes at a certain token, never reads, or holds a
thousand streams. Standard library only. It runs in the folder of the servers, so that the
addresses are short, and ends with 1 and a sentence when the server is not as it should be.
"""

import http.client
import json
import os
import socket
import struct
import sys
import time
import urllib.parse

HTTP = "http.sock"
SLOW = float(os.environ.get("SLOW", "1"))  # a build with a sanitizer is slower by about this


class Failure(Exception):
    pass


def check(truth, *what):
    if not truth:
        raise Failure(" ".join(str(part) for part in what))


def main(functions):
    """Run the function that the first argument names, with the other arguments."""
    try:
        functions[sys.argv[1]](*sys.argv[2:])
    except Failure as failure:
        sys.exit(f"{sys.argv[0]} {' '.join(sys.argv[1:])}: {failure}")


def wait_until(probe, what, seconds=5):
    """Poll until `probe` gives something true, and return it."""
    end = time.monotonic() + seconds * SLOW
    while True:
        found = probe()
        if found:
            return found
        check(time.monotonic() < end, f"not within {seconds} s (x {SLOW}):", what)
        time.sleep(0.002)


def percentile(values, percent):
    """By nearest rank."""
    ordered = sorted(values)
    return ordered[max(0, -(-percent * len(ordered) // 100) - 1)]


# --- connections ---

def connect(address=HTTP, timeout=60):
    """To a path, a port of this machine, or (host, port)."""
    if isinstance(address, str):
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    else:
        peer = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        address = ("127.0.0.1", address) if isinstance(address, int) else address
    # Without a timeout, for it would make a full backlog an error at once (unix(7), EAGAIN).
    peer.connect(address)
    peer.settimeout(timeout)
    return peer


class Connection(http.client.HTTPConnection):
    """A client that keeps its connection, for many whole replies."""

    def __init__(self, address=HTTP):
        super().__init__("localhost")
        self.address = address

    def connect(self):
        self.sock = connect(self.address)

    def ask(self, method, target, body=None, headers=None):
        if isinstance(body, dict):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        headers = {"Content-Type": "application/json"} | (headers or {})
        self.request(method, target, body, headers)
        reply = self.getresponse()
        return reply.status, reply.headers, reply.read()


def ask(method, target, body=None, headers=None):
    connection = Connection()
    try:
        return connection.ask(method, target, body, headers)
    finally:
        connection.close()


def target(path, **controls):
    return path + "?" + urllib.parse.urlencode(controls, quote_via=urllib.parse.quote)


# --- event streams ---

class Events:
    """The events of a stream, in the one spelling that the server uses by default.

    Stricter than a browser: a line end, a blank or a field that should not be there is a fault.
    """

    def __init__(self):
        self.rest = b""

    def feed(self, data):
        *blocks, self.rest = (self.rest + data).split(b"\n\n")
        return [self.parse(block) for block in blocks]

    @staticmethod
    def parse(block):
        lines = block.split(b"\n")
        kind = "message"
        if lines[0] == b"event: error":
            kind = "error"
            lines = lines[1:]
        check(len(lines) == 1 and lines[0].startswith(b"data: "), "not an event:", block)
        data = lines[0][6:].decode("utf-8")
        check(len(data.splitlines()) == 1, "an event that splits into lines:", block)
        return kind, data


def token_of(event):
    kind, data = event
    check(kind == "message", "an error event:", data)
    fields = json.loads(data)
    check(list(fields) == ["token"] and isinstance(fields["token"], str) and fields["token"],
          "not one token:", data)
    return fields["token"]


class Chunks:
    """Takes HTTP/1.1's chunked coding off (RFC 9112, section 7.1)."""

    def __init__(self):
        self.rest = b""
        self.ended = False

    def feed(self, data):
        out = []
        self.rest += data
        while not self.ended:
            size, newline, behind = self.rest.partition(b"\r\n")
            if not newline:
                break
            length = int(size, 16)
            if len(behind) < length + 2:
                break
            check(behind[length:length + 2] == b"\r\n", "a chunk without its end")
            out.append(behind[:length])
            self.rest = behind[length + 2:]
            self.ended = length == 0
        return b"".join(out)


class Stream:
    """One streamed reply, event by event as it comes, on a connection of its own."""

    def __init__(self, path="/stream", address=HTTP, request_id=None, **controls):
        self.peer = connect(address)
        self.id = request_id or f"stream-{os.getpid()}-{id(self):x}-{time.monotonic_ns()}"
        self.sent_at = time.monotonic()
        self.peer.sendall(f"GET {target(path, **controls)} HTTP/1.1\r\nHost: localhost\r\n"
                          f"X-Request-Id: {self.id}\r\n\r\n".encode())
        self.begin()

    def begin(self):
        self.status = None
        self.headers = {}
        self.head = b""
        self.chunks = Chunks()
        self.events = Events()
        self.waiting = []  # events that have come and were not asked for yet
        self.ended = False

    def feed(self, data):
        if self.status is None:
            head, end, data = (self.head + data).partition(b"\r\n\r\n")
            self.head = head + end + data
            if not end:
                return
            status, *fields = head.decode().split("\r\n")
            self.status = int(status.split()[1])
            self.headers = {name.lower(): value for name, value in
                            (field.split(": ", 1) for field in fields)}
            check(self.headers.get("transfer-encoding") == "chunked", "no stream:", self.head)
        self.waiting += self.events.feed(self.chunks.feed(data))

    def read(self):
        """One read, which waits. False at the end."""
        data = self.peer.recv(65536)
        self.ended = not data
        self.feed(data)
        self.ended = self.ended or self.chunks.ended
        return not self.ended

    def next(self):
        """The next event, or None at the end."""
        while not self.waiting and not self.ended:
            self.read()
        return self.waiting.pop(0) if self.waiting else None

    def take(self, count):
        return [token_of(self.next()) for _ in range(count)]

    def arrived(self):
        """How many more events are here already."""
        self.peer.setblocking(False)
        try:
            while self.read():
                pass
        except BlockingIOError:
            pass
        self.peer.setblocking(True)
        return len(self.waiting)

    def whole(self):
        """All tokens of a stream that ends as it should."""
        tokens = []
        while (event := self.next()) is not None:
            if event == ("message", "[DONE]"):
                check(self.next() is None, "an event after [DONE]")
                check(self.chunks.ended, "the connection was cut after [DONE]")
                check(not self.events.rest, "bytes after [DONE]:", self.events.rest)
                return tokens
            tokens.append(token_of(event))
        raise Failure(f"the stream ends without [DONE], after {len(tokens)} tokens")

    def close(self):
        self.peer.close()

    def reset(self):
        """Over TCP a RST, over a Unix socket the nearest there is."""
        self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.peer.close()

    def half_close(self):
        self.peer.shutdown(socket.SHUT_WR)


# --- the ledger ---

def ledger(request_id):
    status, _, body = ask("GET", f"/_debug/generated?id={request_id}")
    return json.loads(body) if status == 200 else None


def ended(request_id, seconds=5):
    """The ledger's row of a request, once it has ended."""
    def probe():
        row = ledger(request_id)
        return row if row and row["outcome"] != "live" else None
    return wait_until(probe, f"the end of {request_id}", seconds)


def reached(request_id, phase, seconds=5):
    def probe():
        row = ledger(request_id)
        return row if row and row["phase"] == phase else None
    return wait_until(probe, f"{request_id} in {phase}", seconds)


def reconcile(sums):
    """The two equations that hold at any moment."""
    outcomes = sum(sums[name] for name in
                   ("done", "cancelled", "failed", "shed", "stalled", "drained"))
    check(sums["accepted"] == outcomes + sums["queued"] + sums["running"], "requests:", sums)
    check(sums["generated"] == sums["delivered"] + sums["discarded"] + sums["held"],
          "tokens:", sums)


def books():
    """The sums, which reconcile."""
    status, _, body = ask("GET", "/_debug/generated")
    check(status == 200, "the ledger answers", status)
    sums = json.loads(body)["ledger"]
    reconcile(sums)
    return sums


def all_quiet(seconds=5):
    """Nothing is live any more, and the books are closed."""
    def probe():
        sums = books()
        return sums if sums["queued"] == sums["running"] == sums["held"] == 0 else None
    return wait_until(probe, "queued, running and held at 0", seconds)


def served():
    """A request now is served as if nothing had been; the seconds it took."""
    began = time.monotonic()
    status, _, body = ask("POST", "/generate", {"prompt": "hello", "max_tokens": 4,
                                                "ttft_ms": 0, "itl_ms": 0})
    took = time.monotonic() - began
    check(status == 200 and json.loads(body)["text"] == "The sailor rested and",
          "not served:", status, body)
    return took
