"""What an agent tells people about itself, as it lies in the crawl's `agents` hash; judged before it is believed.

A profile is taken whole or not at all: `read_profile` gives the profile, or the reason why it is unreadable. Counters
that are missing count as 0, since an older agent may not know them; unknown ones are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from scrapy_ubi.agent.profile.idle_reason import IdleReason, read_reason
from scrapy_ubi.agent.profile.remaining import Point, SlowHost
from scrapy_ubi.ground.untrusted.checks import (
    MOST_COUNT,
    Fields,
    Malformed,
    is_list,
    is_mapping,
    is_number,
    is_text,
    json_object,
)
from scrapy_ubi.settings import FINGERPRINTER
from scrapy_ubi.urls import host_shards
from scrapy_ubi.urls.normaliser import is_composition

MAX_PROFILE = 65_536  # bytes; a real one has about 1,000
MAX_REASONS = 1_000  # distinct reasons of failed URLs
MAX_ARGUMENTS = 100  # of a spider
LONGEST_ARGUMENT = 1_000  # characters
MAX_EXAMPLES = 10  # of what one step has joined
MAX_CODE = 16  # digits of a digest
MAX_PATH = 1_000  # characters of its directory
MAX_ADDRESS = 300  # characters of where it answers Prometheus
LONGEST_HOST = 300  # characters of a host's name
MAX_POINTS = 64  # of a curve
MAX_REFUSED = 5  # live entries that the agent has refused, of those in Redis now
LONGEST_REFUSED = 300  # characters of why
LONGEST_EXAMPLE = 1_000  # characters of a URL in them

STATES = ("joining", "crawling", "waiting", "paused", "blocked", "fenced", "leaving", "left", "finished")

# Every counter of an agent that is one whole number, with its meaning; `docs/reference/counters-and-measures.md`
# lists them.
COUNTERS: Mapping[str, str] = {
    "pages": "responses fetched",
    "body_bytes": "bytes of bodies received, where a limit counts them",
    "done": "URLs finished here: fetched and parsed, or failed permanently",
    "unique": "finished URLs, each counted once, of the hosts the agent owns",
    "known": "URLs known of the hosts the agent owns",
    "queued": "URLs that wait to be fetched",
    "in_flight": "requests handed to Scrapy and not finished",
    "hosts": "hosts the agent owns",
    "hosts_held": "owned hosts with URLs waiting that may not be fetched yet, since they are still being handed over",
    "hosts_busy": "owned hosts of which a URL is handed to Scrapy now",
    "hosts_waiting": "owned hosts of which none is, with URLs waiting",
    "hosts_complete": "owned hosts of which all known URLs are finished and settled",
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
    "mail_put_off": "letters and answers not written at once, as the Redis of their mail slot was away or full",
    "writes_refused": "exchanges that Redis refused because it had reached its memory limit",
    "fences": "times the agent was cut off for longer than its lease, and stopped fetching",
    "rejoins": "times the others had declared the agent dead, and it joined again",
    "visited": "visits of pages that were visited before",
    "heavy_rows": "pages that are not visited again, as their requests are longer than half a letter",
    "redone": "pages of a lost agent that were done without a fetch, from what it had told of them",
    "handoff_timeouts": "times it began to fetch although not everything had been handed over to it",
    "received_bytes": "bytes of responses that its present process has received",
    "lost_agents": "agents that were lost together, more than there are copies, and were not back at the end",
}

# Counters that say what an agent has now, not what it has done: those of a dead agent describe what others have taken
# over.
STANDING = (
    *("unique", "known", "queued", "in_flight", "outbox"),
    *("hosts", "hosts_held", "hosts_busy", "hosts_waiting", "hosts_complete"),
)

MOST_MAIL_SLOTS = 256


@dataclass(frozen=True, slots=True)
class Profile:
    """One agent's profile. `started` and `updated` are unix seconds by the agent's own clock; `metrics` is where it
    answers Prometheus (host:port), empty: nowhere; `directory` is the agent's on its machine, empty: not known. `code`:
    a digest of the spider's code, empty: none. `seeds`: it takes URLs from outside; `serve`: the crawl waits for them.
    `slowest`: what its slowest host needs; `curve`: `remaining.Point`, the youngest first; `endless`: the setting by
    which its crawl does not end by itself; `most_pages`, `most_seconds`: the limits of the crawl (0: none); `idle`: why
    it fetches nothing, where it does not."""

    agent: str
    incarnation: str = ""
    capacity: float = 1.0
    replicas: int = 0
    partition: str = "host"
    normaliser: str = "safe"
    host_rules: str = "none"
    host_shards: str = "none"
    named_by: str = ""
    fingerprinter: str = FINGERPRINTER
    replication: int = 0
    mail_slots: int = 1
    seeds: bool = False
    serve: bool = False
    spider: str = ""
    spider_class: str = ""
    code: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)
    host_name: str = ""
    pid: int = 0
    version: str = ""
    metrics: str = ""
    directory: str = ""
    state: str = "joining"
    started: float = 0.0
    updated: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)
    responses: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)
    requeued: Mapping[str, int] = field(default_factory=dict)
    noted: Mapping[str, int] = field(default_factory=dict)
    joined: Mapping[str, int] = field(default_factory=dict)
    examples: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    failed_at: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    noted_at: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    live: str = ""
    live_refused: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    pages_per_second: float = 0.0
    slowest: SlowHost | None = None
    curve: tuple[Point, ...] = ()
    endless: str = ""
    most_pages: int = 0
    most_seconds: float = 0.0
    idle: IdleReason | None = None

    @property
    def failing(self) -> dict[str, int]:
        """URLs by the reason why they have failed, but for those that people had fetched again since: what has
        failed again is counted once more."""
        return still_failed(self.failed, self.requeued)

    def count(self, name: str) -> int:
        """A counter of `COUNTERS`; 0 when the agent did not publish it."""
        return self.counts.get(name, 0)


def still_failed(failed: Mapping[str, int], requeued: Mapping[str, int]) -> dict[str, int]:
    """How many have failed by reason, without those that were requeued."""
    left = {reason: number - requeued.get(reason, 0) for reason, number in failed.items()}
    return {reason: number for reason, number in left.items() if number > 0}


def read_profile(agent: str, raw: bytes) -> Profile | str:
    """The profile published under the name `agent`, or the reason why it is unreadable."""
    if len(raw) > MAX_PROFILE:
        return f"{len(raw)} bytes, more than {MAX_PROFILE}"
    try:
        return _profile(agent, json_object(raw))
    except Malformed as reason:
        return str(reason)


def _profile(agent: str, data: Mapping[str, object]) -> Profile:
    if data.get("agent") != agent:
        raise Malformed("names another agent")
    said = Fields(data)
    state = said.text("state")
    if state not in STATES:
        raise Malformed("unknown state")
    partition = said.text("partition", "host")
    if partition not in ("host", "domain"):
        raise Malformed("unknown partition")
    normaliser = said.text("normaliser", "safe")
    if not is_composition(normaliser):
        raise Malformed("unknown normaliser")
    capacity = said.number("capacity", 1.0)
    if capacity <= 0:
        raise Malformed("capacity is not positive")
    counters = data.get("counters", {})
    if not isinstance(counters, dict):
        raise Malformed("counters are not an object")
    counted = Fields(counters)
    return Profile(
        agent=agent,
        incarnation=said.text("incarnation"),
        capacity=capacity,
        replicas=said.count("replicas"),
        partition=partition,
        normaliser=normaliser,
        host_rules=said.text("host_rules", "none"),
        host_shards=_shards(said.text("host_shards", "none")),
        named_by=said.text("named_by"),
        fingerprinter=said.text("fingerprinter", FINGERPRINTER),
        replication=said.count("replication"),
        mail_slots=min(max(said.count("mail_slots"), 1), MOST_MAIL_SLOTS),
        seeds=data.get("seeds") is True,
        serve=data.get("serve") is True,
        spider=said.text("spider"),
        spider_class=said.text("spider_class"),
        code=said.text("code")[:MAX_CODE],
        arguments=_arguments(data.get("arguments", {})),
        host_name=said.text("host_name"),
        pid=said.count("pid"),
        version=said.text("version"),
        metrics=said.text("metrics")[:MAX_ADDRESS],
        directory=said.text("directory") if len(said.text("directory")) <= MAX_PATH else "",
        state=state,
        started=said.number("started"),
        updated=said.number("updated"),
        counts={name: counted.count(name) for name in COUNTERS},
        responses=_reasons(counted, "responses"),
        failed=_reasons(counted, "failed"),
        requeued=_reasons(counted, "requeued"),
        noted=_reasons(counted, "noted"),
        joined=_reasons(counted, "joined"),
        examples=_examples(counters.get("examples", {})),
        failed_at=_places(counted, "failed_at"),
        noted_at=_places(counted, "noted_at"),
        live=said.text("live"),
        live_refused=_refused(data.get("live_refused", {})),
        seconds=counted.number("seconds"),
        pages_per_second=counted.number("pages_per_second"),
        slowest=_slowest(counters.get("slowest")),
        curve=_curve(data.get("curve", [])),
        endless=_endless(data),
        most_pages=said.count("most_pages"),
        most_seconds=said.number("most_seconds"),
        idle=read_reason(data.get("idle")),
    )


def _slowest(value: object) -> SlowHost | None:
    """The slowest host of the agent, as it says; None where it says nothing that holds together."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise Malformed("the slowest host is not an object")
    said = Fields(value)
    return SlowHost(
        host=said.text("host")[:LONGEST_HOST],
        queued=said.count("queued"),
        delay=said.number("delay"),
        load=said.number("load"),
        loads=max(1, said.count("loads")),
        rest=said.number("rest"),
        why=said.text("why")[:LONGEST_HOST],
        every=said.number("every"),
        each=said.number("each"),
        free=said.count("free"),
    )


