#!/usr/bin/env python3
"""Prints its port, then answers each request with a stream of one token, and writes what was asked to
standard output: the request as it came, byte for byte, with a line `--- ADDRESS` behind it."""
import socket
import sys

REPLY = (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
         b'data: {"token":"x"}\n\ndata: [DONE]\n\n')


def request(peer):
    got = b""
    while b"\r\n\r\n" not in got:
        got += peer.recv(65536)
    head, _, body = got.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    while len(body) < length:
        body += peer.recv(65536)
    return head + b"\r\n\r\n" + body


with socket.create_server(("127.0.0.1", 0)) as listener:
    print(listener.getsockname()[1], flush=True)
    while True:
        peer, address = listener.accept()
        with peer:
            asked = peer.recv(1, socket.MSG_PEEK)  # nothing: the client only tried whether we are there
            if asked:
                sys.stdout.buffer.write(request(peer) + b"\n--- " + address[0].encode() + b"\n")
                sys.stdout.flush()
                peer.sendall(REPLY)
