"""Many short requests, one behind the other."""

import lab


def fill(count):
    connection = lab.Connection()
    for number in range(int(count)):
        status, _, _ = connection.ask("GET", lab.target(
            "/stream", prompt="a", max_tokens=1, ttft_ms=0, itl_ms=0),
            headers={"X-Request-Id": f"fill-{number}"})
        lab.check(status == 200, number, status)


if __name__ == "__main__":
    lab.main(globals())
