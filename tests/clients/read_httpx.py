"""Read one stream with httpx-sse, and print what it saw; see read_parser.mjs.

    python read_httpx.py URL [LAST-EVENT-ID]
"""

import json
import sys

import httpx
from httpx_sse import EventSource

url, *last_event_id = sys.argv[1:]
seen = {"status": 0, "tokens": [], "ids": [], "done": False, "error": None, "garbled": 0,
        "pings": 0}

headers = {"Last-Event-ID": last_event_id[0]} if last_event_id else {}
with httpx.Client(timeout=60, trust_env=False) as client:
    with client.stream("GET", url, headers=headers) as response:
        seen["status"] = response.status_code
        if response.status_code == 200:
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
print(json.dumps(seen))
