"""Read streams with httpx-sse, and print what it saw of each; see read_parser.mjs.

    python read_httpx.py <READINGS
"""

import json
import sys

import httpx
from httpx_sse import EventSource


def read(client, url, last):
    seen = {"status": 0, "tokens": [], "ids": [], "done": False, "error": None, "garbled": 0,
            "pings": 0}
    headers = {} if last is None else {"Last-Event-ID": last}
    with client.stream("GET", url, headers=headers) as response:
        seen["status"] = response.status_code
        if response.status_code != 200:
            return seen
        for event in EventSource(response).iter_sse():
            if event.event == "error":
                seen["error"] = json.loads(event.data)["error"]["code"]
            elif event.data == "[DONE]":
                seen["done"] = True
            else:
                seen["ids"].append(event.id or None)
                try:
                    seen["tokens"].append(json.loads(event.data)["token"])
                except ValueError:
                    seen["garbled"] += 1
    return seen


with httpx.Client(timeout=60, trust_env=False) as client:
    for line in sys.stdin:
        print(json.dumps(read(client, **json.loads(line))))
