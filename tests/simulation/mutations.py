"""Deliberate mistakes in the protocol, to check the checkers: the simulator must catch every one of them.

Each is a patch of one rule. `SEEDS` says where it is known to be caught, so that the test is quick; a mutation that is
not caught there any more is searched for anew with `python -m tests.simulation.mutations`.

Three rules are too rarely decisive for a few hundred crawls, and have tests of their own instead: two waves of
quiescence instead of one (tests/protocol/test_quiescence.py), that every view entered counts (test_tenure.py), and the
nearest replica instead of the clockwise one (test_ring.py, Figure 1).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from scrapy_ubi.protocol import custody
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.handover import Handover
from scrapy_ubi.protocol.mail import DISCOVERY, STATE, Lane
from scrapy_ubi.protocol.membership import Membership
from scrapy_ubi.protocol.outbox import Outbox
from scrapy_ubi.protocol.tenure import Tenure
from scrapy_ubi.protocol.view import Beat, Watch

from .checkers import Violation
from .plans import Plan


def _done_mark_early() -> Any:
    return patch.object(Outbox, "done_may_leave", lambda self, flush: True)


def _no_lease_at_dispatch() -> Any:
    return patch.object(Membership, "may_act", lambda self, now: self.sure)


def _acknowledged_before_successors() -> Any:
    return patch.object(custody, "_told", lambda outbox, successor, flush: True)


def _no_wait_for_settled() -> Any:
    return patch.object(Tenure, "free", lambda self, host, alive: True)


def _one_window_for_both_lanes() -> Any:
    def one_window(self: Outbox, now: float, view: str) -> Iterator[Any]:
        for lane in list(self.lanes.values()):
            for letter in lane.resend(now):
                yield lane, letter, True
            other = self.lanes.get((lane.receiver, STATE if lane.kind == DISCOVERY else DISCOVERY))
            used = len(other.unacknowledged) if other is not None else 0
            bounds = self.bounds._replace(window=max(0, self.bounds.window - used))
            for letter in lane.post(now, view, bounds):
                yield lane, letter, False

    return patch.object(Outbox, "post", one_window)


def _ages_kept_after_own_pause() -> Any:
    read = Watch.read

    def never_away(self: Watch, sent: float, received: float, beats: Mapping[str, Beat]) -> None:
        self._last_read = None
        read(self, sent, received, beats)

    return patch.object(Watch, "read", never_away)


def _sure_at_once() -> Any:
    return patch.object(Membership, "sure", property(lambda self: True, lambda self, value: None), create=True)


def _fence_ends_by_itself() -> Any:
    def mend(self: Membership, alive: Mapping[str, Beat], digest: str) -> bool:
        self.lease.mend(self.lease.gaps)
        return True

    return patch.object(Membership, "mend", mend)


def _nobody_answers_for_the_dead() -> Any:
    def only_the_owner(self: Tenure, host: str, alive: Any) -> bool:
        return self.complete is not None and self.complete.ring.owner(host) == self.me

    return patch.object(Tenure, "answers_for", only_the_owner)


def _pending_hosts_not_listed() -> Any:
    return patch.object(Handover, "pending", property(lambda self: {}, lambda self, value: None), create=True)


def _mail_of_the_dead_forgotten() -> Any:
    take_back = Outbox.take_back

    def forget(self: Outbox, view: Any) -> Any:
        gone, entries, states = take_back(self, view)
        for record in entries:
            self.close(record)
        return gone, [], states

    return patch.object(Outbox, "take_back", forget)


def _resent_never() -> Any:
    return patch.object(Lane, "resend", lambda self, now: [])


def _dead_may_come_back() -> Any:
    return patch.object(Agent, "_rejoin", lambda self: None)


MUTATIONS: dict[str, Callable[[], Any]] = {
    name[1:]: make
    for name, make in sorted(globals().items())
    if name.startswith("_") and callable(make) and getattr(make, "__module__", "") == __name__
}

SEEDS: dict[str, int] = {
    "acknowledged_before_successors": 203,
    "ages_kept_after_own_pause": 85,
    "dead_may_come_back": 34,
    "done_mark_early": 881,
    "fence_ends_by_itself": 533,
    "mail_of_the_dead_forgotten": 8,
    "no_lease_at_dispatch": 272,
    "no_wait_for_settled": 11,
    "nobody_answers_for_the_dead": 120,
    "one_window_for_both_lanes": 13,
    "pending_hosts_not_listed": 16,
    "resent_never": 1,
    "sure_at_once": 3,
}


@contextmanager
def mutated(name: str) -> Iterator[None]:
    """The protocol with one mistake."""
    with MUTATIONS[name]():
        yield


def caught(name: str, seed: int) -> str:
    """What the simulator says of this mutation under that seed; '' when it notices nothing."""
    with mutated(name):
        try:
            Plan(seed).run()
        except (Violation, AssertionError) as violation:
            return str(violation) or "an invariant does not hold"
    return ""


def search(name: str, seeds: range) -> tuple[int, str]:
    """The first seed that catches a mutation."""
    for seed in seeds:
        if told := caught(name, seed):
            return seed, told
    return -1, ""


if __name__ == "__main__":
    for mutation in sys.argv[1:] or MUTATIONS:
        found, what = search(mutation, range(600))
        print(f'    "{mutation}": {found},  # {what[:90]}', flush=True)
