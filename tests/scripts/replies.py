#!/usr/bin/env python3
"""A server of canned replies for the tests of the instruments; prints its port, then serves.

    /whole?n=N    N tokens, 2 ms apart       /chat       an OpenAI-style stream of 25 tokens
    /eof /error /garbled /html /empty        the ways in which a stream is none
    /refused      400 with a JSON error      /reset      the connection breaks in mid-stream
    /silent       a head, and nothing more   /echo       the request, as the token of an event
    /endless      tokens until the client leaves
    /words        plain text events, without [DONE]
    /think        a chat with reasoning, a usage at its end
    /fickle       whole, cut, whole, cut ... in turns
    /coloured     a header that would colour a terminal
    /key          whole for the key `sesame`, else 401; it sets a cookie

    Generations of 60 tokens, 20 ms apart, that /metrics counts while they run:
    /heedful      ends with its client             /heedless     runs on without its client
    /lump         sends all at its end, and ends with its client
    /lump/heedless   ... and runs on without its client
    /bursts/N        N tokens in a piece, unless it is asked as `localhost`
    /locked/heedful  whose /metrics needs the key `sesame`

    /_debug/generated      `cancelled`, with one token more each time that it is asked
    /live                  a record that stays `live`
"""
import http.server
import json
import select
import socket
import threading
import time
import urllib.parse


class Handler(http.server.BaseHTTPRequestHandler):
    asked = 0
    running = 0
    locked = False
    lock = threading.Lock()

    def log_message(self, *args):
        pass

    def start(self, status=200, kind="text/event-stream"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()

    def event(self, text, wait=0.0):
        self.wfile.write(b"data: " + text.encode() + b"\n\n")
        time.sleep(wait)

    def tokens(self, n, wait=0.002):
        for i in range(n):
            self.event(json.dumps({"token": " t%d" % i}), wait)

    def do_POST(self):
        self.do_GET()

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        getattr(self, "reply_" + url.path.strip("/").replace("/", "_").lstrip("_"), self.reply_none)(query)

    def reply_none(self, query):
        self.start(404, "application/json")
        self.wfile.write(b'{"error":{"message":"no such path"}}')

    def reply_whole(self, query):
        self.start()
        self.tokens(int(query.get("n", query.get("max_tokens", 30))))
        self.event("[DONE]")

    def reply_words(self, query):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(b"data: word\n\n") * 12))
        self.end_headers()
        for _ in range(12):
            self.event("word", 0.002)

    def reply_think(self, query):
        self.start()
        self.event('{"choices":[{"delta":{"role":"assistant","content":""}}]}', 0.02)
        for _ in range(3):
            self.event('{"choices":[{"delta":{"reasoning_content":"hm"}}]}', 0.02)
        for _ in range(5):
            self.event('{"choices":[{"delta":{"content":" two words"}}]}', 0.002)
        self.event('{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":14,'
                   '"completion_tokens_details":{"reasoning_tokens":4}}}')
        self.event("[DONE]")

    def reply_fickle(self, query):
        Handler.asked += 1
        self.start()
        self.tokens(5)
        if Handler.asked % 2:
            self.event("[DONE]")

    def reply_key(self, query):
        if self.headers.get("Authorization") != "Bearer sesame":
            self.start(401, "application/json")
            self.wfile.write(b'{"error":{"message":"no \x1b[31mkey"}}')
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Set-Cookie", "session=crumbs")
        self.end_headers()
        self.tokens(5)
        self.event("[DONE]")

    def reply_coloured(self, query):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Via", "1.1 \x1b[31mred")
        self.end_headers()
        self.tokens(12)
        self.event("[DONE]")

    def reply_chat(self, query):
        self.start()
        self.event('{"choices":[{"delta":{"role":"assistant","content":""}}]}')
        for i in range(25):
            self.event('{"choices":[{"delta":{"content":" w"}}]}', 0.002)
        self.event('{"choices":[],"usage":{"completion_tokens":25}}')
        self.event("[DONE]")

    def reply_eof(self, query):
        self.start()
        self.tokens(25)

    def reply_error(self, query):
        self.start()
        self.tokens(25)
        self.wfile.write(b'event: error\ndata: {"error":{"message":"out of luck"}}\n\n')

    def reply_garbled(self, query):
        self.start()
        self.tokens(3)
        self.event('{"token":')
        self.event("[DONE]")

    def reply_empty(self, query):
        self.start()

    def reply_html(self, query):
        self.start(200, "text/html")
        self.wfile.write(b"<p>data: x\n\ndata: [DONE]\n\n")

    def reply_refused(self, query):
        self.start(400, "application/json")
        self.wfile.write(b'{"error":{"message":"max_tokens: \\"x\\" is no number","type":"t","param":null,"code":"c"}}')

    def reply_reset(self, query):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", "100000")
        self.end_headers()
        self.tokens(25)

    def reply_silent(self, query):
        self.start()
        self.wfile.flush()
        time.sleep(30)

    def reply_echo(self, query):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.start()
        request = {"method": self.command, "query": query, "body": body, "headers": dict(self.headers),
                   "types": self.headers.get_all("Content-Type")}
        self.event(json.dumps({"token": json.dumps(request)}))
        self.event('{"token":"x"}')
        self.event("[DONE]")

    def reply_endless(self, query):
        self.start()
        self.tokens(100000)

    def has_left(self):
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""

    def generate(self, heedful, lump, locked=False, burst=1):
        Handler.locked = locked
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        assert b"stream" in body
        event = b'data: {"choices":[{"delta":{"content":" w"}}]}\n\n'
        with Handler.lock:
            Handler.running += 1
        try:
            if not lump:
                self.start()
            for i in range(60):
                time.sleep(0.02)
                if self.has_left():
                    if heedful:
                        return
                elif not lump and (i + 1) % burst == 0:
                    self.wfile.write(event * burst)
        finally:
            with Handler.lock:
                Handler.running -= 1
        if not self.has_left():
            if lump:
                self.start()
                self.wfile.write(event * 60)
            self.event("[DONE]")

    def reply_heedful(self, query):
        self.generate(True, False)

    def reply_heedless(self, query):
        self.generate(False, False)

    def reply_lump(self, query):
        self.generate(True, True)

    def reply_lump_heedless(self, query):
        self.generate(False, True)

    def reply_bursts_3(self, query):
        self.generate(True, False, burst=3 if self.headers["Host"].startswith("127.") else 1)

    def reply_bursts_15(self, query):
        self.generate(True, False, burst=15 if self.headers["Host"].startswith("127.") else 1)

    def reply_locked_heedful(self, query):
        self.generate(True, False, True)

    def reply_metrics(self, query):
        if Handler.locked and self.headers.get("Authorization") != "Bearer sesame":
            self.start(401, "text/plain")
            return
        self.start(200, "text/plain")
        self.wfile.write(b"# TYPE llamacpp:requests_processing gauge\nllamacpp:requests_processing %d\n" % Handler.running)

    def reply_debug_generated(self, query):
        Handler.asked += 1
        self.start(200, "application/json")
        record = {"requested": 100, "generated": 5 + Handler.asked, "outcome": "cancelled"}
        self.wfile.write(json.dumps(record).encode())

    def reply_live(self, query):
        self.start(200, "application/json")
        self.wfile.write(b'{"requested":100,"generated":7,"outcome":"live"}')


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
