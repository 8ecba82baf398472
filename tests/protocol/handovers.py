"""Hosts that change hands: what the tests of handovers have in common."""

from __future__ import annotations

from collections.abc import Iterator

from scrapy_ubi.protocol.lane import STATE
from scrapy_ubi.protocol.wire import Delta, Received
from tests.support.village import Village, page


def full(village: Village, host: str, pages: int = 3) -> None:
    """The host's owner finds these pages, and its successors have them."""
    owner = village.agents[next(iter(village.agents.values())).keeping.ring.order(host, 1)[0]]
    for number in range(pages):
        owner.discovery.discover(host, page(host, number))
    village.settle()
    village.log.clear()


def told(village: Village, host: str) -> Iterator[tuple[str, str, str]]:
    """(from, to, what) of every state letter about this host: `offer`, or how many facts."""
    for receiver, letter in village.log:
        for delta in letter.deltas:
            if delta.host == host and letter.kind == STATE:
                facts = len(delta.discovered) + len(delta.done)
                yield letter.sender, receiver, "offer" if delta.offer is not None else str(facts)


OTHER_VIEW = "00000000000000ee"


def bring(village: Village, name: str, host: str, number: int, view: str = OTHER_VIEW) -> None:
    """A state letter reaches this agent from somebody who has another view: what it says is not covered."""
    delta = Delta(host, (page(host, number),), (), None)
    village.agents[name].inbound.receive(Received("z", f"z/{name}/state", STATE, number, number, view, (delta,)))
