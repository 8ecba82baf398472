"""The rules of a robots.txt about what pages may be used for (draft-ietf-aipref-attach), beside those of `text`.

Rules of this module:

* The group is the one whose user-agent line fits best, as for `Disallow`; of its rules that with the longest path that
  fits a URL holds, and of several with the same path all.
* `Content-Usage: /path train-ai=n` is the form of the draft. One without a path, as earlier drafts had it, and
  `Content-Signal: ai-train=no` are of the whole site; so is, for everyone, one above all groups.
* They travel as lines of path and statement, within `MOST_USAGE` characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote

from scrapy_ubi.policy.politeness.usage import USAGE, Usage, combined, of_field, of_signal, text_of
from scrapy_ubi.policy.robots import text
from scrapy_ubi.policy.robots.record import MOST_USAGE

MOST_LINES = 1000  # looked at in one robots.txt
MOST_WILD = 20  # asterisks of a path

_READERS = {"content-usage": of_field, "content-signal": of_signal}
_asked = re.compile(r"[^:/?#]+://[^/?#]*([^#]*)").match  # path and query
_escape = re.compile(r"%[0-9a-fA-F]{2}")

Rule = tuple[str, Usage]  # path, statement


def read(robots: str, agent: str) -> str:
    """The rules of this robots.txt for a user agent, as they travel; of too many those that come first."""
    rules = _of_agent(robots, agent)
    lines: list[str] = []
    for path, usage in rules:
        line = f"{path} {text_of(usage)}"
        if sum(map(len, lines)) + len(lines) + len(line) > MOST_USAGE:
            break
        lines.append(line)
    return "\n".join(lines)


def usage_of(rules: str, url: str) -> Usage:
    """What rules, as they travel, say of this URL."""
    asked = _asked(url)
    path = _spelled(asked[1] if asked is not None and asked[1].startswith("/") else f"/{asked[1] if asked else ''}")
    found = [(pattern, statement) for pattern, statement in _lines(rules) if _fits(pattern, path)]
    longest = max((len(pattern) for pattern, _ in found), default=0)
    return combined(of_field(statement) for pattern, statement in found if len(pattern) == longest)


def note(rules: str, url: str, meta: dict[str, object]) -> bool:
    """Let the `meta` of a request say what these rules say of its URL, and nothing where that is nothing. Return
    whether they say something."""
    meta.pop(USAGE, None)
    if rules and (said := usage_of(rules, url)):
        meta[USAGE] = said
    return USAGE in meta


def _lines(rules: str) -> Iterable[tuple[str, str]]:
    for line in rules.split("\n"):
        path, _, statement = line.partition(" ")
        if path.startswith("/"):
            yield path, statement


def _of_agent(robots: str, agent: str) -> list[Rule]:
    """The rules of the group that fits this user agent best, and of none."""
    everyone: list[Rule] = []
    groups: list[tuple[list[str], list[Rule]]] = []
    open_group = False
    for field, value in text.fields(robots):
        if field == "user-agent":
            if not open_group:
                groups.append(([], []))
            groups[-1][0].extend(text.tokens(value))
            open_group = True
        elif field in _READERS:
            open_group = False
            rules = groups[-1][1] if groups else everyone
            if len(rules) < MOST_LINES and (rule := _rule(field, value)) is not None:
                rules.append(rule)
        elif field in ("allow", "disallow"):
            open_group = False
    asked = text.asked_as(agent).strip().lower()
    best = max((token for tokens, _ in groups for token in tokens), key=lambda one: text.score(one, asked), default="")
    if not best or not text.score(best, asked):
        return everyone
    return everyone + [rule for tokens, rules in groups if best in tokens for rule in rules]


def _rule(field: str, value: str) -> Rule | None:
    """The rule of a line; None where it says nothing."""
    path, statement = "/", value
    if value.startswith("/"):
        path, _, statement = value.replace("\t", " ").partition(" ")
    usage = _READERS[field](statement)
    return (_spelled(path), usage) if usage and path.count("*") <= MOST_WILD else None


def _spelled(path: str) -> str:
    """Percent-encoding alike on both sides."""
    quoted = quote(path, safe="!#$%&'()*+,/:;=?@[]~-._")
    return _escape.sub(lambda found: found[0].upper(), quoted)


def _fits(pattern: str, path: str) -> bool:
    """Whether a path with `*`, and `$` at its end, begins this one (RFC 9309, 2.2.3): a look for each part in turn."""
    ends = pattern.endswith("$")
    first, *parts = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    if not parts:
        return not ends or path == first
    *middle, last = parts
    place = len(first)
    for part in middle:
        place = path.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return len(path) - len(last) >= place and path.endswith(last) if ends else path.find(last, place) >= 0
