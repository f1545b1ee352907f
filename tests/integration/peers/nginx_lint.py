"""Does nginx do what nginx-lint says of a configuration?

One front nginx has a location for each row below, in front of the shipped nginx.conf (origin.sock) or of
a small upstream that misbehaves on purpose (odd-1.sock, odd-2.sock). Each test measures what happens in the
locations, and compares it with what `nginx-lint --tsv` (lint.tsv) says of them.

    write         front.conf and its parameters
"""

import http.client
import json
import os
import socket
import subprocess
import threading
import time

import lab

TOKENS = 25
ORIGIN = "proxy_pass http://unix:origin.sock:/;"
ODD = "proxy_pass http://unix:odd-1.sock:/;"
TWO = "proxy_pass http://two/; proxy_buffering off; proxy_http_version 1.1; proxy_read_timeout 400ms;"
NEW = "proxy_http_version 1.1; proxy_set_header Connection '';"
OFF = NEW + " proxy_buffering off;"
FASTCGI = "include params; fastcgi_pass unix:runnel.sock;"
DEAF = "fastcgi_ignore_headers X-Accel-Buffering;"
# A key for each request: no reply comes from the cache.
CACHE = "proxy_cache z; proxy_cache_key $request_id;"

# name: (directives, lint's checks of whether it streams, the clients that get it in one piece)
PLAIN, TLS, H2 = "plain", "tls", "h2"
STREAMS = {
    "default": (ORIGIN, {"fault buffering"}, {PLAIN, TLS, H2}),
    "chunks": (ORIGIN + NEW, {"warning buffering"}, {TLS}),
    "off": (ORIGIN + OFF, set(), set()),
    "off-10": (ORIGIN + "proxy_buffering off;", set(), set()),
    "close": (ODD + NEW + "proxy_set_header X-Unchunked 1;", {"warning buffering"}, {PLAIN, TLS, H2}),
    "close-off": (ODD + OFF + "proxy_set_header X-Unchunked 1;", set(), set()),
    "fastcgi": (FASTCGI + DEAF, {"fault buffering"}, {PLAIN, TLS, H2}),
    "fastcgi-off": (FASTCGI + "fastcgi_buffering off;", set(), set()),
    "fastcgi-kept": (FASTCGI + DEAF + "fastcgi_keep_conn on;", {"warning buffering"}, {TLS}),
    "scgi": ("scgi_pass unix:odd-scgi.sock; scgi_param CONTENT_LENGTH 0;", {"fault buffering"}, {PLAIN, TLS, H2}),
    "scgi-off": ("scgi_pass unix:odd-scgi.sock; scgi_param CONTENT_LENGTH 0; scgi_buffering off;", set(), set()),
    "uwsgi": ("uwsgi_pass unix:odd-scgi.sock; uwsgi_param A b;", {"fault buffering"}, {PLAIN, TLS, H2}),
    "uwsgi-off": ("uwsgi_pass unix:odd-scgi.sock; uwsgi_param A b; uwsgi_buffering off;", set(), set()),
    "grpc": ("grpc_pass grpc://unix:h2c.sock;", set(), set()),
    "misplaced": (ORIGIN + "add_header X-Accel-Buffering no;", {"fault buffering", "warning accel-misplaced"}, {PLAIN, TLS, H2}),
    "misplaced-too": (ORIGIN + "proxy_set_header X-Accel-Buffering no;", {"fault buffering", "warning accel-misplaced"}, {PLAIN, TLS, H2}),
    "gzip": (ORIGIN + NEW + "gzip on; gzip_types text/event-stream;", {"warning buffering", "fault compression"}, {PLAIN, TLS, H2}),
    "gzip-off": (ORIGIN + OFF + "gzip on; gzip_types *;", {"note compression"}, set()),
    "gzip-html": (ORIGIN + OFF + "gzip on;", set(), set()),
    "rate-off": (ORIGIN + OFF + "limit_rate 300;", set(), set()),
    "sub": (ORIGIN + OFF + "sub_filter_types *; sub_filter token Token;", {"note sub-filter"}, set()),
    "expires-past": (ORIGIN + OFF + "expires -1;", set(), set()),
    "harmless": (ORIGIN + OFF + "slice 1k; proxy_set_header Range $slice_range; charset utf-8; charset_types *; gunzip on;"
                 "postpone_output 100k; tcp_nopush on; sendfile on; proxy_intercept_errors on; auth_request /yes;"
                 "lingering_close off; proxy_max_temp_file_size 0;", set(), set()),
}

