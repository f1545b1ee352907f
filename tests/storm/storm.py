#!/usr/bin/env python3
"""The abort storm: thousands of clients that leave in every way, and the ledger must still add up.

Three responders share one socket and one ledger (`spawn-fcgi -F 3`) behind a real nginx. Clients
finish, close (FIN), reset (RST), close half (SHUT_WR), read slowly, leave while queued, or ask for
faults. In the middle one responder is killed with SIGKILL, and nginx reloads. In the end, read from
any process:

    accepted  = done + cancelled + failed + shed + stalled + drained      (nothing is live)
    generated = delivered + discarded                                      (nothing is held)

and descriptors, threads and memory of the survivors are where they were.

TAP on standard output. Environment: RUNNEL (the responder), STORM_REQUESTS (default 20000),
STORM_CLIENTS (at most at once, default 300), STORM_SECONDS (spread over so many, default 60),
STORM_SEED.
"""

import json
import os
import pathlib
import random
import re
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNNEL = pathlib.Path(os.environ.get("RUNNEL", ROOT / "build/bin/runnel")).resolve()
REQUESTS = int(os.environ.get("STORM_REQUESTS", "20000"))
CLIENTS = int(os.environ.get("STORM_CLIENTS", "300"))
SECONDS = float(os.environ.get("STORM_SECONDS", "60"))
SEED = int(os.environ.get("STORM_SEED", "20261129"))
OUTCOMES = ("done", "cancelled", "failed", "shed", "stalled", "drained")
FAULTS = ("error@3", "reset@3", "eof@3", "stall@2:40", "garble@1", "dup@1", "nodone", "status:503")


class Tap:
    def __init__(self):
        self.count = 0
        self.failed = 0

    def check(self, good, name, detail=""):
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {name}")
        if detail and not good:
            for line in str(detail).splitlines():
                print(f"# {line}")
        sys.stdout.flush()


def say(text):
    print(f"# {text}")
    sys.stdout.flush()


