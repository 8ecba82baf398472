"""Which settings of a running crawl can be changed (`scrapy ubi set`), Scrapy's own among them, and why others cannot.

A setting is *live* when its row says so (`Setting.live`): of the crawl, or of a host as well. Rules of this module:

* A live setting has no relation to another setting: whether a value holds is judged by its row alone, so that all
  agents judge it alike, whatever else they have taken in.
* What decides who owns a URL, which URLs are one, or who is alive is never live: agents that take a change a second
  apart would disagree in the meantime.
* Scrapy's settings that are live have rows here. They are read nowhere else by this package's table.
"""

from __future__ import annotations

from collections.abc import Mapping

from scrapy_ubi.settings_table import cluster, delivery, host_load, limits, pages
from scrapy_ubi.settings_table.row import Setting

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

_ROWS: Mapping[str, Setting] = {
    row.setting: row for row in (*cluster.ROWS, *host_load.ROWS, *delivery.ROWS, *limits.ROWS, *pages.ROWS, *SCRAPYS)
}
LIVE: Mapping[str, Setting] = {name: row for name, row in _ROWS.items() if row.live}

_OWNERSHIP = "it decides which agent owns a host, so all agents must have the same from the start"
_KEYS = "it decides which URLs are one, and the URLs known so far have their keys by it"
_ALIVE = "it decides when an agent counts as dead, and agents that judge each other must not change it one by one"
_MAIL = "agents that send each other letters must agree on it"
_COUNTED = "loads of a host are counted from the start on, or not at all: set it in settings.py, then start again"
_WHY: Mapping[str, str] = {
    **dict.fromkeys(("partition", "replicas", "capacity", "agent_id", "replication"), _OWNERSHIP),
    **dict.fromkeys(("normalise", "host_rules", "seen"), _KEYS),
    **dict.fromkeys(("heartbeat_interval", "lease_timeout", "failure_timeout", "stall_timeout"), _ALIVE),
    "host_concurrency": _COUNTED,
    **dict.fromkeys(("max_letter_bytes", "max_url_length"), _MAIL),
}
_ONCE = "it is read once, when an agent starts: set it in settings.py, and start the agents again one after the other"


def why_not_live(name: str) -> str:
    """Why this setting of the table cannot be changed while a crawl runs; empty when it can, or is none."""
    row = _ROWS.get(name)
    if row is None or row.live:
        return ""
    return _WHY.get(row.name, _ONCE)
