"""How a crawl went, for a page, as points of few fields: by the timelines of its agents as one, or by what was seen of
agents that have none."""

from __future__ import annotations

import argparse
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands.crawl_history import history
from scrapy_ubi.cli.monitor.document import Document
from scrapy_ubi.web.crawl_view import WORDS

FIELDS = ("time", "pages", "pages_per_second", "queued", "failed")
MOST_POINTS = 360
AT_ONCE = ("fenced", "unfenced", "blocked", "unblocked")  # what happens to agents together
SAME = 30  # s
MOST_NAMED = 5
FEW_POINTS, MANY_AGENTS = 60, 100  # of more agents than that fewer points are asked for
MOST_EVENTS = 200  # the newest
KEPT = 3_600  # points seen: two hours of looks
MOST_SEEN = 720  # of an answer


def run(settings: BaseSettings, opts: argparse.Namespace) -> Document:
    """The last `minutes` of the crawl, or of `agent`; `agents`: about how many there are. Raises UbiError."""
    points = MOST_POINTS if opts.agents <= MANY_AGENTS or opts.agent else FEW_POINTS
    made = history(settings, opts, 60.0 * opts.minutes, points)
    names, series = FIELDS[1:], made["series"]
    begin, step = made["from"], made["step"]
    rows = zip(*(series[name] for name in names), strict=True) if series else ()
    return {
        "crawl": made["crawl"],
        "source": "agents",
        "step": step,
        "fields": FIELDS,
        "points": _until([[begin + number * step, *row] for number, row in enumerate(rows)], time.time()),
        "events": [shown_event(one) for one in join_events(made["events"])[-MOST_EVENTS:]],
        "missing": made["missing"],
    }


def _until(points: list[list[Any]], now: float) -> list[list[Any]]:
    """The last point of a grid may lie ahead: it is one of now then, with the rate of the time that has passed."""
    if len(points) > 1 and points[-1][0] > now:
        (before, pages, rate, *_), last = points[-2], points[-1]
        passed = now - before
        last[0] = max(now, before)
        last[2] = round(max(0.0, last[1] - pages) / passed, 3) if passed >= 1.0 else rate
    return points


def join_events(events: Sequence[Document]) -> list[Document]:
    """What several agents met within `SAME` seconds, as when Redis is started again, as one event of the crawl."""
    made: list[Document] = []
    latest: dict[str, Document] = {}  # what -> the event that others join
    for one in events:
        known = latest.get(one["what"]) if one["what"] in AT_ONCE else None
        if known is not None and one["time"] - known["time"] <= SAME:
            known["agents"].append(one["who"])
            continue
        made.append(one := {**one, "agents": [one["who"]]})
        latest[one["what"]] = one
    for one in made:
        if len(one["agents"]) > 1:
            shown = ", ".join(one["agents"][:MOST_NAMED])
            more = len(one["agents"]) - MOST_NAMED
            one |= {"who": "", "why": f"{len(one['agents'])} agents: {shown}{f' and {more} more' if more > 0 else ''}"}
    return made


def shown_event(of: Document) -> Document:
    """The event in the words of those that the server has seen by itself; of several agents together, who they are."""
    text = WORDS[of["what"]]
    if "{}" in text:
        text = text.format(of["who"]) if of["who"] else ""
    why = f" ({of['why']})." if text else of["why"]
    return {
        "time": of["time"],
        "what": of["what"],
        "agent": of["who"] or None,
        "text": f"{text.removesuffix('.')}{why}" if of["why"] else text,
    }


class SeenHistory:
    """How a crawl went, as far as this server has seen it itself: a point for each look, for two hours, the oldest
    first; their values are `FIELDS`."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, ...]] = deque(maxlen=KEPT)

    def look(self, of: Document) -> None:
        """Note a crawl view."""
        measures: dict[str, Any] = of["measures"]
        totals = measures["totals"]
        failed = sum(measures["failed"].values())
        self._points.append((of["time"], totals["pages"], measures["pages_per_second"], totals["queued"], failed))

    def since(self, time: float) -> tuple[float, list[list[float]]]:
        """Seconds between two points, and the points from this time on, thinned to `MOST_SEEN`."""
        points = [[*point] for point in self._points.copy() if point[0] >= time]
        every = -(-len(points) // MOST_SEEN) or 1
        kept = points[::-1][::every][::-1]
        step = (kept[-1][0] - kept[0][0]) / (len(kept) - 1) if len(kept) > 1 else 0.0
        return round(step, 3), kept