# name: (directives, method, the check that says that the abort is not noticed before the head)
PREHEAD = {
    "head": (ODD + OFF, "GET", None),
    "head-on": (ODD, "GET", None),
    "head-deaf": (ODD + OFF + "proxy_ignore_client_abort on;", "GET", "fault client-abort"),
    "head-cache": (ODD + OFF + CACHE, "GET", "warning cache"),
    "head-bypass": (ODD + OFF + CACHE + "proxy_cache_bypass 1; proxy_no_cache 1;", "GET", "warning cache"),
    "head-cache-post": (ODD + OFF + CACHE, "POST", None),
    "head-cache-posts": (ODD + OFF + CACHE + "proxy_cache_methods POST;", "POST", "fault cache"),
    "head-store": (ODD + OFF + "proxy_store store/$request_id;", "GET", "fault store"),
}

# name: (directives, how the generation of a client that leaves in the middle ends, the check that says so)
MIDDLE = {
    "left": (ORIGIN + OFF, "cancelled", None),
    "left-on": (ORIGIN, "cancelled", None),
    "left-fastcgi": (FASTCGI + DEAF, "cancelled", None),
    "left-deaf": (ORIGIN + "proxy_ignore_client_abort on;", "done", "fault client-abort"),
    "left-deaf-fastcgi": (FASTCGI + DEAF + "fastcgi_ignore_client_abort on;", "done", "fault client-abort"),
    "left-cache": (ORIGIN + NEW + CACHE + "proxy_ignore_headers Cache-Control; proxy_cache_valid 1m;", "done", "fault cache"),
    "left-cache-polite": (ORIGIN + NEW + CACHE + "proxy_cache_valid 1m;", "cancelled", "warning cache"),
    "left-store": (ORIGIN + NEW + "proxy_store store/$request_id;", "done", "fault store"),
}

# name: (directives, method, how many servers get the request)
AGAIN = {
    "again": (TWO, "GET", 2, "warning next-upstream"),
    "again-post": (TWO, "POST", 1, "warning next-upstream"),
    "again-unsafe": (TWO + "proxy_next_upstream error timeout non_idempotent;", "POST", 2, "fault next-upstream"),
    "again-error": (TWO + "proxy_next_upstream error;", "GET", 1, None),
    "again-off": (TWO + "proxy_next_upstream off;", "GET", 1, None),
    "again-once": (TWO + "proxy_next_upstream_tries 1;", "GET", 1, None),
}

# Measured one by one.
OTHERS = {
    "broken-10": ODD + "proxy_buffering off;",
    "broken": ODD + OFF,
    "broken-unchunked": ODD + OFF + "chunked_transfer_encoding off;",
    "ssi": ODD + OFF + "ssi on; ssi_types *;",
    "addition": ORIGIN + OFF + "addition_types *; add_after_body /banner;",
    "hidden": ORIGIN + OFF + "proxy_hide_header Content-Type;",
    "expires": ORIGIN + OFF + "expires 1h;",
    "accel": "proxy_pass http://unix:http.sock:/;" + OFF,
    "accel-on": "proxy_pass http://unix:http.sock:/;",
    "accel-ignored": "proxy_pass http://unix:http.sock:/; proxy_ignore_headers X-Accel-Buffering;",
    "accel-passed": "proxy_pass http://unix:http.sock:/; proxy_pass_header X-Accel-Buffering;" + OFF,
    "rate": ORIGIN + NEW + "limit_rate 300;",
    "mirror": ODD + OFF + "mirror /copy;",
    "kept": "proxy_pass http://kept/;" + OFF,
    "kept-close": "proxy_pass http://kept/; proxy_buffering off; proxy_http_version 1.1;",
    "kept-10": "proxy_pass http://kept/; proxy_buffering off; proxy_set_header Connection '';",
    "impatient": ODD + OFF + "proxy_read_timeout 300ms;",
}


def rows():
    for table in (STREAMS, PREHEAD, MIDDLE, AGAIN):
        for name, row in table.items():
            yield name, row[0]
    yield from OTHERS.items()


