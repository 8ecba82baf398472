"""Mail and beats through Redis or Valkey. The keys are in redis_keys.py, the guarantees in contract.py.

Rules of this module:
* One exchange is one pipelined round trip, not a transaction: everything is idempotent, so nothing needs to be atomic.
* The pool is round_trips.py's; the beating thread has a connection of its own (heartbeat.py says why).
* The inbox is read from its beginning by a script that leaves out what is in hand and cuts what is too large.
* Mail in slots of its own (UBI_MAIL_SLOTS) is in the same round trip where one server has all slots. In a cluster it
  goes by `mail_lines`, beside the round trip to the crawl's own slot.
* After an exchange that failed the next one reads less: a slow line may not carry so much within the time-out, and a
  server may bound what it answers (client-output-buffer-limit). Otherwise the same would be asked for without end.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from redis import exceptions as lib

from scrapy_ubi.ground import clock
from scrapy_ubi.transport import scripts
from scrapy_ubi.transport.address import address
from scrapy_ubi.transport.beat_connection import RedisLink
from scrapy_ubi.transport.claimed_items import said_of
from scrapy_ubi.transport.contract import (
    MEMORY,
    MOST_READ,
    NO_FIELDS,
    TEXT,
    Fields,
    Incoming,
    Line,
    Outgoing,
    RawFields,
    TransportDown,
    TransportError,
    TransportFull,
    always,
)
from scrapy_ubi.transport.credentials import RedisLogin
from scrapy_ubi.transport.delivered import InHand
from scrapy_ubi.transport.exchange_commands import ExchangeCommands
from scrapy_ubi.transport.heartbeat import BeatCallbacks, Heartbeat
from scrapy_ubi.transport.mail_lines import MailLines, scanned
from scrapy_ubi.transport.packed_letters import FAR, unpacked
from scrapy_ubi.transport.pulses import MOST_SLOTS, WIDTH, Whole
from scrapy_ubi.transport.redis_keys import RedisKeys
from scrapy_ubi.transport.rights import ask_rights, ask_seed_rights, lacking
from scrapy_ubi.transport.round_trips import Argument, RedisCommand, RoundTrips, paired
from scrapy_ubi.transport.seed_reader import OUTSIDE, NoSeeds, SeedReader, SeedSource
from scrapy_ubi.transport.wire_text import encode, marker, size_of, texts

logger = logging.getLogger(__name__)

SCAN = 1000  # keys a step looks at when a crawl is cleared
LEAST = 64_000  # bytes of letters that are read at least, one letter in any case
GROWN = 4  # times as much as may be read: what packed letters may hold when they are opened, one in any case
CLOSING = 1.0  # s that the end waits for a connection that is being made
EASY = 6  # an exchange that took less than this part of the time-out, and read much, may read twice as much


class ReadBudget:
    """How many bytes of letters the next exchange may read (`now`), of so many at `most`: fewer after one that had no
    answer, more again after those that came quickly."""

    def __init__(self, most: int) -> None:
        self.most = self.now = most

    def lower(self) -> None:
        """A reading had no answer."""
        self.now = min(self.now, max(LEAST, self.now // 4))

    def found(self, letters: Iterable[tuple[str, RawFields]], took: float, timeout: float) -> None:
        """These came in so many seconds, of so many that they may take: the next exchange may read more. Few say
        nothing of what the line carries."""
        if self.now < self.most and sum(size_of(fields) for _, fields in letters) >= self.now / 2:
            easy = took < timeout / EASY
            self.now = min(self.most, self.now * 2 if easy else self.now + LEAST // 4)


class RedisTransport:
    """The contract's Transport by way of a Redis 5 or later, or a Valkey, alone, in a cluster or with Sentinels.

    `timeout` (s) bounds each call, for a server that is far away `longest_timeout` does; the lease should be longer.
    Nothing connects before `open`. `seeds`: what is to be known to read seeds, None where none are to be read.
    """

    def __init__(
        self,
        url: str | RedisLogin,
        crawl: str,
        agent: str,
        max_letter_bytes: int = 1_000_000,
        max_letters: int = MOST_READ,
        *,
        max_read_bytes: int = 4_000_000,
        timeout: float = 3.0,
        longest_timeout: float = 0.0,
        seeds: SeedSource | None = None,
        mail_slots: int = 1,
    ) -> None:
        self._login = RedisLogin(url) if isinstance(url, str) else url
        self._agent = agent
        self._keys = RedisKeys(crawl, mail_slots)
        self._commands = ExchangeCommands(self._keys, agent, max_letter_bytes)
        self._largest = max_letter_bytes
        self._most = max_letters
        self._budget = ReadBudget(max_read_bytes)
        self._timeout = timeout  # of beats
        self._longest = longest_timeout  # of mail
        self._counts: Counter[str] = Counter()
        self._trips: RoundTrips | None = None
        self._lines: MailLines | None = None  # where several servers carry mail
        self._memory = ""  # of the own mail slot
        self._memory_lacks = False
        self._ahead: float | None = None  # the server's clock is, of this process's (s)
        self._in_hand = InHand()
        self._seeds = SeedReader(seeds, self._commands, self._counts) if seeds is not None else NoSeeds()
        self._garbage: dict[str, set[bytes]] = {}  # key -> fields to delete from that hash: no text, or too long
        self._turn = asyncio.Lock()  # exchanges one after another: each id is handed out once
        self._heartbeat: Heartbeat | None = None
        self._early: tuple[RedisLink, asyncio.Future[None]] | None = None  # the heart's connection, before it beats
        self._beat = 0  # counter of beats
        self._looked: Whole | None = None  # the last look at all beats, until a claim is made by it
        self._mail_is_away = False  # the last exchange has failed
        self._beat_counts: Counter[str] = Counter()  # the thread's own: += is not atomic

    @property
    def _heart(self) -> tuple[str, str, tuple[tuple[str, str], ...]]:
        """The keys of beats, with their types, as a command of a script has them."""
        return self._keys.beats, "hash", ((self._keys.slots, "hash"), (self._keys.pulses, "string"))

    @property
    def counts(self) -> Counter[str]:
        """See the contract."""
        return self._counts + self._beat_counts

    # -- opening and closing -----------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect and try a read, a write and a script. Raises TransportError or TransportDown, one sentence."""
        name = f"ubi:{self._keys.crawl}:{self._agent}"
        at = address(*self._login)
        if at.kind == "cluster":
            self._seeds.need_slot(self._keys)
        has_slots = self._keys.mail_slots > 1
        apart = has_slots and at.kind == "cluster"
        self._trips = RoundTrips(
            at, name, self._timeout, self._counts, self._keys.slot, longest=self._longest, asks_name=has_slots
        )
        rights = [ask_rights(self._keys, self._agent, at.kind)]
        rights += [ask_seed_rights(self._keys)] if self._seeds.needed else []
        seeds = self._seeds.probes() if self._seeds.needed else ()
        probes = self._commands.probes(self._budget.now)
        when, *_ = await self._trips.connect(
            [*(one for one in probes if not apart or self._keys.mail_slot(one.key) is None), *seeds, *rights],
            lambda results: lacking(results[-len(rights) :], results),
        )
        if apart:
            lines = MailLines(at, self._keys, self._agent, name, self._timeout, self._counts, self._longest)
            try:
                await lines.open([one for one in probes if lines.carries(one)])
            except TransportError:
                await lines.close()
                await self._trips.close()
                raise
            self._lines = lines
        await self._try_seeds()
        try:
            seconds, microseconds = map(int, when)
        except (TypeError, ValueError) as error:
            await self._trips.close()
            raise TransportError(self._trips.explain(error)) from error
        self._ahead = seconds + microseconds / 1e6 - clock.now()

    async def _try_seeds(self) -> None:
        """See whether seeds can come by this server, where the crawl can do without."""
        if self._seeds.needed or not self._seeds.is_open:
            return
        results = await self._server.attempt([*self._seeds.probes(), ask_seed_rights(self._keys)])
        wrong = lacking(results[-1:], results) or next((one for one in results if isinstance(one, Exception)), None)
        if wrong is not None and not isinstance(wrong, lib.OutOfMemoryError):
            self._seeds = NoSeeds()
            logger.info("This crawl takes no URLs from outside (scrapy ubi seed): %s.", self._server.explain(wrong))

    @property
    def takes_seeds(self) -> bool:
        """See the contract."""
        return self._seeds.is_open

    def now(self) -> float:
        """The server's time."""
        if self._ahead is None:
            raise RuntimeError("open() comes first")
        return clock.now() + self._ahead

    @property
    def line(self) -> Line:
        """See the contract."""
        trips = self._trips
        return Line() if trips is None else Line(trips.round_trip.seconds, trips.timeout)

    @property
    def _server(self) -> RoundTrips:
        if self._trips is None:
            raise RuntimeError("open() comes first")
        return self._trips

    async def close(self) -> None:
        """Stop beating without a last line, and disconnect."""
        await self.stop_beating(None)
        early, self._early = self._early, None
        if early is not None:
            link, connecting = early
            connecting.add_done_callback(lambda _: link.close())
            await asyncio.wait([connecting], timeout=CLOSING)
        if self._lines is not None:
            await self._lines.close()
        if self._trips is not None:
            await self._trips.close()

    # -- beats -------------------------------------------------------------------------------------------------------

    async def beats(self) -> dict[str, str]:
        """Agent -> beat line, by one look at all."""
        key, whole = self._keys.beats, await self._whole()
        self._looked = whole if self._heartbeat is None else None
        said = {name: found.said for name, found in whole.found().items()}
        beats = self._texts(key, said)
        beats.pop(MEMORY, None)
        return beats

    async def _whole(self) -> Whole:
        """Lines, slots and pulses of one instant."""
        keys = self._keys.heart
        look = RedisCommand(("EVAL", scripts.WHOLE, 3, *keys, MOST_SLOTS * WIDTH - 1), *self._heart)
        (answer,) = await self._server.call([look])
        try:
            pulses, lines, slots = answer
            return Whole(bytes(pulses), paired(lines), paired(slots))
        except (lib.InvalidResponse, TypeError, ValueError) as error:
            odd = lib.InvalidResponse("it answers something else than beats")
            raise TransportDown(self._server.explain(odd)) from error

    async def profiles(self) -> dict[str, str]:
        """Agent -> profile."""
        key = self._keys.agents
        (result,) = await self._server.call([RedisCommand(("HGETALL", key), key, "hash")])
        return self._texts(key, result)

    async def former_profiles(self) -> dict[str, str]:
        """Agent -> profile, of former keys; those versions knew no cluster."""
        key = self._keys.former_agents
        result = await self._ask_former("HGETALL", key)
        return self._texts(key, result) if result is not None else {}

    async def tell_former(self, fields: Fields) -> None:
        """Write into former keys."""
        pairs = [text for pair in fields.items() for text in pair]
        await self._ask_former("HSET", self._keys.former_control, *pairs)

    async def _ask_former(self, *command: str) -> Any:
        """The answer; None where there is none to be had: these keys may be no hashes, or not be permitted."""
        if self._server.at.kind == "cluster":
            return None
        try:
            (result,) = await self._server.call([RedisCommand(command)])
        except TransportDown as error:
            if isinstance(error.__cause__, lib.ResponseError):
                return None
            raise
        return result

    async def claim(self, agent: str, expected: str | None, line: str) -> bool:
        """Compare by a look at what line and pulse say together; set by a script, where both are the same yet. The look
        is that of `beats`, where that may do."""
        looked, self._looked = self._looked, None
        if looked is not None and await self._claim(looked, agent, expected, line):
            return True
        return await self._claim(await self._whole(), agent, expected, line)

    async def _claim(self, whole: Whole, agent: str, expected: str | None, line: str) -> bool:
        found, new = whole.found().get(agent.encode()), encode(line)
        if found is not None and new in (found.line, found.said):
            return True
        if (None if found is None else found.said) != (None if expected is None else encode(expected)):
            return False
        given: tuple[Argument, ...] = ("0", b"", new, "", b"")
        if found is not None:
            at = "" if found.slot is None or not found.cell else found.slot * WIDTH
            given = ("1", found.line, new, at, found.cell)
        keys = (self._keys.beats, self._keys.pulses)
        command = RedisCommand(("EVAL", scripts.CLAIM, 2, *keys, agent, *given), *self._heart)
        (result,) = await self._server.call([command])
        return bool(result)

    async def forget(self, gone: Fields) -> None:
        """Compare and delete, as `claim`."""
        keys, there = self._keys, (await self._whole()).found()
        known = {name: found for name in gone if (found := there.get(name.encode())) is not None}
        same = {name: found for name, found in known.items() if found.said == encode(gone[name])}
        if not same:
            return
        mail = [name for agent in same for name in (keys.inbox(agent), keys.acks(agent))]
        mail = mail if keys.mail_slots == 1 else []  # else it may be elsewhere
        said: list[Argument] = [WIDTH]
        for agent, found in same.items():
            said += (agent, found.line, "" if found.slot is None else found.slot, found.cell)
        script = ("EVAL", scripts.FORGET, 3 + len(mail), *keys.heart, *mail, *said)
        (forgotten,) = await self._server.call([RedisCommand(script, *self._heart)])
        if keys.mail_slots == 1 or not isinstance(forgotten, list):
            return
        names = [name.decode(errors="replace") for name in forgotten if isinstance(name, bytes)]
        deletions = [RedisCommand(("DEL", key), key) for name in names for key in (keys.inbox(name), keys.acks(name))]
        if self._lines is not None:
            self._lines.post(deletions)
        elif deletions:
            await self._server.call(deletions)

    async def sum_up(self, gone: Fields, before: str | None, after: str) -> bool:
        """Compare, delete and set, by a script."""
        (result,) = await self._server.call([self._commands.sum_up(gone, before, after)])
        return bool(result)

    async def claim_items(self, claims: Mapping[str, tuple[str | None, str]]) -> dict[str, str]:
        """Compare and set, by a script."""
        (answer,) = await self._server.call([self._commands.claim_items(claims)])
        return said_of(claims, answer, TEXT * self._largest)

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
        """A thread beats from now on; see the contract and heartbeat.py."""
        if self._heartbeat is not None:
            raise RuntimeError("the agent beats already")

        def next_line() -> str:
            self._beat += 1
            return line(self._beat)

        link = self._link(agent)
        if self._early is not None and agent == self._agent:
            (link, _), self._early = self._early, None
        callbacks = BeatCallbacks(next_line, on_ack, on_read, clock, stalled, apart, lambda: self._mail_is_away)
        self._heartbeat = Heartbeat(link, interval, callbacks, self._beat_counts)
        self._heartbeat.start()

    def _link(self, agent: str) -> RedisLink:
        return RedisLink(self._server.at, self._keys, agent, self._timeout, TEXT * self._largest, self._beat_counts)

    async def prepare_beats(self) -> None:
        """Connect in another thread: it takes some round trips."""
        if self._early is None and self._heartbeat is None:
            link = self._link(self._agent)
            self._early = link, asyncio.get_running_loop().run_in_executor(None, link.connect)

    def beat_now(self) -> None:
        """Beat soon."""
        if self._heartbeat is not None:
            self._heartbeat.soon()

    async def stop_beating(self, last_line: str | None) -> None:
        """End the thread; it writes the last line itself, so that no beat can come after it."""
        heartbeat, self._heartbeat = self._heartbeat, None
        if heartbeat is not None:  # one beat may be under way and time out, then the last one is written
            await heartbeat.stop(last_line, limit=2 * self._timeout + 1)

    # -- mail --------------------------------------------------------------------------------------------------------

    async def empty_inbox(self) -> int:
        """Count and delete, in one round trip."""
        key = self._keys.inbox(self._agent)
        commands = [RedisCommand(("XLEN", key), key, "stream"), RedisCommand(("DEL", key))]
        async with self._turn:
            ask = self._server.call if self._lines is None else self._lines.ask_own
            count, _ = await ask(commands)
        return int(count)

    async def exchange(self, out: Outgoing) -> Incoming:
        """One round trip: deletions, acks, letters, dead letters, profile, control; then what is to be read."""
        async with self._turn:
            self._in_hand.consume(out.consumed)
            leaving, garbage = self._in_hand.leaving, dict(self._garbage)
            commands = [
                *self._commands.deletions(out, leaving, garbage),
                *self._commands.writes(out, packs=self.line.round_trip >= FAR),
            ]
            if self._memory_lacks:
                commands.append(self._commands.remember(secrets.token_hex(4)))
            reads = self._commands.reads(out, self._in_hand.room(self._most), self._budget.now, self._in_hand.held)
            commands += self._seeds.moves(out)
            if out.end is not None and self._seeds.is_open:
                commands.append(self._commands.end_crawl(out.end))
            reads |= self._seeds.reads(out, self._budget.now)
            if self._lines is not None:
                return await self._exchange_apart(self._lines, out, commands, reads, leaving, garbage)
            began = clock.now()
            results = await self._carry([*commands, *reads.values()])
            took = clock.now() - began
            written, read = results[: len(commands)], dict(zip(reads, results[len(commands) :], strict=True))
            letters = self._letters(read.get(self._keys.inbox(self._agent), []))
            self._budget.found(letters, took, self._server.timeout)
            self._in_hand.deleted(leaving)
            for key in garbage:
                self._garbage.pop(key, None)
            self._remember(read, self._server.server)
            return self._incoming(out, commands, written, letters, read)

    async def _exchange_apart(
        self,
        lines: MailLines,
        out: Outgoing,
        commands: Sequence[RedisCommand],
        reads: Mapping[str, RedisCommand],
        leaving: tuple[str, ...],
        garbage: Mapping[str, set[bytes]],
    ) -> Incoming:
        """Mail by its lines, the rest by a round trip beside."""
        acks = self._keys.acks(self._agent)
        own_reads = {key: command for key, command in reads.items() if lines.carries(command)}
        rest_reads = {key: command for key, command in reads.items() if key not in own_reads}
        rest = [command for command in commands if not lines.carries(command)]
        if out.waits:
            await lines.finish_reading()
        before = lines.readings
        lines.post([command for command in commands if lines.carries(command) and not lines.is_own(command)])
        own = [command for command in commands if lines.is_own(command)]
        lines.read(own, own_reads, leaving, garbage.get(acks, ()))
        results = await self._carry([*rest, *rest_reads.values()]) if rest or rest_reads else []
        await (lines.finish_reading() if out.waits else lines.settle())
        if lines.readings_failed:
            self._budget.lower()
            lines.readings_failed = 0
        if out.waits:
            lines.need_own(before)
        written, read = results[: len(rest)], dict(zip(rest_reads, results[len(rest) :], strict=True))
        for key in garbage:
            if key != acks:
                self._garbage.pop(key, None)
        letters: list[tuple[str, RawFields]] = []
        for found in lines.take_own() if out.read_inbox else ():
            new = self._letters(found.read.get(self._keys.inbox(self._agent), []))
            self._budget.found(new, found.took, self._server.timeout)
            letters += new
            self._in_hand.deleted(found.deleted)
            if found.cleaned:
                self._garbage.pop(acks, None)
            self._remember(found.read, found.server)
            read[acks] = {**read.get(acks, {}), **found.read.get(acks, {})}
        incoming = self._incoming(out, rest, written, letters, read)
        late, put_off, lines.put_off = lines.take_late(), lines.put_off, 0
        return replace(incoming, late=late, slots_away=lines.slots_away, put_off=put_off)

    def _remember(self, read: Mapping[str, Any], server: str) -> None:
        """What the own mail slot says of its memory: that token, at that server."""
        key = self._keys.memory(self._agent)
        if key not in read:
            return
        token = read[key]
        self._memory_lacks = not isinstance(token, bytes)
        if isinstance(token, bytes):
            self._memory = f"{token[:64].decode('ascii', 'replace')} {server}"

    async def _carry(self, commands: Sequence[RedisCommand]) -> list[Any]:
        """The results of an exchange; the next one reads less where it fails."""
        try:
            results = await self._server.call(commands, full_is_an_error=False)
            self._mail_is_away = False
            return results
        except TransportDown:
            self._mail_is_away = True
            self._budget.lower()
            raise

    def _incoming(
        self,
        out: Outgoing,
        commands: Sequence[RedisCommand],
        written: list[Any],
        letters: list[tuple[str, RawFields]],
        read: Mapping[str, Any],
    ) -> Incoming:
        """What was read, by key. Raises TransportFull, which holds it, when writes were refused."""
        seeds = self._letters(read[self._keys.seeds]) if self._keys.seeds in read else ()
        self._seeds.exchanged(out, seeds)
        told = (answer for each, answer in zip(commands, written, strict=True) if scripts.PUBLISH in each.args)
        published = next((bool(answer) for answer in told if isinstance(answer, int)), None)
        acks, control = self._keys.acks(self._agent), self._keys.control
        self._in_hand.hand_out(one for one, _ in letters)
        try:
            outside = SeedReader.outside(read.get(OUTSIDE))
        except (TypeError, ValueError, AttributeError) as error:
            odd = lib.InvalidResponse("it answers something else than what waits")
            raise TransportDown(self._server.explain(odd)) from error
        incoming = Incoming(
            letters,
            self._texts(acks, read.get(acks, {})),
            self._texts(control, read[control]) if control in read else None,
            seeds,
            outside,
            published=published,
            memory=self._memory,
        )
        memory = self._keys.memory(self._agent)  # can wait
        full = (one for each, one in zip(commands, written, strict=True) if each.key != memory)
        refused = next((one for one in full if isinstance(one, lib.OutOfMemoryError)), None)
        if refused is not None:
            raise TransportFull(self._server.explain(refused), incoming)
        return incoming

    def _letters(self, found: Any) -> list[tuple[str, RawFields]]:
        """The letters that the script has found, up to a bound of what they hold when they are opened: the others are
        read again later. Raises TransportDown when that is no such answer."""
        letters: list[tuple[str, RawFields]] = []
        more = 0  # bytes by which those that were packed have grown
        try:
            for name, _size, whole, flat in found:
                entry = paired(flat)
                fields = self._opened(entry)
                more += 0 if fields is entry else size_of(fields)
                if letters and more > GROWN * self._budget.most:
                    break
                letters.append((name.decode("ascii"), fields))
                self._counts["oversized"] += not whole
        except (lib.InvalidResponse, TypeError, ValueError, AttributeError) as error:
            odd = lib.InvalidResponse("it answers something else than letters")
            raise TransportDown(self._server.explain(odd)) from error
        return letters

    def _opened(self, entry: RawFields) -> RawFields:
        """The fields of an entry, which may be packed."""
        fields = unpacked(entry, self._largest)
        if fields is None:
            self._counts["oversized"] += 1
            return marker(entry, size_of(entry))
        return fields

    def _texts(self, key: str, raw: Mapping[bytes, bytes]) -> dict[str, str]:
        """The text of a hash; what is none is deleted by the next exchange, else it would be read again and again."""
        good, bad = texts(raw.items(), TEXT * self._largest)
        if bad:
            self._counts["garbage"] += len(bad)
            self._garbage.setdefault(key, set()).update(bad)
            logger.warning("%d fields of %s are no text or too long: skipped and deleted", len(bad), key)
        return good

    # -- forgetting --------------------------------------------------------------------------------------------------

    async def clear(self, finished: str | None = None, control: Fields = NO_FIELDS) -> bool:
        """The keys of all known agents in one step, by a script; then what else is found of this crawl."""
        (cleared,) = await self._server.call([self._commands.clear(finished, control)])
        if not cleared:
            return False
        try:
            await self._sweep(await self.beats())
        except TransportError as error:  # what is left is harmless: it is not read before its agent returns
            logger.warning("keys of a former run may be left: %s", error)
        return True

    async def _sweep(self, begun: Mapping[str, str]) -> None:
        """Delete the keys of agents that no beat or profile named, but not of those that have begun since."""
        cursor = -1
        while cursor:
            scan = RedisCommand(("SCAN", max(cursor, 0), "MATCH", self._keys.pattern, "COUNT", SCAN))
            ((cursor, found),) = await self._server.call([scan])
            old = [key for key in found if (owner := self._keys.owner(key)) is not None and owner[0] not in begun]
            if old:
                await self._server.call([RedisCommand(("DEL", *old))])
        if self._lines is not None:
            await self._lines.delete_where(begun)
        elif self._keys.mail_slots > 1:
            async for found in scanned(self._server, self._keys, begun):
                await self._server.call([RedisCommand(("DEL", *found))])
