"""A signed transport over everything that carries mail: what a stranger writes, copies or moves does not get in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from scrapy_ubi.transport import Incoming, Outgoing, TransportDown, TransportError, TransportFull, signed_transport
from scrapy_ubi.transport.contract import MEMORY, SUMMED_UP, WATCHED, SeedAnswer
from scrapy_ubi.transport.seed_reader import SeedSource
from scrapy_ubi.transport.signed_transport import FORMER, REPLAYED, UNSIGNED, WRONG, SignedTransport
from scrapy_ubi.transport.signer import Signer
from tests.transport.exchanges import ids, letter, seqs
from tests.transport.worlds import CRAWL, MemoryWorld, RedisWorld, World, until

SECRET = "a secret of some length"
INTERVAL = 0.05  # s
INCARNATIONS = {"a": "aaaaaaaa", "b": "bbbbbbbb", "c": "cccccccc"}
Scene = Callable[[SignedTransport, SignedTransport], Awaitable[None]]


def line(agent: str, counter: int = 1, flags: str = "-") -> str:
    return f"{INCARNATIONS[agent]}.0 {counter} 200 295ba34ef5c07fbb - {flags} 1 - - - - 0"


def signed(world: World, agent: str, secret: str = SECRET) -> SignedTransport:
    return SignedTransport(world.transport(agent), Signer(secret, CRAWL), agent, CRAWL, INTERVAL)


async def join(transport: SignedTransport, agent: str) -> None:
    await transport.open()
    there = await transport.beats()
    assert await transport.claim(agent, there.get(agent), line(agent))


def play(world: World, scene: Scene) -> None:
    """Run a scene with two transports that know each other."""

    async def run() -> None:
        a, b = signed(world, "a"), signed(world, "b")
        try:
            await join(a, "a")
            await join(b, "b")
            await a.beats()
            await scene(a, b)
        finally:
            await a.close()
            await b.close()

    asyncio.run(run())


async def copied(world: World, agent: str) -> dict[bytes, bytes]:
    """The entry that waits in an inbox, as a stranger reads it."""
    other = world.transport(agent)
    await other.open()
    ((_, fields),) = (await other.exchange(Outgoing())).letters
    await other.close()
    return dict(fields)


def reasons(incoming: Incoming) -> list[str]:
    return [one["reason"] for one in incoming.refused]


# -- letters -----------------------------------------------------------------------------------------------------------


def test_letters_pass_as_they_were(world: World) -> None:
    async def scene(a: SignedTransport, b: SignedTransport) -> None:
        await a.exchange(Outgoing(letters=[("b", letter(n, body="\ud800\u4e2d")) for n in range(3)]))
        incoming = await b.exchange(Outgoing())
        assert seqs(incoming) == [0, 1, 2] and not incoming.refused
        assert incoming.letters[0][1] == {b"from": b"a", b"seq": b"0", b"body": b"\\ud800\xe4\xb8\xad"}
        assert (await b.exchange(Outgoing(consumed=ids(incoming)))).letters == []
        assert world.inbox("b") == 0

    play(world, scene)


def test_what_is_remembered_of_agents_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signed_transport, "MOST_KNOWN", 3)

    async def scene(a: SignedTransport, b: SignedTransport) -> None:
        for number in range(4):
            await a.exchange(Outgoing(letters=[(f"gone{number}{n}", letter(n)) for n in range(5)]))
            await a.exchange(Outgoing(letters=[("b", letter(number))]))
            await a.beats()
            incoming = await b.exchange(Outgoing())
            assert seqs(incoming) == [number] and not incoming.refused
            await b.exchange(Outgoing(consumed=ids(incoming)))

    play(MemoryWorld(), scene)


def test_an_unsigned_letter_is_a_dead_letter(world: World) -> None:
    async def scene(a: SignedTransport, b: SignedTransport) -> None:
        world.put("b", {b"from": b"a", b"seq": b"1", b"body": b"[]"})
        incoming = await b.exchange(Outgoing())
        assert incoming.letters == [] and reasons(incoming) == [UNSIGNED]
        assert incoming.refused[0]["from"] == "a" and incoming.refused[0]["head"] == "[]"
        assert b.counts["unsigned"] == 1
        await b.exchange(Outgoing())
        assert world.inbox("b") == 0  # deleted

    play(world, scene)


@pytest.mark.parametrize("change", ["forged", "truncated", "longer", "unsealed", "renamed"])
def test_a_changed_letter_is_a_dead_letter(change: str) -> None:
    world = MemoryWorld()

    async def scene(a: SignedTransport, b: SignedTransport) -> None:
        await a.exchange(Outgoing(letters=[("b", letter(1, body="[1]"))]))
        entry = await copied(world, "b")
        assert seqs(await b.exchange(Outgoing())) == [1]
        if change == "forged":
            entry[b"body"] = b"[2]"
        elif change == "truncated":
            del entry[b"body"]
        elif change == "longer":
            entry[b"body.2"] = b"[2]"
        elif change == "renamed":
            entry[b"from"] = b"c"
        else:
            entry[b"signed"] = entry[b"signed"][:-1]
        world.put("b", entry)
        incoming = await b.exchange(Outgoing())
        assert incoming.letters == [] and reasons(incoming) == [WRONG]

    play(world, scene)


def test_a_letter_is_good_once_in_one_inbox(world: World) -> None:
    async def scene(a: SignedTransport, b: SignedTransport) -> None:
        await a.exchange(Outgoing(letters=[("b", letter(1))]))
        entry = await copied(world, "b")
        incoming = await b.exchange(Outgoing())
        assert seqs(incoming) == [1]
        world.put("b", entry)
        incoming = await b.exchange(Outgoing(consumed=ids(incoming)))
        assert incoming.letters == [] and reasons(incoming) == [REPLAYED] and b.counts["replayed"] == 1
        world.put("a", entry)
        assert reasons(await a.exchange(Outgoing())) == [WRONG]

    play(world, scene)


def test_a_letter_of_another_crawl_is_refused() -> None:
    world = MemoryWorld()

    async def scene(a: SignedTransport, b: SignedTransport) -> None:
        other = Signer(SECRET, "bot:other").entry("letter", "b", "0000aaaa.1.bbbbbbbb", letter(1))
        world.put("b", {name.encode(): value.encode() for name, value in other.items()})
        assert reasons(await b.exchange(Outgoing())) == [WRONG]

    play(world, scene)


def test_a_letter_for_an_earlier_process_is_refused(world: World) -> None:
    async def scene(a: SignedTransport, b: SignedTransport) -> None:
        await a.exchange(Outgoing(letters=[("b", letter(1))]))
        entry = await copied(world, "b")
        again = signed(world, "b")
        await again.open()
        there = (await again.beats())["b"]
        assert await again.claim("b", there, line("b").replace("bbbbbbbb", "b2b2b2b2"))
        assert reasons(await again.exchange(Outgoing())) == [FORMER]
        world.put("b", entry)
        assert reasons(await again.exchange(Outgoing())) == [FORMER]
        await a.beats()  # it has come again
        await a.exchange(Outgoing(letters=[("b", letter(2))]))
        assert seqs(await again.exchange(Outgoing())) == [2]
        await again.close()

    play(world, scene)


def test_what_was_sent_twice_after_an_outage_is_taken_both_times() -> None:
    world = MemoryWorld()

    async def scene(a: SignedTransport, b: SignedTransport) -> None:
        world.hub.break_after = 1000  # applied, and the answer is lost
        with pytest.raises(TransportDown):
            await a.exchange(Outgoing(letters=[("b", letter(1))]))
        await a.exchange(Outgoing(letters=[("b", letter(1))]))
        incoming = await b.exchange(Outgoing())
        assert seqs(incoming) == [1, 1] and not incoming.refused

    play(world, scene)


def test_a_full_server_keeps_no_one_from_judging() -> None:
    world = MemoryWorld()

    async def scene(a: SignedTransport, b: SignedTransport) -> None:
        world.put("b", {b"from": b"a"})
        world.fill(True)
        with pytest.raises(TransportFull) as caught:
            await b.exchange(Outgoing(control={"run": "r"}))
        assert caught.value.incoming.letters == [] and reasons(caught.value.incoming) == [UNSIGNED]

    play(world, scene)


# -- hashes ------------------------------------------------------------------------------------------------------------


def test_control_is_changed_where_it_says_what_was_read_and_what_does_not_hold_is_nothing(world: World) -> None:
    async def scene(a: SignedTransport, b: SignedTransport) -> None:
        await a.exchange(Outgoing(control={"run": "r1", "older": "1", "raced": "1"}))
        world.set_field("control", b"forged", b"9")
        assert (await b.exchange(Outgoing())).control == {"run": "r1", "older": "1", "raced": "1"}
        await a.exchange(Outgoing(control={"raced": "3", "new": "3"}))  # after b has read
        changes = {"older": ("1", "2"), "raced": ("1", "2"), "new": (None, "2"), "forged": (None, "2"), "x": ("1", "2")}
        control = (await b.exchange(Outgoing(control_changes=changes))).control
        assert control == {"run": "r1", "older": "2", "raced": "3", "new": "3", "forged": "2"}

    play(world, scene)


def test_control_acks_and_profiles_pass_as_they_were(world: World) -> None:
    async def scene(a: SignedTransport, b: SignedTransport) -> None:
        control = {"run": "r1", "memory": "m", "set:x": '{"n":1}'}
        await a.exchange(Outgoing(control=control, acks={("b", "s/a/state"): '{"acked":[1]}'}, profile='{"agent":"a"}'))
        incoming = await b.exchange(Outgoing())
        assert incoming.control == control and incoming.acks == {"s/a/state": '{"acked":[1]}'}
        assert await b.profiles() == {"a": '{"agent":"a"}'}
        assert not incoming.refused

    play(world, scene)


def test_what_a_stranger_says_there_is_not_heard_and_a_dead_letter_once(world: World) -> None:
    async def scene(a: SignedTransport, b: SignedTransport) -> None:
        await a.exchange(Outgoing(control={"run": "r1"}))
        world.set_field("control", b"set:UBI_HOST_DELAY", b"{}")
        world.set_field("acks:b", b"s/a/state", b'{"acked":[1]}')
        world.set_field("agents", b"c", b"{}")
        incoming = await b.exchange(Outgoing())
        assert incoming.control == {"run": "r1"} and incoming.acks == {}
        assert reasons(incoming) == [UNSIGNED] * 2
        assert await b.profiles() == {}
        again = await b.exchange(Outgoing())
        assert again.refused == [] and again.control == {"run": "r1"}

    play(world, scene)


def test_what_was_said_in_another_run_does_not_hold(world: World) -> None:
    async def scene(a: SignedTransport, b: SignedTransport) -> None:
        await a.exchange(Outgoing(control={"run": "r1", "set:x": "1"}))
        assert (await b.exchange(Outgoing())).control == {"run": "r1", "set:x": "1"}
        await a.exchange(Outgoing(control={"run": "r2"}))
        incoming = await b.exchange(Outgoing())
        assert incoming.control == {"run": "r2"} and reasons(incoming) == [WRONG]

    play(world, scene)


def test_a_question_is_heard_until_it_is_taken_away() -> None:
    world = MemoryWorld()

    async def scene(a: SignedTransport, b: SignedTransport) -> None:
        await a.exchange(Outgoing(control={"run": "r1"}))
        asked = Signer(SECRET, CRAWL).control("r1", {"ask:1": "{}"})["ask:1"].encode()
        for there in (True, True, False):
            world.set_field("control", b"ask:1", asked)
            assert "ask:1" in ((await b.exchange(Outgoing())).control or {})
            if not there:
                await b.exchange(Outgoing(forget_control=["ask:1"]))
        world.set_field("control", b"ask:1", asked)
        incoming = await b.exchange(Outgoing())
        assert incoming.control == {"run": "r1"} and reasons(incoming) == [REPLAYED]

    play(world, scene)


# -- beats -------------------------------------------------------------------------------------------------------------


def test_beats_are_heard_and_those_of_strangers_are_not(world: World) -> None:
    async def scene(a: SignedTransport, b: SignedTransport) -> None:
        world.set_field("beats", b"c", line("c").encode())
        assert await a.beats() == {"a": line("a"), "b": line("b")}
        heard: list[dict[str, str]] = []
        a.start_beating(
            "a",
            INTERVAL,
            lambda counter: line("a", counter + 1),
            lambda sent: None,
            lambda sent, received, beats: heard.append(beats),
            asyncio.get_running_loop().time,
            lambda: False,
        )
        await until(lambda: heard)
        assert heard[0].keys() == {MEMORY, WATCHED, "a", "b"}
        await a.stop_beating(line("a", 99, "L"))
        assert (await b.beats())["a"] == line("a", 99, "L")
        await b.forget({"a": line("a", 99, "L")})
        assert await b.beats() == {"b": line("b")}

    play(world, scene)


def test_a_line_that_does_not_hold_is_written_over(world: World) -> None:
    async def scene(a: SignedTransport, b: SignedTransport) -> None:
        world.set_field("beats", b"b", line("b", 7).encode())
        assert "b" not in await b.beats()
        assert await b.claim("b", None, line("b", 8))
        assert (await a.beats())["b"] == line("b", 8)

    play(world, scene)


def test_the_end_of_a_run_is_compared_and_cleared(world: World) -> None:
    async def scene(a: SignedTransport, b: SignedTransport) -> None:
        await a.exchange(Outgoing(control={"run": "r1", "finished": "r1 a", "finished_at": "1.0"}))
        assert not await b.clear("r0 a", {"past": "r0"})
        assert await b.clear("r1 a", {"past": "r1"})
        assert (await a.exchange(Outgoing())).control == {"past": "r1"}

    play(world, scene)


# -- joining -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("secret", ["another secret, as long", ""])
def test_who_lives_with_another_secret_is_told_of_in_one_sentence(world: World, secret: str) -> None:
    async def run() -> None:
        other = signed(world, "c", secret) if secret else world.transport("c")
        await other.open()
        other.start_beating(
            "c", INTERVAL, lambda n: line("c", n), lambda s: None, lambda s, r, b: None,
            asyncio.get_running_loop().time, lambda: False,
        )  # fmt: skip
        await until(lambda: _beats(world))
        with pytest.raises(TransportError, match=r"UBI_SECRET: agent c lives in crawl bot:spider") as caught:
            await signed(world, "a").open()
        assert SECRET not in str(caught.value)
        await other.stop_beating(line("c", 9, "L"))
        late = signed(world, "a")
        await late.open()  # it has left
        await late.close()
        await other.close()

    asyncio.run(run())


def _beats(world: World) -> bool:
    if isinstance(world, MemoryWorld):
        return bool(world.hub.shelf(CRAWL).beats)
    assert isinstance(world, RedisWorld)
    with world.server.client() as client:
        return bool(client.exists(world.keys.beats))


def test_who_is_dead_with_another_secret_keeps_nobody_out(world: World) -> None:
    async def run() -> None:
        world.set_field("beats", b"c", line("c").encode())
        world.set_field("beats", b"d", b"no beat")
        a = signed(world, "a")
        await a.open()
        await a.close()

    asyncio.run(run())


# -- seeds -------------------------------------------------------------------------------------------------------------


def seed(token: str = "0123", **fields: str) -> dict[bytes, bytes]:
    entry = Signer(SECRET, CRAWL).entry("seed", "", token, fields)
    return {name.encode(): value.encode() for name, value in entry.items()}


def serve(world: World) -> World:
    if isinstance(world, RedisWorld):
        world.source = SeedSource()
    return world


def test_a_signed_seed_is_good_once_and_an_unsigned_one_never(world: World) -> None:
    async def scene(a: SignedTransport, b: SignedTransport) -> None:
        world.seed({b"url": b"http://h.example/", b"id": b"mine"})
        world.seed(seed(url="http://h.example/1"))
        incoming = await a.exchange(Outgoing(read_seeds=10))
        ((number, fields),) = incoming.seeds
        assert fields == {b"url": b"http://h.example/1"} and reasons(incoming) == [UNSIGNED]
        world.seed(seed(url="http://h.example/1"))  # while the first one is in hand
        changed = {**seed(token="4567", url="http://h.example/2"), b"url": b"http://h.example/3"}
        world.seed(changed)
        incoming = await a.exchange(Outgoing(read_seeds=10))
        assert incoming.seeds == [] and reasons(incoming) == [REPLAYED, WRONG]
        await a.exchange(Outgoing(read_seeds=10, seeds_answered=[SeedAnswer(number, "OK")]))
        world.seed(seed(url="http://h.example/1"))
        assert reasons(await a.exchange(Outgoing(read_seeds=10))) == [REPLAYED]
        await a.exchange(Outgoing(read_seeds=10))
        assert world.seeds() == 0
        assert all(one[b"url"].startswith(b"http://h.example/") for one in world.seeded() if one[b"said"] == b"REFUSED")
        said = [(one[b"said"], one[b"why"], one[b"id"]) for one in world.seeded()]
        assert said[0] == (b"REFUSED", UNSIGNED.encode(), b"mine") and len(said) == 5
        assert sorted(one[0] for one in said) == [b"OK", *[b"REFUSED"] * 4]

    play(serve(world), scene)


def test_a_seed_that_is_handed_on_is_taken_by_its_owner(world: World) -> None:
    async def scene(a: SignedTransport, b: SignedTransport) -> None:
        world.seed(seed(url="http://h.example/1"))
        ((number, _),) = (await a.exchange(Outgoing(read_seeds=10))).seeds
        await a.exchange(Outgoing(seeds_for=[(number, "b")]))
        ((number, _),) = (await b.exchange(Outgoing(read_seeds=10))).seeds
        await b.exchange(Outgoing(seeds_for=[(number, "a")]))
        assert len((await a.exchange(Outgoing(read_seeds=10))).seeds) == 1

    play(serve(world), scene)


def test_profiles_are_summed_up_and_a_sum_of_a_stranger_counts_as_none(world: World) -> None:
    async def scene(a: SignedTransport, b: SignedTransport) -> None:
        await a.exchange(Outgoing(profile='{"agent":"a"}'))
        await a.stop_beating(None)
        await b.forget({"a": line("a")})
        world.set_field("agents", SUMMED_UP.encode(), b"forged")
        assert await b.profiles() == {"a": '{"agent":"a"}'}
        assert await b.sum_up({"a": '{"agent":"a"}'}, None, "sum")
        assert await b.profiles() == {SUMMED_UP: "sum"}
        assert (await a.exchange(Outgoing(profile='{"agent":"a"}'))).published is False

    play(world, scene)


def test_what_a_stranger_says_of_items_is_written_over(world: World) -> None:
    async def scene(a: SignedTransport, b: SignedTransport) -> None:
        assert await a.claim_items({"1": (None, "held a")}) == {"1": "held a"}
        assert await b.claim_items({"1": (None, "held b")}) == {"1": "held a"}
        world.set_field("start", b"2", b"kept stranger")
        assert await b.claim_items({"2": (None, "held b")}) == {"2": "held b"}
        assert await a.claim_items({"2": (None, "held a"), "1": ("held a", "kept a")}) == {"2": "held b", "1": "kept a"}
        assert reasons(await b.exchange(Outgoing())) == [UNSIGNED]
        assert b.counts["unsigned"] == 1

    play(world, scene)
