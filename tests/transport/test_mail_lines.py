"""Mail in slots of a cluster: each master by itself."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator

import pytest

from scrapy_ubi.transport import Incoming, Outgoing, Transport, TransportDown
from scrapy_ubi.transport.address import address
from scrapy_ubi.transport.mail_lines import LEAST_BYTES, MailLine
from scrapy_ubi.transport.redis import RedisTransport
from scrapy_ubi.transport.redis_keys import RedisKeys, hash_slot
from scrapy_ubi.transport.round_trips import RedisCommand, RoundTrips
from tests.conftest import KINDS, no_server
from tests.support.redis_groups import Cluster, ClusterNode, ask
from tests.transport.exchanges import letter, open_in_time, read_again, seqs
from tests.transport.worlds import CRAWL

SLOTS = 3
KEYS = RedisKeys(CRAWL, SLOTS)
LIMIT = 30.0  # s


@pytest.fixture(scope="module")
def _cluster() -> Iterator[Cluster]:
    if not KINDS:
        no_server()
    cluster = Cluster(KINDS[0], masters=SLOTS, replicas=0, node_timeout=60_000).start()
    yield cluster
    cluster.stop()


@pytest.fixture
def cluster(_cluster: Cluster) -> Iterator[Cluster]:
    """Three masters, all empty, put right again after the test."""
    yield _cluster
    for node in _cluster.masters:
        if node.running:
            node.resume()
            ask(node, "CONFIG", "SET", "maxmemory", "0")
        else:
            node.start()
        node.flush()
    _cluster.wait_until_whole()


def slot_of(agent: str) -> int:
    return hash_slot(KEYS.mail_tag(agent))


def master(cluster: Cluster, agent: str) -> ClusterNode:
    return cluster.owner(slot_of(agent))


def apart(cluster: Cluster) -> tuple[str, str, str]:
    """Three agents, each with its mail at another master, the first at that of the crawl itself."""
    names = [f"a{number}" for number in range(SLOTS)]
    first = next(name for name in names if master(cluster, name) is cluster.owner(KEYS.slot))
    names.remove(first)
    return first, names[0], names[1]


def play(cluster: Cluster, scene: Callable[..., Awaitable[None]]) -> None:
    """Run `scene` with the open transports of three agents whose mail is at three masters."""

    async def run() -> None:
        names = apart(cluster)
        transports = [RedisTransport(cluster.url, CRAWL, name, timeout=1.0, mail_slots=SLOTS) for name in names]
        await open_in_time(*transports)
        try:
            await asyncio.wait_for(scene(*transports), LIMIT)
        finally:
            for name in names:
                if not (node := master(cluster, name) if node_runs(cluster, name) else None):
                    continue
                node.resume()
            for transport in transports:
                await transport.close()

    asyncio.run(run())


def node_runs(cluster: Cluster, agent: str) -> bool:
    try:
        return master(cluster, agent).running
    except AssertionError:
        return False


async def until(transport: Transport, holds: Callable[[Incoming], object], out: Outgoing = Outgoing()) -> Incoming:  # noqa: B008
    """Exchange until what came is as it should be."""
    while not holds(incoming := await transport.exchange(out)):
        out = Outgoing()
        await asyncio.sleep(0.01)
    return incoming


@pytest.mark.parametrize("how", ["kill", "pause"])
def test_a_master_that_is_away_holds_back_the_letters_of_its_slot_alone(cluster: Cluster, how: str) -> None:
    _, second, third = apart(cluster)
    away = master(cluster, third)

    async def scene(a: Transport, b: Transport, c: Transport) -> None:
        assert (await a.exchange(Outgoing())).slots_away == 0
        getattr(away, how)()
        both = Outgoing(letters=[(second, letter(1)), (third, letter(2))], acks={(third, "l"): "1"})
        first = await a.exchange(both)
        assert seqs(await read_again(b)) == [1]
        put_off, late = first.put_off, set(first.late)
        while put_off < 2:
            incoming = await a.exchange(Outgoing())
            put_off += incoming.put_off
            late |= {*incoming.late}
            await asyncio.sleep(0.01)
        assert late == set()
        assert (await until(a, lambda it: it.slots_away)).slots_away == 1
        with pytest.raises(TransportDown):
            await c.exchange(Outgoing(waits=True))
        assert seqs(await c.exchange(Outgoing(control={"run": "1"}))) == [], "it goes on without its mail"
        assert (await b.exchange(Outgoing())).control == {"run": "1"}
        away.start() if how == "kill" else away.resume()
        assert (await until(a, lambda it: it.late)).late == (third,)
        assert (await a.exchange(Outgoing(letters=[(third, letter(3))]))).put_off == 0
        assert 3 in seqs(await read_again(c))

    play(cluster, scene)


def test_a_master_that_is_full_stops_those_who_write_to_it_and_can_be_read(cluster: Cluster) -> None:
    _, second, third = apart(cluster)
    full = master(cluster, third)

    async def scene(a: Transport, b: Transport, c: Transport) -> None:
        await a.exchange(Outgoing(letters=[(third, letter(1))]))
        ask(full, "CONFIG", "SET", "maxmemory", "1")
        incoming = await until(a, lambda it: it.put_off, Outgoing(letters=[(second, letter(2)), (third, letter(3))]))
        assert (incoming.put_off, incoming.slots_away) == (1, 1)
        assert seqs(await read_again(b)) == [2]
        waiting = await read_again(c)
        assert seqs(waiting) == [1]
        await until(c, lambda it: True, Outgoing(consumed=[one for one, _ in waiting.letters], waits=True))
        assert ask(full, "XLEN", KEYS.inbox(third)) == 0
        ask(full, "CONFIG", "SET", "maxmemory", "0")
        await until(a, lambda it: third in it.late)
        await a.exchange(Outgoing(letters=[(third, letter(3))]))
        assert seqs(await read_again(c)) == [3]

    play(cluster, scene)


def test_letters_reach_a_slot_that_is_on_its_way_to_another_master_and_that_has_moved(cluster: Cluster) -> None:
    _, second, third = apart(cluster)
    slot = slot_of(third)
    old, new = master(cluster, third), master(cluster, second)

    async def scene(a: Transport, b: Transport, c: Transport) -> None:
        await a.exchange(Outgoing())
        ask(new, "CLUSTER", "SETSLOT", slot, "IMPORTING", old.name)
        ask(old, "CLUSTER", "SETSLOT", slot, "MIGRATING", new.name)
        out = Outgoing(letters=[(third, letter(1))], acks={(third, "lane"): "[1]"})
        assert (await a.exchange(out)).put_off == 0
        incoming = await read_again(c)
        assert (seqs(incoming), incoming.acks) == ([1], {"lane": "[1]"})
        consumed = Outgoing(consumed=[one for one, _ in incoming.letters])
        ask(new, "CLUSTER", "SETSLOT", slot, "STABLE")
        ask(old, "CLUSTER", "SETSLOT", slot, "STABLE")
        cluster.move(slot, new)
        assert (await a.exchange(Outgoing(letters=[(third, letter(2))]))).put_off == 0
        assert seqs(await read_again(c, consumed)) == [2]
        assert (await a.exchange(Outgoing())).slots_away == 0

    play(cluster, scene)
    cluster.move(slot, old)


def test_the_memory_of_a_slot_is_another_one_after_it_was_emptied_and_then_only(cluster: Cluster) -> None:
    first, _, third = apart(cluster)

    async def scene(a: Transport, b: Transport, c: Transport) -> None:
        there = (await until(c, lambda it: it.memory)).memory
        others = (await until(a, lambda it: it.memory)).memory
        await a.exchange(Outgoing(letters=[(third, letter(1))]))
        master(cluster, third).flush()
        assert (await until(c, lambda it: it.memory != there)).memory
        assert (await a.exchange(Outgoing())).memory == others
        master(cluster, first).flush()  # what the crawl itself has says nothing of mail elsewhere
        now = (await c.exchange(Outgoing())).memory
        assert all([(await c.exchange(Outgoing())).memory == now for _ in range(3)])

    play(cluster, scene)


def test_a_line_that_is_behind_has_a_bound(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    from scrapy_ubi.transport import mail_lines

    monkeypatch.setattr(mail_lines, "MOST_WAITING", 10)
    _, _, third = apart(cluster)
    paused = master(cluster, third)

    async def scene(a: Transport, b: Transport, c: Transport) -> None:
        paused.pause()
        put_off = 0
        for number in range(6):
            out = Outgoing(letters=[(third, letter(10 * number + one)) for one in range(10)])
            put_off += (await a.exchange(out)).put_off
        assert put_off >= 60 - 20
        paused.resume()
        await until(a, lambda it: third in it.late)

    play(cluster, scene)


def test_an_error_that_nobody_foresaw_in_a_line_ends_the_exchange(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not only logged, some time later, by the loop."""
    from scrapy_ubi.transport.mail_lines import MailLine

    _, second, _ = apart(cluster)

    def broken(*_: object) -> None:
        raise LookupError("a mistake of ours")

    async def scene(a: Transport, b: Transport, c: Transport) -> None:
        monkeypatch.setattr(MailLine, "carried", broken)
        with pytest.raises(LookupError):
            await a.exchange(Outgoing(letters=[(second, letter(1))]))
        monkeypatch.undo()
        await a.exchange(Outgoing(letters=[(second, letter(2))]))

    play(cluster, scene)


