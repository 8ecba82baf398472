"""`opic`: the cash that a page has got from those that link to it (Abiteboul, Preda, Cobena: OPIC, 2003), in one host.

Rules of this module:

* The pages of a host have `ALL_CASH` together. It begins with the first page; a page that is loaded gives its cash to
  its links, in equal parts. The score of a candidate is its cash.
* Each page is loaded once. What a loaded page is given, and what one without links has, goes to the *bank* of the host,
  which gives all of it to the next page that is loaded: the virtual page of OPIC, that all pages link to and that links
  to all.
* Cash is not told other hosts: known links are not told to their hosts at all, which is what makes a crawl of many
  agents cheap.
"""

from __future__ import annotations

from collections.abc import Sequence

from scrapy_ubi.policy.ranking.host_tables import MOST_KEYS, HostTables
from scrapy_ubi.policy.ranking.ranker_contract import Candidate, Page
from scrapy_ubi.urls.filters.base import only
from scrapy_ubi.urls.filters.filter_text import Arguments

ALL_CASH = 1_000_000.0  # of a host: 10,000 candidates have 100 on average
_BANK = -1  # in place of a key
_LOADED = -1.0  # in place of cash


class Opic:
    """The cash of pages, by host."""

    def __init__(self, most: int = MOST_KEYS) -> None:
        self._cash: HostTables[float] = HostTables(most)

    @classmethod
    def from_arguments(cls, arguments: Arguments) -> Opic:
        only(arguments)
        return cls()

    def page(self, host: str, page: Page) -> None:
        cash, put = self._cash.get_table(host), self._cash.put
        own = cash.get(page.key, 0.0) if cash else ALL_CASH
        if own == _LOADED:
            return
        own += cash.get(_BANK, 0.0)
        put(cash, _BANK, 0.0)
        put(cash, page.key, _LOADED)
        to = [key for key in dict.fromkeys(link.key for link in page.links) if key != page.key]
        share = own / max(1, len(to))
        rest = 0.0 if to else own
        for key in to:
            before = cash.get(key, 0.0)
            if before == _LOADED:
                rest += share
                continue
            put(cash, key, before + share)
            rest += 0.0 if key in cash else share
        put(cash, _BANK, rest)

    def scores(self, host: str, candidates: Sequence[Candidate]) -> list[float]:
        cash = self._cash.get_table(host)
        return [max(0.0, cash.get(candidate.key, 0.0)) for candidate in candidates]
