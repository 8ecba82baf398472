"""`scrapy ubi url URL`: where a URL is, and what became of it; `scrapy ubi owner URL`: who owns its host, among the
agents of the crawl or among those that are named."""

from __future__ import annotations

import argparse
import textwrap
import time

from scrapy.settings import BaseSettings

from scrapy_ubi.agent.report.queries import Question
from scrapy_ubi.cli.commands.crawl_choice import choose_crawl
from scrapy_ubi.cli.commands.locate import Spot, as_requested, spot
from scrapy_ubi.cli.commands.query import Gathered, QueryReport, gather
from scrapy_ubi.cli.commands.redis_connection import UbiNotFound, connect, setting
from scrapy_ubi.cli.monitor import render_status
from scrapy_ubi.cli.monitor.answers import Answer
from scrapy_ubi.cli.monitor.document import Document
from scrapy_ubi.cli.monitor.document import owner as owner_document
from scrapy_ubi.cli.monitor.status import CrawlStatus
from scrapy_ubi.cli.monitor.text_table import count, folded, pairs, room, span
from scrapy_ubi.cli.monitor.url_owner import GroupSettings, Ownership, group_of, ownership
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.protocol.ring import RingCollision
from scrapy_ubi.settings import MOST_REPLICAS, replicas_for
from scrapy_ubi.settings.ubi_settings import longest_url
from scrapy_ubi.urls.filters import FilterChain
from scrapy_ubi.urls.host_rules import name_of

# The first of these that an agent says holds: a page that is done somewhere is done, also
# if some agent has not heard of it yet.
WHERE = ("in flight", "failed", "done", "queued", "sent", "unknown")
FACTS = ("depth", "priority", "before", "status", "reason", "when", "visits", "visited", "due", "changes")

OTHER_KEY = (
    "Asked was for a plain GET. A request with another method or a body, or one with dont_filter=True (but for a start "
    "request with the default callback), has a key of its own, and is not found by its URL."
)

NO_KEY = (
    "REQUEST_FINGERPRINTER_CLASS, {}, makes the keys of this crawl, of whole requests: a URL alone has none, so what "
    "became of it cannot be looked up."
)


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Ask and show. Raises UbiError."""
    longest = longest_url(settings)
    chain = FilterChain.read(setting(settings, "filters"))
    nowhere = spot(opts.url, GroupSettings({}), longest, chain)
    if not nowhere.key:
        document = {"url": opts.url, "where": "filtered", "filter": nowhere.filtered}
        return QueryReport(pairs([("url", opts.url), *_not_found(nowhere)]), document)

    def question(group: GroupSettings) -> Question:
        place = spot(opts.url, group, longest, chain)
        return Question("url", 0.0, agent=opts.agent or "", host=place.host, key=place.key)

    found = gather(settings, opts, question)
    return _outcome(found, spot(opts.url, found.group, longest, chain))


def _outcome(found: Gathered, place: Spot) -> QueryReport:
    """What the agents have answered. Of several the first that holds decides (`WHERE`)."""
    owned = _owned(place.url, found.group)
    answers = {agent: answer for agent, answer in found.answers.by_agent.items() if answer["where"] != "unknown"}
    agent = min(answers, key=lambda name: _preference(answers[name], name == _owner(owned)), default="")
    where = answers[agent]["where"] if agent else "filtered" if place.filtered else "unknown"
    document: Document = {
        **found.document(),
        **_document(place, owned),
        "where": where,
        "agent": agent or None,
        **{name: answers.get(agent, {}).get(name) for name in FACTS},
        "filter": place.filtered or None,
        "agents": [{"agent": name, **answer} for name, answer in sorted(answers.items())],
    }
    rows = _place_rows(place, owned)
    rows += _row("state", _said(answers[agent], agent)) if agent else _not_found(place)
    rows += [row for name in sorted(answers) if name != agent for row in _row("also", _said(answers[name], name))]
    lines = pairs(rows)
    if where == "unknown":
        why = NO_KEY.format(place.fingerprinter) if place.fingerprinter else OTHER_KEY
        lines += ["", *textwrap.wrap(why, room())]
    return QueryReport(lines, document, found.answers.complaint)


def _document(place: Spot, owned: Ownership | None) -> Document:
    """Where a URL belongs, for programs."""
    return {
        "url": place.url,
        "key": place.key if not place.fingerprinter else None,
        "fingerprinter": place.fingerprinter or None,
        "host": place.host,
        "shards": place.shards if place.shards > 1 else None,
        "owner": _owner(owned) or None,
        "successors": list(owned.successors) if owned is not None else [],
    }


def _place_rows(place: Spot, owned: Ownership | None) -> list[tuple[str, str]]:
    """Where a URL belongs, for people."""
    successors = ", ".join(owned.successors) if owned is not None else ""
    return [
        ("url", place.url),
        *([("key", place.key)] if not place.fingerprinter else []),
        ("host", place.host if place.shards == 1 else f"{place.host}, one of {place.shards} shards"),
        ("owner", _owner(owned) or "not known: no agent lives"),
        *_row("then", successors or "no agent"),
    ]


def _preference(answer: Answer, owner: bool) -> tuple[int, bool]:
    where = answer["where"]
    return (WHERE.index(where) if where in WHERE else len(WHERE), not owner)


def _owner(owned: Ownership | None) -> str:
    return owned.owner if owned is not None else ""


def _owned(url: str, group: GroupSettings) -> Ownership | None:
    try:
        return ownership(url, group) if group.replicas else None
    except RingCollision:
        return None


def _not_found(place: Spot) -> list[tuple[str, str]]:
    unknown = "not known by its URL" if place.fingerprinter else "unknown: no agent has met it"
    said = f"filtered ({place.filtered}): {place.why}" if place.filtered else unknown
    return _row("state", said)


def _row(name: str, value: str) -> list[tuple[str, str]]:
    """A row of the answer, and others below it where the value takes several lines: as with long names of agents."""
    first, *more = folded(value, room() - len("owner  "))
    return [(name, first), *(("", line) for line in more)]


def _said(answer: Answer, agent: str) -> str:
    """One agent's answer in words."""
    copy = ", a copy" if answer.get("role") == "copy" else ""
    where = answer["where"]
    if where == "queued":
        return f"queued at {agent}{copy}{_queue(answer)}"
    if where == "in flight":
        return f"in flight at {agent}: handed to Scrapy, not finished{_depth(answer)}"
    if where == "failed":
        ago = span(max(0.0, time.time() - answer.get("when", time.time())))
        return f"failed at {agent}, {answer.get('reason', '')}, {ago} ago{_depth(answer)}"
    if where == "done":
        status = f", with status {answer['status']}" if answer.get("status") else ""
        return f"done at {agent}{copy}{status}{_visits(answer)}"
    if where == "sent":
        return f"on its way from {agent} to {answer.get('to', '')}, which has not acknowledged it yet"
    return f"{where} at {agent}{copy}"


