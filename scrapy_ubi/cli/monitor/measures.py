"""The measures of a crawl, computed from what its agents count. Pure functions of profiles.

The measures are those of UbiCrawler (Boldi, Codenotti, Santini, Vigna: a scalable fully distributed web crawler), whose
performance evaluation takes coverage, overlap, communication overhead and quality from Cho and Garcia-Molina's parallel
crawlers. With n pages crawled, u different pages among them and e URLs exchanged between agents:

* overlap = (n - u) / u; 0 when no page was fetched twice;
* communication overhead = e / n; URLs sent to another agent per page crawled;
* balance: the assignment should give an agent work in proportion to its capacity (UbiCrawler's "balanced" assignment
  function; figure 1 in its section 4.3 plots the deviation). An agent's load is its pages, or hosts, per unit of
  capacity; the fair load is all of them per all capacity. Reported are the highest load and the mean absolute
  deviation, both relative to the fair load.

A page is crawled when it is *done*: fetched and parsed, or failed permanently. So n is the sum of `done`, u that of
`unique`, which count the same pages: in `pages`, the responses, a retry is a second one, and a page that robots.txt
forbids is none.

Coverage needs to know how many pages there were to fetch, which no agent knows: a test with a known web measures it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scrapy_ubi.agent.profile.profile import COUNTERS, STANDING, Profile
from scrapy_ubi.transport.contract import SUMMED_UP


@dataclass(frozen=True, slots=True)
class Balance:
    """How evenly a load lies on the agents, relative to the fair load (1.0 = exactly fair)."""

    highest: float
    deviation: float


@dataclass(frozen=True, slots=True)
class Speed:
    """Pages a second of one agent: in the last seconds, and over its whole time."""

    now: float
    average: float


@dataclass(frozen=True, slots=True)
class Measures:
    """The crawl as a whole. `totals` sums every counter; a ratio is None where it has no meaning (yet). `failed_at` and
    `noted_at`: by reason, some hosts at which it happened, those at which it happened most often first.
    """

    agents: int
    totals: Mapping[str, int]
    overlap: float | None
    overhead: float | None
    balance_pages: Balance | None
    balance_hosts: Balance | None
    failed: Mapping[str, int]
    noted: Mapping[str, int]
    joined: Mapping[str, int]
    failed_at: Mapping[str, Sequence[str]]
    noted_at: Mapping[str, Sequence[str]]
    examples: Mapping[str, tuple[str, str]]
    seconds: float
    pages_per_second: float
    average_pages_per_second: float
    speeds: Mapping[str, Speed]


def overlap(done: int, unique: int) -> float | None:
    """(n - u) / u. None without any page, and when u > n: counters of an earlier run were lost, done marks were not."""
    if unique == 0 or unique > done:
        return None
    return (done - unique) / unique


def overhead(forwarded: int, done: int) -> float | None:
    """e / n. None before the first page."""
    return forwarded / done if done else None


def balance(loads: Sequence[tuple[float, float]]) -> Balance | None:
    """The balance of (load, capacity) pairs, capacities positive. None without agents or without load."""
    total = sum(load for load, _ in loads)
    if not total:
        return None
    fair = total / sum(capacity for _, capacity in loads)
    relative = [load / capacity / fair for load, capacity in loads]
    return Balance(max(relative), sum(abs(one - 1) for one in relative) / len(relative))


def expected_balance(agents: int, replicas: int, hosts: int) -> tuple[float, float]:
    """What balance of hosts is to be expected of so many agents of equal capacity: the mean absolute deviation from the
    fair load, and the standard deviation of one agent's load, both relative to it.

    On the ring a replica has half of the gaps on both sides (decision 0001), whose lengths are those of random points:
    relative to the mean, the share of an agent with k replicas has a variance of 1 / 2k, less what the shares' sum
    takes away. So many hosts at random points add that of a draw. Of very many hosts and 200 replicas it is 4.0 %.
    """
    ring = (1 - 1 / agents) / (2 * replicas)
    drawn = (agents - 1) / hosts if hosts else 0.0
    spread = math.sqrt(ring + drawn)
    return spread * math.sqrt(2 / math.pi), spread


def speed(profile: Profile, working: bool) -> Speed:
    """Pages a second of an agent; an agent that no longer works has none now."""
    average = profile.count("pages") / profile.seconds if profile.seconds > 0 else 0.0
    return Speed(profile.pages_per_second if working else 0.0, average)


def measure(members: Iterable[Profile], gone: Iterable[Profile] = (), working: bool = True) -> Measures:
    """The measures of a crawl.

    `members` are the agents that take part, or took part until the end; `gone` those that died or left before it.
    What the gone fetched counts (n, e, failures), but their hosts have other owners now: u and the balance are the
    members' alone. `working` is False when the crawl is over.
    """
    members, gone = list(members), list(gone)
    everybody = members + gone
    totals = {name: sum(profile.count(name) for profile in everybody) for name in COUNTERS}
    for name in STANDING:
        totals[name] = sum(profile.count(name) for profile in members)
    failed: Counter[str] = Counter()
    noted: Counter[str] = Counter()
    joined: Counter[str] = Counter()
    examples: dict[str, tuple[str, str]] = {}
    for profile in everybody:
        failed.update(profile.failing)
        noted.update(profile.noted)
        joined.update(profile.joined)
        examples = {step: pairs[0] for step, pairs in profile.examples.items() if pairs} | examples
    seconds = max((profile.seconds for profile in everybody), default=0.0)
    speeds = {profile.agent: speed(profile, working) for profile in members}
    speeds.update({profile.agent: speed(profile, False) for profile in gone if profile.agent != SUMMED_UP})
    return Measures(
        agents=len(members),
        totals=totals,
        overlap=overlap(totals["done"], totals["unique"]),
        overhead=overhead(totals["forwarded"], totals["done"]),
        balance_pages=balance([(profile.count("pages"), profile.capacity) for profile in members]),
        balance_hosts=balance([(profile.count("hosts"), profile.capacity) for profile in members]),
        failed=dict(failed.most_common()),
        noted=dict(noted.most_common()),
        joined=dict(joined.most_common()),
        failed_at=_places(profile.failed_at for profile in everybody),
        noted_at=_places(profile.noted_at for profile in everybody),
        examples=examples,
        seconds=seconds,
        pages_per_second=sum(one.now for one in speeds.values()),
        average_pages_per_second=totals["pages"] / seconds if seconds else 0.0,
        speeds=speeds,
    )


def _places(told: Iterable[Mapping[str, Mapping[str, int]]]) -> dict[str, list[str]]:
    """By reason, the hosts that any agent names, the most frequent first; equals by name, so that they keep still."""
    counts: dict[str, Counter[str]] = {}
    for one in told:
        for reason, hosts in one.items():
            counts.setdefault(reason, Counter()).update(hosts)
    return {reason: sorted(hosts, key=lambda host: (-hosts[host], host)) for reason, hosts in counts.items()}
