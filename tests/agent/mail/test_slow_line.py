"""Letters over a line that carries few of them within the time-out."""

from __future__ import annotations

import json

import pytest

from scrapy_ubi.agent.mail.outage import LONGEST_PAUSE
from scrapy_ubi.transport import Incoming, Outgoing, TransportDown
from tests.agent.office import Office, run
from tests.support.views import ordered
from tests.support.village import page


def test_letters_that_are_too_much_for_one_exchange_leave_in_parts() -> None:
    """A slow line cannot carry them within the time-out."""

    async def trip(office: Office) -> None:
        office.now += LONGEST_PAUSE
        office.post.send(office.now, lambda: "{}")
        await office.arrival()

    async def test() -> None:
        office = Office()
        office.join()
        await office.trip()
        told = office.post.told_at
        exchange = office.transport.exchange
        sent: list[int] = []

        async def narrow(out: Outgoing) -> Incoming:
            if len(out.letters) > 2:
                raise TransportDown("It did not answer in time.")
            sent.extend(int(value) for _, fields in out.letters for name, value in fields.items() if name[:3] == "seq")
            return await exchange(out)

        office.transport.exchange = narrow  # type: ignore[method-assign]
        host = ordered("b", "a")
        for number in range(150):
            office.agent.discovery.discover(host, page(host, number + 10**60))
        while not sent:
            await trip(office)
        assert office.post.busy and office.post.told_at == told, "the rest is still to be told"
        office.shelf.agents.clear()
        await trip(office)
        assert office.post.busy and office.shelf.agents[b"a"] == b"{}", "who takes long is not taken for silent"
        while office.post.busy:
            await trip(office)
        assert len(sent) > 4 and sent == list(range(1, len(sent) + 1)), "each of them once"
        assert office.post.told_at > told and not office.post.away

    run(test)


def test_exchanges_of_little_do_not_say_that_the_line_carries_much() -> None:
    """After each pause in the mail all of it was tried at once again, in vain, and left copies in the inboxes."""

    async def test() -> None:
        office = Office()
        office.join()
        await office.trip()
        exchange = office.transport.exchange
        sizes: list[int] = []

        async def narrow(out: Outgoing) -> Incoming:
            if out.letters:
                office.now += 1.0
                sizes.append(len(out.letters))
            if len(out.letters) > 2:
                raise TransportDown("It did not answer in time.")
            return await exchange(out)

        office.transport.exchange = narrow  # type: ignore[method-assign]
        host = ordered("b", "a")
        for number in range(300):
            if number == 150:
                assert max(sizes) > 4
                for lane in office.agent.outbox.lanes.values():
                    office.agent.outbound.answered(lane.name, json.dumps({"acked": [*lane.unacknowledged]}), office.now)
                await office.trips(10)
                sizes.clear()
            office.agent.discovery.discover(host, page(host, number + 10**60))
            if number % 150 == 149:
                await office.trips(1)
                while office.post.busy:
                    await office.trips(1)
        assert max(sizes) <= 3

    run(test)


@pytest.mark.parametrize("in_parts", [False, True])
def test_letters_that_left_long_after_the_drain_are_not_sent_again_at_once(in_parts: bool) -> None:
    """Over a slow line, or as Redis was away: each would be in the inbox twice before anybody could have read it."""

    async def test() -> None:
        office = Office()
        office.join()
        await office.trips(1)
        outbox = office.agent.outbox
        outbox.bounds = outbox.bounds._replace(resend=5.0)
        exchange, sent = office.transport.exchange, []

        async def slow(out: Outgoing) -> Incoming:
            office.now += 3
            if len(out.letters) > (2 if in_parts else 99) or (not in_parts and office.now < 130):
                raise TransportDown("It did not answer in time.")
            sent.extend(fields["seq"] for _, fields in out.letters)
            return await exchange(out)

        host = ordered("b", "a")
        for number in range(150):
            office.agent.discovery.discover(host, page(host, number + 10**60))
        office.transport.exchange = slow  # type: ignore[method-assign]
        while not sent or office.post.busy:
            await office.trips(1)
        assert len(sent) > 4 and sent == [str(number) for number in range(1, len(sent) + 1)]
        assert not list(outbox.post(office.now + 4, ""))
        assert len(list(outbox.post(office.now + 6, ""))) == len(sent), "but after the time-out"

    run(test)
