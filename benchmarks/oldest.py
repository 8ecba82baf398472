"""What is remembered is bounded, and the oldest is forgotten: does that get dearer with what was forgotten before?

    python benchmarks/oldest.py

Prints for each such place what a step costs (us) while it fills, and when four times its bound has gone through it. The
ratio should be near 1 to 2: where the oldest is looked for from the beginning of a dict, it was 10 to 100.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from time import process_time
from unittest import mock

from scrapy import Request

from scrapy_ubi.adapter.scheduling import hostless
from scrapy_ubi.agent.hosts import learned_forms
from scrapy_ubi.protocol.done_mark_delivery import DoneMarkDelivery
from scrapy_ubi.protocol.lane import Bounds
from scrapy_ubi.protocol.outbox import Outbox
from scrapy_ubi.settings import UbiSettings

MOST = 50_000


class Numbered:
    """Fingerprints that are all different, and cost nothing."""

    def __init__(self) -> None:
        self.numbers = count()

    def fingerprint(self, request: Request) -> bytes:
        return next(self.numbers).to_bytes(20, "big")


def hostless_requests() -> Callable[[int], object]:
    """Requests without a host, each new."""
    local, request = hostless.Hostless(Numbered(), changed=lambda: None), Request("data:,x")

    def step(number: int) -> None:
        local.add(request)
        local.next_request()
        local.done()

    return step


def learned_pages() -> Callable[[int], object]:
    """Pages of which the forms are learned."""
    keys = mock.Mock()
    learner = learned_forms.LearnedForms(replace(UbiSettings(), normalise="learned"), keys, lambda host, entry: None)
    page = learned_forms._Page(1, 1, ())
    return lambda number: learner._remember(number, page)


def strays() -> Callable[[int], object]:
    """Links found on no page, forgotten flush by flush."""
    closing = DoneMarkDelivery(Outbox("store", Bounds(2, 3, 10_000, 5.0)), lambda state, record: 0, lambda state: None)

    def step(number: int) -> None:
        closing.stray(number, number // 100)
        if number % 100 == 0:
            closing.send(number // 100, most=10_000, enough=True)

    return step


def main() -> None:
    """Print a line for each place."""
    print("place                 filling   overfull   ratio")
    with mock.patch.object(hostless, "MOST_SEEN", MOST), mock.patch.object(learned_forms, "MOST_PAGES", MOST):
        for place in (hostless_requests, learned_pages, strays):
            step, costs = place(), []
            for quarter in range(5):
                began = process_time()
                for number in range(quarter * MOST, (quarter + 1) * MOST):
                    step(number)
                costs.append((process_time() - began) / MOST * 1e6)
            print(f"{place.__name__:20} {costs[0]:8.2f} {costs[-1]:10.2f} {costs[-1] / costs[0]:7.2f}")


if __name__ == "__main__":
    main()
