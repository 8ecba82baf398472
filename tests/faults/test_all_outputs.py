"""All outputs after real kills (P9): what is collected of every kind is the web's, page by page, link by link, body by
body.

Three agents crawl a small web with the stores items, larm, warc and graph. Five times one of them is killed (kill -9);
it comes back at once, later, or when the others have ended the crawl. One agent joins, and one leaves. The moments are
drawn. Each run prints its seed, and the line that repeats it; OUTPUT_RUNS is the number of runs.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from demo.graph import Document, Graph
from scrapy_ubi.outputs.graph import files
from scrapy_ubi.outputs.warc import members
from scrapy_ubi.urls.canonical import canonical_form
from tests.faults.conftest import MakeGroup
from tests.outputs.graph.test_numbered import arcs_of
from tests.outputs.graph.test_processes import referee
from tests.support.group import LIMIT, LOOK, Group

pytestmark = [pytest.mark.processes, pytest.mark.faults]

RUNS = int(os.environ.get("OUTPUT_RUNS", "1"))
SEED = int(os.environ.get("OUTPUT_SEED", random.randrange(1_000_000)))
KILLS, AGENTS = 5, ("a0", "a1", "a2")
STORES = "items(size=20000),larm(size=100000),warc(size=100000),graph(size=20000)"
SETTINGS = {
    "UBI_STORES": STORES, "CONCURRENT_REQUESTS": 4, "UBI_HEARTBEAT_INTERVAL": 0.25,
    "UBI_LEASE_TIMEOUT": 1.5, "UBI_FAILURE_TIMEOUT": 2.5,
}  # fmt: skip
JOINED, LOST, MISSING = "has joined crawl", "Lost, of ", re.compile(r"has lost \d+ agents? \(([^)]*)\)")


class Faults:
    """What is done to a group, at drawn moments: each is a share of the requests that a whole crawl makes."""

    def __init__(self, group: Group, draws: random.Random) -> None:
        self._group, self._draws = group, draws
        self._away: dict[str, float] = {}  # who was killed -> the share at which it comes back
        self.told: list[str] = []
        self._gone: set[str] = set()  # who was killed, or has left
        self._lives: dict[str, int] = {}  # where in its log an agent's present life begins

    def run(self, *more: tuple[float, Callable[[float], None]]) -> None:
        """From the start of the agents to the end of the last. `more` is done at these shares, besides."""
        draws = self._draws
        acts: list[tuple[float, Callable[[float], None]]] = [
            *((draws.uniform(0.05, 1.0), self._kill) for _ in range(KILLS)),
            (draws.uniform(0.1, 0.7), self._join),
            (draws.uniform(0.2, 0.8), self._leave),
            *more,
        ]
        self._start(*AGENTS)
        for share, act in sorted(acts, key=lambda act: act[0]):
            self._wait(share)
            act(share)
        self._wait(float("inf"))

    def _start(self, *names: str) -> None:
        self.told.append(f"start {' '.join(names)}")
        for name in names:
            log = self._group.place / f"{name}.log"
            self._lives[name] = log.stat().st_size if log.exists() else 0
        self._group.start(*names)

    def _kill(self, share: float) -> None:
        names = sorted(name for name, agent in self._group.agents.items() if agent.popen.poll() is None)
        names = [name for name in names if not self._group.agents[name].told]
        if not names:
            return
        name = self._draws.choice(names)
        self.told.append(f"kill {name} at {share:.2f}")
        self._group.kill(name)
        self._gone.add(name)
        back = self._draws.choice((0.0, self._draws.uniform(0.0, 0.4), float("inf")))
        self._away[name] = share + back
        if not back:
            self._bring_back(share)

    def _join(self, share: float) -> None:
        if self._runs():  # else it would begin another crawl, where the others have ended this one
            self._start("a3")

    def _leave(self, share: float) -> None:
        names = sorted(name for name, agent in self._group.agents.items() if agent.popen.poll() is None)
        there = [name for name in names if JOINED in self._life(name)]
        if len(names) > 1 and there:
            name = self._draws.choice(there)
            self.told.append(f"leave {name} at {share:.2f}")
            self._group.stop(name)
            self._gone.add(name)

    def _bring_back(self, share: float) -> None:
        names = sorted(name for name, back in self._away.items() if back <= share)
        for name in names:
            del self._away[name]
        logs = {name: self._group.place / f"{name}.log" for name in names}
        took_part = [name for name, log in logs.items() if JOINED in log.read_text(errors="replace")]
        self._start(*(names if self._runs() else took_part))  # who never did would begin another crawl

    def _wait(self, share: float) -> None:
        """Until so much is served, or no agent runs; those that are due come back."""
        limit, whole = time.monotonic() + LIMIT, len(self._group.truth)
        while (served := self._group.web.count() / whole) < share and self._runs():
            self._bring_back_due(served)
            assert time.monotonic() < limit, f"never: {share} served; {self.told}"
            time.sleep(LOOK)
        if self._away and not self._runs():
            self._bring_back(float("inf"))
            if share == float("inf"):
                self._wait(share)

    def _bring_back_due(self, served: float) -> None:
        if any(back <= served for back in self._away.values()):
            self._bring_back(served)

    def _runs(self) -> bool:
        return any(agent.popen.poll() is None for agent in self._group.agents.values())

    def _life(self, name: str) -> str:
        """The log of an agent since it was started last."""
        return self._group.agents[name].log.read_bytes()[self._lives[name] :].decode("utf-8", "replace")

    def judge(self) -> list[str]:
        """Every agent has ended well, and has told of no loss, unless of agents that were gone together, with what
        only they knew: whether one of them comes back is not known while it is away."""
        wrong = []
        for name, agent in self._group.agents.items():
            log, code = self._life(name), agent.popen.poll()
            lost = {one for names in MISSING.findall(log) for one in names.split(", ")}
            untrue = lost - self._gone
            if code != bool(lost) or untrue or LOST in log or "Traceback" in log:
                wrong.append(f"{name} ended with {code}, and has told of {lost}, {untrue} untruly: {log[-1500:]}")
        return wrong


def collect(group: Group, kind: str) -> Path:
    """What `scrapy ubi collect` makes of all agents' directories."""
    dirs = [part for path in sorted(group.place.glob("a?")) for part in ("--dir", str(path))]
    file = group.place / f"collected.{kind}"
    command = [sys.executable, "-m", "scrapy", "ubi", "collect", kind, "-o", str(file), *dirs]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, cwd=group.place, check=False)
    assert done.returncode == 0, done.stderr
    return file


