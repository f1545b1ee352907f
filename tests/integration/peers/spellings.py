"""Every spelling of a number that is none, and some that are."""

import json
import urllib.parse

import lab

COUNTS = {"max_tokens": (1, 100000), "seed": (0, 2 ** 64 - 1)}
TIMES = {"ttft_ms": (0, 600000), "itl_ms": (0, 60000)}

NO_NUMBERS = ["", "+5", "1e3", "1E3", "20abc", "-1", "-0", "0x10", " 20", "20 ", "\t20", "20\n",
              "1_000", "1,000", "٢٠", "２０", "NaN", "nan", "inf", "Infinity", "true", "null",
              "abc", "--5", "5-", "0b1", "20.", ".5", ".", "1..2", "1.2.3", "1.5e1", "20%"]
TOO_LARGE = ["99999999999999999999", "18446744073709551616", "4294967297" * 3]


def refused(method, target, body, name, given):
    status, headers, reply = lab.ask(method, target, body)
    what = f"{method} {target[:200]} {body}:"
    lab.check(status == 400, what, status, reply[:200])
    error = json.loads(reply)["error"]
    if name:
        lab.check(error["param"] == name and name in error["message"], what, error)
        lab.check("allowed" in error["message"] or "needed" in error["message"], what, error)
        if given is not None:
            lab.check(given in error["message"], what, "does not show", given, error)


def in_query(name, value):
    encoded = urllib.parse.quote(value, safe="")
    shown = value if value.isprintable() and value != "" else None
    refused("GET", f"/stream?prompt=a&{name}={encoded}", None, name, shown and shown[:16])


def query_numbers():
    before = lab.books()["accepted"]
    for name, (least, most) in (COUNTS | TIMES).items():
        for value in NO_NUMBERS + TOO_LARGE + [str(most + 1)] + ["0"] * least:
            in_query(name, value)
        refused("GET", f"/stream?prompt=a&{name}", None, name, None)
        refused("GET", f"/stream?prompt=a&{name}=+5", None, name, None)  # `+` is a space
    for name in COUNTS:
        for value in ["20.5", "20.0", "1.0"]:
            in_query(name, value)
    for name in TIMES:
        for value in ["0.0001", "1.2345", "0.5.0", "60000000.001"]:
            in_query(name, value)
    lab.check(lab.books()["accepted"] == before, "a refused request was counted as accepted")


def json_numbers():
    before = lab.books()["accepted"]
    for name, (least, most) in (COUNTS | TIMES).items():
        for value in ['""', '"20"', '"20abc"', "null", "true", "[20]", "{}", "-1", "-0.5",
                      "99999999999999999999", "1e999", "-1e999", str(most + 1)] + ["0"] * least:
            refused("POST", "/generate", f'{{"prompt":"a","{name}":{value}}}', name, None)
        # not numbers of JSON at all (RFC 8259, section 6)
        for value in ["+5", "0x10", "20abc", "", ".5", "NaN", "Infinity", "-", "1e", "01", "1.",
                      "-01", "1.e3", "--1", "1_000"]:
            refused("POST", "/generate", f'{{"prompt":"a","{name}":{value}}}', None, None)
    for name in COUNTS:
        for value in ["20.5", "1.0000001"]:
            refused("POST", "/generate", f'{{"prompt":"a","{name}":{value}}}', name, None)
    for name in TIMES:
        refused("POST", "/generate", f'{{"prompt":"a","{name}":1.2345}}', name, None)
    lab.check(lab.books()["accepted"] == before, "a refused request was counted as accepted")


def json_exponents():
    for name in COUNTS | TIMES:
        for value in ["1e3", "1E1", "1e+1"]:
            refused("POST", "/generate", f'{{"prompt":"a","{name}":{value}}}', None, None)


def good_numbers():
    for query in ["max_tokens=1", "max_tokens=007", "max_tokens=20", "seed=0",
                  "seed=18446744073709551615", "ttft_ms=0", "itl_ms=0", "itl_ms=0.5", "itl_ms=0.001",
                  "ttft_ms=1.250", "ttft_ms=0.0"]:
        more = "" if "max_tokens" in query else "&max_tokens=2"
        status, _, body = lab.ask("GET", f"/stream?prompt=a&{query}{more}")
        lab.check(status == 200 and body.endswith(b"data: [DONE]\n\n"), query, status, body)
    for name, value in [("max_tokens", 1), ("seed", 18446744073709551615), ("itl_ms", 0.5),
                        ("itl_ms", 0.001), ("ttft_ms", 1.25), ("ttft_ms", 0)]:
        body = {"prompt": "a", "max_tokens": 2} | {name: value}
        status, _, reply = lab.ask("POST", "/generate", body)
        lab.check(status == 200, body, status, reply)
    # The largest count is taken at its word: it starts, and is cancelled.
    stream = lab.Stream(prompt="a", max_tokens=100000, ttft_ms=600000, itl_ms=60000)
    row = lab.reached(stream.id, "prefill")
    lab.check(row["requested"] == 100000, row)
    stream.close()
    lab.ended(stream.id)


if __name__ == "__main__":
    lab.main(globals())
