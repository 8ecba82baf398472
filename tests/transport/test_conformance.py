"""The contract of contract.py, promise by promise, for everything that carries mail."""

from __future__ import annotations

import asyncio
import math
import time

import pytest

from scrapy_ubi.transport import (
    Incoming,
    Outgoing,
    Transport,
    TransportDown,
    TransportError,
    TransportFull,
    exchange_commands,
    in_process,
)
from scrapy_ubi.transport import redis as redis_transport
from scrapy_ubi.transport.contract import DEAD_LETTERS, HEAD, SUMMED_UP
from tests.transport.exchanges import ids, letter, play, read_again, said, seqs, take
from tests.transport.worlds import World

SKEW = 1.0  # s: half of it is how long a server on a busy machine may take to be asked for its time


# -- time ------------------------------------------------------------------------------------------------------------


def test_agents_share_a_clock(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        for early, late in ((a, b), (b, a)):
            begun = time.monotonic()
            before, after = early.now(), late.now()
            assert before <= after + SKEW
            assert after - before <= time.monotonic() - begun + SKEW

    play(world, scene)


# -- mail ------------------------------------------------------------------------------------------------------------


def test_exchange_of_nothing_reads_nothing(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        assert said(await a.exchange(Outgoing())) == Incoming([], {}, {})

    play(world, scene)


def test_letters_arrive_whole_and_in_order(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        body = 'line\nbreak "quoted" \x00 \u00e4 \u4e2d \U0001f577 \ud800'
        await a.exchange(Outgoing(letters=[("b", letter(n, body=body)) for n in range(3)]))
        await a.exchange(Outgoing(letters=[("b", letter(3, body=""))]))
        incoming = await b.exchange(Outgoing())
        assert seqs(incoming) == [0, 1, 2, 3]
        assert [fields[b"from"] for _, fields in incoming.letters] == [b"a"] * 4
        assert incoming.letters[0][1][b"body"] == body.encode("utf-8", "backslashreplace")
        assert incoming.letters[3][1][b"body"] == b""
        assert seqs(await a.exchange(Outgoing())) == []  # only b's

    play(world, scene)


def test_letter_is_handed_out_once_until_consumed_then_deleted(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        await a.exchange(Outgoing(letters=[("b", letter(1))]))
        first = await b.exchange(Outgoing())
        await a.exchange(Outgoing(letters=[("b", letter(2))]))
        second = await b.exchange(Outgoing())
        assert (seqs(first), seqs(second)) == ([1], [2])
        assert seqs(await b.exchange(Outgoing())) == []
        assert world.inbox("b") == 2
        await b.exchange(Outgoing(consumed=ids(first)))
        assert world.inbox("b") == 1
        await b.exchange(Outgoing(consumed=ids(first) + ids(second)))  # consuming twice is harmless
        assert world.inbox("b") == 0
        assert seqs(await b.exchange(Outgoing())) == []

    play(world, scene)


def test_what_was_deleted_is_not_asked_for_again(world: World) -> None:
    """Else each exchange would name every letter that ever came."""

    async def scene(a: Transport, b: Transport) -> None:
        await a.exchange(Outgoing(letters=[("b", letter(number)) for number in range(5)]))
        assert await take(b, 5) == list(range(5))
        hand = b._in_hand  # type: ignore[attr-defined]
        assert (hand.leaving, hand.held) == ((), ())

    play(world, scene)


def test_letters_not_consumed_come_again_after_a_restart(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        await a.exchange(Outgoing(letters=[("b", letter(1)), ("b", letter(2))]))
        assert seqs(await b.exchange(Outgoing())) == [1, 2]
        again = world.transport("b")
        await again.open()
        assert seqs(await again.exchange(Outgoing())) == [1, 2]
        await again.close()

    play(world, scene)


def test_exchange_repeated_as_after_a_lost_reply_only_doubles_letters(world: World) -> None:
    out = Outgoing(
        letters=[("b", letter(1))],
        acks={("b", "s/a/discovery"): "[1]"},
        profile='{"agent": "a"}',
        control={"run": "r1"},
        forget_acks=["x/y/state"],
    )

    async def scene(a: Transport, b: Transport) -> None:
        for _ in range(3):
            await a.exchange(out)
        incoming = await b.exchange(Outgoing())
        assert set(seqs(incoming)) == {1}
        assert incoming.acks == {"s/a/discovery": "[1]"}
        assert incoming.control == {"run": "r1"}
        assert await b.profiles() == {"a": '{"agent": "a"}'}

    play(world, scene)


def test_acks_of_a_lane_replace_each_other_and_are_forgotten(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        await b.exchange(Outgoing(acks={("a", "one"): "[1]", ("a", "two"): "[]", ("c", "three"): "[3]"}))
        await b.exchange(Outgoing(acks={("a", "one"): "[1, 2]"}))
        assert (await a.exchange(Outgoing())).acks == {"one": "[1, 2]", "two": "[]"}
        assert (await a.exchange(Outgoing(forget_acks=["one", "unknown"]))).acks == {"two": "[]"}

    play(world, scene)


def test_control_is_shared_and_read_after_the_writes(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        assert (await a.exchange(Outgoing(control={"run": "1", "finished": ""}))).control == {
            "run": "1",
            "finished": "",
        }
        assert (await b.exchange(Outgoing(control={"finished": "now"}))).control == {"run": "1", "finished": "now"}

    play(world, scene)


def test_control_is_changed_where_it_says_what_was_read(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        await a.exchange(Outgoing(control={"older": "1", "raced": "1"}))
        assert (await b.exchange(Outgoing())).control == {"older": "1", "raced": "1"}
        await a.exchange(Outgoing(control={"raced": "3", "new": "3 é"}))  # after b has read
        changes = {
            "older": ("1", "2"),
            "raced": ("1", "2"),
            "new": (None, "2"),
            "gone": (None, "2"),
            "past": ("1", "2"),
        }
        control = (await b.exchange(Outgoing(control_changes=changes))).control
        assert control == {"older": "2", "raced": "3", "new": "3 é", "gone": "2"}

    play(world, scene)


def test_what_is_not_wanted_is_not_read(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        await b.exchange(Outgoing(acks={("a", "one"): "[1]"}, control={"run": "1"}))
        assert said(await a.exchange(Outgoing(read_control=False))) == Incoming([], {"one": "[1]"}, None)
        assert said(await a.exchange(Outgoing(read_acks=False))) == Incoming([], {}, {"run": "1"})
        await b.exchange(Outgoing(letters=[("a", letter(1))]))
        nothing = Outgoing(read_inbox=False, read_acks=False, read_control=False)
        assert said(await a.exchange(nothing)) == Incoming([], {}, None)
        assert seqs(await a.exchange(Outgoing())) == [1]
        world.fill(True)
        with pytest.raises(TransportFull) as full:
            await a.exchange(Outgoing(dead_letters=[letter(1)], read_acks=False, read_control=False))
        assert said(full.value.incoming) == Incoming([], {}, None)

    play(world, scene)


def test_letters_among_those_in_hand_come_in_order(world: World) -> None:
    """Wherever a look at a few entries begins and ends."""

    async def scene(a: Transport, b: Transport) -> None:
        held: list[str] = []
        for number in range(24):
            await a.exchange(Outgoing(letters=[("b", letter(number))]))
            incoming = await b.exchange(Outgoing())
            assert seqs(incoming) == [number]
            held += ids(incoming)
            if number % 3 == 0:
                await b.exchange(Outgoing(consumed=[held.pop(number // 4)]))
        await a.exchange(Outgoing(letters=[("b", letter(number)) for number in range(24, 40)]))
        assert seqs(await b.exchange(Outgoing())) == list(range(24, 40))
        assert world.inbox("b") == 32

    play(world, scene)


def test_letters_of_one_exchange_are_bounded_in_number_and_all_come(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        await a.exchange(Outgoing(letters=[("b", letter(n)) for n in range(25)]))
        incoming = await b.exchange(Outgoing())
        assert seqs(incoming) == list(range(10))
        await b.exchange(Outgoing(consumed=ids(incoming)))  # takes ten more, kept in hand
        assert await take(b, 5) == [20, 21, 22, 23, 24]
        assert world.inbox("b") == 10

    play(world, scene, max_letters=10)


def test_letters_of_one_exchange_are_bounded_in_bytes_but_one_always_comes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_transport, "FAR", math.inf)  # a busy machine's server is not near: letters are packed

    async def scene(a: Transport, b: Transport) -> None:
        sizes = [400, 400, 400, 2500, 100]
        await a.exchange(Outgoing(letters=[("b", letter(n, body="x" * size)) for n, size in enumerate(sizes)]))
        parts: list[list[int]] = []
        consumed: list[str] = []
        while sum(map(len, parts)) < 5:
            incoming = await b.exchange(Outgoing(consumed=consumed))
            parts.append(seqs(incoming))
            consumed = ids(incoming)
        assert parts == [[0, 1], [2], [3], [4]]

    play(world, scene, max_read_bytes=1000)


def test_caller_that_never_consumes_gets_no_more_at_some_point(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        await a.exchange(Outgoing(letters=[("b", letter(n)) for n in range(300)]))
        got: list[str] = []
        while more := ids(await b.exchange(Outgoing())):
            got += more
        assert len(got) == len(set(got)) == 256
        incoming = await b.exchange(Outgoing(consumed=got[:5]))
        assert seqs(incoming) == [256, 257, 258, 259, 260]

    play(world, scene)


def test_id_that_is_none_is_a_mistake_of_the_caller(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        with pytest.raises(ValueError, match="no id"):
            await a.exchange(Outgoing(consumed=["*"]))

    play(world, scene)


def test_an_inbox_is_emptied_unread_and_what_comes_later_is_read(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        await a.exchange(Outgoing(letters=[("b", letter(n)) for n in range(70)]))
        assert await b.empty_inbox() == world.inbox("b") + 70
        assert await b.empty_inbox() == 0
        await a.exchange(Outgoing(letters=[("b", letter(70))]))
        assert seqs(await b.exchange(Outgoing())) == [70]
        world.cut(down=True)
        with pytest.raises(TransportDown):
            await b.empty_inbox()

    play(world, scene)


def test_exchanges_at_once_hand_each_letter_out_once(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        await a.exchange(Outgoing(letters=[("b", letter(n)) for n in range(20)]))
        found = await asyncio.gather(*(b.exchange(Outgoing()) for _ in range(5)))
        assert sorted(n for incoming in found for n in seqs(incoming)) == list(range(20))

    play(world, scene)


def test_dead_letters_are_kept_for_people_and_bounded(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        await a.exchange(Outgoing(dead_letters=[{"reason": "no JSON", "head": "\ud800\x00", "size": "3"}]))
        (only,) = world.dead("a")
        assert only == {b"reason": b"no JSON", b"head": b"\\ud800\x00", b"size": b"3"}
        for _ in range(5):
            await a.exchange(Outgoing(dead_letters=[{"reason": "flood", "head": "x" * HEAD} for _ in range(400)]))
        assert DEAD_LETTERS <= len(world.dead("a")) <= DEAD_LETTERS + 100  # a server trims whole nodes

    play(world, scene)


def test_an_inbox_that_nobody_reads_is_bounded_and_the_oldest_go(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (in_process, exchange_commands):
        monkeypatch.setattr(module, "INBOX", 300)

    async def scene(a: Transport, b: Transport) -> None:
        for start in range(0, 1000, 250):
            await a.exchange(Outgoing(letters=[("b", letter(start + number)) for number in range(250)]))
        assert 300 <= world.inbox("b") <= 300 + 100  # a server trims whole nodes
        got = await take(b, world.inbox("b"))
        assert got == list(range(1000))[-len(got) :]

    play(world, scene)


# -- garbage of strangers --------------------------------------------------------------------------------------------


def test_oversized_letter_is_never_handed_out_whole(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        world.put("b", {b"from": b"m" * 500, b"body": b"\xff" * 2000, b"more": b"1"})
        await a.exchange(Outgoing(letters=[("b", letter(1))]))
        incoming = await b.exchange(Outgoing())
        (number, cut), (_, whole) = incoming.letters
        assert cut[b"oversized"] == str(4 + 500 + 4 + 2000 + 4 + 1).encode()
        assert cut[b"from"] == b"m" * 64
        assert cut[b"head"].startswith(b"from=mmm")
        assert len(cut[b"head"]) == HEAD
        assert whole[b"seq"] == b"1"
        assert b.counts["oversized"] == 1
        assert seqs(await b.exchange(Outgoing(consumed=[number]))) == []
        assert world.inbox("b") == 1

    play(world, scene, max_letter_bytes=1000)


def test_oversized_letter_without_sender_names_none(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        world.put("b", {b"k" * 300: b"\x00", b"\x80": b"v" * 900})
        ((_, cut),) = (await b.exchange(Outgoing())).letters
        assert set(cut) == {b"oversized", b"head"}
        assert cut[b"head"] == b"k" * HEAD

    play(world, scene, max_letter_bytes=1000)


def test_entry_with_any_bytes_is_handed_out_raw(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        pickled = b"\x80\x04\x95cos\nsystem\n\xff\x00"
        world.put("b", {pickled: pickled, b"": b""})
        ((_, fields),) = (await b.exchange(Outgoing())).letters
        assert fields == {pickled: pickled, b"": b""}

    play(world, scene)


@pytest.mark.parametrize("what", ["beats", "agents", "control", "acks:a"])
def test_hash_fields_that_are_no_text_or_too_long_are_skipped_counted_deleted(world: World, what: str) -> None:
    async def read(a: Transport) -> dict[str, str]:
        if what in ("beats", "agents"):
            return await (a.beats() if what == "beats" else a.profiles())
        incoming = await a.exchange(Outgoing())
        return dict(incoming.control if what == "control" else incoming.acks)

    async def scene(a: Transport, b: Transport) -> None:
        for name, value in ((b"\xff\xfe", b"x"), (b"c", b"\xc3("), (b"d", b"x" * 10_001), (b"good", b"line")):
            world.set_field(what, name, value)
        assert await read(a) == {"good": "line"}
        assert a.counts["garbage"] == 3
        await a.exchange(Outgoing())
        assert await read(a) == {"good": "line"}
        assert a.counts["garbage"] == 3  # gone

    play(world, scene, max_letter_bytes=1000)


# -- loss and outage -------------------------------------------------------------------------------------------------


def test_flush_midway_loses_what_was_written_and_nothing_else_breaks(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        await a.exchange(Outgoing(letters=[("b", letter(1)), ("b", letter(2))], control={"run": "1"}))
        first = await b.exchange(Outgoing())
        world.flush()
        await a.exchange(Outgoing(letters=[("b", letter(3))]))
        incoming = await b.exchange(Outgoing(consumed=ids(first)))
        assert (seqs(incoming), incoming.acks, incoming.control) == ([3], {}, {})
        assert await b.beats() == {}

    play(world, scene)


def test_smaller_ids_after_a_replaced_server_are_not_hidden(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        old = world.put("b", {b"seq": b"1"})
        assert ids(await b.exchange(Outgoing())) == [old]
        world.flush(renumber=True)
        new = [world.put("b", {b"seq": b"2"}), world.put("b", {b"seq": b"3"})]
        assert int(new[0].split("-")[0]) < int(old.split("-")[0])
        assert ids(await b.exchange(Outgoing())) == new
        await b.exchange(Outgoing(consumed=[old, *new]))
        assert world.inbox("b") == 0

    play(world, scene)


def test_outage_raises_down_and_everything_goes_on_when_it_is_over(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        await a.exchange(Outgoing(letters=[("b", letter(1))]))
        first = await b.exchange(Outgoing())
        world.cut(True)
        for call in (b.exchange(Outgoing(consumed=ids(first))), b.beats(), b.profiles(), b.claim("b", None, "x")):
            with pytest.raises(TransportDown):
                await call
        world.cut(False)
        await a.exchange(Outgoing(letters=[("b", letter(2))]))
        assert seqs(await read_again(b)) == [2]  # what was consumed during the outage is deleted now
        assert world.inbox("b") == 1

    play(world, scene)


def test_server_away_at_the_start_is_an_error(world: World) -> None:
    async def run() -> None:
        transport = world.transport("a")
        with pytest.raises(TransportError):
            await transport.open()
        await transport.close()

    world.cut(True)
    asyncio.run(run())


def test_full_server_refuses_letters_but_lets_mail_be_read_and_deleted(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        await a.exchange(Outgoing(letters=[("b", letter(1)), ("b", letter(2))], acks={("b", "lane"): "[7]"}))
        world.fill(True)
        if world.apart:  # it is the letters' own business
            assert (await a.exchange(Outgoing(letters=[("b", letter(3))]))).put_off == 1
        else:
            with pytest.raises(TransportFull):
                await a.exchange(Outgoing(letters=[("b", letter(3))]))
        with pytest.raises(TransportFull):
            await a.claim("a", None, "line")
        with pytest.raises(TransportFull) as full:
            await b.exchange(Outgoing(control={"x": "y"}))
        incoming = full.value.incoming
        assert (seqs(incoming), incoming.acks, incoming.control) == ([1, 2], {"lane": "[7]"}, {})
        incoming = await b.exchange(Outgoing(consumed=ids(incoming), forget_acks=["lane"]))  # needs no memory
        assert (seqs(incoming), incoming.acks) == ([], {})
        assert world.inbox("b") == 0
        world.fill(False)
        while world.apart and "b" not in (await a.exchange(Outgoing())).late:
            await asyncio.sleep(0.01)  # a line that has failed rests for a moment
        await a.exchange(Outgoing(letters=[("b", letter(3))]))
        assert seqs(await b.exchange(Outgoing())) == [3]

    play(world, scene)


# -- claims ----------------------------------------------------------------------------------------------------------


def test_claim_compares_and_sets(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        assert not await a.claim("a", "something", "one")
        assert await a.claim("a", None, "one")
        assert await a.claim("a", None, "one")  # repeated, as after a lost reply
        assert not await b.claim("a", None, "two")
        assert not await b.claim("a", "other", "two")
        assert await b.claim("a", "one", "two")
        assert await a.beats() == {"a": "two"}

    play(world, scene)


def test_claim_after_a_look_that_is_over_compares_with_what_is_there(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        assert await a.beats() == {}
        assert await b.claim("x", None, "b.1")
        assert not await a.claim("x", None, "a.1"), "it was there by then"
        assert await a.beats() == {"x": "b.1"}
        assert await b.claim("x", "b.1", "b.2")
        assert await a.claim("x", "b.2", "a.2"), "which the look did not have"
        assert await b.beats() == {"x": "a.2"}

    play(world, scene)


def test_claim_of_an_empty_line_differs_from_an_absent_one(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        assert not await a.claim("a", "", "one")
        world.set_field("beats", b"a", b"")
        assert not await a.claim("a", None, "one")
        assert await a.claim("a", "", "one")

    play(world, scene)


def test_claimers_race_and_exactly_one_wins(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        present: str | None = None
        for turn in range(20):
            lines = [f"{turn}-{n}" for n in range(6)]
            claims = [(a, b)[n % 2].claim("x", present, line) for n, line in enumerate(lines)]
            won = [line for line, ok in zip(lines, await asyncio.gather(*claims), strict=True) if ok]
            assert len(won) == 1
            present = won[0]
            assert (await b.beats())["x"] == present

    play(world, scene)


# -- forgetting who is gone ------------------------------------------------------------------------------------------


def test_who_is_gone_is_forgotten_with_the_mail_and_who_has_beaten_since_is_not(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        for name in ("b", "c", "d"):
            await a.claim(name, None, f"{name}.1")
        mail = Outgoing(
            letters=[(name, letter(1)) for name in ("b", "c", "d")],
            acks={(name, "l"): "1" for name in ("b", "c", "d")},
            profile="{}",
        )
        await a.exchange(mail)
        await a.claim("c", "c.1", "c.2")
        for _ in range(2):  # repeatable
            await a.forget({"b": "b.1", "c": "c.1", "e": "e.1"})
            assert await a.beats() == {"c": "c.2", "d": "d.1"}
            assert [world.inbox(name) for name in ("b", "c", "d", "e")] == [0, 1, 1, 0]
        assert (await b.exchange(Outgoing())).acks == {}
        c = world.transport("c")
        await c.open()
        assert (await c.exchange(Outgoing())).acks == {"l": "1"}
        await c.close()
        assert await a.profiles() == {"a": "{}"}
        await a.forget({})

    play(world, scene)


# -- summing up who is gone ------------------------------------------------------------------------------------------


def test_profiles_of_the_gone_are_summed_up_once(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        for name in ("c", "d", "e"):
            world.set_field("agents", name.encode(), f"{{{name}}}".encode())
        gone = {"c": "{c}", "d": "{d}"}
        assert sorted(await asyncio.gather(*(one.sum_up(gone, None, "sum 1") for one in (a, b)))) == [False, True]
        assert await a.profiles() == {"e": "{e}", SUMMED_UP: "sum 1"}
        for before in (None, "sum 0", "sum 1"):  # those of before are there no more, or the sum is another one
            assert not await b.sum_up(gone, before, "sum 2")
        assert await b.sum_up({"e": "{e}"}, "sum 1", "sum é")
        assert await a.profiles() == {SUMMED_UP: "sum é"}

    play(world, scene)


@pytest.mark.parametrize("odd", ["it has published since", "it beats"])
def test_where_one_of_them_is_not_gone_nothing_is_summed_up(world: World, odd: str) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        for name in ("c", "d"):
            world.set_field("agents", name.encode(), b"{}")
        if odd == "it beats":
            await a.claim("d", None, "d.1")
        else:
            world.set_field("agents", b"d", b"{1}")
        before = await a.profiles()
        assert not await a.sum_up({"c": "{}", "d": "{}"}, None, "sum")
        assert await a.profiles() == before

    play(world, scene)


def test_who_was_summed_up_and_is_back_counts_anew(world: World) -> None:
    """Else what it has counted would be in the sum, and in its profile."""

    async def scene(a: Transport, b: Transport) -> None:
        assert (await a.exchange(Outgoing(profile="{1}"))).published is True
        assert (await a.exchange(Outgoing())).published is None
        assert await b.sum_up({"a": "{1}"}, None, "sum")
        assert (await a.exchange(Outgoing(profile="{2}"))).published is False
        assert await b.profiles() == {SUMMED_UP: "sum"}
        for text in ("{3}", "{4}"):  # the second: the answer to the first was lost
            assert (await a.exchange(Outgoing(profile=text, counts_anew=True))).published is True
        assert (await a.exchange(Outgoing(profile="{5}"))).published is True
        assert await b.profiles() == {"a": "{5}", SUMMED_UP: "sum"}

    play(world, scene)


def test_a_server_that_is_full_sums_up_and_loses_nothing(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        world.set_field("agents", b"c", b"{}")
        world.fill(True)
        assert await a.sum_up({"c": "{}"}, None, "sum")
        assert await a.profiles() == {SUMMED_UP: "sum"}

    play(world, scene)


# -- clearing --------------------------------------------------------------------------------------------------------


async def fill_everything(a: Transport, b: Transport) -> None:
    for one, name in ((a, "a"), (b, "b")):
        await one.claim(name, None, "line")
        out = Outgoing(
            letters=[("a", letter(1)), ("b", letter(1)), ("stranger", letter(1))],
            acks={("a", "l"): "1", ("b", "l"): "1"},
            dead_letters=[{"reason": "r"}],
            profile="{}",
            control={"finished": "run1", "run": "run1"},
        )
        await one.exchange(out)


def test_clear_forgets_all_of_this_crawl(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        await fill_everything(a, b)
        assert await a.clear()
        fresh = world.transport("b")
        await fresh.open()
        assert said(await fresh.exchange(Outgoing())) == Incoming([], {}, {})
        assert (await a.beats(), await a.profiles()) == ({}, {})
        assert [world.inbox(name) for name in ("a", "b", "stranger")] == [0, 0, 0]
        assert world.dead("a") == []
        await fresh.close()

    play(world, scene)


def test_of_several_that_clear_a_finished_crawl_one_does(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        await fill_everything(a, b)
        assert not await a.clear(finished="run0")
        assert "a" in await a.beats()

        async def start(one: Transport, name: str) -> bool:
            cleared = await one.clear(finished="run1")
            await one.claim(name, None, "new")
            return cleared

        assert sorted(await asyncio.gather(start(a, "a"), start(b, "b"))) == [False, True]
        assert await a.beats() == {"a": "new", "b": "new"}

    play(world, scene)


def test_what_control_says_after_a_clearing_is_written_with_it(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        await fill_everything(a, b)
        assert not await a.clear("run0", {"past": "run0"})
        assert (await a.exchange(Outgoing())).control == {"finished": "run1", "run": "run1"}
        assert await a.clear("run1", {"past": "run1", "more": "é"})
        assert (await b.exchange(Outgoing())).control == {"past": "run1", "more": "é"}

    play(world, scene)
