"""Which settings of a running crawl can be changed (`scrapy ubi set`), Scrapy's own among them, and why others cannot.

A setting is *live* when its declaration says so: of the crawl, or of a host as well. Rules of this module:

* A live setting has no relation to another setting: whether a value holds is judged by its row alone, so that all
  agents judge it alike, whatever else they have taken in.
* What decides who owns a URL, which URLs are one, or who is alive is never live: agents that take a change a second
  apart would disagree in the meantime.
* Scrapy's settings that are live are described here, as declarations do it. They are read nowhere else so.
"""

from __future__ import annotations

from collections.abc import Mapping

from scrapy_ubi.settings.declarations import FORMER, GONE, SETTINGS
from scrapy_ubi.settings.declare import Agree, Setting

SCRAPYS: tuple[Setting, ...] = (
    Setting(
        "concurrent_requests",
        "int",
        16,
        "How many requests an agent has under way at once, of all hosts together.",
        low=1,
        high=100_000,
        live="crawl",
        prefix="",
    ),
    Setting(
        "download_timeout",
        "seconds",
        180.0,
        "How long the load of a page, or of a file, may take.",
        above=0,
        high=86_400,
        live="crawl",
        prefix="",
    ),
    Setting(
        "log_level",
        "choice",
        "DEBUG",
        "From which level on the log of an agent's process says something.",
        choices=("CRITICAL", "ERROR", "WARNING", "INFO", "DEBUG"),
        live="crawl",
        prefix="",
    ),
)

_ROWS: Mapping[str, Setting] = {row.setting: row for row in (*SETTINGS, *SCRAPYS)}
LIVE: Mapping[str, Setting] = {name: row for name, row in _ROWS.items() if row.live}

_ALIVE = "it decides when an agent counts as dead, and agents that judge each other must not change it one by one"
_ONCE = "it is read once, when an agent starts: set it in settings.py, and start the agents again one after the other"
_AGREE: Mapping[Agree, str] = {
    "ownership": "it decides which agent owns a host, so all agents must have the same from the start",
    "urls": "it decides which URLs are one, and the URLs known so far have their keys by it",
    "mail": "agents that send each other letters must agree on it",
    "visits": "it decides when all agents visit a page again, so all must have the same from the start",
    "end": "it decides when the crawl ends, so all agents must have the same from the start",
    "": _ONCE,
}
_WHY: Mapping[str, str] = {
    **dict.fromkeys(("capacity", "agent_id"), _AGREE["ownership"]),
    "seen": _AGREE["urls"],
    **dict.fromkeys(("heartbeat_interval", "lease_timeout", "failure_timeout"), _ALIVE),
    "host_concurrency": (
        "loads of a host are counted from the start on, or not at all: set it in settings.py, then start again"
    ),
}


def why_not_live(name: str) -> str:
    """Why this setting of the table cannot be changed while a crawl runs; empty when it can, or is none."""
    if name in GONE:
        return f"it is no setting any more: {GONE[name]}"
    if name in FORMER:
        return "it is the former name of a limit: set {}, for example '{}=500'".format(*FORMER[name])
    row = _ROWS.get(name)
    if row is None or row.live:
        return ""
    return _WHY.get(row.name, _AGREE[row.agree])
