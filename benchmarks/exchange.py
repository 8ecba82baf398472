"""What an exchange with Redis costs an agent: redis-py with hiredis, and without.

    python benchmarks/exchange.py [--rounds 5] [--json FILE]

Two agents and a Redis: one sends two letters of 1.5 kB and an answer, the other reads them and deletes those it read
before, 1,500 times. A figure is processor time (user and system) an exchange of the process that both live in, of the
middle round. Each round is a process of its own, as redis-py looks for hiredis once. Trust the ratio.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time

import redis
from processes import free_port, redis_command, wait_for_redis
from rounds import options, save, table

LETTERS, WARM, TURNS = 2, 200, 1500
BODY = "x" * 1500
WITHOUT = "import sys; sys.modules['hiredis'] = None; "  # importing it fails, as where it is not installed
CHILD = "import asyncio, exchange; print(asyncio.run(exchange.measure({port})))"
WAYS = {"with hiredis": "", "without": WITHOUT}


async def measure(port: int) -> float:
    """Milliseconds an exchange."""
    from scrapy_ubi.transport import Outgoing
    from scrapy_ubi.transport.redis import RedisTransport

    one, other = (RedisTransport(f"redis://127.0.0.1:{port}/0", "c", name, 1_000_000) for name in "ab")
    await one.open()
    await other.open()
    letters = [("b", {"from": "a", "lane": str(lane), "seq": "1", "body": BODY}) for lane in range(LETTERS)]
    read: list[str] = []
    for turn in range(WARM + TURNS):
        if turn == WARM:
            begun = time.process_time()
        await one.exchange(Outgoing(letters=letters, acks={("b", "0"): "1"}))
        read = [number for number, _ in (await other.exchange(Outgoing(consumed=read))).letters]
    spent = time.process_time() - begun
    assert len(read) == LETTERS, "what was sent has arrived"
    await one.close()
    await other.close()
    return 1000 * spent / (2 * TURNS)


def main() -> None:
    args = options(__doc__, rounds=5)
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="ubi-bench-") as directory:
        server = subprocess.Popen(redis_command(port, directory), stdout=subprocess.DEVNULL)
        try:
            with redis.Redis(port=port) as client:
                wait_for_redis(client)
            found: dict[str, list[float]] = {way: [] for way in WAYS}
            for turn in range(args.rounds):
                for way in sorted(WAYS, reverse=bool(turn % 2)):
                    found[way].append(child(WAYS[way] + CHILD.format(port=port)))
        finally:
            server.kill()
            server.wait()
    show(found)
    save(args.json, {"milliseconds": found})


def child(code: str) -> float:
    """What that code prints, run by a process of its own."""
    said = subprocess.run([sys.executable, "-c", code], cwd=sys.path[0], capture_output=True, text=True, check=True)
    return float(said.stdout)


def show(found: dict[str, list[float]]) -> None:
    ratios = [with_ / without for with_, without in zip(found["with hiredis"], found["without"], strict=True)]
    rows = {way: [f"{statistics.median(each):.3f} ({min(each):.3f}-{max(each):.3f})"] for way, each in found.items()}
    rows["ratio"] = [f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"]
    table("ms CPU an exchange, median (least-most)", [" " * 22], rows)


if __name__ == "__main__":
    main()
