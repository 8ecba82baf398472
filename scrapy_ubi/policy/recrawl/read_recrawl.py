"""The rule of a crawl, as UBI_RECRAWL names it.

Rules of this module:

* The text is in the grammar of UBI_FILTERS and UBI_RANK. None and "" are no rule: each page is visited once.
* What is malformed is a `UbiSettingError` at the start that names UBI_RECRAWL and the remedy.
* `str(read_recrawl(text))` is the one text of a rule, by which agents are compared: it reads back to an equal rule.
* Whatever the rule, `rounds` and `call` may stand among its arguments (`Revisits`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.policy.recrawl.budget import Budget
from scrapy_ubi.policy.recrawl.intervals import Adaptive, Every, NewOnly, nutch, stormcrawler
from scrapy_ubi.policy.recrawl.rule_contract import Rule
from scrapy_ubi.policy.recrawl.sitemap_rule import Sitemap
from scrapy_ubi.urls.filters.filter_text import Arguments, FilterError, calls_of

SETTING = "UBI_RECRAWL"
RULES: Mapping[str, Callable[[Arguments], Rule]] = {
    "every": Every.from_arguments,
    "adaptive": Adaptive.from_arguments,
    "nutch": nutch,
    "stormcrawler": stormcrawler,
    "budget": Budget.from_arguments,
    "sitemap": Sitemap.from_arguments,
    "new": NewOnly.from_arguments,
}
EXAMPLE = "give one rule, such as 'every(1d)', 'adaptive(1d, 1h, 30d)' or 'budget(1000/h, 1h, 30d)'"


MOST_ROUNDS = 1_000_000
CALLS = ("changed", "always")


class Revisits(NamedTuple):
    """A rule, None for none; `rounds`: how often each page is visited again at most, before the crawl ends, None:
    there is no end; `always`: whether the callback is called for a page that is as at its last visit."""

    rule: Rule | None = None
    rounds: int | None = None
    always: bool = False


def read_recrawl(text: object) -> Rule | None:
    """The rule of UBI_RECRAWL, None for none. Raises UbiSettingError."""
    return read_revisits(text).rule


def read_revisits(text: object) -> Revisits:
    """What UBI_RECRAWL asks for. Raises UbiSettingError."""
    if text is None or (isinstance(text, str) and not text.strip()):
        return Revisits()
    try:
        calls = calls_of(text, "is no rule", EXAMPLE)
        if len(calls) != 1:
            raise FilterError(f"names {len(calls)} rules where one is meant", EXAMPLE)
        make = RULES.get(calls[0].name)
        if make is None:
            raise FilterError(f"names the rule {calls[0].name!r:.50}", f"the rules are {', '.join(sorted(RULES))}")
        arguments = dict(calls[0].arguments)
        rounds, call = arguments.pop("rounds", None), arguments.pop("call", CALLS[:1])
        if len(call) != 1 or call[0] not in CALLS:
            raise FilterError(f"has call={', '.join(call):.50}", f"give {' or '.join(CALLS)}")
        return Revisits(make(arguments), _rounds(rounds) if rounds is not None else None, call[0] == "always")
    except FilterError as error:
        raise UbiSettingError(SETTING, f"has {text!r:.200}, which {error.problem}", error.remedy) from error


def _rounds(texts: tuple[str, ...]) -> int:
    if len(texts) == 1 and texts[0].isdecimal() and 1 <= (rounds := int(texts[0])) <= MOST_ROUNDS:
        return rounds
    raise FilterError(f"has rounds={', '.join(texts):.50}", f"give a whole number of 1 to {MOST_ROUNDS}")
