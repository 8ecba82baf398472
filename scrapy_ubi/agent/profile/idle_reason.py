"""Why an agent fetches nothing, as a value, and the one sentence for people that follows from it.

The log, the profile, and through that `scrapy ubi status` and the web page, say the same words. Rules of this module:
no clock and no I/O; names come from outside, and are made fit to be seen here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from scrapy_ubi.ground.untrusted.checks import MOST_COUNT, Fields, Malformed, is_list, is_text
from scrapy_ubi.ground.untrusted.terminal_text import plain

MOST_NAMES = 3  # in a sentence
UNNAMED = "?"  # where an agent of another version leaves out what belongs there
LONGEST_NAME, LONGEST_MORE = 100, 200  # characters

# Kinds. Of the agent:
LEAVING, PAUSED, DISK_FULL, REDIS_FULL = "leaving", "paused", "disk_full", "redis_full"
JOINING, START_WAIT, FENCED, UNSEEN, REDIS_AWAY = "joining", "start_wait", "fenced", "unseen", "redis_away"
LIMIT, OUTBOX, STALLED, PIPELINES, DISK_LOW = "limit", "outbox", "stalled", "pipelines", "disk_low"
# Of what Scrapy holds:
MEMORY, OUTPUTS, CALLBACKS, LOADS, ROBOTS, PERMITS = "memory", "outputs", "callbacks", "loads", "robots", "permits"
# Of its hosts:
DELAY, CRAWL_DELAY, HANDOVER, DISK, READY = "delay", "crawl_delay", "handover", "disk", "ready"
RATE = "rate"  # more: the rate that they wait for
RESTS = "rests"  # more: the word by which the host is left alone
# Of nothing that waits:
START, SEEDS, VISITS, ACKS, OTHERS, ONE_HOST, END = "start", "seeds", "visits", "acks", "others", "one_host", "end"
UNKNOWN = "unknown"


class IdleReason(NamedTuple):
    """Why nothing is fetched. `names`: of hosts, agents or callbacks, the first of `number`; `since`, `until`: unix
    seconds (0: not known); `more`: a word, or a part of a sentence, by kind."""

    kind: str
    names: tuple[str, ...] = ()
    number: int = 0
    until: float = 0.0
    since: float = 0.0
    more: str = ""

    def as_json(self) -> dict[str, Any]:
        """Fit for JSON: what is not at its default."""
        return {name: value for name, value in self._asdict().items() if value or name == "kind"}


def read_reason(value: object) -> IdleReason | None:
    """The reason that an agent tells; None where it tells none. Raises Malformed."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise Malformed("the reason is not an object")
    said = Fields(value)
    names = value.get("names", [])
    if not is_list(names, MOST_NAMES, lambda name: is_text(name, LONGEST_NAME)):
        raise Malformed("the reason has other names")
    kind, more = said.text("kind"), said.text("more")
    if kind not in SENTENCES or len(more) > LONGEST_MORE:
        raise Malformed("unknown reason")
    number, until, since = said.count("number"), said.number("until"), said.number("since")
    if max(until, since) >= MOST_COUNT:
        raise Malformed("the reason has no time")
    return IdleReason(kind, tuple(names), number, until, since, more)


def reason(kind: str, names: tuple[str, ...] = (), number: int = 0, **more: Any) -> IdleReason:
    """A reason with as many names as are told."""
    first = tuple(plain(name, LONGEST_NAME) for name in names[:MOST_NAMES])
    told = IdleReason(kind, first, number or len(names), **more)
    return told._replace(until=round(told.until, 1), since=round(told.since, 1), more=told.more[:LONGEST_MORE])


def sentence(why: IdleReason, now: float) -> str:
    """Why nothing is fetched, at this time (unix seconds)."""
    return f"Nothing is fetched: {SENTENCES[why.kind](why, now)}."


def _names(why: IdleReason, what: str = "") -> str:
    """The first names, and how many more there are."""
    names = ", ".join(plain(name, LONGEST_NAME) for name in why.names)
    rest = why.number - len(why.names)
    if rest <= 0:
        return names or UNNAMED
    return f"{names} and {rest:,} more{f' {what}' if what else ''}" if names else f"{rest:,} {what}"


def _more(why: IdleReason) -> str:
    return plain(why.more, LONGEST_MORE) or UNNAMED


def _until(why: IdleReason, now: float) -> str:
    if not why.until:
        return ""
    left = why.until - now
    return f", until {_time(why.until)} ({_span(left)} more)" if left > 0 else ""


def _first_until(why: IdleReason, now: float) -> str:
    """The same, of the first of several."""
    told = _until(why, now)
    return told if why.number < 2 else told.replace(", until", ", the first until", 1)


def _since(why: IdleReason, now: float) -> str:
    return f", since {_time(why.since)} ({_span(now - why.since)})" if why.since else ""


def _time(when: float) -> str:
    return datetime.fromtimestamp(when).astimezone().strftime("%H:%M:%S")


def _span(seconds: float) -> str:
    seconds = max(0.0, seconds)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


_RESTS: Mapping[str, str] = {
    "health": "did not answer, or answered with errors, and is left alone for a while",
    "retry-after": "asked for a pause (Retry-After)",
    "robots": "waits for its robots.txt, which could not be read",
    "proxies": "has no proxy that may be used now (UBI_PROXY_POOL)",
}