def _curve(value: object) -> tuple[Point, ...]:
    if not is_list(value, MAX_POINTS, _is_point):
        raise Malformed("the curve is no list of points")
    curve = tuple(Point(*point) for point in value)
    if any(later.ago < point.ago for point, later in pairwise(curve)):
        raise Malformed("the curve is not in the order of time")
    return curve


def _is_point(value: object) -> bool:
    return is_list(value, 3, lambda number: is_number(number, MOST_COUNT)) and len(value) == 3


def _endless(data: Mapping[str, object]) -> str:
    """By which setting the crawl does not end by itself; empty when it does."""
    if data.get("serve") is True:
        return "UBI_SERVE"
    again = data.get("recrawl", "") not in ("", "none", "never", None)
    return "UBI_RECRAWL" if again and data.get("recrawl_rounds") == "none" else ""


def _shards(name: str) -> str:
    """The name of a table of shards."""
    try:
        host_shards.read_name(name)
    except ValueError:
        raise Malformed("unknown shards") from None
    return name


_NO_REASONS = "is not an object of reasons"


def _reasons(data: Fields, name: str) -> dict[str, int]:
    value = data.mapping(name, MAX_REASONS, _NO_REASONS)
    counts = Fields(value)
    return {reason: counts.count(reason) for reason in value}


