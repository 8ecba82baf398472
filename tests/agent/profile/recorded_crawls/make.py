"""Makes the recordings of this directory: what the agents of small simulated crawls would have said of themselves.

    python -m tests.agent.profile.recorded_crawls.make

Each is a JSON file: `samples` are those of a timeline, each with the slowest host at that moment; `end` is when the
crawl ended (s), None where it never does. Rules: from a seed, without a clock; hosts are loaded one page at a time, as
by an agent, with their delays, the times of their loads, and the pauses they ask for; at most `places` at once.
"""

from __future__ import annotations

import heapq
import json
import random
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scrapy_ubi.agent.hosts.host_times import HostTimes

HERE = Path(__file__).parent
EVERY = 10  # s between two samples, a fifth of that in the first minute
LONGEST = 200_000  # s


@dataclass
class Host:
    """A host of a made-up web. `rests`: done pages after which it asks for a pause of so many seconds."""

    name: str
    delay: float = 1.0
    load: float = 0.3
    rests: dict[int, float] = field(default_factory=dict)
    queue: deque[int] = field(default_factory=deque)
    done: int = 0
    ready: float = 0.0
    busy: bool = False


@dataclass
class Shape:
    """A crawl: its hosts, where each page is and where it leads, `places` of loads, spans (from, to) in which it is
    paused, and how many seconds it is recorded where it never ends."""

    hosts: list[Host]
    host_of: Callable[[int], int]
    links: Callable[[int], list[int]]
    seeds: list[int]
    places: int = 16
    paused: tuple[float, float] | None = None
    cut: float | None = None


def run(shape: Shape, seed: int) -> dict[str, Any]:
    rng = random.Random(seed)
    times, known, done, flying = HostTimes(), set(shape.seeds), 0, 0
    events: list[tuple[float, int, str, Host | None, int]] = []
    number = 0

    def at(when: float, what: str, host: Host | None = None, page: int = 0) -> None:
        nonlocal number
        number += 1
        heapq.heappush(events, (when, number, what, host, page))

    for page in shape.seeds:
        shape.hosts[shape.host_of(page)].queue.append(page)
    at(0.0, "start")
    at(0.0, "sample")
    samples: list[dict[str, Any]] = []
    now = end = 0.0

    def paused() -> bool:
        return shape.paused is not None and shape.paused[0] <= now < shape.paused[1]

    def hand_out() -> None:
        nonlocal flying
        if paused():
            return
        for host in shape.hosts:
            if flying >= shape.places:
                return
            if host.queue and not host.busy and host.ready <= now:
                host.busy, flying = True, flying + 1
                load = host.load * rng.uniform(0.6, 1.4)
                at(now + load, "loaded", host, host.queue.popleft())
                times.loaded(host.name, load)

    def sample() -> None:
        waiting = [host for host in shape.hosts if host.queue]
        slowest = max(waiting, key=lambda host: _needs(host, times, now), default=None)
        samples.append(
            {
                "time": int(now), "done": done, "known": len(known), "in_flight": flying,
                "queued": sum(len(host.queue) for host in waiting),
                "state": "paused" if paused() else "crawling",
                "slowest": None if slowest is None else [
                    slowest.name, len(slowest.queue), slowest.delay, round(times.load(slowest.name), 3), 1,
                    round(max(0.0, slowest.ready - now), 1), "", round(times.every(slowest.name), 3),
                ],
            }
        )  # fmt: skip

    while events:
        now, _, what, host, page = heapq.heappop(events)
        if (shape.cut is not None and now > shape.cut) or now > LONGEST:
            break
        if what == "sample":
            sample()
            if flying or any(one.queue for one in shape.hosts):
                at(now + (EVERY / 5 if now < 60 else EVERY), "sample")
        elif what == "loaded" and host is not None:
            flying, done, end = flying - 1, done + 1, now
            host.busy, host.done = False, host.done + 1
            rest = host.rests.get(host.done, 0.0)
            if rest:
                times.rested(host.name, rest)
            host.ready = now + max(host.delay, rest)
            at(host.ready, "ready")
            for link in shape.links(page):
                if link not in known:
                    known.add(link)
                    shape.hosts[shape.host_of(link)].queue.append(link)
        if shape.paused is not None and what == "start":
            at(shape.paused[1], "ready")
        hand_out()
    return {"end": None if shape.cut is not None else round(end, 1), "total": done, "samples": samples}


def _needs(host: Host, times: HostTimes, now: float) -> float:
    pace = host.delay + times.load(host.name) + times.every(host.name)
    return max(0.0, host.ready - now) + pace * len(host.queue)


