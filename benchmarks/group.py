"""What a group of many agents costs Redis and each agent, while nothing happens in it: beats, profiles and views.

    python benchmarks/group.py [--agents 200] [--seconds 20] [--large 1000] [--json FILE] [--only real|large]

`real`: so many agents, each with its beating thread and its connections, in a few processes around one server: the
protocol's `Agent` with an empty frontier, the beats of `agent/group`, the Redis transport. Once all have settled in one
view CPU time is taken, of the server (INFO cpu) and of the processes (shared out among the agents).

`large`: what one agent's beat costs in a group that is as large as that, where the others are written by hand; and from
that, by multiplication, what they cost together. It is no measurement of a thousand agents at once: queues, the
network and a busy machine are not in it.

CPU seconds, as the machine is shared with others.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import secrets
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

HERE = Path(__file__).parent
sys.path[1:1] = [str(HERE.parent), str(HERE.parent / "example_project")]

from scale_group import sharing_views  # noqa: E402

from scrapy_ubi.agent.group.beats import Beats  # noqa: E402
from scrapy_ubi.agent.profile.profile import COUNTERS, read_profile  # noqa: E402
from scrapy_ubi.frontier.memory import MemoryFrontier  # noqa: E402
from scrapy_ubi.protocol.agent import Agent  # noqa: E402
from scrapy_ubi.protocol.beat import Beat  # noqa: E402
from scrapy_ubi.protocol.config import Config  # noqa: E402
from scrapy_ubi.protocol.read_interval import reads_apart  # noqa: E402
from scrapy_ubi.protocol.view import Member, View  # noqa: E402
from scrapy_ubi.settings import UbiSettings  # noqa: E402
from scrapy_ubi.transport import TransportDown, scripts  # noqa: E402
from scrapy_ubi.transport.address import address  # noqa: E402
from scrapy_ubi.transport.beat_connection import RedisLink  # noqa: E402
from scrapy_ubi.transport.redis import RedisTransport  # noqa: E402
from scrapy_ubi.transport.redis_keys import RedisKeys  # noqa: E402
from tests.support.server import Server  # noqa: E402

CRAWL = "bench"
SETTINGS = UbiSettings()
PROCESSES = 4
COUNTED = dict.fromkeys(COUNTERS, 123456) | {"failed": {f"http/{code}": 12 for code in range(400, 420)}}
PROFILE = json.dumps(  # 1.7 kB, as of an agent that has crawled for a while
    {"agent": "a", "incarnation": "0" * 8, "updated": 1.0, "state": "crawling", "counters": COUNTED, "x": "y" * 300}
)
TRIES = 20  # to connect, while all others do
LIMIT = 300.0  # s until all have settled


def cpu(client: Any) -> float:
    """Seconds the server has used."""
    info = client.info("cpu")
    return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


def sent(client: Any) -> int:
    """Bytes the server has sent."""
    return int(client.info("stats")["total_net_output_bytes"])


# -- real agents ---------------------------------------------------------------------------------------------------


class Peer:
    """One agent with its heart."""

    def __init__(self, url: str, name: str) -> None:
        now = time.monotonic()
        self.agent = Agent(name, name, Config(), MemoryFrontier(), lambda: secrets.token_hex(4), now)
        self.transport = RedisTransport(url, CRAWL, name)
        crawl: Any = SimpleNamespace(agent=self.agent, follow=lambda begin: begin())
        self.beats = Beats(crawl, self.transport, SETTINGS, lambda end, lines: None, time.monotonic)

    async def start(self) -> None:
        """Beat."""
        for _ in range(TRIES):
            try:
                await self.transport.open()
            except TransportDown:
                await asyncio.sleep(1.0)
            else:
                break
        self.beats.start(lambda: False)

    def tick(self) -> None:
        """Time has passed."""
        self.beats.publish(self.agent.tick(time.monotonic()).beat)

    def is_settled(self, total: int) -> bool:
        """Whether it sees so many, and has settled."""
        return len(self.agent.view.members) == total and self.agent.beat.settled == self.agent.view.digest


async def child(url: str, first: int, count: int, total: int) -> None:
    """Some of the agents, in this process."""
    peers = [Peer(url, f"agent-{number}") for number in range(first, first + count)]
    for peer in peers:
        await peer.start()

    async def tick() -> None:
        while True:
            for peer in peers:
                peer.tick()
                await asyncio.sleep(1.0 / count)

    ticking = asyncio.ensure_future(tick())
    loop, end = asyncio.get_running_loop(), time.monotonic() + LIMIT
    while not all(peer.is_settled(total) for peer in peers):
        await asyncio.sleep(0.5)
        if time.monotonic() > end:
            raise SystemExit(f"not settled: {Counter(len(peer.agent.view.members) for peer in peers)}")
    print("settled", flush=True)
    await loop.run_in_executor(None, sys.stdin.readline)
    began = time.process_time()
    await loop.run_in_executor(None, sys.stdin.readline)
    print(time.process_time() - began, flush=True)
    ticking.cancel()
    for peer in peers:
        await peer.transport.stop_beating(None)


def real(agents: int, seconds: float, kind: str) -> dict[str, float]:
    """Measured with so many."""
    share = agents // PROCESSES
    with Server(kind) as server:
        command = [sys.executable, __file__, "--child", server.url]
        groups = [[*command, str(number * share), str(share), str(share * PROCESSES)] for number in range(PROCESSES)]
        children = [subprocess.Popen(one, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for one in groups]

        def tell() -> None:
            for one in children:
                assert one.stdin is not None
                one.stdin.write("\n")
                one.stdin.flush()

        def hear() -> list[str]:
            return [one.stdout.readline().strip() for one in children if one.stdout is not None]

        assert hear() == ["settled"] * PROCESSES
        time.sleep(5)
        with server.client() as client:
            tell()
            began, used, bytes_sent = time.monotonic(), cpu(client), sent(client)
            time.sleep(seconds)
            took, used, bytes_sent = time.monotonic() - began, cpu(client) - used, sent(client) - bytes_sent
            tell()
            spent = sum(map(float, hear()))
        for one in children:
            one.wait()
    return {
        "agents": share * PROCESSES,
        "redis, % of a core": 100 * used / took,
        "sent, MB/s": bytes_sent / took / 1e6,
        "an agent, % of a core": 100 * spent / took / (share * PROCESSES),
    }


# -- one of many ---------------------------------------------------------------------------------------------------


def lines(agents: int, counter: int) -> dict[str, str]:
    """Agent -> what it says."""
    digest = "295ba34ef5c07fbb"
    said = {f"agent-{number}": Beat(f"{number:08x}", 0, 200, digest, digest) for number in range(agents)}
    return {name: beat.line(counter) for name, beat in said.items()}


def fill(client: Any, keys: RedisKeys, agents: int) -> Callable[[int], object]:
    """Write the others by hand; what lets all of them beat."""
    said = lines(agents, 1)
    client.hset(keys.beats, mapping=dict(said))
    client.hset(keys.agents, mapping=dict.fromkeys(said, PROFILE))
    if not hasattr(keys, "pulses"):
        return lambda counter: None
    from scrapy_ubi.transport.pulses import BeatLine

    client.hset(keys.slots, mapping=dict(enumerate(said)))
    known = [BeatLine.from_text(line.encode()) for line in said.values()]

    def beat(counter: int) -> object:
        cells = [struct.pack(">4sII12s", line.mark, counter, line.version, b"") for line in known]
        return client.set(keys.pulses, b"".join(cells))

    beat(1)
    return beat


def renew(client: Any, keys: RedisKeys, agents: int) -> Callable[[int], object]:
    """What lets all the others say something new, as after a change of the view."""

    def write(counter: int) -> None:
        said = {name: line.replace(" - ", f" {counter:016x} ", 1) for name, line in lines(agents, counter).items()}
        client.hset(keys.beats, mapping={name: line for name, line in said.items() if name != "agent-0"})
        if hasattr(keys, "pulses"):
            from scrapy_ubi.transport.pulses import BeatLine

            known = [BeatLine.from_text(line.encode()) for line in said.values()]
            client.set(keys.pulses, b"".join(line.pulse(line.version) for line in known))

    return write


def costs(client: Any, call: Callable[[int], object], before: Callable[[int], object], times: int) -> tuple[float, ...]:
    """CPU seconds of a call, of the server and of this process, and the bytes that the server sends."""
    for number in range(2):
        before(number + 2)
        call(number + 2)
    used, spent, answered = cpu(client), 0.0, sent(client)
    for number in range(times):
        before(number + 4)
        began = time.process_time()
        call(number + 4)
        spent += time.process_time() - began
    return (cpu(client) - used) / times, spent / times, (sent(client) - answered) / times


def large(agents: int, kind: str, times: int = 400) -> dict[str, float]:
    """One of so many, and all of them by multiplication."""
    keys, own = RedisKeys(CRAWL), Beat("ffffffff", 0, 200, "295ba34ef5c07fbb", "295ba34ef5c07fbb")
    with Server(kind) as server, server.client() as client:
        beat = fill(client, keys, agents)
        link = RedisLink(address(server.url), keys, "agent-0", 3.0, 10_000_000, Counter())
        link.write(own.line(1))
        idle = costs(client, lambda number: None, beat, times)[0]
        redis_write, agent_write, _ = costs(
            client, lambda number: link.write(own.line(number)), lambda number: None, times
        )
        redis_read, agent_read, read_bytes = costs(client, lambda number: link.beat(own.line(number)), beat, times)
        new = renew(client, keys, agents)
        idle_new = costs(client, lambda number: None, new, 20)[0]
        redis_new, agent_new, _ = costs(client, lambda number: link.beat(own.line(number)), new, 20)
        replace = ("EVAL", scripts.REPLACE, 1, keys.agents, "agent-0", PROFILE)
        publish = costs(client, lambda number: client.execute_command(*replace), lambda number: None, times)
        profiles = costs(client, lambda number: client.hgetall(keys.agents), lambda number: None, 40)
        link.close()
    redis_read -= idle
    agent = Agent("agent-0", "s", Config(), MemoryFrontier(), lambda: "ffffffff", 0.0)
    crawl: Any = SimpleNamespace(agent=agent, follow=lambda begin: begin())
    beats = Beats(crawl, Nowhere(), SETTINGS, lambda end, all_of: None, time.monotonic)
    texts = [lines(agents, number + 1) for number in range(12)]
    beats.read(0.0, 0.0, texts[0])
    began = time.process_time()
    for number, text in enumerate(texts[1:]):
        beats.read(number + 1.0, number + 1.0, text)
    protocol = (time.process_time() - began) / (len(texts) - 1)
    apart = reads_apart(agents, 1.0, SETTINGS.lease_timeout) or 1.0
    began = time.process_time()
    for _ in range(agents):
        read_profile("a", PROFILE.encode())
    judged = time.process_time() - began
    return {
        "agents": agents,
        "a beat: redis, us": 1e6 * redis_write,
        "a beat: agent, us": 1e6 * agent_write,
        "a read: redis, us": 1e6 * redis_read,
        "a read: agent, us": 1e6 * agent_read,
        "a read: protocol, us": 1e6 * protocol,
        "a read: bytes": read_bytes,
        "a read of all new: redis, us": 1e6 * (redis_new - idle_new),
        "a read of all new: agent, us": 1e6 * agent_new,
        "seconds between reads": apart,
        "a profile published: redis, us": 1e6 * publish[0],
        "all profiles: redis, us": 1e6 * profiles[0],
        "all profiles: agent, us": 1e6 * judged,
        "all profiles: bytes": profiles[2],
        "beats of all: redis, % of a core": 100 * agents * (redis_write * (1 - 1 / apart) + redis_read / apart),
        "beats of all: sent, MB/s": agents * read_bytes / apart / 1e6,
        "beats: an agent, % of a core": 100 * (agent_write * (1 - 1 / apart) + (agent_read + protocol) / apart),
    }


class Nowhere:
    """A transport that does nothing."""

    def beat_now(self) -> None:
        """Not."""


def views(agents: int) -> dict[str, float]:
    """What it takes to see one agent more, or fewer."""
    members = {f"agent-{number}": Member(f"{number:08x}", 0, 200) for number in range(agents)}
    began = time.process_time()
    view = View.of(members)
    first = time.process_time() - began
    began = time.process_time()
    more = View.of({**members, "another": Member("ffffffff", 0, 200)}, view)
    joined = time.process_time() - began
    began = time.process_time()
    View.of(members, more)
    left = time.process_time() - began
    return {"a view: ms": 1e3 * first, "one agent more: ms": 1e3 * joined, "one fewer: ms": 1e3 * left}


def show(title: str, figures: dict[str, float]) -> None:
    """For people."""
    print(f"\n{title}")
    for name, value in figures.items():
        print(f"  {name:36} {value:12,.2f}")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--large", type=int, default=1000)
    parser.add_argument("--kind", default="redis", help="redis or valkey")
    parser.add_argument("--only", choices=["real", "large"])
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        url, *numbers = given.child
        logging.disable()
        with sharing_views():
            asyncio.run(child(url, *map(int, numbers)))
        return
    found: dict[str, Any] = {}
    if given.only != "large":
        found["real"] = real(given.agents, given.seconds, given.kind)
        show("Real agents", found["real"])
    if given.only != "real":
        for agents in (200, given.large):
            found[f"one of {agents}"] = large(agents, given.kind) | views(agents)
            show(f"One of {agents}, and all by multiplication", found[f"one of {agents}"])
    if given.json:
        Path(given.json).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
