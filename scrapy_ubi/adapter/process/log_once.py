"""Warnings that are said once: a crawl meets the same trouble a million times."""

from __future__ import annotations

import logging

logger = logging.getLogger("scrapy_ubi")


MOST = 1000  # kinds of things, as some are named by pages


class Notices:
    """Says each kind of thing once in a process's crawl; the stats count the rest."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def once(self, kind: str, sentence: str, level: int = logging.WARNING) -> None:
        """Warn with `sentence`, or log it at another level, unless something of this kind was said before,
        or too many kinds were."""
        if kind not in self._said and len(self._said) < MOST:
            self._said.add(kind)
            logger.log(level, "%s (Shown once.)", sentence)
