"""FastCGI records, by hand (the specification's section 8): what no well-behaved server sends.

    python3 fastcgi.py probe unix:PATH|PATH|HOST:PORT    0 when a responder answers there
    python3 fastcgi.py get HOST:PORT PATH[?QUERY]        the body of its reply, without nginx
"""

import json
import socket
import struct
import sys

import lab

BEGIN, ABORT, END, PARAMS, STDIN, STDOUT, STDERR = 1, 2, 3, 4, 5, 6, 7
GET_VALUES, GET_VALUES_RESULT, UNKNOWN = 9, 10, 11
KEEP = 1
CANT_MPX_CONN, UNKNOWN_ROLE = 1, 3
SOCKET = "runnel.sock"


def record(kind, request_id, content=b"", padding=0):
    return struct.pack(">BBHHBB", 1, kind, request_id, len(content), padding, 0) + content + \
        bytes(padding)


def begin(request_id=1, flags=0, role=1):
    return record(BEGIN, request_id, struct.pack(">HB5x", role, flags))


def length(size):
    return struct.pack(">B", size) if size < 128 else struct.pack(">I", size | 1 << 31)


def pair(name, value):
    name, value = name.encode(), value.encode()
    return length(len(name)) + length(len(value)) + name + value


def records(kind, request_id, content):
    """A stream: its content in records that it fits, then the empty one."""
    pieces = [content[at:at + 65000] for at in range(0, len(content), 65000)]
    return b"".join(record(kind, request_id, piece) for piece in pieces + [b""])


def params(path, method="GET", query="", **more):
    fields = {"REQUEST_METHOD": method, "DOCUMENT_URI": path, "QUERY_STRING": query,
              "SERVER_PROTOCOL": "HTTP/1.1"} | more
    return b"".join(pair(name, value) for name, value in fields.items())


def request(path, query="", request_id=1, flags=0, body=b"", method="GET", **more):
    if body:
        more |= {"CONTENT_LENGTH": str(len(body)), "CONTENT_TYPE": "application/json"}
    return begin(request_id, flags) + \
        records(PARAMS, request_id, params(path, method, query, **more)) + \
        records(STDIN, request_id, body)


class Wire:
    """A connection to the responder itself, read record by record."""

    def __init__(self, address=SOCKET, timeout=60):
        self.peer = lab.connect(address, timeout)
        self.rest = b""

    def send(self, data):
        self.peer.sendall(data)
        return self

    def next(self):
        """(kind, request id, content), or None at the end, which may be a reset."""
        while True:
            if len(self.rest) >= 8:
                version, kind, request_id, size, padding = struct.unpack(">BBHHB", self.rest[:7])
                lab.check(version == 1, "not a record:", self.rest[:8])
                total = 8 + size + padding
                if len(self.rest) >= total:
                    content = self.rest[8:8 + size]
                    self.rest = self.rest[total:]
                    return kind, request_id, content
            try:
                data = self.peer.recv(65536)
            except (ConnectionResetError, BrokenPipeError):
                data = b""
            if not data:
                return None
            self.rest += data

    def reply(self, request_id=1):
        """(status, head, body) of a whole reply, which must end with END_REQUEST."""
        out = b""
        while (got := self.next()) is not None:
            kind, its_id, content = got
            lab.check(its_id == request_id, "a record of another request:", got)
            if kind == END:
                status, protocol = struct.unpack(">IB", content[:5])
                lab.check(status == 0 and protocol == 0, "END_REQUEST says", status, protocol)
                head, blank, body = out.partition(b"\r\n\r\n")
                lab.check(blank and head.startswith(b"Status: ") or b"\r\nStatus: " in head,
                          "no head:", head)
                code = head.split(b"Status: ")[1][:3]
                return int(code), head, body
            lab.check(kind == STDOUT, "an unexpected record:", got)
            out += content
        raise lab.Failure(f"the connection ends within a reply: {out!r}")

    def is_closed(self):
        """Whether the responder closes it, with nothing more to say."""
        return self.next() is None

    def close(self):
        self.peer.close()


def address_of(text):
    if text.startswith("unix:"):
        return text[5:]
    host, colon, port = text.rpartition(":")
    return (host, int(port)) if colon else text


def probe(address):
    wire = Wire(address_of(address), timeout=2)
    kind, _, content = wire.send(record(GET_VALUES, 0, pair("FCGI_MPXS_CONNS", ""))).next()
    lab.check(kind == GET_VALUES_RESULT and content == pair("FCGI_MPXS_CONNS", "0"), "an answer")


def healthz(address):
    status, _, body = Wire(address_of(address)).send(request("/healthz")).reply()
    lab.check((status, body) == (200, b"ok\n"), "healthz says", status, body)


def get(address, target):
    path, _, query = target.partition("?")
    status, _, body = Wire(address_of(address)).send(request(path, query)).reply()
    lab.check(status == 200, target, "says", status, body)
    print(body.decode(), end="")


def stream_of(wire, **controls):
    """Ask for a stream; the parameters as lab.target takes them."""
    query = lab.target("", **controls)[1:]
    request_id = f"wire-{id(wire):x}-{controls.get('prompt')}"
    wire.send(request("/stream", query, HTTP_X_REQUEST_ID=request_id, flags=KEEP))
    return request_id


def take_tokens(wire, count):
    """Read until `count` token events have come."""
    out = b""
    while out.count(b"data: ") < count:
        got = wire.next()
        lab.check(got is not None and got[0] == STDOUT, "no token but", got)
        out += got[2]
    return out


def text_of(body):
    return json.loads(body)["text"]


if __name__ == "__main__":
    try:
        {"probe": probe, "healthz": healthz, "get": get}[sys.argv[1]](*sys.argv[2:])
    except (lab.Failure, OSError, TypeError, socket.timeout) as failure:
        sys.exit(f"fastcgi.py: {failure}")
