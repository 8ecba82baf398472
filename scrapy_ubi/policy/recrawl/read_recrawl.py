"""The rule of a crawl, as UBI_RECRAWL names it.

Rules of this module:

* The text is in the grammar of UBI_FILTERS and UBI_RANK. None and "" are no rule: each page is visited once.
* What is malformed is a `UbiSettingError` at the start that names UBI_RECRAWL and the remedy.
* `str(read_recrawl(text))` is the one text of a rule, by which agents are compared: it reads back to an equal rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

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


def read_recrawl(text: object) -> Rule | None:
    """The rule of UBI_RECRAWL, None for none. Raises UbiSettingError."""
    if text is None or (isinstance(text, str) and not text.strip()):
        return None
    try:
        calls = calls_of(text, "is no rule", EXAMPLE)
        if len(calls) != 1:
            raise FilterError(f"names {len(calls)} rules where one is meant", EXAMPLE)
        make = RULES.get(calls[0].name)
        if make is None:
            raise FilterError(f"names the rule {calls[0].name!r:.50}", f"the rules are {', '.join(sorted(RULES))}")
        return make(calls[0].arguments)
    except FilterError as error:
        raise UbiSettingError(SETTING, f"has {text!r:.200}, which {error.problem}", error.remedy) from error
