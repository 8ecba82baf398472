"""What an agent tells people about itself, as it lies in the crawl's `agents` hash; judged before it is believed.

A profile is taken whole or not at all: `read_profile` gives the profile, or the reason why it is unreadable. Counters
that are missing count as 0, since an older agent may not know them; unknown ones are ignored.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from scrapy_ubi.settings import FINGERPRINTER
from scrapy_ubi.urls.normaliser import is_composition

MAX_PROFILE = 65_536  # bytes; a real one has about 1,000
MAX_COUNT = 2**63  # no counter of a crawl gets there
MAX_REASONS = 1_000  # distinct reasons of failed URLs
MAX_ARGUMENTS = 100  # of a spider
LONGEST_ARGUMENT = 1_000  # characters
MAX_EXAMPLES = 10  # of what one step has joined
LONGEST_EXAMPLE = 1_000  # characters of a URL in them

STATES = ("joining", "crawling", "waiting", "blocked", "fenced", "leaving", "left", "finished")

# Every counter of an agent that is one whole number, with its meaning; `docs/reference/counters-and-measures.md`
# lists them.
COUNTERS: Mapping[str, str] = {
    "pages": "responses fetched",
    "done": "URLs finished here: fetched and parsed, or failed permanently",
    "unique": "finished URLs, each counted once, of the hosts the agent owns",
    "known": "URLs known of the hosts the agent owns",
    "queued": "URLs that wait to be fetched",
    "in_flight": "requests handed to Scrapy and not finished",
    "hosts": "hosts the agent owns",
    "hosts_held": "owned hosts with URLs waiting that may not be fetched yet, since they are still being handed over",
    "outbox": "records not yet acknowledged by their receivers",
    "forwarded": "URLs sent to other agents",
    "suppressed": "URLs not sent because their owner was known to have them",
    "received": "URLs received from other agents",
    "refused": "records other agents refused because they do not own the host",
    "resent": "letters sent again after a time-out",
    "dead_letters": "letters and records set aside because they did not hold",
    "replicated": "records sent on the state lane: copies, handoffs",
    "letters_sent": "letters appended to other agents' inboxes",
    "bytes_sent": "bytes of those letters",
    "links": "outlinks offered by the spider",
    "untravelled": "requests that could not travel to the host's owner, too large for a letter",
    "writes_refused": "exchanges that Redis refused because it had reached its memory limit",
    "fences": "times the agent was cut off for longer than its lease, and stopped fetching",
    "rejoins": "times the others had declared the agent dead, and it joined again",
    "redone": "pages of a lost agent that were done without a fetch, from what it had told of them",
    "handoff_timeouts": "times it began to fetch although not everything had been handed over to it",
    "lost_agents": "agents that were lost together, more than there are copies, and were not back at the end",
}


@dataclass(frozen=True, slots=True)
class Profile:
    """One agent's profile. `started` and `updated` are unix seconds by the agent's own clock."""

    agent: str
    incarnation: str = ""
    capacity: float = 1.0
    replicas: int = 0
    partition: str = "host"
    normaliser: str = "safe"
    host_rules: str = "none"
    fingerprinter: str = FINGERPRINTER
    replication: int = 0
    spider: str = ""
    spider_class: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)
    host_name: str = ""
    pid: int = 0
    version: str = ""
    state: str = "joining"
    started: float = 0.0
    updated: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)
    noted: Mapping[str, int] = field(default_factory=dict)
    joined: Mapping[str, int] = field(default_factory=dict)
    examples: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    failed_at: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    noted_at: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    seconds: float = 0.0
    pages_per_second: float = 0.0

    def count(self, name: str) -> int:
        """A counter of `COUNTERS`; 0 when the agent did not publish it."""
        return self.counts.get(name, 0)


class _Unreadable(Exception):
    """A value does not hold; the text says which and why."""


def read_profile(agent: str, raw: bytes) -> Profile | str:
    """The profile published under the name `agent`, or the reason why it is unreadable."""
    if len(raw) > MAX_PROFILE:
        return f"{len(raw)} bytes, more than {MAX_PROFILE}"
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):  # nested a thousand deep is no profile either
        return "not JSON"
    if not isinstance(data, dict):
        return "not a JSON object"
    try:
        return _profile(agent, data)
    except _Unreadable as trouble:
        return str(trouble)


def _profile(agent: str, data: Mapping[str, object]) -> Profile:
    if data.get("agent") != agent:
        raise _Unreadable("names another agent")
    state = _text(data, "state")
    if state not in STATES:
        raise _Unreadable("unknown state")
    partition = _text(data, "partition") or "host"
    if partition not in ("host", "domain"):
        raise _Unreadable("unknown partition")
    normaliser = _text(data, "normaliser") or "safe"
    if not is_composition(normaliser):
        raise _Unreadable("unknown normaliser")
    capacity = _number(data, "capacity", 1.0)
    if capacity <= 0:
        raise _Unreadable("capacity is not positive")
    counters = data.get("counters", {})
    if not isinstance(counters, dict):
        raise _Unreadable("counters are not an object")
    return Profile(
        agent=agent,
        incarnation=_text(data, "incarnation"),
        capacity=capacity,
        replicas=_whole(data, "replicas"),
        partition=partition,
        normaliser=normaliser,
        host_rules=_text(data, "host_rules") or "none",
        fingerprinter=_text(data, "fingerprinter") or FINGERPRINTER,
        replication=_whole(data, "replication"),
        spider=_text(data, "spider"),
        spider_class=_text(data, "spider_class"),
        arguments=_arguments(data.get("arguments", {})),
        host_name=_text(data, "host_name"),
        pid=_whole(data, "pid"),
        version=_text(data, "version"),
        state=state,
        started=_number(data, "started"),
        updated=_number(data, "updated"),
        counts={name: _whole(counters, name) for name in COUNTERS},
        failed=_reasons(counters, "failed"),
        noted=_reasons(counters, "noted"),
        joined=_reasons(counters, "joined"),
        examples=_examples(counters.get("examples", {})),
        failed_at=_places(counters, "failed_at"),
        noted_at=_places(counters, "noted_at"),
        seconds=_number(counters, "seconds"),
        pages_per_second=_number(counters, "pages_per_second"),
    )


def _text(data: Mapping[str, object], name: str) -> str:
    value = data.get(name, "")
    if not isinstance(value, str):
        raise _Unreadable(f"{name} is not a text")
    return value


def _whole(data: Mapping[str, object], name: str) -> int:
    value = data.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < MAX_COUNT:
        raise _Unreadable(f"{name} is not a count")
    return value


def _number(data: Mapping[str, object], name: str, default: float = 0.0) -> float:
    value = data.get(name, default)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise _Unreadable(f"{name} is not a number")
    # An int too large for a float, NaN and the infinities are JSON to Python, but no measurement.
    if not 0 <= value < MAX_COUNT or not math.isfinite(value):
        raise _Unreadable(f"{name} is out of bounds")
    return float(value)


def _reasons(data: Mapping[str, object], name: str) -> dict[str, int]:
    value = data.get(name, {})
    if not isinstance(value, dict) or len(value) > MAX_REASONS:
        raise _Unreadable(f"{name} is not an object of reasons")
    return {str(reason): _whole(value, reason) for reason in value}


def _places(data: Mapping[str, object], name: str) -> dict[str, dict[str, int]]:
    """By reason, hosts and how often it befell them."""
    value = data.get(name, {})
    if not isinstance(value, dict) or len(value) > MAX_REASONS:
        raise _Unreadable(f"{name} is not an object of reasons")
    if not all(isinstance(counts, dict) for counts in value.values()):
        raise _Unreadable(f"{name} is not an object of reasons")
    return {str(reason): _reasons(value, reason) for reason in value}


def _arguments(value: object) -> dict[str, str]:
    """The spider's arguments, as people may see them."""
    if not isinstance(value, dict) or len(value) > MAX_ARGUMENTS:
        raise _Unreadable("arguments are not an object of texts")
    if not all(isinstance(text, str) and len(text) <= LONGEST_ARGUMENT for text in value.values()):
        raise _Unreadable("arguments are not an object of texts")
    return dict(value)


def _examples(value: object) -> dict[str, tuple[tuple[str, str], ...]]:
    """By step, pairs of a URL that was joined and its normal form."""
    if not isinstance(value, dict) or len(value) > MAX_REASONS:
        raise _Unreadable("examples are not an object of steps")
    found = {}
    for step, pairs in value.items():
        if not isinstance(pairs, list) or len(pairs) > MAX_EXAMPLES or not all(map(_is_example, pairs)):
            raise _Unreadable("examples are not pairs of URLs")
        found[str(step)] = tuple((url, normal) for url, normal in pairs)
    return found


def _is_example(pair: object) -> bool:
    if not isinstance(pair, list) or len(pair) != 2:
        return False
    return all(isinstance(url, str) and len(url) <= LONGEST_EXAMPLE for url in pair)
