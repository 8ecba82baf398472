"""What a node is started with, and whom it tells: the values and the events between a node and its adapter.

Rules of this module:

* A node never asks its adapter for a part: what it needs is given at the start, what happens is told by `NodeEvents`.
* Every event is called in the node's event loop, and returns at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from scrapy_ubi.agent.mail.seed_inbox import REFUSED, SeedOutcome
from scrapy_ubi.agent.profile.figures import Traffic
from scrapy_ubi.agent.profile.idle_reason import IdleReason
from scrapy_ubi.agent.profile.origin import UNKNOWN, Origin


@dataclass(frozen=True, slots=True)
class Start:
    """How one agent is started. `agent_id` is its identifier, `spider` the name of its spider, `origin` what it is
    started from; `predecessor` is the incarnation that ran in the same directory before, if any; `started` is when, by
    the node's clock (s), the process was started for this crawl, None: just now; `traffic` says what this process has
    received of the web. `metrics` is where it answers Prometheus (host:port), empty: nowhere.
    """

    agent_id: str
    spider: str
    origin: Origin = UNKNOWN
    predecessor: str | None = None
    started: float | None = None
    traffic: Callable[[], Traffic] = Traffic
    metrics: str = ""


class NodeEvents:
    """What a node tells its adapter. Here nothing follows from it; an adapter overrides what it cares for."""

    def wake(self) -> None:
        """Look for requests again: a host became ready, or the crawl is over."""

    def cancel(self) -> None:
        """Abort all loads under way: the agent is fenced."""

    def fatal(self, sentence: str) -> None:
        """Stop, for the reason that the sentence gives."""

    def drain(self) -> None:
        """A person has asked this agent to leave. Called once."""

    def given_up(self, reason: str) -> None:
        """A request failed without a load, for this reason, as its host is ended or beyond a limit."""

    def limit(self, reason: str, sentence: str) -> None:
        """Leave: the crawl has reached the limit of this name, as the sentence says. Called once."""

    def incarnation(self, incarnation: str) -> None:
        """Record durably that this incarnation runs now."""

    def seed(self, number: str, fields: Mapping[str, str]) -> SeedOutcome:
        """Take this seed, which has come from outside and has this id, or say why not."""
        return SeedOutcome(REFUSED, "this crawl takes none")

    def host_complete(self, figures: Mapping[str, object]) -> None:
        """A host is complete: its name, why, and its figures (`hosts.complete_hosts`)."""

    def held_up(self) -> tuple[bool, IdleReason | None]:
        """Whether no further request is asked for, and what those under way wait for (None: nothing is)."""
        return False, None

    def flush(self) -> str:
        """Make outlast this process what the pages have given that are done by now. Why that cannot be, as a sentence;
        empty when it is done."""
        return ""
