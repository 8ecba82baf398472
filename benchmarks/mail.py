"""Mail between agents: what a URL costs on its way from the agent that found it to the one that owns it.

    python benchmarks/mail.py [--rounds 9] [--json FILE]

2,000 new URLs of 400 hosts a round, in letters of up to 500 records, as agents send them. `encode` makes the text of
letters, `decode` reads and validates it whole; `tell` is all that the finder does (a look at the ring, the lane, the
letter as text, its acknowledgement), `take` all that the owner does (decode, merge into its frontier in memory,
custody, the answer). `with a request` are URLs that carry a callback, meta and headers besides; most do not. `ten of a
page` are URLs of which ten in a row have host, depth and request in common, as those that a page links to on its own.

Beside that: what scrapy-redis does with each request on its way through Redis (a dict of it, pickled, and back), and
the bare lists as JSON and back, validated by nobody; and how long the bodies of the letters alone take to be read, by
Python's json and by msgspec where that is installed (decision 0122). Redis and the network are not in here: cost.py
and peers.py have them.

Last, the letters of a crawl of four agents (scale_crawl.py), without copies, with one and with two: what a page's
letters cost to be written and to be read, how much of the reading is JSON, and how many of the entries that an exchange
writes it writes a second time, for another receiver (decision 0165: at best that much of `written` could be saved).
"""

from __future__ import annotations

import json
import pickle
import time
from collections import deque
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from rounds import Way, options, save, table, take_turns
from scale_crawl import Crawl
from scale_group import sharing_views
from scrapy import Request
from scrapy.utils.request import request_from_dict

from scrapy_ubi.protocol import outbound
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.protocol.lane import DISCOVERY, Lane, Letter
from scrapy_ubi.protocol.records import Record
from scrapy_ubi.protocol.wire import decode, encode

URLS, HOSTS, LETTER = 2000, 400, 500
REQUEST = '{"callback":"parse_item","meta":{"category":"shoes","page":3},"headers":{"Referer":["http://h0.example/"]}}'
VIEW = "0" * 16
PAGES = 4000  # of the crawls of four
Fields = dict[str, str]


def two_agents() -> tuple[Agent, Agent, list[str]]:
    """A group of two without copies, and hosts of the second one."""
    crawl = Crawl(2, 0, 0.8, 1)
    one, other = (peer.agent for peer in crawl.peers)
    take(other, tell(one, []))  # seeds that were found by the wrong one
    hosts = [host for i in range(4 * HOSTS) if one.keeping.ring.owner(host := f"www.site-{i}.example") == other.me]
    return one, other, hosts[:HOSTS]


