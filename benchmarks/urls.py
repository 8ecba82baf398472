"""Normal form, partition key and key of URLs: scrapy_ubi.urls beside w3lib, Scrapy's fingerprint and other parsers.

    python benchmarks/urls.py [--rounds 9] [--json FILE]

`usual` are 20,000 different URLs that are in normal form already, as most links of a page are, half of them with a
query. Of `mixed` one in five is; the others have a fragment, a port and upper case, dot segments, or escapes. All ways
get the same. Of `lossy`, half have what the preset `larm` takes for another spelling: capital letters, runs of slashes,
an index page, a `+`. `fingerprint` is what a duplicate filter of Scrapy computes, here of a Request made outside the
clock; a link that becomes a Request first pays for both.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import can_ada
from rounds import Way, options, save, table, take_turns
from scrapy import Request
from scrapy.utils.request import fingerprint
from w3lib.url import canonicalize_url, safe_url_string

from scrapy_ubi.urls import Normaliser, normal_form, partition_key, url_key
from scrapy_ubi.urls.canonical import canonical_form
from scrapy_ubi.urls.host_rules import read_rules
from scrapy_ubi.urls.normaliser import PRESETS

try:
    import yarl
except ImportError:  # not among the project's dependencies: compared where it is there
    yarl = None  # type: ignore[assignment]

URLS = 20_000


def usual(turn: int) -> list[str]:
    draw = random.Random(turn)
    return [
        f"http://h{draw.randrange(9999):04d}.example/d{i % 7}/p{turn}-{i}.html" + (f"?b={i}&a=1" if i % 2 else "")
        for i in range(URLS)
    ]


def mixed(turn: int) -> list[str]:
    spellings: list[Callable[[str], str]] = [
        lambda url: url,
        lambda url: url + "#top",
        lambda url: url.replace(".example", ".Example:80"),
        lambda url: url.replace("/d", "/x/../d"),
        lambda url: url.replace("/p", "/%70"),
    ]
    return [spellings[i % 5](url) for i, url in enumerate(usual(turn))]


def lossy(turn: int) -> list[str]:
    spellings: list[Callable[[str], str]] = [
        lambda url: url.replace("/p", "/P"),
        lambda url: url.replace("/d", "//d"),
        lambda url: url.replace("/p", "/index.p"),
        lambda url: url.replace("-", "+"),
    ]
    return [url if i % 2 else spellings[i // 2 % 4](url) for i, url in enumerate(usual(turn))]


def link(url: str) -> object:
    """All that is done for a link before it is known whether it is new."""
    normal = canonical_form(url)
    assert normal is not None
    return partition_key(normal), url_key("GET", normal, b"")


def ways(urls: Callable[[int], list[str]], rounds: int) -> dict[str, Way]:
    rounds_urls = [urls(turn) for turn in range(rounds + 1)]
    normal_urls = [[str(normal_form(url)) for url in each] for each in rounds_urls]
    requests = [[Request(url) for url in each] for each in rounds_urls]
    larm = Normaliser(PRESETS["larm"])
    rules = read_rules(["startsWith(www.) =", *(f"synonym(h{i:04d}.example) = h0.example" for i in range(0, 9999, 9))])
    with_rules = Normaliser(PRESETS["safe"], rules)

    def each(do: Callable[[Any], object], of: list[Any] = rounds_urls) -> Way:
        def way(turn: int) -> None:
            for one in of[turn]:
                do(one)

        return way

    found: dict[str, Way] = {
        "normal_form": each(normal_form),
        "partition_key by host": each(partition_key, normal_urls),
        "partition_key by domain": each(lambda url: partition_key(url, "domain"), normal_urls),
        "canonical_form (scrapy)": each(canonical_form),
        "url_key": each(lambda url: url_key("GET", url, b""), normal_urls),
        "url_key(normal_form)": each(lambda url: url_key("GET", normal_form(url) or "", b"")),
        "url_key(canonical_form)": each(lambda url: url_key("GET", canonical_form(url) or "", b"")),
        "all three": each(link),
        "larm": each(larm),
        "url_key(larm)": each(lambda url: url_key("GET", larm(url) or "", b"")),
        "normal_form with rules for hosts": each(with_rules),
        "partition_key with rules for hosts": each(lambda url: partition_key(url, "host", rules), normal_urls),
        "w3lib canonicalize_url": each(canonicalize_url),
        "w3lib safe_url_string": each(safe_url_string),
        "Scrapy Request(url)": each(Request),
        "Scrapy fingerprint(request)": each(fingerprint, requests),
        "can_ada str(parse(url))": each(lambda url: str(can_ada.parse(url))),
        "urllib urlunsplit(urlsplit(url))": each(lambda url: urlunsplit(urlsplit(url))),
    }
    if yarl is not None:
        found["yarl str(URL(url))"] = each(lambda url: str(yarl.URL(url)))
    return found


def main() -> None:
    args = options(__doc__, rounds=9)
    figures: dict[str, dict[str, float]] = {}
    columns = {"usual": usual, "mixed": mixed, "lossy": lossy}
    for column, urls in columns.items():
        for name, seconds in take_turns(ways(urls, args.rounds), URLS, args.rounds).items():
            figures.setdefault(name, {})[column] = seconds
    rows = {name: [f"{row[column] * 1e6:.2f}" for column in columns] for name, row in figures.items()}
    table("microseconds each", [f"{column:>8}" for column in columns], rows)
    ours = figures["url_key(normal_form)"]
    ratios = {name: [f"{row[column] / ours[column]:.1f}" for column in columns] for name, row in figures.items()}
    table("times url_key(normal_form)", [f"{column:>8}" for column in columns], ratios)
    save(args.json, {"seconds_each": figures})


if __name__ == "__main__":
    main()
