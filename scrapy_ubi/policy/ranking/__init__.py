"""The order of a host's queue, by all that its pages have taught so far: what UBI_RANK names.

After each iteration of a host (UBI_HOST_ITERATE) a ranker is told of its pages, and asked once for the scores of what
waits: the crawling ranking algorithm (CRA) of the imbWBI crawler (2017). A score of a link where it is found, once, is
another matter (`urls.scores`). Nothing here imports Scrapy.
"""

from __future__ import annotations

from scrapy_ubi.policy.ranking.ranker_contract import RANKED_ROWS, Candidate, Page, PageLink, Ranker
from scrapy_ubi.policy.ranking.rankers import read_rank

__all__ = ["RANKED_ROWS", "Candidate", "Page", "PageLink", "Ranker", "read_rank"]