def entries(turn: int, hosts: list[str], request: str = "", together: int = 1) -> list[tuple[str, Entry]]:
    """New URLs, so many in a row of one host, and for each its host."""
    found = []
    for number in range(URLS):
        host = hosts[number // together % len(hosts)]
        key = (turn * URLS + number + 1) * 0x9E3779B97F4A7C15 % (1 << 64)
        url = f"https://{host}/articles/2026/11/a-page-about-{turn}-{number:05}.html"
        found.append((host, Entry(key, url, 3, 0, request)))
    return found


def letters(found: list[tuple[str, Entry]]) -> list[Letter]:
    made = []
    for start in range(0, len(found), LETTER):
        records = [Record(host, 1, entry=entry) for host, entry in found[start : start + LETTER]]
        made.append(Letter(start // LETTER + 1, VIEW, records))
    return made


def written(found: list[tuple[str, Entry]]) -> list[Fields]:
    lane = Lane("store", "other", DISCOVERY, "1")
    return [encode("one", lane, "store", letter) for letter in letters(found)]


def tell(agent: Agent, found: list[tuple[str, Entry]]) -> list[Fields]:
    """All that a finder does; the letters, which are acknowledged as soon as they are there."""
    for host, entry in found:
        agent.discovery.discover(host, entry)
    sent = []
    while len(agent.outbox):
        for receiver, fields in agent.drain(0.0).letters:
            sent.append(fields)
            lane = f"{fields['store']}/{receiver}/{fields['lane']}"
            agent.outbound.answered(lane, json.dumps({"acked": [int(fields["seq"])]}), 0.0)
    return sent


def take(agent: Agent, sent: list[Fields]) -> None:
    """All that an owner does."""
    for fields in sent:
        agent.inbound.receive(decode(fields, agent.me, 100_000, 4096))
    agent.drain(0.0)


def by_pickle(requests: list[Request]) -> list[Request]:
    spider: Any = None
    texts = [pickle.dumps(request.to_dict(spider=spider), protocol=-1) for request in requests]
    return [request_from_dict(pickle.loads(text), spider=spider) for text in texts]  # noqa: S301 - our own, just made


def by_json(rows: list[tuple[str, list[Any]]]) -> object:
    return json.loads(json.dumps(rows, separators=(",", ":")))


def ways(rounds: int) -> dict[str, Way]:
    one, other, hosts = two_agents()
    turns = range(rounds + 1)
    bare = [entries(turn, hosts) for turn in turns]
    rich = [entries(turn, hosts, REQUEST) for turn in turns]
    paged = [entries(turn, hosts, REQUEST, 10) for turn in turns]
    kinds = {"": bare, ", with a request": rich, ", ten of a page": paged}
    made = {kind: [letters(each) for each in found] for kind, found in kinds.items()}
    texts = {kind: [written(each) for each in found] for kind, found in kinds.items()}
    requests = [[Request(entry.url) for _, entry in each] for each in bare]
    rows = [[[host, entry.url, entry.depth] for host, entry in each] for each in bare]
    lane = Lane("store", "other", DISCOVERY, "1")
    told: dict[int, list[Fields]] = {}

    def telling(turn: int) -> None:
        told[turn] = tell(one, bare[turn])

    def each(do: Callable[[Any], object], of: list[Any]) -> Way:
        return lambda turn: [do(item) for item in of[turn]]

    found: dict[str, Way] = {}
    for kind in made:
        found[f"encode{kind}"] = each(lambda letter: encode("one", lane, "store", letter), made[kind])
        found[f"decode{kind}"] = each(lambda fields: decode(fields, "other", 100_000, 4096), texts[kind])
    return found | {
        "tell (the finder, all told)": telling,
        "take (the owner, all told)": lambda turn: take(other, told[turn]),
        "pickle and back (scrapy-redis)": lambda turn: by_pickle(requests[turn]),
        "JSON and back, bare lists": lambda turn: by_json(rows[turn]),
        **{
            f"bodies read by {name}": each(lambda fields, read=read: read(fields["body"]), texts[""])
            for name, read in codecs().items()
        },
    }


def codecs() -> dict[str, Callable[[str], object]]:
    """What can read the body of a letter here."""
    found: dict[str, Callable[[str], object]] = {"json": json.loads}
    if find_spec("msgspec") is not None:
        found["msgspec"] = import_module("msgspec").json.Decoder().decode
    return found


def sizes() -> dict[str, float]:
    """Bytes a URL."""
    _, _, hosts = two_agents()
    bare = entries(0, hosts)
    size = {
        f"letter{kind}": sum(len(text) for fields in written(found) for pair in fields.items() for text in pair) / URLS
        for kind, found in (
            ("", bare),
            (", with a request", entries(0, hosts, REQUEST)),
            (", ten of a page", entries(0, hosts, REQUEST, 10)),
        )
    }
    pickled = [pickle.dumps(Request(entry.url).to_dict(), protocol=-1) for _, entry in bare]
    return {
        **size,
        "URL alone": sum(len(entry.url) for _, entry in bare) / URLS,
        "pickle (scrapy-redis)": sum(map(len, pickled)) / URLS,
    }


class Exchanges:
    """The letters of a crawl, by exchange."""

    def __init__(self, replication: int, pages: int) -> None:
        self.drains: list[list[tuple[str, Lane, str, Letter]]] = []
        self.texts: list[Fields] = []
        real, drain = outbound.encode, outbound.Outbound.letters
        keep = [False]

        def encode(sender: str, lane: Lane, store: str, letter: Letter) -> Fields:
            fields = real(sender, lane, store, letter)
            if keep[0]:
                self.drains[-1].append((sender, lane, store, letter))
                self.texts.append(fields)
            return fields

        def letters(sending: outbound.Outbound, now: float) -> tuple[tuple[str, Fields], ...]:
            self.drains.append([])
            return drain(sending, now)

        outbound.encode, outbound.Outbound.letters = encode, letters  # type: ignore[method-assign]
        try:
            with sharing_views():
                crawl = Crawl(4, replication, 0.75, 1)
                crawl.until(pages // 2)
                self.drains, keep[0] = [], True
                crawl.until(pages // 2 + pages)
        finally:
            outbound.encode, outbound.Outbound.letters = real, drain  # type: ignore[method-assign]
        self.pages = pages

    def figures(self, rounds: int) -> dict[str, float]:
        """Microseconds a page, letters a page, and the share of entries that are written again."""
        letters = [each for drain in self.drains for each in drain]
        texts = self.texts
        ways: dict[str, Callable[[], object]] = {
            "written": lambda: drop(encode(*each) for each in letters),
            "read": lambda: drop(decode(fields, "other", 100_000, 4096) for fields in texts),
            "its JSON": lambda: drop(json.loads(fields["body"]) for fields in texts),
        }
        least = dict.fromkeys(ways, float("inf"))
        for _ in range(rounds):
            for name, way in ways.items():
                begun = time.process_time()
                way()
                least[name] = min(least[name], time.process_time() - begun)
        said = [[key for _, _, _, letter in drain for key in keys_of(letter)] for drain in self.drains]
        every = sum(map(len, said))
        figures = {name: 1e6 * seconds / self.pages for name, seconds in least.items()}
        again = every - sum(len(set(keys)) for keys in said)
        return {**figures, "letters": len(letters) / self.pages, "again": again / every}


def drop(each: Iterable[object]) -> None:
    """Do it all and keep nothing, as who receives letters."""
    deque(each, maxlen=0)


def keys_of(letter: Letter) -> list[int]:
    """The entries whose text a letter has."""
    entries = [record.entry.key for record in letter.records if record.entry is not None]
    redos = [record.redo for record in letter.records if record.redo is not None]
    return entries + [entry.key for redo in redos for _, entry in redo.outlinks]


def measure(rounds: int) -> dict[str, float]:
    """Seconds a URL each way."""
    return take_turns(ways(rounds), URLS, rounds)


def main() -> None:
    args = options(__doc__, rounds=9)
    seconds = measure(args.rounds)
    table("microseconds a URL", ["        "], {name: [f"{each * 1e6:.2f}"] for name, each in seconds.items()})
    found = sizes()
    table("bytes a URL", ["        "], {name: [f"{each:.0f}"] for name, each in found.items()})
    crawls = {f"t = {copies}": Exchanges(copies, PAGES).figures(args.rounds) for copies in (0, 1, 2)}
    columns = ["us written", "us read", "us its JSON", "letters", "entries written again"]
    rows = {name: [f"{figure:.3g}" for figure in each.values()] for name, each in crawls.items()}
    table("letters of a crawl of four, a page", [f"{column:>12}" for column in columns], rows)
    save(args.json, {"seconds_a_url": seconds, "bytes_a_url": found, "crawls": crawls})


if __name__ == "__main__":
    main()
