"""The text of a prompt by three ways: /stream, /generate and gen."""

import json
import os
import random
import subprocess

import lab

# First and last code point of what makes a prompt of each kind.
SCRIPTS = {
    "ASCII": (0x20, 0x7e), "Latin": (0xa1, 0x24f), "Greek": (0x391, 0x3c9),
    "Cyrillic": (0x410, 0x44f), "Hebrew": (0x5d0, 0x5ea), "Arabic": (0x627, 0x64a),
    "Devanagari": (0x904, 0x939), "Thai": (0xe01, 0xe2e), "Hangul": (0xac00, 0xd7a3),
    "Kana": (0x3041, 0x30fe), "Han": (0x4e00, 0x9fff), "Han, plane 2": (0x20000, 0x2a6df),
    "emoji": (0x1f300, 0x1f64f), "combining": (0x300, 0x36f), "spaces": (0x2000, 0x200f),
    "separators": (0x2028, 0x202e), "controls": (0x1, 0x1f), "C1": (0x7f, 0x9f),
    "private": (0xe000, 0xe0ff), "noncharacters": (0xfffe, 0xffff), "last": (0x10fff0, 0x10ffff),
}
SIGNS = "&=+%#?/;\"'\\<>{}[]\n\r\t "


def random_prompts(count):
    dice = random.Random(20240229)
    names = list(SCRIPTS)
    for number in range(count):
        first, last = SCRIPTS[names[number % len(names)]]
        size = dice.choice([1, 2, 5, 20, 200])
        prompt = "".join(chr(dice.randint(first, last)) for _ in range(size))
        if number % 3 == 0:
            prompt += dice.choice(SIGNS) + prompt[:1] + dice.choice(SIGNS)
        yield prompt, {
            "max_tokens": dice.choice([1, 2, 3, 10, 20, 50, 100, 300]),
            "vocab": dice.choice(["words", "torture"]),
            "seed": dice.choice([0, 0, 1, 42, 2 ** 53 - 1, dice.randrange(2 ** 53)]),
        }


def printed(prompt, max_tokens, vocab="words", seed=0):
    """What gen prints."""
    command = [os.environ["GEN"], "--prompt", prompt, "--tokens", str(max_tokens),
               "--vocab", vocab, "--seed", str(seed), "--format"]
    return subprocess.run(command + ["text"], check=True, capture_output=True).stdout.decode()


def streamed(connection, prompt, **controls):
    status, headers, body = connection.ask("GET", lab.target("/stream", prompt=prompt, **controls))
    lab.check(status == 200, status, body)
    lab.check(headers["Content-Type"] == "text/event-stream; charset=utf-8", headers)
    reader = lab.Events()
    *events, last = reader.feed(body)
    lab.check(last == ("message", "[DONE]") and not reader.rest, "the end is", last, reader.rest)
    return [lab.token_of(event) for event in events]


def whole(connection, prompt, **controls):
    status, _, body = connection.ask("POST", "/generate", {"prompt": prompt} | controls)
    lab.check(status == 200, status, body)
    reply = json.loads(body)
    usage = reply["usage"]
    lab.check(usage["completion_tokens"] == controls["max_tokens"], usage, controls)
    lab.check(usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"], usage)
    return reply["text"]


def prompts(count):
    connection = lab.Connection()
    for prompt, controls in random_prompts(int(count)):
        expected = printed(prompt, **controls)
        what = f"{prompt!r} {controls}"
        tokens = streamed(connection, prompt, **controls)
        lab.check(len(tokens) == controls["max_tokens"], what, len(tokens), "tokens")
        lab.check("".join(tokens) == expected, what, "/stream differs from gen")
        lab.check(whole(connection, prompt, **controls) == expected, what,
                  "/generate differs from gen")


def prefixes():
    connection = lab.Connection()
    for vocab in "words", "torture":
        tokens = streamed(connection, "a prefix", max_tokens=300, vocab=vocab)
        text = "".join(tokens)
        for count in 1, 2, 7, 8, 9, 63, 64, 65, 299:
            fewer = streamed(connection, "a prefix", max_tokens=count, vocab=vocab)
            lab.check(fewer == tokens[:count], vocab, count, "tokens are no prefix of 300")
            lab.check(whole(connection, "a prefix", max_tokens=count, vocab=vocab) ==
                      text[:len("".join(fewer))], vocab, count, "/generate is no prefix")


def seeds():
    connection = lab.Connection()
    texts = {}
    for seed in [0, 1, 2, 42, 2 ** 53 - 1]:
        first, again = (whole(connection, "hello", max_tokens=50, seed=seed) for _ in range(2))
        lab.check(first == again, "seed", seed, "gives two texts")
        texts[first] = seed
    lab.check(len(texts) == 5, "two seeds give one text")
    lab.check(texts[whole(connection, "hello", max_tokens=50)] == 0, "the default is not seed 0")


def long():
    connection = lab.Connection()
    controls = {"max_tokens": 20000, "vocab": "torture"}
    expected = printed("long", **controls)
    lab.check("".join(streamed(connection, "long", **controls)) == expected, "/stream differs")
    lab.check(whole(connection, "long", **controls) == expected, "/generate differs")


def pace():
    connection = lab.Connection()
    expected = printed("pace", 40)
    for itl_ms in 0, 0.5, 5:
        tokens = streamed(connection, "pace", max_tokens=40, ttft_ms=itl_ms, itl_ms=itl_ms)
        lab.check("".join(tokens) == expected, "itl_ms", itl_ms, "changes the text")


def at_once():
    streams = [lab.Stream(prompt=f"stream {number}", max_tokens=60, itl_ms=2, ttft_ms=20)
               for number in range(50)]
    for number, stream in enumerate(streams):
        lab.check("".join(stream.whole()) == printed(f"stream {number}", 60), "stream", number,
                  "has another text")


if __name__ == "__main__":
    lab.main(globals())
