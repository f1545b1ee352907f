"""Kept connections, counted by the sockets that the responder has open."""

import json
import os
import threading

import lab


def sockets(pid):
    """The inodes of its sockets: never given twice, so a new connection shows as a new one."""
    found = set()
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        try:
            link = os.readlink(f"/proc/{pid}/fd/{descriptor}")
        except FileNotFoundError:
            continue
        if link.startswith("socket:"):
            found.add(link)
    return found


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def requests(pid, count):
    lab.served()
    before_threads = threads(pid)
    seen = sockets(pid)
    at_first = len(seen)
    connection = lab.Connection()
    cancelled = 0
    for number in range(int(count)):
        if number % 3 == 0:
            status, _, body = connection.ask("GET", lab.target(
                "/stream", prompt=f"keep {number}", max_tokens=5))
            lab.check(status == 200 and body.endswith(b"data: [DONE]\n\n"), number, status, body)
        elif number % 3 == 1:
            status, _, body = connection.ask("POST", "/generate", {"prompt": "hello",
                                                                   "max_tokens": 4})
            lab.check(json.loads(body)["text"] == "The sailor rested and", number, status, body)
        else:
            lab.check(connection.ask("GET", "/nothing")[0] == 404, number, "is not 404")
        if number % 25 == 7:
            stream = lab.Stream(prompt="keep", max_tokens=1000, itl_ms=20)
            stream.take(2)
            stream.close()
            row = lab.ended(stream.id)
            lab.check(row["outcome"] == "cancelled" and row["generated"] <= 3, row)
            cancelled += 1
        seen |= sockets(pid)
    made = len(seen) - at_first
    print(f"{count} requests and {cancelled} cancels: {made} new connections, "
          f"{threads(pid)} threads")
    # A cancel costs one. Each worker has a pool of its own, and may take one more for a look at
    # the ledger meanwhile.
    lab.check(made <= cancelled + 40, made, "connections for", count, "requests")
    lab.check(threads(pid) == before_threads, "threads:", before_threads, threads(pid))
    lab.all_quiet()


def at_once():
    failures = []

    def client(name):
        try:
            connection = lab.Connection()
            for number in range(20):
                prompt = f"client {name} {number}"
                status, _, body = connection.ask("GET", lab.target(
                    "/stream", prompt=prompt, max_tokens=20, itl_ms=1))
                events = lab.Events().feed(body)
                text = "".join(lab.token_of(event) for event in events[:-1])
                _, _, whole = connection.ask("POST", "/generate", {"prompt": prompt,
                                                                   "max_tokens": 20})
                lab.check(status == 200 and text == json.loads(whole)["text"], prompt, status)
        except Exception as failure:  # of any kind: it must not get lost in the thread
            failures.append(f"client {name}: {failure!r}")

    clients = [threading.Thread(target=client, args=(name,)) for name in range(16)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    lab.check(not failures, *failures)
    lab.all_quiet()


def refused_bodies(pid):
    """Errors with a body that nobody wants, large and small: the connection stays in step."""
    before = threads(pid)
    connection = lab.Connection()
    for size in [10, 70000, 1500000] * 3:
        for target, body, expected in [("/nothing", "x" * size, 404),
                                       ("/stream", "x" * size, 405),
                                       ("/generate", "x" * size, 413 if size > 2 ** 20 else 400)]:
            status, _, reply = connection.ask("POST", target, body)
            lab.check(status == expected, target, size, status, reply)
            lab.served()
    lab.check(threads(pid) == before, "threads:", before, threads(pid))
    lab.all_quiet()


if __name__ == "__main__":
    lab.main(globals())
