"""The text of a robots.txt: what RFC 9309 and Google's parser make of its lines, written so that Protego agrees.

Protego, Scrapy's default parser, differs from RFC 9309 in how it groups lines. So the text is taken apart here and put
together again in the plainest form before Protego reads it. Rules of this module:

* Whatever the bytes, there is a result and no exception: lines that are no directive are left out, as RFC 9309 says.
* Only CR, LF and CRLF end a line (RFC 9309, section 2.2); Python's `splitlines` knows more.
* A group is the user-agent lines that follow each other and the rules below them; only `allow` and `disallow` end its
  user-agent lines. Unknown lines, `Crawl-delay` and `Sitemap` do not (section 2.2.4).
* A product token ends at the first space, as Google reads it; a `*` within one is left out, as Protego reads it.
* Misspelt names, a missing colon: what Protego forgives is forgiven.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

MOST_BYTES = 512_000  # read of a robots.txt: 500 KiB, the least that RFC 9309 (section 2.5) asks of a crawler
MOST_LINE = 16_664  # characters of a line that count: eight URLs of the longest kind, as in Google's parser
MOST_SITEMAPS = 100  # of one robots.txt
MOST_PAIRS = 200_000  # of an agent and a rule that Protego is given: it copies a group's rules for each of its agents

_FIELDS = {
    "user-agent": ("user-agent", "useragent", "user agent"),
    "disallow": ("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"),
    "allow": ("allow",),
    "crawl-delay": ("crawl-delay", "crawl delay"),
    "request-rate": ("request-rate", "request rate"),
    "visit-time": ("visit-time", "visit time"),
    "sitemap": ("sitemap", "sitemaps", "site-map"),
}
_FIELD_OF = {spelling: field for field, spellings in _FIELDS.items() for spelling in spellings}
_LINE = re.compile(
    r"({})(?:\s*:|\s)(.*)".format("|".join(sorted(map(re.escape, _FIELD_OF), key=len, reverse=True))),
    re.IGNORECASE | re.DOTALL,
)
_SHORT = {"disallow": "-", "allow": "+"}
_LONG = {short: field for field, short in _SHORT.items()}
_END_OF_LINE = re.compile(r"[\r\n]+")
_EXOTIC_SPACE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")  # what Protego would split lines at, and NUL


class Group(NamedTuple):
    """The rules for some user agents: tokens in lower case; (field, value) in their order."""

    agents: dict[str, None]
    rules: list[tuple[str, str]]


class Robots(NamedTuple):
    """A robots.txt taken apart."""

    groups: list[Group]
    sitemaps: list[str]


def beginning(body: bytes, stopped: bool) -> bytes:
    """As much of a body as counts. What was cut (`stopped`: the rest was not loaded) ends with a whole line."""
    if not stopped and len(body) <= MOST_BYTES:
        return body
    body = body[:MOST_BYTES]
    return body[: max(body.rfind(b"\n"), body.rfind(b"\r")) + 1]


def decode(body: bytes) -> str:
    """The text of a body: UTF-8, without a byte order mark; what is no UTF-8 is left out."""
    return body.decode("utf-8-sig", errors="ignore")


def take_apart(text: str) -> Robots:
    """The groups and sitemaps of a robots.txt."""
    groups: list[Group] = []
    sitemaps: list[str] = []
    open_group = False  # whether a user-agent line now joins the last group
    for line in _END_OF_LINE.split(text):
        found = _directive(line)
        if found is None:
            continue
        field, value = found
        if field == "sitemap":
            if value and len(sitemaps) < MOST_SITEMAPS:
                sitemaps.append(value)
        elif field == "user-agent":
            if not open_group:
                groups.append(Group({}, []))
            open_group = True
            if token := _token(value):
                groups[-1].agents[token] = None
        elif groups:
            open_group = open_group and field not in ("allow", "disallow")
            groups[-1].rules.append((field, value))
    return Robots(groups, sitemaps)


def _directive(line: str) -> tuple[str, str] | None:
    """Field and value of a line, None where it is none that counts."""
    line = _EXOTIC_SPACE.sub(" ", line[:MOST_LINE].partition("#")[0]).strip()
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    return _FIELD_OF[match[1].lower()], match[2].strip()


def _token(value: str) -> str:
    """The product token of a user-agent line, in lower case; empty where there is none."""
    words = value.split()
    token = words[0].lower() if words else ""
    return token if token == "*" else token.replace("*", "")


def put_together(robots: Robots) -> str | None:
    """The text of all groups and sitemaps, as Protego reads them right; None where it would make too much of them."""
    if sum(len(group.agents) * len(group.rules) for group in robots.groups) > MOST_PAIRS:
        return None
    groups = "".join(_group_text(group.agents, group.rules) for group in robots.groups if group.agents)
    return groups + "".join(f"sitemap:{url}\n" for url in robots.sitemaps)


def reduce(robots: Robots, agent: str) -> str:
    """The text of the rules that concern one user agent, as rules for everybody; empty where none do."""
    tokens = {token: None for group in robots.groups for token in group.agents}  # in their order, as Protego meets them
    best = max(tokens, key=lambda token: _score(token, agent), default="")
    if not best or not _score(best, agent):
        return ""
    rules = [rule for group in robots.groups if best in group.agents for rule in group.rules if rule[1]]
    return _group_text(["*"], rules) if rules else ""


def shorten(reduced: str) -> str:
    """The rules of `reduce` as they travel: `-/path` and `+/path` for disallow and allow; the delay travels apart."""
    lines = (line.partition(":") for line in reduced.split("\n"))
    return "\n".join(_SHORT[field] + value for field, _, value in lines if field in _SHORT)


def lengthen(short: str) -> str:
    """What was shortened, as a robots.txt. Lines that are no rules are left out: they may come from another agent."""
    rules = [(_LONG[line[0]], line[1:]) for line in _END_OF_LINE.split(short) if line[:1] in _LONG]
    return _group_text(["*"], rules) if rules else ""


def _score(token: str, agent: str) -> int:
    """How well a token fits a user agent, as Protego scores it: by its length, where it begins a word."""
    if token == "*":
        return 1
    agent = agent.strip().lower()
    place = agent.find(token)
    while place != -1:
        before = agent[place - 1 : place]
        if not (before.isalnum() or before in ("-", "_")):
            return len(token)
        place = agent.find(token, place + 1)
    return 0


def _group_text(agents: Iterable[str], rules: list[tuple[str, str]]) -> str:
    lines = [f"user-agent:{agent}" for agent in agents] + [f"{field}:{value}" for field, value in rules]
    return "\n".join(lines) + "\n"