def test_who_is_forgotten_is_forgotten_with_the_mail_in_its_slot(cluster: Cluster) -> None:
    _, _, third = apart(cluster)

    async def scene(a: Transport, b: Transport, c: Transport) -> None:
        assert await c.claim(third, None, "line")
        await a.exchange(Outgoing(letters=[(third, letter(1))], acks={(third, "lane"): "[1]"}))
        await a.forget({third: "another"})
        await a.exchange(Outgoing())
        assert ask(master(cluster, third), "XLEN", KEYS.inbox(third)) == 1
        await a.forget({third: "line"})
        while ask(master(cluster, third), "EXISTS", KEYS.inbox(third), KEYS.acks(third)):
            await asyncio.sleep(0.01)

    play(cluster, scene)


def test_the_mail_of_who_is_forgotten_goes_when_its_master_is_back(cluster: Cluster) -> None:
    _, _, third = apart(cluster)
    paused = master(cluster, third)

    async def scene(a: Transport, b: Transport, c: Transport) -> None:
        assert await c.claim(third, None, "line")
        await a.exchange(Outgoing(letters=[(third, letter(1))]))
        paused.pause()
        try:
            while not (await a.exchange(Outgoing(letters=[(third, letter(2))]))).put_off:
                pass
            await a.forget({third: "line"})
        finally:
            paused.resume()
        while ask(paused, "EXISTS", KEYS.inbox(third)):
            await a.exchange(Outgoing())
            await asyncio.sleep(0.01)

    play(cluster, scene)


