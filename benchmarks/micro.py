"""Operations of an agent beside what others do them with: short versions of the benchmarks of the parts, in one table.

    python benchmarks/micro.py [--rounds 5] [--json FILE]

The parts have benchmarks of their own, with more ways and sizes: ring.py, urls.py, links.py, frontier.py, mail.py. This
takes two minutes. Seconds are CPU seconds of this process; ratios can be trusted, less the figures.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import frontier_load
import frontier_ours
import frontier_peers
import links
import mail
import peers_show
import ring
import urls
from rounds import Way, options, save, take_turns
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.statscollectors import MemoryStatsCollector, StatsCollector

from scrapy_ubi.fast.tweaks import LeanStats

PAGES = 250  # whose links are offered to frontiers in a round
Rows = dict[str, dict[str, float | str]]


def of_ring(rounds: int) -> Rows:
    agents = {f"agent{i}": 200 for i in range(16)}
    found = take_turns(ring.lookup_ways(agents, 200, rounds), ring.HOSTS, rounds)
    peer = "uhashring get_node"
    return {
        "ring: the owner of a host met before": row(found, "Ring.owner, met", peer),
        "ring: the owner of a host never met": row(found, "Ring.owner, cold", peer),
    }


def of_urls(rounds: int) -> Rows:
    found = take_turns(urls.ways(urls.usual, rounds), urls.URLS, rounds)
    found["Request and fingerprint"] = found["Scrapy Request(url)"] + found["Scrapy fingerprint(request)"]
    return {
        "URL: its normal form": row(found, "normal_form", "w3lib canonicalize_url"),
        "URL: normal form, partition key and key": row(found, "all three", "Request and fingerprint"),
    }


def of_links(rounds: int) -> Rows:
    rows = {}
    for page, found in links.on_made_pages(rounds, before=False).items():
        size, _, count = page.partition(", ")
        both = {"Scrapy LinkExtractor": found["Scrapy"], "ours": found["UbiLinkExtractor"]}
        rows[f"page of {size} with {count} links: its links"] = row(both, "ours", "Scrapy LinkExtractor")
    return rows


def of_frontier(rounds: int) -> Rows:
    """Nine links in ten are known; pops are followed by what ends a load."""
    with tempfile.TemporaryDirectory(prefix="ubi-micro-") as directory:
        disk = frontier_ours.OnDisk("disk", Path(directory) / "frontier", None)
        scrapy = frontier_peers.Peer("scrapy", Path(directory), None)
        offers, pops, taken = {}, {}, {}
        for name, it in (("disk", disk), ("Scrapy's scheduler", scrapy)):
            web = frontier_load.Web(200, seed=1)
            for seeds in web.seeds(200):
                it.offer(it.make(it.prepare(seeds)))
            turns = [web.pages(PAGES) for _ in range(rounds + 1)]
            prepared = [it.prepare(each) for each in turns]
            offers[name] = offering(it, prepared)
            pops[name] = popping(it)
            taken[name] = it
        count = PAGES * frontier_load.LINKS
        by_offer = take_turns(offers, count, rounds)
        by_pop = take_turns(pops, PAGES, rounds)
    return {
        "frontier: a link offered": row(by_offer, "disk", "Scrapy's scheduler"),
        "frontier: a page popped, and done": row(by_pop, "disk", "Scrapy's scheduler"),
    }


def offering(it: Any, prepared: list[object]) -> Way:
    return lambda turn: it.offer(it.make(prepared[turn]))


def popping(it: Any) -> Way:
    def way(turn: int) -> None:
        left = PAGES
        while left:
            found = it.pop(min(left, 50))
            assert found, "nothing is left to be popped"
            it.finish(found)
            left -= len(found)

    return way


def of_mail(rounds: int) -> Rows:
    found = mail.measure(rounds)
    found["both ends"] = found["tell (the finder, all told)"] + found["take (the owner, all told)"]
    peer = "pickle and back (scrapy-redis)"
    found["text and back"] = found["encode"] + found["decode"]
    return {
        "mail: a URL as text, and read": row(found, "text and back", peer),
        "mail: a URL told and taken, both ends": row(found, "both ends", peer),
    }


def of_stats(rounds: int) -> Rows:
    crawler, times = Crawler(Spider), 20_000

    def by(collector: StatsCollector) -> Way:
        return lambda turn: [collector.inc_value("downloader/request_count") for _ in range(times)]

    ways = {"LeanStats": by(LeanStats(crawler)), "Scrapy's collector": by(MemoryStatsCollector(crawler))}
    found = take_turns(ways, times, rounds)
    return {"UBI_LEAN: a stat counted": row(found, "LeanStats", "Scrapy's collector")}


PARTS: dict[str, Callable[[int], Rows]] = {
    "ring": of_ring,
    "URLs": of_urls,
    "links": of_links,
    "frontier": of_frontier,
    "mail": of_mail,
    "stats": of_stats,
}


def row(found: Mapping[str, float], ours: str, theirs: str) -> dict[str, float | str]:
    return {"ours": found[ours], "peer": theirs, "theirs": found[theirs]}


def measure(rounds: int, say: Callable[[str], None]) -> Rows:
    """Seconds an operation, ours and a peer's."""
    rows: Rows = {}
    for name, part in PARTS.items():
        rows |= part(rounds)
        say(f"micro: {name}")
    return rows


def main() -> None:
    args = options(__doc__, rounds=5)
    rows = measure(args.rounds, lambda text: None)
    peers_show.micro({"seconds": rows})
    save(args.json, {"seconds": rows})


if __name__ == "__main__":
    main()
