"""Near duplicates on real documentation: precision and recall of `near(3)`, site by site.

    python benchmarks/real_duplicates.py [--pages 1000] [--planted 150] [--seed 1] [--json FILE] [DIRECTORY ...]

The sites are found on this machine (documentation.py says where), or in the directories given. Of each, at most
`--pages` pages are judged in an order that the seed draws, as a crawl judges them, and among them copies of `--planted`
pages that have 50 words at least: with 1, 2 or 3 words of a hundred replaced all over the page, and another line of
navigation and script before the content. One found counts whichever page of the site it is said to be of.

*recall* is the share of planted copies that are found. *precision* is the share of all pages judged near, planted and
natural ones, that really are near the page they are said to be of: by an alignment of their words, at most 4 of a
hundred differ (and 2 words more than 3 of a hundred, of short pages), or three times as many where they are in one
piece, as docs/how-to/duplicates.md says. The aims are 0.95 and 0.99.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

from documentation import Site, default_places, find_sites
from rounds import save, table
from scrapy import Request
from scrapy.http import HtmlResponse

from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.outputs.duplicates.judge import Judge, fingerprint
from scrapy_ubi.outputs.duplicates.sketch import FEWEST, SHINGLE
from scrapy_ubi.outputs.page_text import content_of

NEAR = 3
SMALLEST = 100  # pages of a site
LONGEST = 6_000  # words of a page: longer ones take an alignment minutes
_WORD = re.compile(rb"(?<=[ \n>])[A-Za-z]{3,}(?=[ .,;\n<])")
_BODY = re.compile(rb"<body[^>]*>", re.IGNORECASE)


class Told(NamedTuple):
    """What one site came to."""

    pages: int
    planted: int
    found: int
    near: int
    wrong: int
    natural: int


def planted(body: bytes, chance: random.Random) -> bytes:
    """A copy with 1 to 3 of a hundred words replaced, and other surroundings."""
    start = found.end() if (found := _BODY.search(body)) else 0
    head, rest = body[:start], body[start:]
    words = [match.span() for match in _WORD.finditer(rest) if not _is_inside_tag(rest, match.start())]
    chosen = sorted(chance.sample(words, len(words) * chance.choice((1, 2, 3)) // 100), reverse=True)
    for begin, end in chosen:
        rest = rest[:begin] + b"".join(chance.choices((b"qua", b"ne", b"lor", b"ti"), k=3)) + rest[end:]
    stamp = chance.randrange(10**9)
    return head + b"<nav>Seen %d times today</nav><script>var s=%d;</script>" % (stamp, stamp) + rest


def _is_inside_tag(text: bytes, at: int) -> bool:
    return text.rfind(b"<", 0, at) > text.rfind(b">", 0, at)


def words(body: bytes) -> list[str]:
    return re.findall(r"\w+", content_of(HtmlResponse("http://h.example/", body=body, encoding="utf-8")).text.lower())


def is_near(one: list[str], other: list[str]) -> bool:
    """Whether as few words differ as the rule allows."""
    most = max(len(one), len(other))
    allowed = most * NEAR / 100 + max(most / 100, 2)
    blocks = [
        max(end - begin, last - first)
        for what, begin, end, first, last in SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
        if what != "equal"
    ]
    # A block of changed words changes as many shingles and two; a word alone changes three.
    return sum(min(length + SHINGLE - 1, SHINGLE * length) for length in blocks) <= SHINGLE * allowed


def judged(site: Site, args: argparse.Namespace, chance: random.Random) -> Told:
    numbers = chance.sample(range(len(site.paths)), min(args.pages, len(site.paths)))
    bodies = {f"http://h.example/{number}": site.body(number) for number in numbers}
    able = [url for url, body in bodies.items() if _is_able(body)]
    for url in chance.sample(able, min(args.planted, len(able))):
        bodies[f"{url}?copy"] = planted(bodies[url], chance)
    judge, said = Judge(NEAR, "mark", lambda name: None, lambda what, host: None), {}
    order = [*bodies]
    chance.shuffle(order)
    for url in order:
        request = Request(url)
        flight = Flight(request, None)
        judge.judge(flight, HtmlResponse(url, body=bodies[url], encoding="utf-8", request=request))
        said[url] = judge.judged.get(flight)
    copies = [url for url in order if url.endswith("?copy")]
    # Whichever of both came first, the other one is the copy.
    found = sum(bool(said[url].kind or said[url.removesuffix("?copy")].kind) for url in copies)
    near = [url for url, one in said.items() if one.kind == "near"]
    looked = [url for url in near if said[url].words <= LONGEST]
    wrong = [url for url in looked if not is_near(words(bodies[url]), words(bodies[said[url].of]))]
    for url in wrong[:3]:
        print(f"  wrong: {site.paths[_number(url)]} of {site.paths[_number(said[url].of)]}", file=sys.stderr)
    pairs = {url.removesuffix("?copy") for url in copies}
    natural = sum(url.removesuffix("?copy") not in pairs for url in near)
    return Told(len(numbers), len(copies), found, len(looked), len(wrong), natural)


def _number(url: str) -> int:
    return int(url.removesuffix("?copy").rpartition("/")[2])


def _is_able(body: bytes) -> bool:
    made = fingerprint(HtmlResponse("http://h.example/", body=body, encoding="utf-8"), near=True)
    return not made.why and FEWEST <= made.words <= LONGEST


def _row(one: Told) -> list[str]:
    recall, precision = _share(one.found, one.planted), _share(one.near - one.wrong, one.near)
    return [str(one.pages), str(one.planted), recall, str(one.near), str(one.natural), precision]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", type=Path, nargs="*", metavar="DIRECTORY", help="where sites are looked for")
    parser.add_argument("--pages", type=int, default=1000, help="pages of a site, at most (%(default)s)")
    parser.add_argument("--planted", type=int, default=150, help="copies that are added (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn (%(default)s)")
    parser.add_argument("--sites", type=int, default=100, help="how many sites, at most (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    args = parser.parse_args()
    sites = find_sites(args.directories or default_places())
    if not sites:
        sys.exit("There is no documentation here: name directories of HTML.")
    told: dict[str, Told] = {}
    for name, root in [*sites.items()][: args.sites]:
        site = Site(root)
        if len(site.paths) < SMALLEST:  # a part of another one: its front page leads out of it
            continue
        told[name] = judged(site, args, random.Random(f"{args.seed} {name}"))
        print(name, told[name], flush=True)
    told["all"] = Told(*(sum(column) for column in zip(*told.values(), strict=True)))
    rows = {name: _row(one) for name, one in told.items()}
    table(f"near({NEAR}), seed {args.seed}", ["pages", "planted", "recall", "near", "natural", "precision"], rows)
    save(args.json, {"seed": args.seed, "sites": {name: one._asdict() for name, one in told.items()}})


def _share(part: int, of: int) -> str:
    return f"{part / of:.3f}" if of else "-"


if __name__ == "__main__":
    main()