def random_web(pages: int, links: int, seed: int, least: int = 0) -> Callable[[int], list[int]]:
    """Each page leads to so many others of all there are."""
    return lambda page: random.Random(seed * 1_000_003 + page).choices(range(least, pages), k=links)


def tree(pages: int, children: int) -> Callable[[int], list[int]]:
    return lambda page: [one for one in range(page * children + 1, page * children + children + 1) if one < pages]


def spread(hosts: int) -> Callable[[int], int]:
    return lambda page: page % hosts


def shapes() -> Iterator[tuple[str, Shape]]:
    many = [Host(f"h{n}.example", 1.0, 0.2 + 0.01 * (n % 40)) for n in range(120)]
    big = [Host("big.example", 2.0, 0.5), *(Host(f"s{n}.example") for n in range(40))]
    yield (
        "one_big_host",
        Shape(big, lambda page: 0 if page % 2 else 1 + page % 40, random_web(3000, 6, 1), [0], places=16),
    )
    yield "many_small_hosts", Shape(many, spread(120), random_web(6000, 8, 2), [0])
    yield (
        "short_of_places",
        Shape(
            [Host(f"p{n}.example", 0.5, 2.0) for n in range(200)], spread(200), random_web(8000, 12, 3), [0], places=8
        ),
    )
    yield "list_of_lists", Shape(
        [Host("list.example", 1.0, 0.3)], lambda page: 0,
        lambda page: [page + 1, *range(1000 + 12 * page, 1012 + 12 * page)] if page < 100 else [], [1],
    )  # fmt: skip
    yield "ramp_then_flat", Shape(
        [Host("index.example", 1.0, 0.3)], lambda page: 0,
        lambda page: list(range(1, 41)) if not page else list(range(40 * page, 40 * page + 40)) if page <= 40 else [],
        [0],
    )  # fmt: skip
    yield "listing_grows_past_the_half", Shape(
        [Host(f"g{n}.example", 0.5, 0.3) for n in range(8)], spread(8),
        lambda page: [2 * page + 1, 2 * page + 2] if page < 1000 else [], [0],
    )  # fmt: skip
    yield (
        "grows_then_shrinks",
        Shape([Host(f"t{n}.example", 1.0, 0.4) for n in range(30)], spread(30), tree(5000, 3), [0]),
    )
    yield (
        "web_of_few_links",
        Shape([Host(f"w{n}.example", 1.0, 0.4) for n in range(30)], spread(30), random_web(5000, 3, 4), [0]),
    )
    resting = [Host("rests.example", 1.0, 0.3, {40: 600.0}), *(Host(f"r{n}.example") for n in range(20))]
    yield "retry_after_600", Shape(resting, spread(21), random_web(2100, 8, 5), [0])
    asks = Host("asks.example", 1.0, 0.3, dict.fromkeys(range(10, 2000, 10), 60.0))
    yield "retry_after_often", Shape([asks], lambda page: 0, random_web(1000, 8, 6), [0])
    yield (
        "slow_loads",
        Shape([Host(f"l{n}.example", 0.0, 5.0) for n in range(5)], spread(5), random_web(900, 7, 7), [0]),
    )
    yield "paused", Shape(
        [Host(f"q{n}.example", 1.0, 0.3) for n in range(10)], spread(10), random_web(2000, 8, 8), [0],
        paused=(100.0, 3700.0),
    )  # fmt: skip
    yield (
        "never_ends",
        Shape([Host(f"e{n}.example", 1.0, 0.3) for n in range(10)], spread(10), tree(10**9, 3), [0], cut=3000.0),
    )


def thinned(samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Small enough to keep: all of the first minute, of the rest some 250."""
    step = max(1, len(samples) // 250)
    return [one for number, one in enumerate(samples) if number < 30 or number % step == 0 or one is samples[-1]]


def main() -> None:
    for seed, (name, shape) in enumerate(shapes()):
        made = run(shape, seed)
        made["samples"] = thinned(made["samples"])
        fields = list(made["samples"][0])
        states = Counter(one["state"] for one in made["samples"])
        rows = ",\n".join(json.dumps([one[f] for f in fields], separators=(",", ":")) for one in made["samples"])
        head = json.dumps({"end": made["end"], "total": made["total"], "fields": fields})[:-1]
        (HERE / f"{name}.json").write_text(f'{head}, "samples": [\n{rows}\n]}}\n')
        print(name, made["end"], made["total"], dict(states))


if __name__ == "__main__":
    main()
