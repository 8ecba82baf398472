"""A crawl of any system on a stage: started, awaited, and what it has cost between two moments."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from processes import Stage, cpu_seconds, memory_mb
from systems import CRAWL, SEEDS, System

KEY = f"ubi:{{{CRAWL}}}:agents"  # what the agents say of themselves
LIMIT = 1800.0  # s without the pages wanted: something is wrong
COUNTERS = ("pages", "links", "forwarded", "suppressed", "replicated", "letters_sent", "bytes_sent")


def start(stage: Stage, system: System, environment: Mapping[str, str] | None = None) -> None:
    """Start the crawlers of a system, all at once."""
    for number in range(system.processes):
        settings = {"BENCH_SEEDS": SEEDS, **system.settings}
        if system.processes > 1 and not system.redis:
            settings["BENCH_PART"] = f"{number} {system.processes}"
        if system.redis:
            settings[system.redis] = f"redis://127.0.0.1:{stage.redis_port}/0"
        if system.is_ours:
            settings |= {"UBI_AGENT_ID": f"agent{number}", "UBI_DIR": str(stage.directory / f"agent{number}")}
        if system.apart:
            settings["UBI_CRAWL"] = f"{CRAWL}{number}"
        if system.jobdir:
            settings["JOBDIR"] = str(stage.directory / "job")
        stage.crawl(f"crawl{number}", settings, environment, system.spider)


def snapshot(stage: Stage) -> dict[str, Any]:
    """Pages served and what all that has cost so far."""
    info = stage.client.info()
    return {
        "served": stage.served(),
        "agents": [cpu_seconds(agent.pid) for agent in stage.agents],
        "web": cpu_seconds(stage.web.pid),
        "redis": cpu_seconds(stage.server.pid),
        "commands": info["total_commands_processed"],
        "redis_bytes": info["total_net_input_bytes"] + info["total_net_output_bytes"],
        "counters": counters(stage),
        "at": time.monotonic(),
    }


def counters(stage: Stage) -> dict[str, dict[str, int]]:
    """What the agents say of themselves: each as of one moment, within the last seconds."""
    if stage.client.type(KEY) != "hash":
        return {}
    profiles = [json.loads(text) for text in stage.client.hgetall(KEY).values()]
    return {p["agent"]: {name: p["counters"][name] for name in COUNTERS} for p in profiles if "counters" in p}


def reach(stage: Stage, pages: int, each: Callable[[int], object] = lambda pages: None) -> None:
    """Wait until so many pages were served; `each` sees how many, on the way."""
    end = time.monotonic() + LIMIT
    while (count := stage.served()["pages"]) < pages:
        each(count)
        stage.check()
        if time.monotonic() > end:
            raise RuntimeError(f"only {count} of {pages} pages within {LIMIT:.0f} s")
        time.sleep(0.1)  # the condition is looked at again, not awaited blindly
    each(count)


def wait_for_all(stage: Stage, agents: int) -> None:
    """Until every agent crawls: a machine that is busy may start them one after the other."""
    end = time.monotonic() + LIMIT
    while sum(each["pages"] > 0 for each in counters(stage).values()) < agents:
        stage.check()
        if time.monotonic() > end:
            raise RuntimeError("not all agents have begun to crawl")
        time.sleep(0.1)


def wait_until_opened(stage: Stage) -> None:
    """Until every crawl has opened its spider: what it cost to get there counts for nobody."""
    end = time.monotonic() + LIMIT
    while not stage.opened():
        stage.check()
        if time.monotonic() > end:
            raise RuntimeError("not all crawls have opened their spiders")
        time.sleep(0.1)


def memory(stage: Stage) -> tuple[float, float]:
    """MB that the largest of the crawls has now, and the most that any of them has had."""
    stage.check()
    found = [memory_mb(agent.pid) for agent in stage.agents]
    return max(now for now, _ in found), max(most for _, most in found)


def per_page(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, float]:
    """The differences of two snapshots, a page."""
    pages = after["served"]["pages"] - before["served"]["pages"]
    spent = [late - early for early, late in zip(before["agents"], after["agents"], strict=True)]
    row = {
        "cpu_ms": 1000 * sum(spent) / pages,
        "web_cpu_ms": 1000 * (after["web"] - before["web"]) / pages,
        "redis_cpu_ms": 1000 * (after["redis"] - before["redis"]) / pages,
        "redis_commands": (after["commands"] - before["commands"]) / pages,
        "redis_bytes": (after["redis_bytes"] - before["redis_bytes"]) / pages,
        "pages_per_second": pages / (after["at"] - before["at"]),
        "fetched_twice": after["served"]["pages"] - after["served"]["unique"],
    }
    sums = {
        name: sum(after["counters"][agent][name] - each[name] for agent, each in before["counters"].items())
        for name in COUNTERS
    }
    if sums["pages"]:
        row |= {name: sums[name] / sums["pages"] for name in COUNTERS if name != "pages"}
    return row


def thinned(samples: Sequence[tuple[int, float]], most: int) -> list[tuple[int, float]]:
    """About so many of the samples, and among them the largest."""
    step = -(-len(samples) // most)
    return [max(samples[at : at + step], key=lambda sample: sample[1]) for at in range(0, len(samples), step)]