def _rests(why: IdleReason, now: float) -> str:
    word = plain(why.more, 40)
    return f"{_names(why, 'hosts')}: {_RESTS.get(word, f'left alone ({word})')}{_first_until(why, now)}"


def _callbacks(why: IdleReason, now: float) -> str:
    return f"callbacks and item pipelines have {_more(why)} and have not ended: {_names(why)}{_since(why, now)}"


SENTENCES: Mapping[str, Callable[[IdleReason, float], str]] = {
    LEAVING: lambda why, now: (
        f"this agent leaves, and hands over what it knows to {_names(why, 'agents')}{_until(why, now)}"
        if why.names
        else "this agent leaves"
    ),
    PAUSED: lambda why, now: f"people have paused the crawl{_since(why, now)}; `scrapy ubi resume` lets it go on",
    DISK_FULL: lambda why, now: f"the disk is full{_since(why, now)}: make room",
    DISK_LOW: lambda why, now: f"less than {_more(why)} of the disk is free (free in UBI_CRAWL_LIMITS): make room",
    PIPELINES: lambda why, now: (
        f"items are not taken{_since(why, now)}, by pipelines (ubi_flush_items), a stream or a webhook; the log names "
        "which, and why"
    ),
    REDIS_FULL: lambda why, now: f"Redis is full{_since(why, now)}: raise its maxmemory",
    JOINING: lambda why, now: f"this agent joins the group, and waits for Redis{_since(why, now)}",
    START_WAIT: lambda why, now: (
        f"the start wait{_until(why, now)}: {_names(why, 'agents')} took part before, and may come back with what they "
        "did last"
        if why.names
        else f"the start wait{_until(why, now)}: no other agent has been seen, and one that Redis has forgotten may "
        "still fetch (UBI_START_WAIT)"
    ),
    FENCED: lambda why, now: (
        f"this agent is fenced{_since(why, now)}: Redis has not answered its heartbeats, and the others may take over "
        "its hosts"
    ),
    UNSEEN: lambda why, now: (
        f"this agent was cut off{_since(why, now)}, and waits until the others have seen its heartbeats again: "
        f"{_names(why, 'agents')}"
    ),
    REDIS_AWAY: lambda why, now: f"Redis does not answer{_since(why, now)}; the crawl goes on when it does",
    LIMIT: lambda why, now: f"a limit of the crawl is reached ({plain(why.more, 60)})",
    OUTBOX: lambda why, now: f"{_more(why)}, and their receivers have not acknowledged them: {_names(why, 'agents')}",
    STALLED: lambda why, now: f"the event loop is held{_since(why, now)} by {_names(why)}",
    MEMORY: lambda why, now: f"pages wait for room (UBI_MEMORY_MB), as callbacks have others: {_names(why)}",
    OUTPUTS: lambda why, now: "what pages leave behind waits to be written: the disk is slow, or full",
    CALLBACKS: _callbacks,
    LOADS: lambda why, now: (
        f"{'a load is' if why.number == 1 else f'{why.number} loads are'} under way and not answered yet: "
        f"{_names(why, 'loads')}{_since(why, now)}"
    ),
    ROBOTS: lambda why, now: f"robots.txt is being loaded of {_names(why, 'hosts')}{_since(why, now)}",
    PERMITS: lambda why, now: f"requests wait for their host to be free: {_names(why, 'hosts')}{_since(why, now)}",
    DELAY: lambda why, now: (
        f"the delay between two pages of {_names(why, 'hosts')} ({_more(why)}){_first_until(why, now)}"
    ),
    CRAWL_DELAY: lambda why, now: (
        f"the Crawl-delay that robots.txt asks for of {_names(why, 'hosts')} ({_more(why)}){_first_until(why, now)}"
    ),
    RATE: lambda why, now: (
        f"{_names(why, 'hosts')}: waits for the rate that the group keeps (UBI_RATES, {_more(why)})"
        f"{_first_until(why, now)}"
    ),
    HANDOVER: lambda why, now: (
        f"{_more(why)} still being handed over to this agent; it waits for "
        f"{_names(why, 'agents') if why.names else 'the others'}{_until(why, now)}"
    ),
    DISK: lambda why, now: f"the queue of {_names(why, 'hosts')} is being read from the disk",
    READY: lambda why, now: f"{_names(why, 'hosts')} may be fetched now, and Scrapy has not asked for a request yet",
    RESTS: _rests,
    START: lambda why, now: "no URL waits, and start() of the spider has not ended: it may yield more",
    SEEDS: lambda why, now: "the crawl waits for seeds (UBI_SERVE); `scrapy ubi seed` gives it some",
    VISITS: lambda why, now: (
        f"all pages are visited, and the next one is due again later (UBI_RECRAWL){_until(why, now)}"
    ),
    ACKS: lambda why, now: f"nothing waits here but the word of {_names(why, 'agents')} that what was sent has come",
    OTHERS: lambda why, now: f"nothing waits of the hosts of this agent; {_names(why, 'agents')} may find more for it",
    ONE_HOST: lambda why, now: (
        f"this crawl has one host, {_more(why)}, owned by {_names(why)}; this agent waits with "
        "nothing to do; see the how-to one-big-site"
    ),
    END: lambda why, now: "nothing is left, and all agents have to agree that the crawl is over",
    UNKNOWN: lambda why, now: "no reason is known; please report this",
}
