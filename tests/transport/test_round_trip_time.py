"""How far the server is: the shortest of the last round trips, whatever the others took."""

from __future__ import annotations

import asyncio
from collections import Counter

from scrapy_ubi.transport.address import address
from scrapy_ubi.transport.round_trips import LATELY, RedisCommand, RoundTrips, RoundTripTime
from tests.transport.worlds import RedisWorld


def test_the_shortest_counts_and_is_forgotten_in_time() -> None:
    line = RoundTripTime()
    assert line.seconds == 0.0
    for seconds in (0.9, 0.2, 0.7, 3.0):
        line.took(seconds)
    assert line.seconds == 0.2
    for _ in range(LATELY):
        line.took(0.4)
    assert line.seconds == 0.4


def test_a_clock_that_goes_back_makes_no_time_below_zero() -> None:
    line = RoundTripTime()
    line.took(-1.0)
    assert line.seconds == 0.0


def test_an_exchange_that_asks_nothing_says_nothing_of_the_way(redis_world: RedisWorld) -> None:
    async def run() -> float:
        trips = RoundTrips(address(redis_world.server.url), "test", 5.0, Counter(), fixed=True)
        await trips.call([RedisCommand(("PING",))])
        before = trips.round_trip.seconds
        assert await trips.call([]) == []
        await trips.close()
        return trips.round_trip.seconds - before

    assert asyncio.run(run()) == 0.0