def reached(group: Group) -> Iterator[tuple[str, Document]]:
    """The documents that can be reached, by URL."""
    graph: Graph = group.web.graph
    for host in range(len(graph.names)):
        for number in range(graph.sizes[host]):
            for kind in ("page", "redirect", "missing"):
                document = Document(kind, host, number)
                if (url := graph.url(document)) in group.truth:
                    yield url, document


def differs(kind: str, found: Counter[object], wanted: Counter[object]) -> list[str]:
    """What is missing, and what is there too often."""
    missing, more = wanted - found, found - wanted
    return [
        f"{kind}: {sum(part.values())} {what}: {sorted(part.items(), key=repr)[:5]}"
        for what, part in (("missing", missing), ("too many", more))
        if part
    ]


def judge_items(group: Group) -> list[str]:
    lines = collect(group, "items").read_bytes().splitlines()
    wanted = Counter(url for url, document in reached(group) if document.kind == "page")
    return differs("items", Counter(json.loads(line)["url"] for line in lines), wanted)


def judge_links(group: Group) -> list[str]:
    graph, wanted = group.web.graph, Counter[object]()
    for url, document in reached(group):
        if document.kind == "page":
            wanted.update(
                (str(canonical_form(url)), str(canonical_form(graph.url(link))), "0") for link in graph.links(document)
            )
        elif document.kind == "redirect":
            wanted[str(canonical_form(url)), str(canonical_form(graph.url(graph.target(document)))), "2"] += 1
    found = Counter[object]()
    for line in collect(group, "links").read_text(encoding="utf-8").splitlines():
        page, to, _, kind, _ = line.split("\t")
        found[str(canonical_form(page)), str(canonical_form(to)), kind] += 1
    return differs("links", found, wanted)


def judge_warc(group: Group) -> list[str]:
    """Each document's response, once, with its body; a revisit has that of the record that it names."""
    graph, bodies, found = group.web.graph, dict[str, bytes](), list[tuple[str, str, bytes]]()
    wanted, texts = Counter[object](), {"redirect": b"over there\n", "missing": b"gone\n"}
    for url, document in reached(group):
        text = graph.html(document).encode() if document.kind == "page" else texts[document.kind]
        wanted[url, text] += 1
    for record in members.records(collect(group, "warc").read_bytes()):
        if record.kind in ("response", "revisit"):
            bodies[record.id] = record.payload
            found.append((record.fields["WARC-Target-URI"], record.fields.get("WARC-Refers-To", ""), record.payload))
    pages = [row for row in found if not row[0].endswith("/robots.txt")]
    return differs("warc", Counter((url, bodies[of] if of else body) for url, of, body in pages), wanted)


def judge_graph(group: Group) -> list[str]:
    name = str(collect(group, "graph"))
    arcs = arcs_of({ending: Path(name + ending).read_bytes() for ending in (files.URLS, files.ARCS)})
    return differs("graph", Counter(arcs), Counter(referee(group.web.graph, group.truth)))


@pytest.mark.parametrize("number", range(RUNS))
def test_each_page_has_its_outputs_once_after_kills_a_join_and_a_leave(make_group: MakeGroup, number: int) -> None:
    seed = SEED + number
    print(f"OUTPUT_SEED={seed} pytest -m faults tests/faults/test_all_outputs.py")
    draws = random.Random(seed)
    group = make_group(hosts=20, pages=240, latency=draws.choice((0.01, 0.03)), **SETTINGS)
    faults = Faults(group, draws)
    faults.run()
    with ThreadPoolExecutor(2) as threads:
        found = threads.map(lambda judge: judge(group), (judge_items, judge_links, judge_warc, judge_graph))
    wrong = [*(line for lines in found for line in lines), *faults.judge()]
    assert not wrong, "\n".join([f"OUTPUT_SEED={seed}", "; ".join(faults.told), *wrong])