def write():
    """The working directory is the folder of all; nginx leaves unix: to the kernel."""
    locations = "".join(f"location /{name}/ {{ rewrite ^/[^/]+(/.*)$ $1 break; {text} }}\n" for name, text in rows())
    names = {"REQUEST_METHOD": "$request_method", "DOCUMENT_URI": "$uri", "QUERY_STRING": "$query_string",
             "HTTP_X_REQUEST_ID": "$http_x_request_id if_not_empty", "REQUEST_ID": "$request_id"}
    with open("params", "w", encoding="utf-8") as file:
        file.write("".join(f"fastcgi_param {name} {value};\n" for name, value in names.items()))
    temp = " ".join(f"{name}_temp_path front/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    os.makedirs("front", exist_ok=True)
    with open("front.conf", "w", encoding="utf-8") as file:
        file.write(f"""user www-data; pid front.pid; worker_processes 1; worker_shutdown_timeout 1s; events {{ worker_connections 2048; }}
http {{ {temp} access_log off; proxy_cache_path cache keys_zone=z:1m; keepalive_timeout 60s;
upstream two {{ server unix:odd-1.sock max_fails=0; server unix:odd-2.sock max_fails=0; }}
upstream kept {{ server unix:odd-1.sock; keepalive 4; }}
server {{ listen unix:front.sock;
location = /yes {{ internal; return 204; }}
location = /banner {{ return 200 "BANNER"; }}
location = /copy {{ internal; proxy_pass http://unix:odd-2.sock:/late?; }}
{locations}}}
server {{ listen unix:tls.sock ssl http2; ssl_certificate tls.crt; ssl_certificate_key tls.key;
location = /yes {{ internal; return 204; }}
{locations.replace("mirror /copy;", "").replace("add_after_body /banner;", "")}}}
server {{ listen unix:h2c.sock http2; location / {{ {FASTCGI} fastcgi_buffering off; rewrite ^/[^/]+(/.*)$ $1 break; }} }}
}}
""")


def found(name, server="unix:front.sock"):
    """What nginx-lint has said of a location: "severity check" words."""
    said = set()
    with open("lint.tsv", encoding="utf-8") as file:
        for line in file:
            severity, check, _, label, location = line.split("\t")[:5]
            if location == f"location /{name}/" and label == f"_:{server}":
                said.add(f"{severity} {check}")
    return said


# --- an upstream that misbehaves ---

class Odd:
    """HTTP on odd-1.sock and odd-2.sock, SCGI and uwsgi (whose requests it does not read) on odd-scgi.sock.

    In the path: /late answers after a second, /die ends in the middle, /ssi says what SSI would execute;
    X-Unchunked asks for a reply without chunks. `seen` has (socket, tag, what) of each.
    """

    def __init__(self):
        self.seen = []
        self.listeners = []
        for name in ("odd-1.sock", "odd-2.sock", "odd-scgi.sock"):
            if os.path.exists(name):
                os.unlink(name)
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(name)
            os.chmod(name, 0o666)
            listener.listen(100)
            self.listeners.append(listener)
            threading.Thread(target=self.accept, args=(listener, name), daemon=True).start()

    def accept(self, listener, name):
        while True:
            peer, _ = listener.accept()
            serve = self.gateway if name == "odd-scgi.sock" else self.connection
            threading.Thread(target=serve, args=(peer, name), daemon=True).start()

    def gateway(self, peer, _):
        peer.recv(65536)
        peer.sendall(b"HTTP/1.1 200 OK\r\nStatus: 200\r\nContent-Type: text/event-stream\r\n\r\n")
        self.tokens(peer, lambda data: data)
        peer.close()

    def connection(self, peer, name):
        number = 0
        while True:
            request = b""
            while b"\r\n\r\n" not in request:
                data = peer.recv(65536)
                if not data:
                    return
                request += data
            number += 1
            head = request.decode()
            tag = head.split("tag=")[1].split()[0] if "tag=" in head else ""
            self.seen.append((name, tag, f"request {number}"))
            if not self.reply(peer, name, head, tag):
                peer.close()
                return

    def reply(self, peer, name, head, tag):
        path, version = head.split()[1:3]
        if "late" in path:
            peer.settimeout(1)
            try:
                # nginx reads on while a client is there; an end is that of the connection.
                data = peer.recv(65536)
                while data:
                    data = peer.recv(65536)
                self.seen.append((name, tag, "gone"))
                return False
            except TimeoutError:
                peer.settimeout(None)
                self.seen.append((name, tag, "answered"))
        chunked = version == "HTTP/1.1" and "X-Unchunked" not in head
        wrap = (lambda data: b"%x\r\n%s\r\n" % (len(data), data)) if chunked else (lambda data: data)
        try:
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                         + (b"Transfer-Encoding: chunked\r\n\r\n" if chunked else b"Connection: close\r\n\r\n"))
            if "ssi" in path:
                peer.sendall(wrap(b'data: <!--# echo var="nothing" default="EXECUTED" -->\n\n'))
            elif "die" in path:
                self.tokens(peer, wrap, 3)
                return False
            elif "late" not in path and "short" not in path:
                self.tokens(peer, wrap)
            if chunked:
                peer.sendall(b"0\r\n\r\n")
        except OSError:
            return False
        return chunked and "connection: close" not in head.lower()

    @staticmethod
    def tokens(peer, wrap, count=TOKENS):
        try:
            for _ in range(count):
                peer.sendall(wrap(b'data: {"token":"x"}\n\n'))
                time.sleep(0.02)
        except OSError:
            pass

    def of(self, tag):
        return [(name, what) for name, seen, what in self.seen if seen == tag]


