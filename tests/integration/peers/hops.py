"""What a second proxy in front of ours does to a stream."""

import time

import lab


def tenth_share(address):
    """When the tenth token came, as a share of the whole time.

    The first one shows nothing: it leaves a proxy that buffers together with the head.
    """
    stream = lab.Stream(address=address, prompt="hello", max_tokens=25, ttft_ms=0, itl_ms=20)
    stream.take(10)
    tenth = time.monotonic() - stream.sent_at
    lab.check(len(stream.whole()) == 15, "tokens")
    return tenth / (time.monotonic() - stream.sent_at)


def second_proxy():
    direct, front, deaf = (tenth_share(address) for address in
                           (lab.HTTP, "front.sock", "deaf.sock"))
    print(f"tenth of 25 tokens at {direct:.2f} of the time, behind a second nginx {front:.2f}, "
          f"behind one that buffers {deaf:.2f}")
    lab.check(front < 0.7, "the second nginx buffers")
    lab.check(deaf > 0.9, "the control does not buffer, so this shows nothing")


if __name__ == "__main__":
    lab.main(globals())
