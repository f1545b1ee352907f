"""The official client of PyPI, `openai`, sync and async; see drive.py.

Ways to leave: break, close, with (break inside a with), cancel (of the task that reads), before
(cancel of the task after so many milliseconds).
"""

import openai

from drive import BASE_URL, drive, key, read, read_async


def request(wanted):
    about = {"prompt": wanted["prompt"]}
    if wanted["api"] in ("chat", "helper"):
        about = {"messages": [{"role": "user", "content": wanted["prompt"]}]}
    if wanted["usage"]:
        about["stream_options"] = {"include_usage": True}
    if wanted["timeout_ms"]:
        about["timeout"] = wanted["timeout_ms"] / 1000
    about = {"model": "runnel", "max_tokens": wanted["max_tokens"], "stream": wanted["stream"],
             **about, **wanted["body"]}
    return {**about, "extra_body": {"runnel": wanted["runnel"]},
            "extra_headers": {"X-Request-Id": wanted["name"]}}


def resource(client, wanted):
    return client.chat.completions if wanted["api"] == "chat" else client.completions


def take(piece, seen):
    seen["usage"] = piece.usage.model_dump(exclude_none=True) if piece.usage else seen["usage"]
    if not piece.choices:
        return
    choice = piece.choices[0]
    part = getattr(choice, "delta", None) or getattr(choice, "message", None)
    text = part.content if part else getattr(choice, "text", None)
    seen["text"] += text or ""
    seen["pieces"] += bool(text)
    seen["finish"] = choice.finish_reason or seen["finish"]


def helper(client, wanted, seen):
    """The `.stream()` helper, and the whole completion at its end."""
    arguments = request(wanted)
    del arguments["stream"]
    with client.chat.completions.stream(**arguments) as stream:
        for event in stream:
            if event.type == "chunk":
                take(event.chunk, seen)
        return stream.get_final_completion()


def act(wanted, seen):
    client = openai.OpenAI(base_url=BASE_URL, api_key=key(wanted), max_retries=wanted["retries"])
    if wanted["api"] == "helper":
        return helper(client, wanted, seen)
    reply = resource(client, wanted).create(**request(wanted))
    if not wanted["stream"]:
        take(reply, seen)
        return reply
    if wanted["leave"] == "with":
        with reply:
            for piece in reply:
                take(piece, seen)
                if seen["pieces"] == wanted["after"]:
                    break
        return reply
    read(reply, take, wanted, seen)
    return client, reply


async def act_async(wanted, seen):
    client = openai.AsyncOpenAI(base_url=BASE_URL, api_key=key(wanted),
                                max_retries=wanted["retries"])
    reply = await resource(client, wanted).create(**request(wanted))
    if not wanted["stream"]:
        take(reply, seen)
        return client, reply
    await read_async(reply, reply.close, take, wanted, seen)
    return client, reply


drive(act, act_async)