def _places(data: Fields, name: str) -> dict[str, dict[str, int]]:
    """By reason, hosts and how often each was met there."""
    value = data.mapping(name, MAX_REASONS, _NO_REASONS)
    if not all(isinstance(counts, dict) for counts in value.values()):
        raise Malformed(f"{name} {_NO_REASONS}")
    places = Fields(value)
    return {reason: _reasons(places, reason) for reason in value}


def _arguments(value: object) -> dict[str, str]:
    """The spider's arguments, as people may see them."""
    if not is_mapping(value, MAX_ARGUMENTS, lambda text: is_text(text, LONGEST_ARGUMENT)):
        raise Malformed("arguments are not an object of texts")
    return dict(value)


def _examples(value: object) -> dict[str, tuple[tuple[str, str], ...]]:
    """By step, pairs of a URL that was joined and its normal form."""
    if not isinstance(value, dict) or len(value) > MAX_REASONS:
        raise Malformed("examples are not an object of steps")
    if not all(is_list(pairs, MAX_EXAMPLES, _is_example) for pairs in value.values()):
        raise Malformed("examples are not pairs of URLs")
    return {step: tuple((url, normal) for url, normal in pairs) for step, pairs in value.items()}


def _refused(value: object) -> dict[str, str]:
    if not is_mapping(value, MAX_REFUSED, lambda why: is_text(why, LONGEST_REFUSED)):
        raise Malformed("refused entries are not an object of reasons")
    return dict(value)


def _is_example(pair: object) -> bool:
    return is_list(pair, 2, lambda url: is_text(url, LONGEST_EXAMPLE)) and len(pair) == 2
