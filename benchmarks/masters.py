"""What real agents ask of each master of a real Redis Cluster, with their mail spread over slots (UBI_MAIL_SLOTS).

    python benchmarks/masters.py [--agents 12] [--masters 6] [--slots 6] [--seconds 20] [--json FILE]

So many `scrapy crawl` processes crawl the benchmark's web by a cluster of so many masters. Once all fetch, INFO tells
what each master receives, sends and spends in so many seconds; then MONITOR tells every command of as many. What is
about inboxes and answers is mail; beats, profiles and control are the group's, and all at one master. `of mean` is the
share of the mean over the masters: the aim is 0.85 to 1.15 for mail. Bytes of mail are those of its commands, as they
come in: what an inbox takes goes out of it once.

Identifiers are a0, a1, ... (names that end in numbers are dealt out, others are spread by chance).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "example_project"))

import redis
from processes import Stage, cpu_seconds
from rounds import save, table
from systems import AGENT, CRAWL, FAST, METHOD, SEEDS

from scrapy_ubi.transport.address import address
from scrapy_ubi.transport.clients import client_of
from scrapy_ubi.transport.redis_keys import RedisKeys
from tests.support.redis_groups import Cluster
from tests.support.server import available

HOSTS, PAGES, LATENCY = 1000, 200_000, 20.0
MAIL = (":inbox", ":acks")
CALM = {"UBI_LEASE_TIMEOUT": 20, "UBI_FAILURE_TIMEOUT": 40}  # dozens of agents on two cores are slow to start
PATIENCE = 60_000  # ms until the servers of a cluster hold another one dead: the machine is busy
LIMIT = 600.0  # s until all fetch


class Listener(threading.Thread):
    """Counts the commands of one server while it runs: how many, and the characters of their arguments, of mail and of
    the group."""

    def __init__(self, server: Any) -> None:
        super().__init__(daemon=True)
        self.commands: Counter[str] = Counter()
        self.sizes: Counter[str] = Counter()
        self._server = server
        self._ended = threading.Event()

    def run(self) -> None:
        closed = suppress(redis.ConnectionError)  # the servers end before their last command has come
        with closed, self._server.client() as client, client.monitor() as monitor:
            for said in monitor.listen():
                if self._ended.is_set():
                    return
                if said["client_type"] == "lua":
                    continue  # within a script
                kind = kind_of(said["command"])
                self.commands[kind] += 1
                self.sizes[kind] += len(said["command"])

    def end(self) -> None:
        """Count no more: the next command that comes is the last one."""
        self._ended.set()


def kind_of(command: str) -> str:
    """Whose a command is, by the keys it names."""
    head = command[:4000] if not command.startswith("EVAL") else command
    if any(f"{end} " in head or head.endswith(end) for end in MAIL):
        return "mail"
    return "group" if "ubi:{" in head else "other"


def snapshot(cluster: Cluster) -> list[dict[str, float]]:
    """Bytes and CPU of each master so far."""
    found = []
    for node in cluster.masters:
        with node.client() as client:
            info: Any = client.info()
        spent = float(info["used_cpu_user"]) + float(info["used_cpu_sys"])
        sizes = {"in": float(info["total_net_input_bytes"]), "out": float(info["total_net_output_bytes"])}
        found.append({**sizes, "cpu": spent})
    return found


def wait_for_all(stage: Stage, cluster: Cluster, agents: int) -> None:
    """Until every agent fetches: they say so in their profiles."""
    end = time.monotonic() + LIMIT
    with client_of(address(cluster.url), 5.0) as client:
        while sum(json.loads(text).get("counters", {}).get("pages", 0) > 0 for text in profiles(client)) < agents:
            stage.check()
            if time.monotonic() > end:
                raise RuntimeError("not all agents have begun to crawl")
            time.sleep(0.5)  # the condition is looked at again, not awaited blindly


def profiles(client: Any) -> list[bytes]:
    """What the agents say of themselves."""
    return list(client.hgetall(RedisKeys(CRAWL).agents).values())


def measure(agents: int, masters: int, slots: int, seconds: float) -> dict[str, Any]:
    """Counts of each master in so many seconds."""
    cluster = Cluster(available()[-1], masters=masters, replicas=0, node_timeout=PATIENCE)
    try:
        cluster.start()
        with Stage(HOSTS, PAGES, LATENCY, None) as stage:
            for number in range(agents):
                own = {"UBI_AGENT_ID": f"a{number}", "UBI_DIR": str(stage.directory / f"a{number}")}
                spread = {"UBI_MAIL_SLOTS": slots} if slots > 1 else {}
                settings = {"BENCH_SEEDS": SEEDS, **METHOD, **AGENT, **FAST, **CALM, **own, **spread}
                stage.crawl(f"crawl{number}", {**settings, "UBI_REDIS_URL": cluster.url}, spider="short")
            wait_for_all(stage, cluster, agents)
            before, served, begun = snapshot(cluster), stage.served()["pages"], time.monotonic()
            spent = sum(cpu_seconds(agent.pid) for agent in stage.agents)
            time.sleep(seconds)
            after, pages, lasted = snapshot(cluster), stage.served()["pages"] - served, time.monotonic() - begun
            cpu_ms = 1000 * (sum(cpu_seconds(agent.pid) for agent in stage.agents) - spent) / pages
            listeners = [Listener(node) for node in cluster.masters]
            for listener in listeners:
                listener.start()
            listening = time.monotonic()
            time.sleep(seconds)
            for listener in listeners:
                listener.end()
            listened = time.monotonic() - listening
            stage.check()
    finally:
        cluster.stop()
    rows = []
    for listener, old, new in zip(listeners, before, after, strict=True):
        counted = {f"{kind} commands": listener.commands[kind] / listened for kind in ("mail", "group")}
        counted |= {f"{kind} bytes": listener.sizes[kind] / listened for kind in ("mail", "group")}
        rows.append({**counted, **{name: (new[name] - old[name]) / lasted for name in old}})
    whole = {"pages_a_second": pages / lasted, "cpu_ms_a_page": cpu_ms}
    return {"agents": agents, "masters": masters, "slots": slots, **whole, "each": rows}


def shares(found: dict[str, Any], what: str) -> list[float]:
    """What each master has of it, over the mean."""
    values = [row[what] for row in found["each"]]
    mean = statistics.mean(values)
    return [value / mean for value in values] if mean else [0.0] * len(values)


def show(found: dict[str, Any]) -> None:
    pages = found["pages_a_second"]
    title = f"{found['agents']} agents, {found['slots']} mail slots, {pages:.0f} pages/s"
    mail = [shares(found, what) for what in ("mail commands", "mail bytes")]
    rows = {}
    for number, row in enumerate(found["each"]):
        rows[f"master {number + 1}"] = [
            f"{row['mail commands']:.0f}", f"{mail[0][number]:.2f}", f"{row['mail bytes'] / 1000:.1f}",
            f"{mail[1][number]:.2f}", f"{row['group commands']:.0f}", f"{row['group bytes'] / 1000:.1f}",
            f"{(row['in'] + row['out']) / 1000:.0f}", f"{100 * row['cpu']:.1f}",
        ]  # fmt: skip
    columns = ["mail commands/s", "of mean", "mail kB/s", "of mean", "group commands/s", "kB/s", "all kB/s", "CPU %"]
    table(title, columns, rows)
    whole = {name: sum(row[name] for row in found["each"]) / pages for name in found["each"][0]}
    print(
        f"A page: {whole['mail commands']:.2f} commands of mail, {whole['group commands']:.2f} of the group, "
        f"{(whole['in'] + whole['out']) / 1000:.2f} kB both ways; {found['cpu_ms_a_page']:.2f} ms of CPU of the agents."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=12)
    parser.add_argument("--masters", type=int, default=6)
    parser.add_argument("--slots", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    found = measure(args.agents, args.masters, args.slots, args.seconds)
    show(found)
    save(args.json, found)


if __name__ == "__main__":
    main()
