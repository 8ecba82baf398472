"""Mail and beats without Redis: for crawls of one process, and for tests.

`MemoryHub` is what the agents of one process share in place of a Redis; it can be broken on purpose. `MemoryTransport`
keeps the contract like the Redis one, and gives way to the event loop where that one would wait for the network. Only
the beats differ: they come from timers of the event loop (`heartbeat.LoopBeats`), not from a thread.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import count

from scrapy_ubi.ground import clock
from scrapy_ubi.transport.claimed_items import said_of
from scrapy_ubi.transport.contract import (
    INBOX,
    MEMORY,
    MOST_READ,
    NO_FIELDS,
    SEED_IDLE,
    TEXT,
    WATCHED,
    Fields,
    Incoming,
    Line,
    Outgoing,
    RawFields,
    TransportDown,
    TransportFull,
    always,
)
from scrapy_ubi.transport.delivered import InHand
from scrapy_ubi.transport.heartbeat import LoopBeats
from scrapy_ubi.transport.redis_keys import mail_place
from scrapy_ubi.transport.shelf import Raw, Shelf
from scrapy_ubi.transport.watched import WatchedKey
from scrapy_ubi.transport.wire_text import encode, marker, size_of, texts, writer


class MemoryHub:
    """The store all MemoryTransports of a process share, with faults for tests.

    * `down`: every call fails, nothing is applied.
    * `full`: writes that need memory are refused; reads and deletions, beats and profiles go through.
    * `break_after = n`: the next exchange applies only its first n writes and fails; a large n loses just the reply.
    * `slots_away`: mail slots (`redis_keys.mail_place`) that take nothing and give nothing.
    * `flush()`: everything is lost; with `renumber` ids of letters start low again, as in a replaced Redis.
    """

    def __init__(self) -> None:
        self.down = False
        self.full = False
        self.break_after: int | None = None
        self.slots_away: set[int] = set()
        self._shelves: defaultdict[str, Shelf] = defaultdict(Shelf)
        self._number = 1_000_000
        self.watched = WatchedKey()

    def shelf(self, crawl: str) -> Shelf:
        """What is held of a crawl."""
        return self._shelves[crawl]

    def flush(self, renumber: bool = False) -> None:
        """Forget everything."""
        self._shelves.clear()
        self.watched = WatchedKey()
        if renumber:
            self._number = 0

    def empty_slot(self, crawl: str, slots: int, place: int) -> None:
        """Forget the mail of one of so many slots."""
        shelf = self.shelf(crawl)
        shelf.memories.pop(place, None)
        for mail in (shelf.inbox, shelf.acks):
            for agent in [agent for agent in mail if mail_place(agent, slots) == place]:
                del mail[agent]

    def forget(self, crawl: str) -> None:
        """Forget one crawl, but for what has come from outside."""
        self._shelves[crawl] = Shelf(seeds=self.shelf(crawl).seeds)

    def append(self, crawl: str, agent: str, fields: RawFields) -> str:
        """Put an entry into an inbox, as anybody with access to a Redis can; its id."""
        self._number += 1
        number, inbox = f"{self._number}-0", self.shelf(crawl).inbox[agent]
        inbox[number] = dict(fields)
        while len(inbox) > INBOX:
            del inbox[next(iter(inbox))]
        return number


class MemoryTransport:
    """The contract's Transport within one process."""

    def __init__(
        self,
        hub: MemoryHub,
        agent: str,
        crawl: str = "crawl",
        max_letter_bytes: int = 1_000_000,
        max_letters: int = MOST_READ,
        *,
        max_read_bytes: int = 4_000_000,
        seed_idle: float = SEED_IDLE,
        mail_slots: int = 1,
    ) -> None:
        self._hub = hub
        self._mail_slots = mail_slots
        self._owed: set[str] = set()  # agents for whom something was left out
        self._agent = agent
        self._crawl = crawl
        self._largest = max_letter_bytes
        self._most = max_letters
        self._budget = max_read_bytes
        self._in_hand = InHand()
        self._seeds_in_hand, self._seed_idle = InHand(), seed_idle
        self._turn = asyncio.Lock()
        self._beats: LoopBeats | None = None
        self._beating = ""  # whose beats they are
        self._writers: set[bytes] = set()  # of its lines
        self._token = b""  # of the memory that it has asked about (WATCHED)
        self._over: dict[str, str] = {}  # another's line that it was written over
        self._numbers = count(1)  # of beats
        self._counts: Counter[str] = Counter()

    @property
    def counts(self) -> Counter[str]:
        """See the contract."""
        return Counter(self._counts)

    @property
    def line(self) -> Line:
        """There is no way to go."""
        return Line()

    @property
    def takes_seeds(self) -> bool:
        """They do come here."""
        return True

    @property
    def shelf(self) -> Shelf:
        """What is held of this crawl."""
        return self._hub.shelf(self._crawl)

    async def open(self) -> None:
        """Raises TransportDown when the hub is."""
        await self._trip()

    def now(self) -> float:
        """The time of this process."""
        return clock.now()

    async def close(self) -> None:
        """Stop beating."""
        await self.stop_beating(None)

    async def _trip(self) -> None:
        """A round trip: others may run, and the hub may be down."""
        await asyncio.sleep(0)
        if self._hub.down:
            raise TransportDown("the hub is down")

    # -- beats -------------------------------------------------------------------------------------------------------

    async def beats(self) -> dict[str, str]:
        """Agent -> beat line, at one instant."""
        await self._trip()
        beats = self._texts(self.shelf.beats)
        beats.pop(MEMORY, None)
        return beats

    async def profiles(self) -> dict[str, str]:
        """Agent -> profile."""
        await self._trip()
        return self._texts(self.shelf.agents)

    async def former_profiles(self) -> dict[str, str]:
        """Agent -> profile, of former keys."""
        await self._trip()
        return self._texts(self.shelf.former_agents)

    async def tell_former(self, fields: Fields) -> None:
        """Write into former keys."""
        await self._trip()
        self.shelf.former_control.update({encode(name): encode(text) for name, text in fields.items()})

    async def claim(self, agent: str, expected: str | None, line: str) -> bool:
        """Compare and set."""
        await self._trip()
        beats, name = self.shelf.beats, encode(agent)
        present = beats.get(name)
        if present == encode(line):
            return True
        if present != (None if expected is None else encode(expected)):
            return False
        if self._hub.full:
            raise TransportFull("the hub is full")
        beats[name] = encode(line)
        return True

    async def forget(self, gone: Fields) -> None:
        """Compare and delete."""
        await self._trip()
        self.shelf.forget(gone)

    async def sum_up(self, gone: Fields, before: str | None, after: str) -> bool:
        """Compare, delete and set."""
        await self._trip()
        return self.shelf.sum_up(gone, before, after)

    async def claim_items(self, claims: Mapping[str, tuple[str | None, str]]) -> dict[str, str]:
        """Compare and set."""
        await self._trip()
        if self._hub.full:
            raise TransportFull("the hub is full")
        return said_of(claims, self.shelf.claim_items(claims), TEXT * self._largest)

    async def prepare_beats(self) -> None:
        """They need nothing."""

    def start_beating(
        self,
        agent: str,
        interval: float,
        line: Callable[[int], str],
        on_ack: Callable[[float], None],
        on_read: Callable[[float, float, dict[str, str]], None],
        clock: Callable[[], float],
        stalled: Callable[[], bool],
        apart: Callable[[], float] = always,
    ) -> None:
        """Beat by timers of the running loop."""
        if self._beats is not None:
            raise RuntimeError("the agent beats already")
        if not interval > 0:
            raise ValueError("the interval of beats must be more than 0 s")
        write, read, look = partial(self._write_beat, agent), self._read_beats, partial(self._look, agent)
        beats = LoopBeats(
            interval, line, on_ack, on_read, clock, stalled, apart, write, read, look, self._numbers, self._counts
        )
        self._beats, self._beating, self._writers = beats, agent, set()
        beats.begin()

    def _write_beat(self, agent: str, line: str) -> bool:
        if self._hub.down:
            return False
        there = self._another(agent) if self._writers else None
        self._over = {} if there is None else {agent: there.decode()}
        self.shelf.beats[encode(agent)] = encode(line)
        self._writers.add(writer(encode(line)))
        self.shelf.beats.setdefault(encode(MEMORY), encode(secrets.token_hex(4)))
        return True

    def _look(self, agent: str) -> dict[str, str] | None:
        return None if self._hub.down or self._another(agent) is None else self._read_beats()

    def _another(self, agent: str) -> bytes | None:
        """Another process's line in the place of the own one."""
        there = self.shelf.beats.get(encode(agent))
        return there if there is not None and writer(there) not in self._writers else None

    def _read_beats(self) -> dict[str, str]:
        beats = self._texts(self.shelf.beats) | self._over
        beats.pop(WATCHED, None)  # a stranger's
        token = self.shelf.beats.get(encode(MEMORY), b"")
        if token != self._token:
            self._token = token
            beats[WATCHED] = self._hub.watched.ask("", clock.now(), clock.unix()).text
        return beats

    def beat_now(self) -> None:
        """Beat soon."""
        if self._beats is not None:
            self._beats.soon()

    async def stop_beating(self, last_line: str | None) -> None:
        """Stop the timers, write the last line."""
        beats, self._beats = self._beats, None
        if beats is None:
            return
        beats.stop()
        await asyncio.sleep(0)
        if last_line is not None and not self._hub.down:
            self.shelf.beats[encode(self._beating)] = encode(last_line)

    # -- mail --------------------------------------------------------------------------------------------------------

    async def empty_inbox(self) -> int:
        """Count and delete."""
        await self._trip()
        if self._is_away(self._agent):
            raise TransportDown("the own mail slot is away")
        count = len(self.shelf.inbox[self._agent])
        self.shelf.inbox[self._agent].clear()
        return count

    async def exchange(self, out: Outgoing) -> Incoming:
        """As the contract has it."""
        async with self._turn:
            self._in_hand.consume(out.consumed)
            leaving = self._in_hand.leaving
            await self._trip()
            out, put_off = self._without_away(out)
            refused = self._apply(out, () if self._is_away(self._agent) else leaving)
            reads = not self._is_away(self._agent)
            if out.waits and not reads:
                raise TransportDown("the own mail slot is away")
            if reads:
                self._in_hand.deleted(leaving)
            letters = self._letters(self._in_hand.room(self._most)) if out.read_inbox and reads else []
            self._in_hand.hand_out(one for one, _ in letters)
            acks = self._texts(self.shelf.acks[self._agent]) if out.read_acks and reads else {}
            control = self._texts(self.shelf.control) if out.read_control else None
            hand, idle = self._seeds_in_hand, self._seed_idle
            seeds = self.shelf.seeds.handed_out(out, self._agent, hand, self._largest, idle)
            outside = self.shelf.outside if out.look_outside else None
            published = None if out.profile is None else encode(self._agent) in self.shelf.agents
            late = tuple(agent for agent in self._owed if not self._is_away(agent))
            incoming = Incoming(
                letters,
                acks,
                control,
                seeds,
                outside,
                published=published,
                memory=self._memory() if reads and out.read_inbox else "",
                late=late,
                slots_away=len(self._hub.slots_away),
                put_off=put_off,
            )
            self._owed.difference_update(late)
            await asyncio.sleep(0)  # the way back
            if refused:
                raise TransportFull("the hub is full", incoming)
            return incoming

    def _is_away(self, agent: str) -> bool:
        return bool(self._hub.slots_away) and mail_place(agent, self._mail_slots) in self._hub.slots_away

    def _memory(self) -> str:
        """What the own mail slot says of its memory."""
        if self._mail_slots == 1:
            return ""
        return self.shelf.memories.setdefault(mail_place(self._agent, self._mail_slots), secrets.token_hex(4))

    def _without_away(self, out: Outgoing) -> tuple[Outgoing, int]:
        """What can be written, and how many letters and answers cannot."""
        letters = [letter for letter in out.letters if not self._is_away(letter[0])]
        acks = {to: text for to, text in out.acks.items() if not self._is_away(to[0])}
        away = {agent for agent, _ in (*out.letters, *out.acks) if self._is_away(agent)}
        self._owed |= away
        forget = () if self._is_away(self._agent) else out.forget_acks
        put_off = len(out.letters) - len(letters) + len(out.acks) - len(acks)
        return replace(out, letters=letters, acks=acks, forget_acks=forget) if away else out, put_off

    def _apply(self, out: Outgoing, leaving: tuple[str, ...]) -> bool:
        """Run the writes in the order of the Redis transport. Return whether some were refused. Raises
        TransportDown."""
        most, self._hub.break_after = self._hub.break_after, None
        refused = False
        for number, (needs_memory, write) in enumerate([*self._deletions(out, leaving), *self._writes(out)]):
            if number == most:
                break
            if needs_memory and self._hub.full:
                refused = True
            else:
                write()
        if most is not None:
            raise TransportDown("the connection broke")
        return refused

    def _deletions(self, out: Outgoing, leaving: tuple[str, ...]) -> Iterator[tuple[bool, Callable[[], object]]]:
        shelf, me = self.shelf, self._agent
        yield False, lambda: [shelf.inbox[me].pop(one, None) for one in leaving]
        yield False, lambda: [shelf.acks[me].pop(encode(lane), None) for lane in out.forget_acks]
        yield False, lambda: [shelf.control.pop(encode(name), None) for name in out.forget_control]

    def _writes(self, out: Outgoing) -> Iterator[tuple[bool, Callable[[], object]]]:
        shelf, me = self.shelf, self._agent
        if out.seeds_answered or out.seeds_for:
            yield False, partial(shelf.seeds.answer, out, me)
        for (sender, lane), text in out.acks.items():
            yield True, partial(shelf.acks[sender].update, {encode(lane): encode(text)})
        for receiver, fields in out.letters:
            yield True, partial(self._hub.append, self._crawl, receiver, _raw(fields))
        for fields in out.dead_letters:
            yield True, partial(shelf.dead[me].append, _raw(fields))
        if out.profile is not None:
            yield False, partial(shelf.publish, me, out.profile, out.counts_anew)
        if out.control:
            yield True, partial(shelf.control.update, _raw(out.control))
        if out.control_changes:
            yield True, partial(shelf.change_control, out.control_changes)
        for question, text in out.replies.items():
            reply = {encode(me): encode(text)}
            yield False, partial(shelf.answers[question].update, {} if self._hub.full else reply)
        if out.end is not None:
            yield True, partial(shelf.end, out.end)

    def _letters(self, most: int) -> list[tuple[str, RawFields]]:
        letters: list[tuple[str, RawFields]] = []
        held, budget = set(self._in_hand.held), self._budget
        for name, fields in self.shelf.inbox[self._agent].items():
            if len(letters) >= most or budget <= 0:
                break
            size = size_of(fields)
            if name in held:
                continue
            if size > self._largest:
                self._counts["oversized"] += 1
                letters.append((name, marker(fields, size)))
            elif letters and size > budget:
                break
            else:
                letters.append((name, dict(fields)))
            budget -= size
        return letters

    def _texts(self, raw: Raw) -> dict[str, str]:
        good, bad = texts(raw.items(), TEXT * self._largest)
        self._counts["garbage"] += len(bad)
        for name in bad:
            del raw[name]
        return good

    async def clear(self, finished: str | None = None, control: Fields = NO_FIELDS) -> bool:
        """Forget the crawl, if it is the finished one that is meant."""
        await self._trip()
        if finished is not None and self.shelf.control.get(b"finished") != encode(finished):
            return False
        self._hub.forget(self._crawl)
        self.shelf.control.update(_raw(control))
        return True


def _raw(fields: Fields) -> Raw:
    return {encode(name): encode(value) for name, value in fields.items()}
