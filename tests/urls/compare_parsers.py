"""Normal forms by can_ada and by what stands in for it, of made-up URLs: the same, to the byte.

    python -m tests.urls.compare_parsers [--count 2000000] [--seed 1]

Half of the texts are made of `laws.TOKENS` and letters of all scripts, the others are URLs of which some characters
were put in, taken out or changed. `test_whatwg.py` compares some thousand of them at each run.
"""

from __future__ import annotations

import argparse
import random
import sys
import unicodedata
from collections.abc import Iterator

import can_ada

from scrapy_ubi.urls import normal, whatwg
from tests.urls.laws import TOKENS

HOSTS = """h.example www.example.com EXAMPLE.de bücher.de faß.de ελληνικά.gr россия.рф 日本語.jp مثال.إختبار דוגמה.קום
xn--bcher-kva.de xn--p1ai xn--fa-hia.de xn--zca 127.0.0.1 0x7f.1 017700000001 1.2.3 256.256.256.256 4294967295
[::1] [2001:DB8:0:0:1::] [::ffff:1.2.3.4] [1:2:3:4:5:6:7::] a_b.c-d.e h. 1.2.3.4. क्‍ष.भारत नी‌.com ab--cd.de""".split()
PATHS = r"""
/ /a/b /a/./b /a/../b /a/%2e%2E/b /.x/../y /a//b/ /ä/ö /a%zz /%7Euser /a;b=c /a|b /`^{}[] /a'b"c /.. /%2e /a/.
""".split()
QUERIES = ["", "?", "?a=1", "?ä=ß&b", "?a='\"<>`", "?x=%ff%FF", "?[]{}|^\\", "?a=1?b=2"]
FRAGMENTS = ["", "#", "#f", '#ä`<>"', "#a#b"]
USERS = ["", "", "", "u@", "u:p@", ":@", "u:@", ":p@", "a@b:c:d@", "ü:ß@", "a;b=c|[]^@"]
PORTS = ["", "", ":", ":80", ":443", ":0080", ":65535", ":65536", ":8a", ":8080"]
OLDEST = 0x3134F  # the last letter of a plane that every Python knows


def letter(draw: random.Random) -> str:
    """A letter of any script; many of hosts, marks and directions."""
    while True:
        found = chr(draw.choice((draw.randrange(0x80), draw.randrange(0x3000), draw.randrange(OLDEST))))
        if unicodedata.category(found) not in ("Cn", "Cs", "Co"):
            return found


def made_up(draw: random.Random) -> str:
    """A text that looks like a URL."""
    if draw.random() < 0.5:
        middle = "".join(
            draw.choice((draw.choice(TOKENS), letter(draw), draw.choice("abz019.-")))
            for _ in range(draw.randrange(1, 12))
        )
        return draw.choice(("http://", "https://", "HTTPS://")) + middle
    parts = [draw.choice(part) for part in (USERS, HOSTS, PORTS, PATHS, QUERIES, FRAGMENTS)]
    text = list(draw.choice(("http://", "https://")) + "".join(parts))
    for _ in range(draw.randrange(4)):
        at = draw.randrange(7, len(text) + 1)
        text[at : at + draw.randrange(2)] = draw.choice(("", letter(draw), draw.choice(TOKENS), draw.choice("./:@%-0")))
    return "".join(text)


def by(parser: object, text: str) -> str | None:
    """The normal form of a text, with that parser."""
    before = normal.parse_url
    normal.parse_url = parser  # type: ignore[assignment]
    try:
        return normal.by_steps(text, look=False)
    finally:
        normal.parse_url = before


def differing(draw: random.Random, count: int) -> Iterator[tuple[str, str | None, str | None]]:
    """Of so many texts those with two normal forms, and these."""
    for _ in range(count):
        text = made_up(draw)
        one, other = by(can_ada.parse, text), by(whatwg.parse, text)
        if one != other:
            yield text, one, other


def main() -> None:
    """Compare, and say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=1)
    opts = parser.parse_args()
    found = 0
    for found, (text, one, other) in enumerate(differing(random.Random(opts.seed), opts.count), 1):
        if found <= 50:
            print(ascii(text), one, other, flush=True)
    print(f"{opts.count:,} URLs, {found} with two normal forms")
    sys.exit(found > 0)


if __name__ == "__main__":
    main()
