"""Makes scrapy_ubi/urls/host_letters.txt: what can_ada takes for letters of host names, asked of it one by one.

    python -m tests.urls.make_host_letters

Not a test that pytest collects: run it when a newer can_ada knows a newer Unicode.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import can_ada
import idna

from scrapy_ubi.urls.whatwg import TABLE

HEADER = """\
# Made by tests/urls/make_host_letters.py of can_ada: ranges of code points (hexadecimal, first-last) by what they are
# in the name of a host. `none`: no part of one. `R`, `AN`, `EN`, `NSM`, `N`: directions as in RFC 5893 (R: also AL;
# N: any other but L, which are not named; `unknown`: none). `mark`: does not begin a label, whatever else it is.
# `mapped`: what becomes of a few, where `idna` knows a newer Unicode.
"""
ALEF, ARABIC_ZERO = "\u05d0", "\u0660"
JOINERS = [0x200C, 0x200D]  # there are rules of their own for these


def host(text: str) -> str | None:
    """What can_ada makes of a host."""
    try:
        return str(can_ada.parse(f"http://{text}/"))[7:-1]
    except ValueError:
        return None


def taken(text: str) -> bool:
    """Whether can_ada takes a host."""
    return host(text) is not None


def kind(letter: str) -> str:
    """What a code point is: '' where there is nothing to be said."""
    between, in_arabic, last = (taken(text) for text in (f"a{letter}b", f"{ALEF}{letter}{ALEF}", f"{ALEF}{letter}"))
    if not between and not in_arabic and not last and not taken(f"a{letter}"):
        return "none"
    if in_arabic and not between:
        with_digit = taken(f"{ALEF}1{letter}{ALEF}")
        return "R" if with_digit else "AN"
    if in_arabic and last:
        with_arabic = taken(f"{ALEF}{ARABIC_ZERO}{letter}{ALEF}")
        if not with_arabic:
            return "EN"
        return "NSM" if with_arabic and not taken(f"{ALEF}!{letter}") else "R"
    if in_arabic:
        return "N"
    return "" if not between or taken(f"a{letter}{ALEF}") else "unknown"


def ranges(points: Iterable[int]) -> str:
    """These code points, ascending, as text."""
    found: list[list[int]] = []
    for point in points:
        if found and found[-1][1] == point - 1:
            found[-1][1] = point
        else:
            found.append([point, point])
    return " ".join(f"{first:x}" if first == last else f"{first:x}-{last:x}" for first, last in found)


def main() -> None:
    """Ask, and write."""
    kinds: dict[str, list[int]] = {name: [] for name in ("none", "R", "AN", "EN", "NSM", "N", "unknown", "mark")}
    kinds["N"] += JOINERS
    mapped = []
    for point in range(0x80, sys.maxunicode + 1):
        letter = chr(point)
        if 0xD800 <= point <= 0xDFFF or point in (*JOINERS, 0x3002, 0xFF0E, 0xFF61):
            continue
        found = kind(letter)
        if found:
            kinds[found].append(point)
        if found == "none":
            continue
        if not taken(letter):
            kinds["mark"].append(point)
        try:
            ours = idna.uts46_remap(f"a{letter}b", std3_rules=False, transitional=False)
        except idna.IDNAError:
            ours = ""
        theirs = host(f"a{letter}b")
        if theirs is not None:
            shown = theirs[4:].encode().decode("punycode") if theirs.startswith("xn--") else theirs
            if shown != ours:
                mapped.append(f"{point:x}:{shown[1:-1].encode('utf-16-be').hex()}")
    lines = [f"{name} {ranges(sorted(points))}\n" for name, points in kinds.items()]
    Path(TABLE).write_text(HEADER + "".join(lines) + f"mapped {' '.join(mapped)}\n", encoding="ascii")


if __name__ == "__main__":
    main()