def _visits(answer: Answer) -> str:
    """How often a page was visited, and when it is due."""
    visits = answer.get("visits")
    if not visits:
        return ""
    wait = answer.get("due", 0) - time.time()
    due = "not visited again" if not answer.get("due") else f"due in {span(wait)}" if wait > 0 else "due now"
    last = f", last {span(max(0.0, time.time() - answer['visited']))} ago" if answer.get("visited") else ""
    return f"; visits {count(visits)}{last}, changes {count(answer.get('changes', 0))}, {due}"


def _depth(answer: Answer) -> str:
    if answer.get("depth") is None:
        return ""
    return f" (depth {answer['depth']}, priority {answer['priority']})"


def _queue(answer: Answer) -> str:
    parts = []
    if answer.get("depth") is not None:
        parts.append(f"depth {answer['depth']}, priority {answer['priority']}")
    if answer.get("before") is not None:
        before = answer["before"]
        parts.append(f"{count(before)} of its host before it" if before else "the next of its host")
    elif answer.get("queued") is not None:
        parts.append(f"among {count(answer['queued'])} of its host")
    if answer.get("state"):
        parts.append(f"the host is {answer['state']}")
    return f": {'; '.join(parts)}" if parts else ""


# -- its owner


def run_owner(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Say it. Raises UbiError."""
    if opts.agents:
        return _shown_owner(opts, _group_given(settings, opts))
    with connect(settings, opts) as to:
        status = choose_crawl(settings, opts, to)
    return _shown_owner(opts, _group_now(settings, status), status)


def _shown_owner(opts: argparse.Namespace, group: GroupSettings, status: CrawlStatus | None = None) -> QueryReport:
    try:
        answer = ownership(as_requested(opts.url), group)
    except RingCollision as collision:
        raise UbiNotFound(f"Two of these agents cannot be on one ring: {collision}.") from None
    if answer is None:
        raise UbiNotFound(f"'{plain(opts.url, 200)}' is not an absolute http or https URL, so no agent owns it.")
    lines = render_status.owner(answer)
    if status is not None and status.views > 1:
        lines += ["", f"The agents have {status.views} different views now; they will agree on this in a moment."]
    return QueryReport(lines, owner_document(answer))


def _group_given(settings: BaseSettings, opts: argparse.Namespace) -> GroupSettings:
    rules = setting(settings, "host_rules")
    replicas = {name: replicas_for(opts.replicas, capacity) for name, capacity in opts.agents.items()}
    for name, number in replicas.items():
        if number > MOST_REPLICAS:
            problem = f"times the capacity of '{plain(name, 64)}' is {number}"
            raise UbiSettingError("--replicas", problem, f"an agent has at most {MOST_REPLICAS}, make one smaller")
    shards = setting(settings, "host_shards").name
    named = {"rules_name": name_of(rules), "shards": shards}
    return GroupSettings(replicas, opts.partition, opts.replication, rules=rules, **named)


def _group_now(settings: BaseSettings, status: CrawlStatus) -> GroupSettings:
    group = group_of(status, setting(settings, "host_rules"), setting(settings, "partition"))
    if not group.replicas:
        raise UbiNotFound(f"No agent of crawl {plain(status.crawl, 64)} is alive; name some with --agents a,b,c.")
    return group
