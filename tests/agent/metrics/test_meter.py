"""What is measured around an agent's parts, which notice nothing of it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from scrapy_ubi.agent.metrics.exposition import Exposition, Histogram
from scrapy_ubi.agent.metrics.meter import KEPT, Lag, Meter
from scrapy_ubi.protocol.bundle import gathered
from scrapy_ubi.transport import Incoming, Outgoing, TransportDown, TransportFull
from tests.support.prometheus import Recorded


def told(meter: Meter) -> Recorded:
    page = Exposition()
    meter.put(page, 'agent="a"')
    return Recorded(page.text())


def count(histogram: Histogram) -> int:
    return sum(histogram.counts)


def letter(lane: str, seq: int) -> dict[str, str]:
    return {"from": "b", "lane": lane, "seq": str(seq), "body": "[]"}


def raw(fields: dict[str, str]) -> dict[bytes, bytes]:
    return {name.encode(): value.encode() for name, value in fields.items()}


def test_a_load_is_measured_and_its_result_or_error_goes_through() -> None:
    async def carry(number: int) -> int:
        return 10 // number

    meter = Meter()
    carried = meter.load(carry)
    assert asyncio.run(carried(5)) == 2  # type: ignore[arg-type]
    with pytest.raises(ZeroDivisionError):
        asyncio.run(carried(0))  # type: ignore[arg-type]
    assert told(meter).value("ubi_load_seconds_count") == 2


def test_letters_are_counted_by_lane_and_direction_once_they_have_left() -> None:
    discovery, state = [letter("discovery", number) for number in (1, 2)], letter("state", 1)
    entries = gathered([("b", one) for one in (*discovery, state)], 10_000)
    assert len(entries) == 1, "they leave as one entry"
    incoming = Incoming(letters=[("1-0", raw(entries[0][1])), ("2-0", raw(state)), ("3-0", {b"lane": b"\xff"})])
    meter, answers = Meter(), [TransportDown("away"), incoming]

    async def exchange(out: Outgoing) -> Incoming:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    measured = meter.exchange(exchange)
    with pytest.raises(TransportDown):
        asyncio.run(measured(Outgoing(letters=entries)))
    assert (told(meter).value("ubi_redis_up"), dict(meter.letters)) == (0, {})
    assert asyncio.run(measured(Outgoing(letters=entries))) is incoming
    found = told(meter)
    assert found.value("ubi_redis_up") == 1 and count(meter.exchanges) == 2
    assert found.value("ubi_letters_total", lane="discovery", direction="sent") == 2
    assert found.value("ubi_letters_total", lane="state", direction="sent") == 1
    assert found.value("ubi_letters_total", lane="discovery", direction="received") == 2
    assert found.value("ubi_letters_total", lane="state", direction="received") == 2
    assert len(found.of("ubi_letters_total")) == 4, "what is no lane is told nowhere"


def test_a_full_redis_is_up() -> None:
    async def exchange(out: Outgoing) -> Incoming:
        raise TransportFull("full")

    meter = Meter()
    meter.redis_up = False
    with pytest.raises(TransportFull):
        asyncio.run(meter.exchange(exchange)(Outgoing()))
    assert meter.redis_up


def test_a_flush_is_measured_where_there_is_something_to_write() -> None:
    due, written = [False, True], []

    async def write() -> None:
        written.append(1)

    meter = Meter()
    measured = meter.flush(write, lambda: due.pop(0))
    for _ in range(2):
        asyncio.run(measured())
    assert (len(written), count(meter.flushes)) == (2, 1)


def test_what_a_store_has_written_is_counted_in_bytes() -> None:
    part = SimpleNamespace(size=100)

    def write(payload: bytes, part: SimpleNamespace) -> None:
        part.size += len(payload)

    meter = Meter()
    measured = meter.store("items", write)
    measured(b"12345", part)
    measured(b"678", part)
    assert told(meter).value("ubi_store_bytes_total", store="items") == 8


def test_the_longest_lag_is_told_for_a_minute() -> None:
    now = 100.0
    lag = Lag(lambda: now)
    assert lag.longest() == 0.0
    lag.late(3.0)
    for seconds in range(1, 50):
        now = 100.0 + seconds
        lag.late(0.01)
    assert lag.longest() == 3.0
    now = 100.0 + 2 * KEPT
    lag.late(0.02)
    assert lag.longest() == 0.02


def test_the_loop_is_looked_at_until_it_is_told_to_stop() -> None:
    async def main() -> float:
        lag = Lag()
        task = asyncio.ensure_future(lag.look())
        while not lag.looks:
            await asyncio.sleep(0.01)
        task.cancel()
        return lag.longest()

    assert asyncio.run(main()) >= 0.0