def test_mail_that_cannot_come_at_once_from_its_master_comes_in_parts(cluster: Cluster) -> None:
    """As by one server: it hangs up on who is sent too much, as does a line too slow for it within the time-out."""
    _, _, third = apart(cluster)
    own = master(cluster, third)

    async def scene(a: Transport, b: Transport, c: Transport) -> None:
        for number in range(20):
            await a.exchange(Outgoing(letters=[(third, {**letter(number), "body": "x" * 100_000})]))
        while ask(own, "XLEN", KEYS.inbox(third)) < 20:
            await asyncio.sleep(0.01)
        ask(own, "CONFIG", "SET", "client-output-buffer-limit", "normal 600000 0 0")
        came: list[int] = []
        try:
            while len(came) < 20:
                incoming = await read_again(c)
                came += seqs(incoming)
                await c.exchange(Outgoing(consumed=[one for one, _ in incoming.letters], read_inbox=False))
        finally:
            ask(own, "CONFIG", "SET", "client-output-buffer-limit", "normal 0 0 0")
        assert came == list(range(20))

    play(cluster, scene)


def test_a_run_that_is_cleared_leaves_no_mail_at_any_master(cluster: Cluster) -> None:
    gone = [f"gone{number}" for number in range(SLOTS)]

    async def scene(a: Transport, b: Transport, c: Transport) -> None:
        await a.exchange(Outgoing(letters=[(name, letter(1)) for name in gone], acks={(gone[0], "lane"): "[1]"}))
        inboxes = {name: KEYS.inbox(name) for name in gone}
        assert len({master(cluster, name) for name in gone}) == SLOTS
        while not all(ask(master(cluster, name), "EXISTS", key) for name, key in inboxes.items()):
            await asyncio.sleep(0.01)
        assert await c.clear()
        left = [key for name, key in inboxes.items() if ask(master(cluster, name), "EXISTS", key)]
        assert left == []

    play(cluster, scene)


def test_what_waits_for_a_line_that_failed_leaves_in_smaller_batches_and_all_of_it_once() -> None:
    line = MailLine(RoundTrips(address("redis://127.0.0.1:1/0"), "test", 3.0, Counter(), fixed=True))
    commands = [RedisCommand(("XADD", str(number), "x" * 100_000)) for number in range(40)]

    def batches() -> list[list[RedisCommand]]:
        assert [line.put(command) for command in commands] == [True] * len(commands)
        found = list(iter(line.take, []))
        assert [one for batch in found for one in batch] == commands
        return found

    (whole,) = batches()
    line.not_carried(whole)
    first, *_ = batches()
    assert 2 * LEAST_BYTES < sum(len(str(one.args[2])) for one in first) <= 1_000_000
    for _ in range(5):
        line.not_carried(first)
    assert [len(batch) for batch in batches()] == [1] * len(commands), "a command larger than that leaves by itself"
    while len(found := batches()) > 1:
        line.carried(found[0], 0.01)
