"""How a crawl went, as far as this server has seen it itself: a point for each look, for two hours."""

from __future__ import annotations

from collections import deque
from typing import Any

from scrapy_ubi.cli.monitor.document import Document

KEPT = 3_600  # points: two hours of looks
MOST_POINTS = 720  # of an answer


class SeenHistory:
    """Points of one crawl, the oldest first; their values are `page_history.FIELDS`."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, ...]] = deque(maxlen=KEPT)

    def look(self, of: Document) -> None:
        """Note a crawl view."""
        measures: dict[str, Any] = of["measures"]
        totals = measures["totals"]
        failed = sum(measures["failed"].values())
        self._points.append((of["time"], totals["pages"], measures["pages_per_second"], totals["queued"], failed))

    def since(self, time: float) -> tuple[float, list[list[float]]]:
        """Seconds between two points, and the points from this time on, thinned to `MOST_POINTS`."""
        points = [[*point] for point in self._points.copy() if point[0] >= time]
        every = -(-len(points) // MOST_POINTS) or 1
        kept = points[::-1][::every][::-1]
        step = (kept[-1][0] - kept[0][0]) / (len(kept) - 1) if len(kept) > 1 else 0.0
        return round(step, 3), kept
