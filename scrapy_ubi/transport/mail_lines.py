"""Mail in slots of its own, in a cluster: a line to each master that carries some (docs/decisions/0154-mail-slots.md).

Rules of this module:

* Each line sends by itself: none waits for another, and an exchange waits for all of them only for a moment (`settle`).
  What one is behind with goes on meanwhile; what comes for it waits, up to a bound.
* What cannot be written is left out, not kept: its sender has it in the outbox, and hears when to say it again
  (`take_late`). A line that has failed is tried again after a pause, with what comes for it, or with a mere look.
* The own inbox is read by a round trip of its own, one at a time: a master that is full of mail can still be read. What
  that has brought waits here until an exchange takes it (`take_own`).
* After a batch, or a reading, that failed the next one is smaller: a slow line may not carry so much within the
  time-out.
* A slot that moves is followed, command by command (MOVED, ASK). After a failure all are looked for anew.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Collection, Coroutine, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from redis import exceptions as lib

from scrapy_ubi.ground import clock
from scrapy_ubi.transport.address import Address, Node
from scrapy_ubi.transport.contract import TransportDown, TransportError
from scrapy_ubi.transport.faults import FAULTS, allowed, fault, fault_at_start
from scrapy_ubi.transport.redis_keys import RedisKeys, hash_slot, mail_tags
from scrapy_ubi.transport.round_trips import RedisCommand, RoundTrips
from scrapy_ubi.transport.topology import SlotFinder

logger = logging.getLogger(__name__)

MOMENT = 0.1  # s that an exchange waits for all lines, and USUAL times as long as the quickest of them took last
USUAL = 4
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0  # s between two tries of a line
MOST_WAITING = 4_000  # commands of a line that is behind
MOST_BYTES = 16_000_000  # of these
MOST_UNDELETED = 1_000  # keys of forgotten agents; more are left until the crawl is reset
LEAST_BYTES = 64_000  # of one batch, one command in any case; what that takes is more after each that is quick
EASY = 6  # a batch that took less than this part of the time-out is
TURNS = 3  # a slot may have moved on meanwhile
FIND = 1.0  # s between two looks for all masters
QUIET = 60.0  # s within which the log says once that a line fails
CLOSING = 1.0  # s that what is under way may take at the end
BROKEN = (TransportDown, *FAULTS, ValueError, TypeError, AttributeError)  # the last three: what answers is no Redis
SCAN = 1000  # keys a step looks at


class OwnMail(NamedTuple):
    """What reading the own mail has brought: results by key, and what was deleted with it. `server`: who answered."""

    read: Mapping[str, Any]
    deleted: tuple[str, ...]
    cleaned: Collection[bytes]
    server: str
    began: float
    took: float


class MailLine:
    """The line to one master. `why` it fails, "" while it works; `is_full`: it fails as it has no memory left."""

    def __init__(self, trips: RoundTrips) -> None:
        self.trips = trips
        self.waiting: list[RedisCommand] = []
        self._size = 0  # bytes of these
        self.most = MOST_BYTES  # of the next batch
        self.task: asyncio.Task[None] | None = None
        self.is_behind = False
        self.took = 0.0  # s that the last batch was under way
        self.why = ""
        self.is_full = False
        self.retry_at = self._pause = self._quiet_until = 0.0
        self._is_said = False

    def rests(self, now: float) -> bool:
        """Whether it has failed a moment ago."""
        return bool(self.why) and now < self.retry_at

    def put(self, command: RedisCommand) -> bool:
        """Let this wait for the next batch. Return whether there is room."""
        size = _size_of(command)
        if self.waiting and (len(self.waiting) >= MOST_WAITING or self._size + size > MOST_BYTES):
            return False
        self.waiting.append(command)
        self._size += size
        return True

    def take(self) -> list[RedisCommand]:
        """The next batch of what waits."""
        if self._size <= self.most:
            return self.take_all()
        size = count = 0
        for command in self.waiting:
            size += _size_of(command)
            if size > self.most and count:
                size -= _size_of(command)
                break
            count += 1
        batch, self.waiting, self._size = self.waiting[:count], self.waiting[count:], self._size - size
        return batch

    def take_all(self) -> list[RedisCommand]:
        """All that waits."""
        batch, self.waiting, self._size = self.waiting, [], 0
        return batch

    def carried(self, batch: Sequence[RedisCommand], took: float) -> None:
        """A batch was answered after so long (s): one as large may say what the line carries."""
        self.took = took
        if self.most < MOST_BYTES and 2 * sum(map(_size_of, batch)) >= self.most:
            easy = took < self.trips.timeout / EASY
            self.most = min(MOST_BYTES, self.most * 2 if easy else self.most + LEAST_BYTES // 4)

    def not_carried(self, batch: Sequence[RedisCommand]) -> None:
        """A batch was not answered."""
        self.most = max(LEAST_BYTES, min(self.most, sum(map(_size_of, batch))) // 4)

    def fail(self, error: TransportError, is_full: bool, slots: str) -> None:
        """It has failed; `slots` says what it carries."""
        now = clock.now()
        self.why, self.is_full = str(error), is_full
        self._pause = min(max(2 * self._pause, FIRST_PAUSE), LONGEST_PAUSE)
        self.retry_at = now + self._pause
        if not self._is_said and now >= self._quiet_until:
            self._is_said, self._quiet_until = True, now + QUIET
            logger.warning("Mail to the agents of %s is held back, all other mail goes on. %s", slots, error)

    def work(self, slots: str) -> None:
        """A batch was taken."""
        self.why, self.is_full, self._pause = "", False, 0.0
        if self._is_said:
            self._is_said = False
            logger.info("Mail to the agents of %s goes on.", slots)


class MailLines:
    """The lines of one agent. `put_off`: how many commands were left out, `readings_failed`: how many readings of the
    own mail had no answer, since somebody has set them back."""

    def __init__(
        self,
        at: Address,
        keys: RedisKeys,
        agent: str,
        name: str,
        timeout: float,
        counts: Counter[str],
        longest: float = 0.0,
    ) -> None:
        self._at, self._keys, self._agent, self._name = at, keys, agent, name
        self._timeout = timeout
        self._longest = longest
        self._counts = counts
        self._slots = [hash_slot(tag) for tag in mail_tags(keys.crawl, keys.mail_slots)]
        self._own_slot = hash_slot(keys.mail_tag(agent))
        self._own_keys = {keys.inbox(agent), keys.acks(agent), keys.memory(agent)}
        self._finder = SlotFinder(at, self._slots, timeout)
        self._routes: dict[int, Node] = {}
        self._lines: dict[Node, MailLine] = {}
        self._finding: asyncio.Task[None] | None = None
        self._unforeseen: BaseException | None = None  # what a task of its own has ended with
        self._find_at = 0.0
        self._is_stale = False
        self._owed: set[str] = set()
        self._undeleted: dict[str, RedisCommand] = {}  # keys of those who are forgotten, whose master is away
        self.put_off = 0
        self._reading: asyncio.Task[OwnMail | None] | None = None
        self._reads_behind = False
        self._found: list[OwnMail] = []
        self.readings = 0  # that have succeeded
        self.readings_failed = 0

    # -- opening and closing

    async def open(self, probes: Sequence[RedisCommand]) -> None:
        """Find all masters, and try the own one. Raises TransportError, or TransportDown where that may help later."""
        try:
            self._routes = await self._find()
            results = await self._sent(self._line(self._own_slot), probes)
        except FAULTS as error:
            raise fault_at_start(error, self._at, self._timeout) from error
        for result in results:
            if isinstance(result, Exception) and not allowed(result):
                raise fault_at_start(result, self._at, self._timeout) from result

    async def close(self) -> None:
        """End what is under way, soon, and disconnect."""
        under_way = {each for each in (*self._tasks(), self._finding) if each is not None}
        if under_way:
            await asyncio.wait(under_way, timeout=CLOSING)
            for task in under_way:
                task.cancel()
        for line in self._lines.values():
            await line.trips.close()
        self._lines.clear()

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Let this go on by itself: an error of ours in it ends the next exchange, as it would in the exchange."""
        task = asyncio.create_task(work)
        task.add_done_callback(self._keep_error)
        return task

    def _keep_error(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._unforeseen = error

    def _tasks(self) -> Iterator[asyncio.Task[Any]]:
        yield from (line.task for line in self._lines.values() if line.task is not None)
        if self._reading is not None:
            yield self._reading

    # -- which master

    def carries(self, command: RedisCommand) -> bool:
        """Whether this command is of a mail slot."""
        return self._keys.mail_slot(command.key) is not None

    def is_own(self, command: RedisCommand) -> bool:
        """Whether it is of the own mail."""
        return command.key in self._own_keys

    async def _find(self) -> dict[int, Node]:
        return await asyncio.get_running_loop().run_in_executor(None, self._finder.find_servers)

    def _line(self, slot: int) -> MailLine | None:
        node = self._routes.get(slot)
        return self._line_to(node) if node is not None else None

    def _line_to(self, node: Node) -> MailLine:
        line = self._lines.get(node)
        if line is None:
            at = self._at.server(node)
            trips = RoundTrips(
                at, self._name, self._timeout, self._counts, longest=self._longest, fixed=True, asks_name=True
            )
            line = self._lines[node] = MailLine(trips)
        return line

    def _look_again(self, now: float) -> None:
        """Look for masters anew after a failure, beside all else."""
        lacks = len(self._routes) < len(set(self._slots))
        if (self._is_stale or lacks) and self._finding is None and now >= self._find_at:
            self._finding = self._begin(self._follow())

    async def _follow(self) -> None:
        """Follow what the cluster says now of its slots."""
        try:
            self._routes = await self._find()
            used = {*self._routes.values()}
            for node in [node for node, line in self._lines.items() if node not in used and line.task is None]:
                await self._lines.pop(node).trips.close()
            self._is_stale = any(line.why and not line.is_full for line in self._lines.values())
        except FAULTS:
            self._is_stale = True
        finally:
            self._find_at = clock.now() + FIND
            self._finding = None

    def _names(self, line: MailLine) -> str:
        """The mail slots of a line, for people."""
        tags = mail_tags(self._keys.crawl, self._keys.mail_slots)
        found = [tag for tag, slot in zip(tags, self._slots, strict=True) if self._line(slot) is line]
        return ", ".join(f"{{{tag}}}" for tag in found[:5]) + (", ..." if len(found) > 5 else "") or "no mail slot"

    @property
    def slots_away(self) -> int:
        """How many mail slots take nothing at present."""
        return sum((line := self._line(slot)) is None or bool(line.why) for slot in self._slots)

    # -- writing

    def post(self, commands: Sequence[RedisCommand]) -> None:
        """Begin to write these."""
        now = clock.now()
        self._look_again(now)
        kept, self._undeleted = [*self._undeleted.values()], {}
        for command in (*kept, *commands):
            slot = self._keys.mail_slot(command.key)
            line = self._line(slot) if slot is not None else None
            if line is None or line.rests(now) or not line.put(command):
                self._leave_out(command)
        for agent in self._owed:
            line = self._line(hash_slot(self._keys.mail_tag(agent)))
            if line is not None and line.why and not line.rests(now) and not line.waiting and line.task is None:
                line.put(probe_of(self._keys.memory(agent)))
        for line in self._lines.values():
            if line.waiting and line.task is None:
                line.task = self._begin(self._send(line))

    def _leave_out(self, command: RedisCommand) -> None:
        if command.args[0] == "SET":  # the probe
            return
        if command.args[0] == "DEL":  # nobody else says it again
            if len(self._undeleted) < MOST_UNDELETED:
                self._undeleted[command.key] = command
            return
        self.put_off += 1
        if (owner := self._keys.owner(command.key.encode())) is not None:
            self._owed.add(owner[0])

    def take_late(self) -> tuple[str, ...]:
        """For whom what was left out can be written by now."""
        late = []
        for agent in self._owed:
            line = self._line(hash_slot(self._keys.mail_tag(agent)))
            if line is not None and not line.why and not line.waiting:
                late.append(agent)
        self._owed.difference_update(late)
        return tuple(late)

    async def _send(self, line: MailLine) -> None:
        """Send what waits, and what comes meanwhile."""
        try:
            while batch := line.take():
                began = clock.now()
                try:
                    results = await self._sent(line, batch)
                except BROKEN as error:
                    self._failed(line, error)
                    line.not_carried(batch)
                    for command in (*batch, *line.take_all()):
                        self._leave_out(command)
                    return
                line.carried(batch, clock.now() - began)
                wrong = [one for one in zip(batch, results, strict=True) if isinstance(one[1], Exception)]
                for command, _ in wrong:
                    self._leave_out(command)
                if wrong:
                    self._failed(line, next((e for _, e in wrong if not _is_full(e)), wrong[0][1]))
                else:
                    line.work(self._names(line))
        finally:
            line.task, line.is_behind = None, False

    def _failed(self, line: MailLine, error: BaseException) -> None:
        said = error if isinstance(error, TransportError) else fault(error, line.trips.at, self._timeout)
        line.fail(said, _is_full(error), self._names(line))
        self._is_stale = self._is_stale or not line.is_full

    async def _sent(self, line: MailLine | None, commands: Sequence[RedisCommand]) -> list[Any]:
        """The results of these, from that line, or from where it says that a slot is now. Raises FAULTS."""
        if line is None:
            raise lib.ClusterDownError("no server of the cluster holds a mail slot of this crawl")
        results = await _answers(line, commands)
        for _ in range(TURNS):
            again: dict[tuple[Node, bool], list[int]] = {}
            for at, result in enumerate(results):
                if isinstance(result, lib.AskError):  # MOVED is one
                    node = (result.host or self._host_of(line), int(result.port))
                    asks = not isinstance(result, lib.MovedError)
                    again.setdefault((node, asks), []).append(at)
                    if not asks and (slot := self._keys.mail_slot(commands[at].key)) is not None:
                        self._routes[slot] = node
            if not again:
                break
            for (node, asks), places in again.items():
                there = self._line_to(node)
                try:
                    told = await _answers(there, [commands[at] for at in places], asks)
                except BROKEN as error:
                    self._failed(there, error)
                    told = [lib.ConnectionError(str(error))] * len(places)
                for at, result in zip(places, told, strict=True):
                    results[at] = result
        return results

    def _host_of(self, line: MailLine) -> str:
        return next((node[0] for node, each in self._lines.items() if each is line), "")

    # -- reading

    def read(
        self,
        deletions: Sequence[RedisCommand],
        reads: Mapping[str, RedisCommand],
        deleted: tuple[str, ...],
        cleaned: Collection[bytes],
    ) -> None:
        """Begin to delete and read the own mail, unless that is under way."""
        line, now = self._line(self._own_slot), clock.now()
        if self._reading is not None or not (deletions or reads):
            return
        if line is not None and (line.is_full or not line.rests(now)):
            self._reading = asyncio.create_task(self._read(line, deletions, reads, deleted, cleaned))

    async def _read(
        self,
        line: MailLine,
        deletions: Sequence[RedisCommand],
        reads: Mapping[str, RedisCommand],
        deleted: tuple[str, ...],
        cleaned: Collection[bytes],
    ) -> OwnMail | None:
        began = clock.now()
        try:
            results = await self._sent(line, [*deletions, *reads.values()])
        except BROKEN as error:
            self._failed(line, error)
            self.readings_failed += 1
            return None
        finally:
            self._reads_behind = False
        wrong = next((one for one in results if isinstance(one, Exception) and not _is_full(one)), None)
        if wrong is not None:
            self._failed(line, wrong)
            return None
        if not line.is_full:
            line.work(self._names(line))
        told = dict(zip(reads, results[len(deletions) :], strict=True))
        server = (self._line(self._own_slot) or line).trips.server
        return OwnMail(told, deleted, cleaned, server, began, clock.now() - began)

    def take_own(self) -> list[OwnMail]:
        """What reading has brought since the last call."""
        self._collect()
        found, self._found = self._found, []
        return found

    def _collect(self) -> None:
        if self._reading is not None and self._reading.done():
            found, self._reading = self._reading.result(), None
            if found is not None:
                self.readings += 1
                self._found.append(found)

    async def finish_reading(self) -> None:
        """Wait until no reading is under way."""
        if self._reading is not None:
            await asyncio.wait([self._reading])
            self._collect()

    def need_own(self, before: int) -> None:
        """Raises TransportDown where no reading has succeeded since there were so many."""
        line = self._line(self._own_slot)
        if self.readings == before:
            raise TransportDown(line.why if line is not None and line.why else str(_nowhere(self._at, self._timeout)))

    async def ask_own(self, commands: Sequence[RedisCommand]) -> list[Any]:
        """What the master of the own mail answers to these. Raises TransportDown."""
        line = self._line(self._own_slot)
        try:
            results = await self._sent(line, commands)
            if (wrong := next((one for one in results if isinstance(one, Exception)), None)) is not None:
                raise wrong
        except BROKEN as error:
            self._is_stale = True
            self._look_again(clock.now())
            at = self._at if line is None else line.trips.at
            raise error if isinstance(error, TransportDown) else fault(error, at, self._timeout) from error
        return results

    # -- an exchange

    async def settle(self) -> None:
        """Wait a moment for what is under way, but not for what was late before. Raises what a task of its own has
        raised and nobody foresaw."""
        waits: set[asyncio.Task[Any]] = set()
        for line in self._lines.values():
            if line.task is not None and not line.is_behind:
                waits.add(line.task)
        if self._reading is not None and not self._reads_behind:
            waits.add(self._reading)
        late: set[asyncio.Task[Any]] = set()
        if waits:
            usual = min([line.took for line in self._lines.values() if line.took and not line.why], default=0.0)
            _, late = await asyncio.wait(waits, timeout=min(max(MOMENT, USUAL * usual), self._timeout))
        for line in self._lines.values():
            line.is_behind = line.is_behind or line.task in late
        self._reads_behind = self._reads_behind or self._reading in late
        if self._unforeseen is not None:
            error, self._unforeseen = self._unforeseen, None
            raise error

    async def delete_where(self, begun: Collection[str]) -> None:
        """Delete the keys of all mail slots, but of agents that have begun. Raises TransportDown where a master was not
        to be had, after the others."""
        failed: TransportError | None = None
        for node in dict.fromkeys(self._routes.values()):
            trips = self._line_to(node).trips
            try:
                async for found in scanned(trips, self._keys, begun):
                    await trips.attempt([RedisCommand(("DEL", key)) for key in found])
            except TransportError as error:
                failed = error
        if failed is not None:
            raise failed


async def scanned(trips: RoundTrips, keys: RedisKeys, begun: Collection[str]) -> Any:
    """The keys of mail slots that are at one server, but of agents that have begun, in pieces."""
    cursor = -1
    while cursor:
        scan = RedisCommand(("SCAN", max(cursor, 0), "MATCH", keys.mail_pattern, "COUNT", SCAN))
        ((cursor, found),) = await trips.call([scan])
        old = [key for key in found if (owner := keys.owner(key)) is not None and owner[0] not in begun]
        if old:
            yield old


def _size_of(command: RedisCommand) -> int:
    return sum([len(each) for each in command.args if not isinstance(each, int)])


def probe_of(memory: str) -> RedisCommand:
    """A command that shows whether a master takes writes: a full one refuses it, too. The token that is there stays."""
    return RedisCommand(("SET", memory, secrets.token_hex(4), "NX"), memory, "string")


async def _answers(line: MailLine, commands: Sequence[RedisCommand], asks: bool = False) -> list[Any]:
    """What a master answers; `asks`: for a slot that is on its way to it."""
    if not asks:
        return await line.trips.attempt(commands)
    asking = RedisCommand(("ASKING",))
    return (await line.trips.attempt([each for command in commands for each in (asking, command)]))[1::2]


def _is_full(error: object) -> bool:
    return isinstance(error, lib.OutOfMemoryError)


def _nowhere(at: Address, timeout: float) -> TransportError:
    return fault(lib.ClusterDownError("no server of the cluster holds a mail slot of this crawl"), at, timeout)
