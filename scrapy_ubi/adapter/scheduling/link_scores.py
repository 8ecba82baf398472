"""The scores of links between Scrapy's requests and the frontier: whose priority they change, and when.

Rules of this module:

* A score is added to the priority where the link is found, once, before anything is decided of it. From then on it is
  part of the priority: it travels with the link, orders its host's queue, and is `request.priority` of what is fetched.
* Scored are what pages yield, as requests or plain links, and seeds. Not scored are retries and redirects, whose
  priority has the score of the request that they are made of, and what callbacks yield with `dont_filter=True`: these
  are often copies of their page's request, and would gain its score each time.
* The text of a link is known where its request or plain link says it: `link_text` in the meta (CrawlSpider's rules),
  `anchors` or `link_texts` of plain links.
* Errors of the user's scorers are counted with a reason, and said once for each.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from scrapy import Request

from scrapy_ubi.adapter.extraction.plainlinks import PlainLinks
from scrapy_ubi.adapter.requests.codec import depth_of
from scrapy_ubi.adapter.scheduling.stat_buffer import StatBuffer
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.urls.canonical import usual_parts
from scrapy_ubi.urls.scores import LinkBatch, ScoreChain
from scrapy_ubi.urls.scores.link_batch import Scorer
from scrapy_ubi.urls.scores.score_table import FileScore, ScoresRead

logger = logging.getLogger("scrapy_ubi")

_LONGEST = 10_000  # characters of a link that is made safe to be scored: for a page full of longer ones that takes long


class LinkScores:
    """The scorers of one agent's settings. `now` is unix time."""

    def __init__(self, chain: ScoreChain, stats: StatBuffer, now: Callable[[], float] = time.time) -> None:
        self._chain = chain
        self._count = stats.count
        self._now = now
        self._said: set[str] = set()
        chain.on_error = self._failed

    @classmethod
    async def from_settings(cls, settings: UbiSettings, stats: StatBuffer) -> LinkScores | None:
        """None where UBI_SCORE is not set. Files are read in a thread. Raises UbiSettingError."""
        if not settings.score:
            return None
        chain = ScoreChain.read(settings.score)
        for file in (scorer.score for scorer in chain.scorers if isinstance(scorer.score, FileScore)):
            read, found = await asyncio.to_thread(file.read, settings.normaliser().function)
            _tell(found, read, stats, file.path)
        return cls(chain, stats)

    def raise_request(self, request: Request, page: str) -> None:
        """Add its score to a request found on `page`, "" for a seed."""
        text = request.meta.get("link_text")
        anchor = text if isinstance(text, str) else ""
        links = LinkBatch((request.url,), (anchor,), depth_of(request), page, self._now())
        request.priority += self._chain.scores(links)[0]

    def of_links(self, plain: PlainLinks, start: int, stop: int, depth: int, page: str) -> list[int]:
        """The scores of some plain links, found so deep on `page`."""
        urls = [_as_requested(url) for url in plain.urls[start:stop]]
        anchors = _anchors(plain, start, stop) or [""] * len(urls)
        return self._chain.scores(LinkBatch(urls, anchors, depth, page, self._now()))

    def _failed(self, scorer: Scorer, reason: str, error: Exception) -> None:
        """A scorer of the user's failed: it adds nothing to that link's priority."""
        self._count(f"ubi/score/errors/{scorer.name}/{reason}")
        if scorer.name not in self._said:
            self._said.add(scorer.name)
            logger.error(
                "The scorer %.200s failed (%s): it adds nothing to the priority of such links. (Shown once; "
                "ubi/score/errors/%s counts.)",
                scorer.text,
                reason,
                scorer.name,
                exc_info=error,
            )


def _as_requested(url: object) -> str:
    """A plain link as its request would say it, which is what is scored; "" for what is no URL."""
    if not isinstance(url, str):
        return ""
    if len(url) > _LONGEST or (usual_parts(url) is not None and "/." not in url):
        return url
    try:
        return Request(url).url
    except ValueError:
        return ""


def _anchors(plain: PlainLinks, start: int, stop: int) -> Sequence[str]:
    texts = plain.anchors or plain.link_texts
    return [text if isinstance(text, str) else "" for text in texts[start:stop]]


def _tell(found: ScoresRead, read: int, stats: StatBuffer, path: Path) -> None:
    """Say what was read of a file of scores."""
    stats.sums["ubi/scores/read"] += read
    for reason, lines in found.refused.items():
        stats.sums[f"ubi/scores/refused/{reason}"] += lines
    logger.info("UBI_SCORE: %d scores of URLs are read from %s.", read, path)
    if found.refused:
        number, reason = found.first
        logger.warning(
            "UBI_SCORE: %d of %d lines are left out (ubi/scores/refused/... counts them by reason)%s.",
            found.refused.total(),
            found.lines,
            f", the first is line {number} ({reason})" if number else "",
        )
