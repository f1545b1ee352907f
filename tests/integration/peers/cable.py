"""A long cable between two network namespaces: frames arrive so many milliseconds later.

    python3 cable.py NAMESPACE NAMESPACE MS    a tap device `cable` in each, until it is killed

As `tc qdisc add ... netem delay` does, which not every kernel has.
"""

import collections
import ctypes
import fcntl
import os
import select
import struct
import sys
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
FRAME_MAX = 65536


def tap(namespace):
    """A descriptor of one end; the device is in the namespace in which it was opened."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{namespace}", "rb") as entered:
        if libc.setns(entered.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns {namespace}")
    end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH22x", b"cable", IFF_TAP | IFF_NO_PI))
    return end


def deliver(end, frame):
    try:
        os.write(end, frame)
    except OSError:
        pass  # that end is down: a cable loses what nobody takes


def carry(ends, delay):
    other = {ends[0]: ends[1], ends[1]: ends[0]}
    under_way = collections.deque()  # (due, end, frame); the delay is the same for all
    while True:
        timeout = max(0, under_way[0][0] - time.monotonic()) if under_way else None
        for end in select.select(ends, [], [], timeout)[0]:
            try:
                frame = os.read(end, FRAME_MAX)
            except OSError:
                continue
            under_way.append((time.monotonic() + delay, other[end], frame))
        while under_way and under_way[0][0] <= time.monotonic():
            _, end, frame = under_way.popleft()
            deliver(end, frame)


if __name__ == "__main__":
    carry([tap(sys.argv[1]), tap(sys.argv[2])], float(sys.argv[3]) / 1000)