# --- clients ---

def curl(name, client, path, *options):
    """Starts curl; h2 is HTTP/2 over TLS."""
    where = "front.sock" if client == PLAIN else "tls.sock"
    scheme = "http" if client == PLAIN else "https"
    version = "--http2" if client == H2 else "--http1.1"
    return subprocess.Popen(["curl", "-skN", "--compressed", version, "--max-time", "30", "--unix-socket", where,
                             *options, f"{scheme}://localhost/{name}{path}"], stdout=subprocess.PIPE)


def tenth_share(name, client):
    """When the tenth token came, as a share of the whole time."""
    began = time.monotonic()
    run = curl(name, client, f"/stream?prompt=hello&max_tokens={TOKENS}&ttft_ms=0&itl_ms=20")
    times = []
    while data := os.read(run.stdout.fileno(), 65536):
        times += [time.monotonic() - began] * data.count(b"data:")
    lab.check(run.wait() == 0, f"/{name}/, {client}: curl ends with {run.returncode}")
    lab.check(len(times) >= TOKENS, f"/{name}/, {client}: {len(times)} tokens")
    return times[9] / times[TOKENS - 1]


def at_once(work):
    """Runs functions in threads; their results by name. The first failure is told."""
    results = {}

    def run(name, function):
        try:
            results[name] = function()
        except Exception as error:
            results[name] = error
    threads = [threading.Thread(target=run, args=item) for item in work.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results.values():
        if isinstance(result, Exception):
            raise result
    return results


# --- the comparisons ---

def streams():
    """In the server without TLS, and in the one with it."""
    Odd()
    work = {(name, client): (lambda name=name, client=client: tenth_share(name, client))
            for name in STREAMS for client in (PLAIN, TLS, H2)}
    shares = {}
    # Some at a time: what is measured is nginx, not how many programs start at once.
    items = list(work.items())
    for start in range(0, len(items), 6):
        shares |= at_once(dict(items[start:start + 6]))
    about = {"buffering", "accel-misplaced", "compression", "limit-rate", "sub-filter"}
    for name, (_, checks, held) in STREAMS.items():
        for client in (PLAIN, TLS, H2):
            share = shares[name, client]
            print(f"{name:14} {client:5} tenth of {TOKENS} tokens at {share:.2f} of the time")
            if client in held:
                lab.check(share > 0.9, f"/{name}/ streams to {client}: {share:.2f}")
            else:
                lab.check(share < 0.75, f"/{name}/ does not stream to {client}: {share:.2f}")
        said = {words for words in found(name) if words.split()[1] in about}
        lab.check(said == checks, f"/{name}/: nginx-lint says {said}")
        # With TLS, whatever an HTTP/1.1 client over it does not get is a fault.
        said = found(name, "unix:tls.sock")
        lab.check(("fault buffering" in said or "fault compression" in said) == (TLS in held), f"/{name}/ with TLS: nginx-lint says {said}")


def prehead():
    """A client leaves before the upstream has said a word."""
    odd = Odd()

    def leave(name, method):
        tag = f"{name}-{time.monotonic_ns()}"
        peer = lab.connect("front.sock")
        body = "Content-Length: 2\r\n\r\n{}" if method == "POST" else "\r\n"
        peer.sendall(f"{method} /{name}/late?tag={tag} HTTP/1.1\r\nHost: x\r\n{body}".encode())
        lab.wait_until(lambda: odd.of(tag), f"/{name}/ at the upstream")
        peer.close()
        return lab.wait_until(lambda: [what for _, what in odd.of(tag) if not what.startswith("request")], f"/{name}/ to be over")[0]
    results = at_once({name: (lambda name=name, row=row: leave(name, row[1])) for name, row in PREHEAD.items()})
    for name, (_, _, check) in PREHEAD.items():
        said = {words for words in found(name) if words.split()[1] in ("client-abort", "cache", "store")}
        print(f"{name:16} {results[name]:9} nginx-lint: {' '.join(said) or '-'}")
        if name == "head-cache-post":
            # What is said is said of a GET.
            lab.check(results[name] == "gone" and said == {"warning cache"}, name, results[name], said)
        else:
            lab.check(results[name] == ("answered" if check else "gone"), name, results[name])
            lab.check(said == ({check} if check else set()), name, said)


def middle():
    """A client leaves after half a second of a stream of two."""

    def leave(name):
        request = f"{name}-{time.monotonic_ns()}"
        peer = lab.connect("front.sock")
        peer.sendall(f"GET /{name}/stream?prompt=hello&max_tokens=100&ttft_ms=0&itl_ms=20 HTTP/1.1\r\n"
                     f"Host: x\r\nX-Request-Id: {request}\r\n\r\n".encode())
        lab.reached(request, "decode")
        lab.wait_until(lambda: lab.ledger(request)["generated"] >= 5, "five tokens")
        peer.close()
        return lab.ended(request, 10)
    results = at_once({name: (lambda name=name: leave(name)) for name in MIDDLE})
    for name, (_, outcome, check) in MIDDLE.items():
        said = {words for words in found(name) if words.split()[1] in ("client-abort", "cache", "store")}
        row = results[name]
        print(f"{name:18} {row['outcome']} after {row['generated']} of 100, nginx-lint: {' '.join(said) or '-'}")
        lab.check(row["outcome"] == outcome, name, row)
        lab.check((row["generated"] == 100) == (outcome == "done"), name, row)
        lab.check(said == ({check} if check else set()), name, said)


def again():
    """Two servers, the first of which says nothing."""
    odd = Odd()
    for name, (_, method, servers, check) in AGAIN.items():
        tag = f"{name}-{time.monotonic_ns()}"
        options = ("-d", "{}") if method == "POST" else ()
        run = curl(name, PLAIN, f"/late?tag={tag}", *options)
        run.communicate()
        count = len([what for _, what in odd.of(tag) if what.startswith("request")])
        said = {words for words in found(name) if words.endswith("next-upstream")}
        print(f"{name:14} {method:4} at {count} of 2 servers, nginx-lint: {' '.join(said) or '-'}")
        lab.check(count == servers, name, count)
        lab.check(said == ({check} if check else set()), name, said)


def broken():
    """An upstream that dies: who is told?"""
    Odd()
    for name, status, check in (("broken-10", 0, "warning http-version"), ("broken", 18, None), ("broken-unchunked", 0, "warning chunked")):
        run = curl(name, PLAIN, "/die")
        out, _ = run.communicate()
        print(f"{name}: curl ends with {run.returncode}, after {out.count(b'data:')} tokens")
        lab.check(run.returncode == status and out.count(b"data:") == 3, name, run.returncode, out)
        said = found(name) & {"warning http-version", "warning chunked"}
        lab.check(said == ({check} if check else set()), name, said)
    run = curl("impatient", PLAIN, "/late", "-o", "out", "-w", "%{http_code}")
    lab.check(run.communicate()[0] == b"504" and "warning read-timeout" in found("impatient"), "a silence before the head")


def whole(name, path="/stream?prompt=hello&max_tokens=2&ttft_ms=0&itl_ms=0", client=PLAIN):
    """Head and body of a short stream."""
    run = curl(name, client, path, "-D", "-")
    out, _ = run.communicate()
    head, _, body = out.replace(b"\r\n", b"\n").partition(b"\n\n")
    return head.decode().lower(), body.decode()


def touched():
    """What nginx changes in a reply."""
    Odd()
    head, body = whole("ssi", "/ssi")
    lab.check("EXECUTED" in body and "fault ssi" in found("ssi"), "ssi", body)
    head, body = whole("addition")
    lab.check(body.endswith("[DONE]\n\nBANNER") and "warning addition" in found("addition"), "addition", body)
    head, body = whole("hidden")
    lab.check("content-type" not in head and "fault hidden-type" in found("hidden"), "hidden", head)
    head, body = whole("off")
    lab.check("cache-control: no-cache, no-transform" in head and "warning expires" not in found("off"), "off", head)
    head, body = whole("expires")
    lab.check("max-age=3600" in head and "no-cache" not in head and "warning expires" in found("expires"), "expires", head)
    head, body = whole("accel")
    lab.check("x-accel-buffering" not in head and "note accel-header" in found("accel"), "accel", head)
    head, body = whole("accel-passed")
    lab.check("x-accel-buffering: no" in head and "note accel-header" not in found("accel-passed"), "accel-passed", head)
    head, body = whole("sub")
    lab.check('{"Token":' in body, "sub", body)


def accel():
    """The upstream says X-Accel-Buffering: no."""
    for name, held in (("accel-on", False), ("accel-ignored", True)):
        share = tenth_share(name, PLAIN)
        print(f"{name}: {share:.2f}")
        lab.check(share > 0.9 if held else share < 0.75, name, share)


def rate():
    """limit_rate stops a buffered stream, and no other."""
    took = {}
    for name in ("rate", "rate-off"):
        began = time.monotonic()
        tenth_share(name, PLAIN)
        took[name] = time.monotonic() - began
    print(f"with buffering {took['rate']:.2f} s, without {took['rate-off']:.2f} s")
    lab.check(took["rate"] > 1.5 * took["rate-off"], took)
    lab.check("warning limit-rate" in found("rate") and "warning limit-rate" not in found("rate-off"), "limit-rate")


def mirror():
    """The second request on a connection waits for the mirror's reply to the first."""
    Odd()
    lab.check("warning mirror" in found("mirror") and "warning mirror" not in found("off"), "mirror")
    took = {}
    for name in ("mirror", "broken"):
        connection = http.client.HTTPConnection("localhost")
        connection.sock = lab.connect("front.sock")
        connection.request("GET", f"/{name}/short")
        connection.getresponse().read()
        began = time.monotonic()
        connection.request("GET", f"/{name}/short")
        connection.getresponse().read()
        took[name] = time.monotonic() - began
        connection.close()
    print(f"the next request: {took['mirror']:.3f} s, without a mirror {took['broken']:.3f} s")
    lab.check(took["mirror"] > 0.5 > took["broken"], took)


def kept():
    """Is a connection to the upstream used again?"""
    odd = Odd()
    for name, again_used in (("kept", True), ("kept-close", False), ("kept-10", False)):
        tags = [f"{name}-{number}-{time.monotonic_ns()}" for number in range(2)]
        for tag in tags:
            whole(name, f"/short?tag={tag}")
        numbers = [odd.of(tag)[0][1] for tag in tags]
        print(f"{name}: {numbers}")
        lab.check((numbers[1] == "request 2") == again_used, name, numbers)
        lab.check(("note keepalive" in found(name)) != again_used, name, found(name))


def reload():
    """worker_shutdown_timeout cuts what is still going after a reload."""
    with open("lint.tsv", encoding="utf-8") as file:
        lab.check(any(line.startswith("warning\tshutdown-timeout\t") for line in file), "nginx-lint is silent")
    run = curl("off", PLAIN, "/stream?prompt=hello&max_tokens=300&ttft_ms=0&itl_ms=20")
    while b"data:" not in os.read(run.stdout.fileno(), 65536):
        pass
    with open("front.pid", encoding="utf-8") as file:
        os.kill(int(file.read()), 1)
    out, _ = run.communicate()
    print(f"curl ends with {run.returncode} after {out.count(b'data:')} of 300 tokens")
    lab.check(run.returncode == 18 and out.count(b"data:") < 300, run.returncode)


if __name__ == "__main__":
    lab.main(globals())
