"""What the drivers for Python share; cases and what is seen are those of drive.mjs.

`client` of a case is "sync" (if it has none) or "async", for clients that have both.
"""

import asyncio
import json
import os
import sys
import time
import urllib.error
import urllib.request

ORIGIN = os.environ["URL"]
BASE_URL = ORIGIN + "/v1"
FAR = 30
DEFAULTS = {"api": "chat", "stream": True, "max_tokens": 10, "prompt": "hello", "runnel": {},
            "body": {}, "retries": 0, "usage": False, "leave": None, "after": None,
            "timeout_ms": None, "client": "sync"}


def key(wanted):
    return wanted.get("key", os.environ["KEY"])


def ledger(name=None):
    query = "" if name is None else "?id=" + name
    try:
        with urllib.request.urlopen(f"{ORIGIN}/_debug/generated{query}") as reply:
            return json.load(reply)
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        return json.load(error)


def settled(name, read):
    while True:
        row = ledger(name)
        if "error" in row or row["outcome"] != "live" or row["generated"] > read + FAR:
            return row
        time.sleep(0.02)


def describe(error):
    bases = [base.__name__ for base in type(error).__mro__ if base is not object]
    return {"type": bases[0], "bases": bases, "status": getattr(error, "status_code", None),
            "param": getattr(error, "param", None), "code": getattr(error, "code", None),
            "message": str(error)}


def drive(act, act_async):
    """act(wanted, seen) has the client do the case and fills `seen`. What it returns, and what it
    leaves in an exception, is kept to the end: nothing is cleaned up by chance."""
    kept = []
    loop = asyncio.new_event_loop()
    for line in sys.stdin:
        wanted = {**DEFAULTS, **json.loads(line)}
        seen = {"name": wanted["name"], "text": "", "pieces": 0, "finish": None, "usage": None,
                "error": None}
        before = ledger().get("ledger", {"accepted": 0})
        try:
            if wanted["client"] == "async":
                kept.append(loop.run_until_complete(in_task(act_async, wanted, seen)))
            else:
                kept.append(act(wanted, seen))
        except (Exception, asyncio.CancelledError) as error:  # what a client raises is the result
            kept.append(error)
            seen["error"] = describe(error)
        seen["row"] = settled(wanted["name"], seen["pieces"])
        seen["accepted"] = ledger().get("ledger", {"accepted": 0})["accepted"] - before["accepted"]
        print(json.dumps(seen), flush=True)
    os._exit(0)  # streams that a client forgot would be cleaned up, loudly


def read(reply, take, wanted, seen):
    """All of a streamed reply; or as much of it as the case wants before it leaves."""
    for piece in reply:
        take(piece, seen)
        if wanted["leave"] and seen["pieces"] == wanted["after"]:
            if wanted["leave"] == "close":
                reply.close()
            break


async def read_async(reply, close, take, wanted, seen):
    """The same. A client that is cancelled goes on reading until it is."""
    async for piece in reply:
        take(piece, seen)
        if wanted["leave"] in ("close", "break") and seen["pieces"] == wanted["after"]:
            if wanted["leave"] == "close":
                await close()
            break


async def in_task(act_async, wanted, seen):
    """As a web framework does with the handler of a client that leaves: cancel its task."""
    task = asyncio.create_task(act_async(wanted, seen))
    if wanted["leave"] == "before":
        await asyncio.sleep(wanted["after"] / 1000)
        task.cancel()
    while wanted["leave"] == "cancel" and not task.done():
        if seen["pieces"] >= wanted["after"]:
            task.cancel()
            break
        await asyncio.sleep(0.002)
    return await task
