"""The commands' answers as JSON documents, for programs. The text twins are in `render_status`.

Names are those of the docs (reference/commands.md) and change only with the version. Ages and spans are seconds,
times are unix seconds. JSON escapes every character that is not ASCII, so hostile text cannot reach a terminal as it
is.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from scrapy_ubi.cli.monitor import ahead, crawl_warnings
from scrapy_ubi.cli.monitor.inbox_text import Box, InboxLetter
from scrapy_ubi.cli.monitor.render_report import measures_of
from scrapy_ubi.cli.monitor.status import AgentStatus, CrawlStatus
from scrapy_ubi.cli.monitor.url_owner import Ownership
from scrapy_ubi.protocol.host import Redo

Document = dict[str, Any]

# What a profile has among its counters and is not one number.
_BESIDE_COUNTERS = (
    *("responses", "failed", "requeued", "noted", "joined", "failed_at", "noted_at", "examples"),
    *("seconds", "pages_per_second"),
)


def status(of: CrawlStatus) -> Document:
    """`scrapy ubi status --json`, and `agents --json`."""
    return {
        "crawl": of.crawl,
        "state": of.state,
        "run": of.run,
        "finished": of.state == "finished",
        "finished_at": of.now - of.finished_ago if of.finished_ago is not None else None,
        "waits_for_seeds": of.serves,
        "seeds_waiting": of.seeds_waiting,
        "arguments": of.arguments,
        "views": of.views,
        "remaining": ahead.document(of),
        "unreadable": of.unreadable,
        "idle": ahead.idle_sentences(of),
        "warnings": crawl_warnings.sentences(of),
        "agents": [agent(one) for one in of.agents],
        "summed_up": _summed_up(of),
    }


def agent(of: AgentStatus) -> Document:
    """One agent: its state, its profile (null when absent or unreadable), its beat, its mail."""
    profile: Document | None = None
    if of.profile is not None:
        profile = asdict(of.profile)
        profile["counters"] = _counters(profile)
        profile["slowest"] = of.profile.slowest._asdict() if of.profile.slowest is not None else None
    if profile is not None:
        profile["idle"] = of.profile.idle.as_json() if of.profile is not None and of.profile.idle is not None else None
    return {
        **standing(of),
        "beat": asdict(of.beat) if of.beat is not None else None,
        "profile": profile,
    }


def _counters(profile: Document) -> Document:
    """The counters of a profile, which are taken out of it."""
    counters: Document = profile.pop("counts")
    return counters | {name: profile.pop(name) for name in _BESIDE_COUNTERS}


def _summed_up(of: CrawlStatus) -> Document | None:
    """Agents that are long gone, counted together (null: none)."""
    if of.summed_up is None:
        return None
    agents, unreadable, profile = of.summed_up
    return {"agents": agents, "unreadable": unreadable, "counters": _counters(asdict(profile))}


def standing(of: AgentStatus) -> Document:
    """How an agent stands, without its profile."""
    return {
        "agent": of.name,
        "state": of.state,
        "working": of.working,
        "incarnation": of.incarnation,
        "replicas": of.replicas,
        "inbox": of.inbox,
        "dead_letters": of.dead_letters,
        "age": of.age,
        "unreadable": list(of.trouble),
    }


def inbox(crawl: str, name: str, box: Box) -> Document:
    """`scrapy ubi inbox AGENT --json`: whole letters, without regard to --full."""
    return {"crawl": crawl, "agent": name, "total": box.total, "letters": [_letter(one) for one in box.letters]}


def _letter(of: InboxLetter) -> Document:
    return {
        "id": of.id,
        "time": of.time,
        "from": of.sender,
        "lane": of.lane,
        "seq": of.seq,
        "view": of.view,
        "size": of.size,
        "records": of.records,
        "hosts": of.hosts,
        "unreadable": of.trouble or None,
        "head": of.head or None,
        "deltas": [
            {
                "host": delta.host,
                "discovered": [
                    {"key": f"{entry.key:016x}", "url": entry.url, "depth": entry.depth, "priority": entry.priority}
                    | ({"request": entry.request} if entry.request else {})
                    for entry in delta.discovered
                ],
                "done": [f"{key:016x}" for key in delta.done],
                "redo": [_redo(redo) for redo in delta.redo],
                "notes": None if delta.notes is None else delta.notes._asdict(),
                "offer": None if delta.offer is None else {"known": delta.offer.known, "done": delta.offer.done},
            }
            for delta in of.deltas
        ],
    }


def _redo(of: Redo) -> Document:
    own = [f"{key:016x}" for key in of.own]
    return {"key": f"{of.key:016x}", "own": own, "outlinks": [entry.url for _, entry in of.outlinks]}


def dead(crawl: str, name: str, box: Box) -> Document:
    """`scrapy ubi inbox AGENT --dead --json`."""
    return {"crawl": crawl, "agent": name, "total": box.total, "dead": [asdict(one) for one in box.dead]}


def owner(of: Ownership) -> Document:
    """`scrapy ubi owner URL --json`."""
    return {
        "url": of.url,
        "host": of.host,
        "partition": of.partition,
        "owner": of.owner,
        "successors": list(of.successors),
        "order": list(of.order),
    }


def report(of: CrawlStatus) -> Document:
    """`scrapy ubi report --json`: the measures, then every agent."""
    return {
        "crawl": of.crawl,
        "state": of.state,
        "arguments": of.arguments,
        "remaining": ahead.document(of),
        "unreadable": of.unreadable,
        "measures": asdict(measures_of(of)),
        "agents": [agent(one) for one in of.agents],
        "summed_up": _summed_up(of),
    }
