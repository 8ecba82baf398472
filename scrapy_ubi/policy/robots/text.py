"""The text of a robots.txt: what RFC 9309 and Google's parser make of its lines, written so that Protego agrees.

Protego, Scrapy's default parser, differs from RFC 9309 in how it groups lines. So the text is taken apart here and put
together again in the plainest form before Protego reads it. Rules of this module:

* Whatever the bytes, there is a result and no exception: lines that are no directive are left out, as RFC 9309 says.
* Only CR, LF and CRLF end a line (RFC 9309, section 2.2); Python's `splitlines` knows more.
* A group is the user-agent lines that follow each other and the rules below them; only `allow` and `disallow` end its
  user-agent lines. Unknown lines, `Crawl-delay` and `Sitemap` do not (section 2.2.4).
* A `Crawl-delay` is that of the user agents that Protego gives it to: those named above it, since the last line that is
  none of theirs.
* A user-agent line fits a user agent as Protego has it: the whole of it, without each `*`, begins a word of the user
  agent. So `User-agent: Mozilla/5.0 (compatible;foobot/1.0)` does not fit all that begin with Mozilla/5.0.
* Google reads such a line up to its first space, and compares that with the product token of the crawler. So where the
  first of several words is a product token, the line fits crawlers with exactly that product (`product`) as well.
* Names of fields that are misspelt, a missing colon: what Protego forgives is forgiven.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
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
    "host": ("host",),
}
_FIELD_OF = {spelling: field for field, spellings in _FIELDS.items() for spelling in spellings}
_MOST_WORDS = max(len(spelling.split()) for spelling in _FIELD_OF)
_UNKNOWN = ""  # the field of a line that is a directive, but none of these
_SHORT = {"disallow": "-", "allow": "+"}
_LONG = {short: field for field, short in _SHORT.items()}
_END_OF_LINE = re.compile(r"[\r\n]+")
_EXOTIC_SPACE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")  # what Protego would split lines at, and NUL


# The product token of a crawler; one that says it is compatible with Mozilla names itself behind that.
_product = re.compile(r"(?!mozilla\b)[a-z_-]+", re.IGNORECASE).match
_compatible = re.compile(r"\bcompatible;\s*([a-z_-]+)", re.IGNORECASE).search
_is_product = re.compile(r"[a-z_-]+").fullmatch


class Block(NamedTuple):
    """What is said to some user agents: tokens in lower case; (field, value) in their order. A token `=foo=` stands for
    crawlers whose product is foo.
    """

    agents: dict[str, None]
    lines: list[tuple[str, str]]


class Group(NamedTuple):
    """The `rules` (allow, disallow) of a group; what else is said is in `paces`, for some of its user agents each."""

    rules: Block
    paces: list[Block]

    def blocks(self) -> list[Block]:
        """All that says something, and the rules in any case: a user agent without rules may fetch everything."""
        return [*(pace for pace in self.paces if pace.lines), self.rules]


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
    open_group = open_pace = False  # whether a user-agent line now joins the last group, the last of its paces
    for line in _END_OF_LINE.split(text):
        found = _directive(line)
        if found is None:
            continue
        field, value = found
        if field in ("sitemap", "host"):
            if field == "sitemap" and value and len(sitemaps) < MOST_SITEMAPS:
                sitemaps.append(value)
        elif field == "user-agent":
            if not open_group:
                groups.append(Group(Block({}, []), []))
            if not open_pace:
                groups[-1].paces.append(Block({}, []))
            open_group = open_pace = True
            for block in (groups[-1].rules, groups[-1].paces[-1]):
                block.agents.update(dict.fromkeys(tokens(value)))
        else:
            open_pace = False
            is_rule = field in ("allow", "disallow")
            open_group = open_group and not is_rule
            if groups and field != _UNKNOWN:
                (groups[-1].rules if is_rule else groups[-1].paces[-1]).lines.append(found)
    _join_products(groups)
    return Robots(groups, sitemaps)


def _join_products(groups: list[Group]) -> None:
    """Let all groups of one product be one: those of lines that Google cuts, and those of the product alone."""
    blocks = [block for group in groups for block in (group.rules, *group.paces)]
    products = {token for block in blocks for token in block.agents if token.startswith("=")}
    for block in blocks if products else ():
        block.agents.update(dict.fromkeys(name for token in list(block.agents) if (name := f"={token}=") in products))


def _directive(line: str) -> tuple[str, str] | None:
    """Field and value of a line, as Protego reads it; None where it is no directive."""
    line = _EXOTIC_SPACE.sub(" ", line[:MOST_LINE].partition("#")[0]).strip()
    name, colon, value = line.partition(":")
    if colon:
        field = _FIELD_OF.get(name.strip().lower())
        if field is not None:
            return field, value.strip()
        if not value or value[0].isspace():
            return _UNKNOWN, ""
    words = line.split()
    for count in range(1, _MOST_WORDS + 1):
        field = _FIELD_OF.get(" ".join(words[:count]).lower())
        if field is not None:
            return field, " ".join(words[count:])
    return (_UNKNOWN, "") if colon else None


def fields(robots: str) -> Iterator[tuple[str, str]]:
    """Field, in lower case, and value of each line that has a colon, as they stand there; those of `User-agent` under
    any name that Protego forgives."""
    for line in _END_OF_LINE.split(robots):
        name, colon, value = _EXOTIC_SPACE.sub(" ", line[:MOST_LINE].partition("#")[0]).partition(":")
        if colon:
            field = name.strip().lower()
            yield _FIELD_OF.get(field, field), value.strip()


def tokens(value: str) -> list[str]:
    """The tokens of a user-agent line; none where it names no crawler."""
    words = value.lower().split()
    if words[:1] == ["*"]:
        return ["*"]
    whole = value.lower().replace("*", "").strip()
    first = words[0].replace("*", "") if len(words) > 1 else ""
    return [token for token in (whole, f"={first}=" if _is_product(first) else "") if token]


def product(agent: str) -> str:
    """The product token of a user agent, in lower case; empty where it names none."""
    agent = agent.strip()
    found = _product(agent)
    if found is not None:
        return found[0].lower()
    found = _compatible(agent) if agent[:7].lower() == "mozilla" else None
    return found[1].lower() if found is not None else ""


def asked_as(agent: str) -> str:
    """What Protego is to be asked about in the place of a user agent, of a text put together here."""
    own = product(agent)
    return f"={own}=\n{agent}" if own else agent


def put_together(robots: Robots) -> str | None:
    """The text of all groups and sitemaps, as Protego reads them right; None where it would make too much of them."""
    blocks = [block for group in robots.groups for block in group.blocks() if block.agents]
    if sum(len(block.agents) * len(block.lines) for block in blocks) > MOST_PAIRS:
        return None
    return "".join(map(_block_text, blocks)) + "".join(f"sitemap:{url}\n" for url in robots.sitemaps)


def reduce(robots: Robots, agent: str) -> str:
    """The text of the rules that concern one user agent, as rules for everybody; empty where none do."""
    blocks = [block for group in robots.groups for block in group.blocks()]
    tokens = {token: None for block in blocks for token in block.agents}  # in their order, as Protego meets them
    asked = asked_as(agent).strip().lower()
    best = max(tokens, key=lambda token: score(token, asked), default="")
    if not best or not score(best, asked):
        return ""
    lines = [line for block in blocks if best in block.agents for line in block.lines if line[1]]
    return _block_text(Block({"*": None}, lines)) if lines else ""


def shorten(reduced: str) -> str:
    """The rules of `reduce` as they travel: `-/path` and `+/path` for disallow and allow; the delay travels apart."""
    lines = (line.partition(":") for line in reduced.split("\n"))
    return "\n".join(_SHORT[field] + value for field, _, value in lines if field in _SHORT)


def lengthen(short: str) -> str:
    """What was shortened, as a robots.txt. Lines that are no rules are left out: they may come from another agent."""
    rules = [(_LONG[line[0]], line[1:]) for line in _END_OF_LINE.split(short) if line[:1] in _LONG]
    return _block_text(Block({"*": None}, rules)) if rules else ""


def score(token: str, asked: str) -> int:
    """How well a token fits who asks, in lower case, as Protego scores it: by its length, where it begins a word."""
    if token == "*":
        return 1
    place = asked.find(token)
    while place != -1:
        before = asked[place - 1 : place]
        if not (before.isalnum() or before in ("-", "_")):
            return len(token)
        place = asked.find(token, place + 1)
    return 0


def _block_text(block: Block) -> str:
    lines = [f"user-agent:{agent}" for agent in block.agents] + [f"{field}:{value}" for field, value in block.lines]
    return "\n".join(lines) + "\n"
