"""The metrics of one agent that its profile tells: the same from Redis, for all agents, and from the agent itself.

Rules of this module:

* What it reads was checked (`agent.profile.profile`). Labels are bounded here nevertheless: of reasons the first word,
  at most `MOST_WORDS` of them, the rest is `other`; of responses the five classes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from scrapy_ubi.agent.metrics.exposition import Exposition, label, labels
from scrapy_ubi.agent.metrics.metric_table import OF_COUNTERS
from scrapy_ubi.agent.profile.profile import STATES, Profile

MOST_WORDS = 20  # first words of reasons; a crawl has a dozen
OTHER = "other"
CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx")
ALL_STATES = (*STATES, "dead", "silent", "unreadable")
_WORD = re.compile(r"[A-Za-z0-9_-]{1,40}")


class GroupFacts(NamedTuple):
    """How an agent stands in its group: has it settled, is its view complete, and how many hosts does it hold up."""

    settled: bool
    complete: bool
    pending: int


def labels_of(crawl: str, agent: str) -> str:
    """The labels of everything that is said of one agent."""
    return labels({"crawl": crawl, "agent": agent})


def put_profile(page: Exposition, own: str, profile: Profile) -> None:
    """Everything that the profile counts; `own` are the agent's labels."""
    put, counts = page.put, profile.counts
    put("ubi_agent_info", 1, f"{own},{_info(profile)}")
    put("ubi_agent_start_time_seconds", profile.started, own)
    put("ubi_agent_capacity", profile.capacity, own)
    for counter, name in OF_COUNTERS.items():
        put(name, counts.get(counter, 0), own)
    if profile.slowest is not None:
        put("ubi_slowest_host_seconds", round(profile.slowest.needs(), 1), own)
    for state, hosts in _hosts(profile).items():
        put("ubi_hosts", hosts, f'{own},state="{state}"')
    for one in CLASSES:
        if one in profile.responses:
            put("ubi_responses_total", profile.responses[one], f'{own},class="{one}"')
    for word, count in by_word(profile.failed).items():
        put("ubi_failures_total", count, f'{own},reason="{word}"')
    for word, count in by_word(profile.noted).items():
        put("ubi_notes_total", count, f'{own},name="{word}"')


def put_state(page: Exposition, own: str, state: str) -> None:
    """The state that the agent is in."""
    for one in ALL_STATES:
        page.put("ubi_agent_state", int(one == state), f'{own},state="{one}"')


def put_group(page: Exposition, own: str, facts: GroupFacts) -> None:
    """How the agent stands in its group."""
    page.put("ubi_view_settled", int(facts.settled), own)
    page.put("ubi_view_complete", int(facts.complete), own)
    page.put("ubi_pending_hosts", facts.pending, own)


def by_word(counts: Mapping[str, int]) -> dict[str, int]:
    """Counts by the first word of each reason: the first `MOST_WORDS` words, which a process keeps in their order."""
    found: dict[str, int] = {}
    for reason, count in counts.items():
        first = _WORD.match(reason)
        word = first[0] if first is not None else OTHER
        if word not in found and len(found) >= MOST_WORDS:
            word = OTHER
        found[word] = found.get(word, 0) + count
    return found


def _info(profile: Profile) -> str:
    said = (("version", profile.version), ("incarnation", profile.incarnation), ("spider", profile.spider))
    return ",".join(f'{name}="{label(value)}"' for name, value in said)


def _hosts(profile: Profile) -> dict[str, int]:
    """The hosts, each counted once. One that is held may have a load of its former owner's time."""
    busy, waiting = profile.count("hosts_busy"), profile.count("hosts_waiting")
    held = min(profile.count("hosts_held"), waiting)
    idle = max(0, profile.count("hosts") - busy - waiting)
    return {"busy": busy, "waiting": waiting - held, "held": held, "idle": idle}
