"""The score of a link: what UBI_SCORE adds to its priority where it is found.

A score is a whole number. Fish search and the focused crawlers after it (De Bra, 1994; Chakrabarti, 1999) had the idea:
fetch first what the link itself promises. Nothing here imports Scrapy.
"""

from __future__ import annotations

from scrapy_ubi.urls.scores.link_batch import MOST_SCORE, LinkBatch
from scrapy_ubi.urls.scores.score_chain import ScoreChain
from scrapy_ubi.urls.scores.score_table import ScoreTable, read_scores

__all__ = ["MOST_SCORE", "LinkBatch", "ScoreChain", "ScoreTable", "read_scores"]
