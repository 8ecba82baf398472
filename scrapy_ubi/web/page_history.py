"""How a crawl went, for a page: the timelines of its agents as one, as points of few fields."""

from __future__ import annotations

import argparse

from scrapy.settings import BaseSettings

from scrapy_ubi.commands.crawl_history import history
from scrapy_ubi.monitor.document import Document

FIELDS = ("time", "pages", "pages_per_second", "queued", "failed")
MOST_POINTS = 360
FEW_POINTS, MANY_AGENTS = 60, 100  # of more agents than that fewer points are asked for
MOST_EVENTS = 200  # the newest


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
        "points": [[begin + number * step, *row] for number, row in enumerate(rows)],
        "events": [_event(one) for one in made["events"][-MOST_EVENTS:]],
        "missing": made["missing"],
    }


def _event(of: Document) -> Document:
    why = f" ({of['why']})" if of["why"] else ""
    who = f" agent {of['who']}" if of["who"] else ""
    return {"time": of["time"], "what": of["what"], "agent": of["who"] or None, "text": f"{of['what']}:{who}{why}"}
