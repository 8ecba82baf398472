"""`scrapy ubi settings`: the live settings of a crawl, what people have said of them, and who has not heard it yet.

Rules of this module:

* What settings.py says is what this project says here; an agent that was started with `-s`, or whose spider has
  `custom_settings`, may have something else.
* Agents that are behind, and entries that agents refuse, are named with the reason.
"""

from __future__ import annotations

import argparse

from scrapy.settings import BaseSettings

from scrapy_ubi.agent.steering.live_entries import LiveEntry
from scrapy_ubi.cli.commands.crawl_choice import choose_crawl
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.cli.commands.redis_connection import connect, listed
from scrapy_ubi.cli.commands.steer import Spoken, look
from scrapy_ubi.cli.monitor.text_table import Column, folded, span, table
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.settings import read_value
from scrapy_ubi.settings.live_rows import LIVE
from scrapy_ubi.settings.presets import given
from scrapy_ubi.settings.values import MaxBody

_COLUMNS = (Column("setting"), Column("host", cut_first=True), Column("value"), Column("since"), Column("by"))


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Show the settings. Raises UbiError."""
    with connect(settings, opts) as to:
        spoken = look(to, choose_crawl(settings, opts, to), again=False)
    standing = sorted((entry for entry in spoken.entries.values() if entry.stands), key=lambda one: one.field)
    rows = [_changed(entry, spoken.status.now) for entry in standing]
    if not opts.changed:
        said = {entry.name for entry in standing if not entry.host}
        rows += [[name, "", _given(settings, name), "", "settings.py"] for name in LIVE if name not in said]
    head = f"crawl {plain(spoken.status.crawl, 64)}: {len(standing)} values were given while it runs"
    body = table(_COLUMNS, rows) if rows else []
    lines = [*folded(head), *([""] if body else []), *body, *_behind(spoken), *_refused(spoken)]
    return QueryReport(lines, {**_document(spoken, standing), "live": [_live(settings, name) for name in LIVE]})


def _changed(entry: LiveEntry, now: float) -> list[str]:
    ago = f"{span(max(0.0, now - entry.when))} ago"
    return [entry.name, plain(entry.host, 100), plain(str(entry.value), 100), ago, plain(entry.who, 40)]


def _live(settings: BaseSettings, name: str) -> dict[str, object]:
    """A setting that can be changed, for programs; `value` is the text of what settings.py gives."""
    row, value = LIVE[name], _given(settings, name)
    return {
        "name": name,
        "value": None if value == "None" else value,
        "host": row.live == "host",
        "kind": row.kind,
        "choices": list(row.choices),
        "help": row.sentence,
    }


def _given(settings: BaseSettings, name: str) -> str:
    row, value = LIVE[name], given(settings, name)
    try:
        read = value if value is not None and not row.prefix else read_value(row, value)
    except UbiSettingError:
        read = value
    if read is None and name == "UBI_HOST_DELAY":
        read = settings.get("DOWNLOAD_DELAY")
    return plain(str(list(read) if isinstance(read, tuple) and not isinstance(read, MaxBody) else read), 100)


def _behind(spoken: Spoken) -> list[str]:
    if not spoken.behind:
        return []
    return ["", *folded(f"Not yet at the newest ({spoken.mark or 'none'}): {listed(spoken.behind)}")]


def _refused(spoken: Spoken) -> list[str]:
    lines: list[str] = []
    for agent in spoken.status.agents:
        for field, why in agent.profile.live_refused.items() if agent.profile is not None and agent.working else ():
            lines += folded(f"Agent {plain(agent.name, 64)} refuses {plain(field, 100)}: {plain(why, 300)}")
    return ["", *lines] if lines else []


def _document(spoken: Spoken, standing: list[LiveEntry]) -> dict[str, object]:
    return {
        "crawl": spoken.status.crawl,
        "mark": spoken.mark,
        "changed": [
            {"name": one.name, "host": one.host, "value": one.value, "n": one.n, "who": one.who, "when": one.when}
            for one in standing
        ],
        "behind": spoken.behind,
        "refused": {
            agent.name: dict(agent.profile.live_refused)
            for agent in spoken.status.agents
            if agent.profile is not None and agent.working and agent.profile.live_refused
        },
    }
