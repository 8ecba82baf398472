"""A link to a machine far away, on this machine: packets are late by half a round trip each way, and some are lost.

    with LongLink(seconds=0.2, loss=0.01) as link:
        subprocess.Popen([*link.inside, "redis-server", ...])   # it is reached at link.address

The far machine is a network namespace. Two tun devices, one here and one there, hand their packets to a thread, which
keeps each for its time and writes it to the other device, or does not. All else is the kernel's own TCP, with its
windows, its retransmissions and its back-off. It needs no netem, which not every kernel has; the right to make network
namespaces and tun devices it does need (`is_possible`), so a program enters a namespace of its own first (`enter`).
"""

from __future__ import annotations

import fcntl
import heapq
import os
import random
import select
import shutil
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

INSIDE = "UBI_LONG_LINK_NAMESPACE"  # in the environment of the process that is in it
HERE_ADDRESS, FAR_ADDRESS = "10.77.0.1", "10.77.0.2"
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
MTU = 1500
QUEUED = 4000  # packets under way in one direction; what comes beyond them is lost, as in a router
CONGESTION = "cubic"  # what nearly all machines use


def enter() -> bool:
    """Start this program again in a network namespace of its own (it does not return then); False where that cannot
    be, or has happened."""
    if INSIDE in os.environ or shutil.which("unshare") is None or shutil.which("ip") is None:
        return False
    enters = ["unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    probe = "import long_link; long_link.LongLink(0.0, 0.0).__enter__().__exit__()"
    path = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.abspath(__file__)), INSIDE: "1"}
    if subprocess.run([*enters, sys.executable, "-c", probe], capture_output=True, check=False, env=path).returncode:
        return False
    os.environ[INSIDE] = "1"
    return bool(os.execvp("unshare", [*enters, sys.executable, *sys.argv]))  # it never does


def is_inside() -> bool:
    """Whether this process is in such a namespace."""
    return INSIDE in os.environ


class LongLink:
    """The link, as a context manager. `seconds` of a round trip, and the part of packets that is lost, may be changed
    while it is there. `inside`: what a command begins with that is to run on the far machine."""

    address = FAR_ADDRESS

    def __init__(self, seconds: float, loss: float, seed: int = 1) -> None:
        self.seconds, self.loss = seconds, loss
        self.passed = self.lost = 0
        self._random = random.Random(seed)
        self._over = threading.Event()
        self._devices: list[int] = []

    def __enter__(self) -> LongLink:
        self._far = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"], stdout=-1)
        assert self._far.stdout is not None
        self._far.stdout.readline()  # it is in its namespace
        self.inside: Sequence[str] = ("nsenter", f"--net=/proc/{self._far.pid}/ns/net")
        self._devices = [_tun("ubinear"), _tun("ubifar")]
        _run("ip", "link", "set", "ubifar", "netns", str(self._far.pid))
        for prefix, device, own, other in (
            ((), "ubinear", HERE_ADDRESS, FAR_ADDRESS),
            (self.inside, "ubifar", FAR_ADDRESS, HERE_ADDRESS),
        ):
            _run(*prefix, "ip", "addr", "add", own, "peer", other, "dev", device)
            _run(*prefix, "ip", "link", "set", device, "mtu", str(MTU), "up")
            _run(*prefix, "sh", "-c", f"echo {CONGESTION} > /proc/sys/net/ipv4/tcp_congestion_control || true")
        self._thread = threading.Thread(target=self._pass, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._devices:
            self._thread.join()
        for device in self._devices:
            os.close(device)
        self._far.kill()
        self._far.wait()
        if self._far.stdout is not None:
            self._far.stdout.close()

    def _pass(self) -> None:
        """Until it is over: every packet in its time."""
        near, far = self._devices
        other = {near: far, far: near}
        waiting: dict[int, list[tuple[float, int, bytes]]] = {near: [], far: []}  # for that device
        number = 0
        while not self._over.is_set():
            now = time.monotonic()
            for device, packets in waiting.items():
                while packets and packets[0][0] <= now:
                    _write(device, heapq.heappop(packets)[2])
            due = min((packets[0][0] for packets in waiting.values() if packets), default=now + 0.1)
            for device in select.select([near, far], [], [], max(0.0, due - time.monotonic()))[0]:
                packet, queue = os.read(device, 65_536), waiting[other[device]]
                self.passed += 1
                if self._random.random() < self.loss or len(queue) >= QUEUED:
                    self.lost += 1
                    continue
                number += 1
                heapq.heappush(queue, (time.monotonic() + self.seconds / 2, number, packet))


def _tun(name: str) -> int:
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return device


def _write(device: int, packet: bytes) -> None:
    try:
        os.write(device, packet)
    except OSError:  # the other end has not come up, or is full: the packet is lost
        pass


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
