"""The history of a crawl, from living agents or from the directories of those that have stopped."""

from __future__ import annotations

import argparse
import time
from typing import NamedTuple

from scrapy.settings import BaseSettings

from scrapy_ubi.agent.report.host_answers import MOST_ROWS
from scrapy_ubi.agent.report.queries import HISTORY, Question
from scrapy_ubi.cli.commands.query import Gathered, gather
from scrapy_ubi.cli.monitor.document import Document
from scrapy_ubi.cli.monitor.merged_history import History, document, merged


class GatheredHistory(NamedTuple):
    """A history, and who has told it."""

    history: History
    told: Gathered


def gather_history(
    settings: BaseSettings, opts: argparse.Namespace, span: float = 0.0, points: int = 360
) -> GatheredHistory:
    """The history of the last `span` seconds (0: of all), with so many times at most. Raises UbiError."""
    asked = Question(HISTORY, 0.0, agent=opts.agent or "", span=span, limit=max(1, min(points, MOST_ROWS)))
    found = gather(settings, opts, lambda group: asked)
    now = time.time() if found.lives else None
    return GatheredHistory(merged(found.answers.by_agent, points, now), found)


def history(settings: BaseSettings, opts: argparse.Namespace, span: float = 0.0, points: int = 360) -> Document:
    """The history of the last `span` seconds as a document. Raises UbiError."""
    found = gather_history(settings, opts, span, points)
    return {**found.told.document(), **document(found.history)}
