"""LangChain's client, `langchain-openai`, sync and async; see drive.py.

Ways to leave: break, close, cancel (of the task that reads), before (cancel of the task after so many
milliseconds).
"""

from langchain_openai import ChatOpenAI, OpenAI

from drive import BASE_URL, drive, key, read, read_async


def model(wanted):
    kind = ChatOpenAI if wanted["api"] == "chat" else OpenAI
    return kind(base_url=BASE_URL, api_key=key(wanted), model="runnel",
                max_tokens=wanted["max_tokens"], max_retries=wanted["retries"],
                timeout=wanted["timeout_ms"] and wanted["timeout_ms"] / 1000,
                default_headers={"X-Request-Id": wanted["name"]},
                extra_body={"runnel": wanted["runnel"], **wanted["body"]},
                **({"stream_usage": wanted["usage"]} if wanted["api"] == "chat" else {}))


def take(piece, seen):
    if isinstance(piece, str):  # the completions client deals in plain text
        seen["text"] += piece
        seen["pieces"] += bool(piece)
        return
    seen["text"] += piece.content
    seen["pieces"] += bool(piece.content)
    seen["finish"] = piece.response_metadata.get("finish_reason") or seen["finish"]
    seen["usage"] = piece.usage_metadata or seen["usage"]


def act(wanted, seen):
    client = model(wanted)
    if not wanted["stream"]:
        reply = client.invoke(wanted["prompt"])
        take(reply, seen)
        return reply
    reply = client.stream(wanted["prompt"])
    read(reply, take, wanted, seen)
    return client, reply


async def act_async(wanted, seen):
    client = model(wanted)
    if not wanted["stream"]:
        reply = await client.ainvoke(wanted["prompt"])
        take(reply, seen)
        return client, reply
    reply = client.astream(wanted["prompt"])
    await read_async(reply, reply.aclose, take, wanted, seen)
    return client, reply


drive(act, act_async)