class Server:
    """A private nginx and three responders, in a folder of their own."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="runnel storm "))
        self.folder.chmod(0o755)
        self.nginx = None
        self.pids = []
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        shipped = (ROOT / "nginx.conf").read_text()
        conf = shipped.replace("listen 127.0.0.1:8170;", f"listen 127.0.0.1:{self.port} sndbuf=16k;")
        assert conf != shipped, "nginx.conf has no line `listen 127.0.0.1:8170;`"
        (self.folder / "nginx.conf").write_text(conf)

    def start(self):
        subprocess.run(
            ["spawn-fcgi", "-s", "runnel.sock", "-M", "0666", "-F", "3", "-P", "runnel.pid", "--",
             str(RUNNEL), "--state", str(self.folder / "state"),
             "--log-file", str(self.folder / "runnel.log"), "--log-format", "json",
             "--slots", "50", "--queue", "30", "--stall-timeout", "2"],
            cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        self.pids = [int(pid) for pid in (self.folder / "runnel.pid").read_text().split()]
        self.nginx = subprocess.Popen(
            ["nginx", "-p", f"{self.folder}/", "-c", str(self.folder / "nginx.conf"),
             "-g", "daemon off;"],
            cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            if self.nginx.poll() is not None:
                raise RuntimeError((self.folder / "error.log").read_text()[-2000:])
            try:
                if self.get("/healthz").endswith(b"ok\n"):
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise RuntimeError("the server did not become ready")

    def get(self, path):
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(f"GET {path} HTTP/1.0\r\nHost: storm\r\n\r\n".encode())
            reply = b""
            while piece := connection.recv(65536):
                reply += piece
        return reply

    def ledger(self):
        return json.loads(self.get("/_debug/generated").split(b"\r\n\r\n", 1)[1])["ledger"]

    def wait_until_idle(self):
        """The ledger, once nothing is live any more."""
        for _ in range(400):
            ledger = self.ledger()
            if ledger["queued"] == 0 and ledger["running"] == 0:
                return ledger
            time.sleep(0.05)
        return ledger

    def stop(self):
        for pid in self.pids:
            try:
                os.kill(pid, signal.SIGTERM)
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
        if self.nginx is not None:
            self.nginx.terminate()
            self.nginx.wait()
        for _ in range(200):
            if not any(is_alive(pid) for pid in self.pids):
                break
            time.sleep(0.05)


def is_alive(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


def footprint(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return {
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "threads": int(re.search(r"Threads:\s+(\d+)", status)[1]),
        "resident_kb": int(re.search(r"VmRSS:\s+(\d+)", status)[1]),
    }


class Client:
    """One request, and the way in which its client leaves."""

    WAYS = ("finish", "fin", "rst", "half", "slow", "queued", "fault", "generate")
    WEIGHTS = (30, 20, 12, 8, 4, 6, 12, 8)

    def __init__(self, chance, port, number):
        self.way = chance.choices(self.WAYS, self.WEIGHTS)[0]
        tokens = chance.randint(5, 60)
        itl = chance.choice((0, 1, 2, 5, 10))
        ttft = chance.choice((0, 5, 30, 100))
        self.leave_after = chance.randint(1, 2500)  # bytes
        self.leave_at = None
        if self.way == "queued":
            self.leave_at = time.monotonic() + chance.uniform(0, 0.02)
        elif self.way in ("fin", "rst", "half") and chance.random() < 0.3:
            self.leave_at = time.monotonic() + chance.uniform(0, 0.15)  # in prefill, or a gap
        query = f"prompt=p{number}&max_tokens={tokens}&itl_ms={itl}&ttft_ms={ttft}"
        if self.way == "fault":
            query += f"&fault={chance.choice(FAULTS)}"
        if self.way == "slow":
            # Bulky events, and a small buffer in nginx: the path is soon full.
            query = (f"prompt=p{number}&max_tokens=100000&itl_ms=0&ttft_ms=0"
                     f"&vocab=torture&stamps=1&chunk=16")
        elif chance.random() < 0.2:
            query += "&stamps=1&ids=1&chunk=3&ping_ms=10"
        self.socket = socket.socket()
        if self.way == "slow":
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.setblocking(False)
        self.socket.connect_ex(("127.0.0.1", port))
        if self.way == "generate":
            body = json.dumps({"prompt": f"p{number}", "max_tokens": tokens, "itl_ms": itl,
                               "ttft_ms": ttft})
            self.request = (f"POST /generate HTTP/1.0\r\nHost: storm\r\n"
                            f"Content-Type: application/json\r\n"
                            f"Content-Length: {len(body)}\r\n\r\n{body}").encode()
            if chance.random() < 0.5:
                self.leave_at = time.monotonic() + chance.uniform(0, 0.3)
        else:
            self.request = f"GET /stream?{query} HTTP/1.0\r\nHost: storm\r\n\r\n".encode()
        self.received = 0
        self.deadline = time.monotonic() + 30
        self.half_closed = False

    def leave(self):
        """Leave as this client does; True when the connection is over for us."""
        if self.way == "half" and not self.half_closed:
            self.half_closed = True
            self.leave_at = None
            try:
                self.socket.shutdown(socket.SHUT_WR)
            except OSError:
                return True
            return False
        if self.way == "rst":
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return True


def storm(server, tap):
    chance = random.Random(SEED)
    selector = selectors.DefaultSelector()
    clients = set()
    started = 0
    ended = 0
    killed = None
    reloaded = False
    stuck = 0
    refused = 0
    began = time.monotonic()

    def end(client):
        nonlocal ended
        if client.socket.fileno() in selector.get_map():
            selector.unregister(client.socket)
        client.socket.close()
        clients.discard(client)
        ended += 1

    while ended < REQUESTS:
        allowed = REQUESTS
        if time.monotonic() < began + SECONDS:
            # In bursts, one each five seconds: each fills slots and queues to the brim.
            due = (time.monotonic() - began) // 5 * 5 + 5
            allowed = int(min(due / SECONDS, 1) * REQUESTS)
        while started < min(allowed, REQUESTS) and len(clients) < CLIENTS:
            client = Client(chance, server.port, started)
            selector.register(client.socket, selectors.EVENT_WRITE, client)
            clients.add(client)
            started += 1
        for key, _ in selector.select(0.01):
            client = key.data
            try:
                if client.request:
                    client.socket.sendall(client.request)
                    client.request = b""
                    if client.way == "slow":
                        selector.unregister(client.socket)  # it never reads
                        client.leave_at = time.monotonic() + 6
                    else:
                        selector.modify(client.socket, selectors.EVENT_READ, client)
                    continue
                piece = client.socket.recv(65536)
            except (ConnectionError, BrokenPipeError):
                refused += 1
                end(client)
                continue
            except BlockingIOError:
                continue
            client.received += len(piece)
            if not piece:
                end(client)
            elif client.way in ("fin", "rst", "half") and client.received >= client.leave_after:
                if client.leave():
                    end(client)
        now = time.monotonic()
        for client in [c for c in clients if c.leave_at is not None and c.leave_at <= now]:
            if client.leave():
                end(client)
        for client in [c for c in clients if c.deadline <= now]:
            stuck += 1
            end(client)
        if killed is None and ended >= REQUESTS * 2 // 5:
            killed = max(server.pids, key=lambda pid: footprint(pid)["descriptors"])
            before = server.ledger()
            os.kill(killed, signal.SIGKILL)
            say(f"killed pid {killed} with SIGKILL, live in all processes: "
                f"queued={before['queued']} running={before['running']}")
        if not reloaded and ended >= REQUESTS * 3 // 5:
            reloaded = True
            server.nginx.send_signal(signal.SIGHUP)
            say("told nginx to reload")
    say(f"{ended} requests in {time.monotonic() - began:.0f} s, "
        f"{refused} ended by an error on the connection")
    tap.check(stuck == 0, "no client was left waiting for 30 s", f"{stuck} were")
    return killed


def check_ledger(server, tap, killed):
    ledger = server.wait_until_idle()
    say(json.dumps(ledger))
    ended = sum(ledger[outcome] for outcome in OUTCOMES)
    tap.check(ledger["queued"] == 0 and ledger["running"] == 0, "nothing is live", ledger)
    tap.check(ledger["accepted"] == ended,
              f"accepted {ledger['accepted']} = the sum of the outcomes {ended}", ledger)
    tap.check(ledger["generated"] == ledger["delivered"] + ledger["discarded"]
              and ledger["held"] == 0,
              f"generated {ledger['generated']} = delivered {ledger['delivered']} "
              f"+ discarded {ledger['discarded']}", ledger)
    for outcome in ("done", "cancelled", "failed", "shed", "stalled"):
        tap.check(ledger[outcome] > 0, f"the storm had its {outcome} requests", ledger)
    tap.check(ledger["accepted"] <= REQUESTS, "no request was counted twice", ledger)
    tap.check(not is_alive(killed), "the killed process is dead")
    alive = [pid for pid in server.pids if pid != killed]
    tap.check(all(is_alive(pid) for pid in alive), "the others live")

    metrics = server.get("/metrics").decode()
    total = sum(int(line.rsplit(" ", 1)[1]) for line in metrics.splitlines()
                if line.startswith("runnel_requests_total{"))
    tap.check(total == ended, "/metrics counts the same requests", f"{total} against {ended}")

    # Another process claims the dead one's row, whose books are then closed in the file.
    second = server.folder / "second.sock"
    process = subprocess.Popen([str(RUNNEL), "--state", str(server.folder / "state"),
                                "--listen", f"unix:{second}"],
                               stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(200):
        if second.exists() or process.poll() is not None:
            break
        time.sleep(0.05)
    process.terminate()
    tap.check(process.wait(30) == 0, "one more process joins the ledger and ends")
    again = server.ledger()
    for name in OUTCOMES + ("accepted", "generated", "delivered", "discarded"):
        if again[name] != ledger[name]:
            tap.check(False, f"{name} stays as it is", f"{again[name]} after {ledger[name]}")
            break
    else:
        tap.check(True, "the figures are the same afterwards")
    return ledger


def check_log(server, tap, ledger, killed):
    """Each request that ended in a process that lived has one line, with the ledger's outcome."""
    lines = {}
    for line in (server.folder / "runnel.log").read_text().splitlines():
        entry = json.loads(line)
        if entry["message"] == "request":
            lines[entry["outcome"]] = lines.get(entry["outcome"], 0) + 1
    say(f"log lines: {json.dumps(lines)}")
    for outcome in ("done", "cancelled", "shed", "stalled"):
        tap.check(lines.get(outcome, 0) == ledger[outcome],
                  f"the log has a line for each {outcome} request",
                  f"{lines.get(outcome, 0)} lines, {ledger[outcome]} requests")
    tap.check(lines.get("failed", 0) <= ledger["failed"],
              "what the killed process had live is failed, and has no line",
              f"{lines.get('failed', 0)} lines, {ledger['failed']} requests")
    say(f"live in pid {killed} when it was killed: {ledger['failed'] - lines.get('failed', 0)}")


def main():
    tap = Tap()
    server = Server()
    good = False
    try:
        server.start()
        # The first load brings threads, arenas and nginx's buffers to their usual size.
        warm = {pid: footprint(pid) for pid in server.pids}
        killed = storm(server, tap)
        ledger = check_ledger(server, tap, killed)
        check_log(server, tap, ledger, killed)
        for pid in server.pids:
            if pid == killed:
                continue
            after = footprint(pid)
            say(f"pid {pid}: {warm[pid]} -> {after}")
            tap.check(after["threads"] == warm[pid]["threads"], f"pid {pid}: threads as before")
            # The one that answered the last request may have it open for a moment.
            tap.check(after["descriptors"] <= warm[pid]["descriptors"] + 1,
                      f"pid {pid}: descriptors as before", f"{warm[pid]} -> {after}")
            tap.check(after["resident_kb"] < warm[pid]["resident_kb"] + 24 * 1024,
                      f"pid {pid}: no memory was lost", f"{warm[pid]} -> {after}")
        good = tap.failed == 0
    finally:
        server.stop()
        if good:
            shutil.rmtree(server.folder)
        else:
            say(f"kept: {server.folder}")
    print(f"1..{tap.count}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
