"""The beating thread's connection: one, synchronous, of its own (heartbeat.py says why)."""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
from collections import Counter
from typing import Any

import redis
from redis import exceptions as lib
from redis.backoff import NoBackoff
from redis.retry import Retry

from scrapy_ubi.ground import clock
from scrapy_ubi.transport import scripts
from scrapy_ubi.transport.address import Address
from scrapy_ubi.transport.contract import MEMORY, WATCHED
from scrapy_ubi.transport.faults import FAULTS, NotReplicated, fault, moved_to, need_master, spoilt
from scrapy_ubi.transport.pulses import MOST_SLOTS, WIDTH, BeatLine, PulseBook, Wanted, Whole, cell_of, said_by
from scrapy_ubi.transport.redis_keys import ASIDE, SET_ASIDE, RedisKeys
from scrapy_ubi.transport.round_trips import paired
from scrapy_ubi.transport.server_facts import evicts_by, informed, server_name
from scrapy_ubi.transport.topology import ServerFinder, ServerPlace
from scrapy_ubi.transport.watched import DENIED, UNTOLD, Watched
from scrapy_ubi.transport.wire_text import encode, texts, writer

logger = logging.getLogger(__name__)


ODD = "it answers something else than it was asked for"
TRIES = 4  # to bring pulses and lines together by what is new, before all is read

_EVICTING = (
    "%s: when its memory is full this Redis throws letters and beats away (its maxmemory-policy is %s). They are sent "
    "again, so nothing is lost, but the crawl may all but stand still. Let it refuse them: CONFIG SET maxmemory-policy "
    "noeviction."
)


_UNINFORMED = (
    "%s does not answer INFO to this user: whether this Redis was started again, and whether it throws keys away when "
    "its memory is full, cannot be seen. Allow it: ACL SETUSER <user> +info."
)

WAITS_FOR = 0.5  # of the time-out, for replicas
LACKED_WAITS_MS = 50  # for replicas that had no beat the last time
PATIENT = 60  # each of so many beats in a row that replicas lack they are given the whole time again

Command = tuple[Any, ...]


class Replicas:
    """Whether a beat counts: where replicas may take the place of the server, only when all of them have it, or most of
    the cluster, or of the Sentinels, say that the server is the one.

    A server that was cut off, together with some agents, goes on answering them, while the others have made a replica
    their server. That replica is on the others' side, as most of those are that tell who is what: so no beat counts
    here, and the lease ends.
    """

    def __init__(self, at: Address, timeout: float) -> None:
        self._given = at.wait_replicas
        self._waits = at.kind != "single" if at.wait_replicas is None else at.wait_replicas > 0
        self._need = at.wait_replicas or 0
        self._limit = int(timeout * 1000 * WAITS_FOR)
        self._lacks = 0  # beats in a row, up to now

    def known(self, replicas: int) -> None:
        """The cluster, or Sentinels, know of so many."""
        if self._given is None:
            self._need = max(self._need, replicas)

    def failed(self) -> None:
        """The server was away. The next one that answers may be a replica of it that took over, and has none itself
        yet: where others can say so, that is not waited for."""
        self._lacks = self._lacks or int(self._given is None)

    def command(self) -> list[Command]:
        """What asks how many have what was written before on the same connection. Not long for one that is away."""
        limit = LACKED_WAITS_MS if self._lacks % PATIENT else self._limit
        limit = limit if self._need else 1
        return [("WAIT", max(1, self._need), limit)] if self._waits else []

    def lack(self, have: object) -> str:
        """What lacks, when so many have it; "" where nothing does."""
        count = have if isinstance(have, int) else 0
        self.known(count)
        self._lacks = self._lacks + 1 if count < self._need else 0
        return f"{count} of {self._need} have it" if self._lacks else ""


class RedisLink:
    """A `BeatConnection` to a Redis: connects when first used, and again after a failure."""

    def __init__(
        self, at: Address, keys: RedisKeys, agent: str, timeout: float, largest: int, counts: Counter[str]
    ) -> None:
        self._at = at
        self._keys = keys
        self._agent = agent
        self._place = ServerPlace(at)  # where the pool leads
        self._finder = ServerFinder(at, keys.slot, timeout)
        self._copies = Replicas(at, timeout)
        self._timeout = timeout
        self._largest = largest
        self._counts = counts
        self._garbage: list[bytes] = []  # fields to delete: no text, or too long
        self._connections = 0  # that may have led to another server
        self._server = b""  # what named the one that the last connection led to
        self._policy = ""  # the one of a server that throws keys away, when that was last said
        self._uninformed = False  # and that was said
        self._writers: set[bytes] = set()  # of the own lines
        self._own: BeatLine | None = None  # the line that was written last
        self._asks = True  # for how long this data set is known, with the next read of all
        self._slot: int | None = None
        self._token = b""
        self._stray = False  # there were pulses of no agent at the last look
        self._book = PulseBook(largest)
        self._name = f"ubi:{keys.crawl}:{agent}:beat"
        self._pool: redis.ConnectionPool | None = None
        self._client: Any = None  # of that pool
        self._connecting = threading.Lock()

    def beat(self, line: str) -> dict[str, str]:
        """Write the line, then read all beats. Raises TransportDown; then the line may still be read."""
        asks = self._asks and self._book.wants_all
        wanted = [self._all if self._book.wants_all else self._pulses]
        before, (read, *watched) = self._write(line, [*wanted, *([self._watched] if asks else [])])
        good = self._read(read)
        if asks:  # one who asks while the token is another asks again at the next beat, at most
            self._asks = False
            good[WATCHED] = _watched(*watched).text
        if before is not None:
            good |= texts([(self._agent.encode(), before)], self._largest)[0]
        return good

    def look(self) -> dict[str, str] | None:
        """All beats where the own one is another's line. Raises TransportDown."""
        whole = self._whole(self._run([self._all])[0])
        read = self._take(whole)
        if not self._is_anothers(whole.lines.get(self._agent.encode())):
            return None
        self._own = None  # so that nothing is written over unseen
        return read

    def _is_anothers(self, line: bytes | None) -> bool:
        return isinstance(line, bytes) and writer(line) not in self._writers

    # -- reading

    @property
    def _all(self) -> Command:
        return ("EVAL", scripts.WHOLE, 3, *self._keys.heart, MOST_SLOTS * WIDTH - 1)

    @property
    def _pulses(self) -> Command:
        return ("GETRANGE", self._keys.pulses, 0, MOST_SLOTS * WIDTH - 1)

    @property
    def _watched(self) -> Command:
        return ("EVAL", scripts.WATCHED, 1, self._keys.watched(self._at.kind), int(clock.unix() * 1000))

    def _read(self, answer: Any) -> dict[str, str]:
        """The beats, by all there is, or by the pulses: then what is new is asked for."""
        if isinstance(answer, list):
            return self._take(self._whole(answer))
        for _ in range(TRIES):
            if self._book.wants_all:
                break
            pulses = _bytes(answer)
            wanted = self._book.wanted(pulses)
            if wanted is None:
                break
            if not wanted.lines and not wanted.owners:
                return self._shown(self._book.said(pulses))
            answer = self._ask(wanted, pulses)
        return self._take(self._whole(self._run([self._all], waits=False)[0]))

    def _ask(self, wanted: Wanted, pulses: bytes) -> Any:
        """Have the book told what it wants to understand these pulses; those of a moment later."""
        commands: list[Command] = []
        if wanted.lines:
            commands.append(("HMGET", self._keys.beats, *(name.encode() for name in wanted.lines.values())))
        if wanted.owners:
            commands.append(("HMGET", self._keys.slots, *wanted.owners))
        *answers, later = self._run([*commands, self._pulses], waits=False)
        if wanted.lines:
            self._book.learn_lines(wanted.lines, self._list(answers.pop(0), len(wanted.lines)), pulses)
        if wanted.owners:
            self._book.learn_owners(wanted.owners, self._list(answers.pop(0), len(wanted.owners)), pulses)
        return later

    def _list(self, answer: Any, length: int) -> list[Any]:
        """The answer as a list of that many. Raises TransportDown where it is none."""
        if not isinstance(answer, list) or len(answer) != length:
            raise fault(lib.InvalidResponse(ODD), self._place.at, self._timeout)
        return answer

    def _whole(self, answer: Any) -> Whole:
        pulses, lines, slots = self._list(answer, 3)
        try:
            return Whole(_bytes(pulses), paired(lines), paired(slots))
        except lib.InvalidResponse as error:
            raise fault(error, self._place.at, self._timeout) from error

    def _take(self, whole: Whole) -> dict[str, str]:
        good, bad = self._book.take_all(whole)
        self._token = whole.lines.get(MEMORY.encode(), b"")
        self._garbage = bad
        if bad:
            self._counts["garbage"] += len(bad)
            logger.warning("%d fields of %s are no text or too long: skipped and deleted", len(bad), self._keys.beats)
        return self._shown(good)

    def _shown(self, good: dict[str, str]) -> dict[str, str]:
        # After kill -9, or a failover, a server is one that has forgotten the last moments, with a token or without.
        # Where only the connection was cut it is not: a proxy, or a server that cuts idle ones, does so all the time.
        good[MEMORY] = f"{good.get(MEMORY, '')} {self._connections}"
        good.pop(WATCHED, None)  # a stranger's
        if self._book.refused:
            self._counts["garbage"] += self._book.refused
            if self._stray:  # once it is so after a restart of Redis, until the lines of all are there again
                logger.warning("%d pulses in %s are of no agent: passed over", self._book.refused, self._keys.pulses)
        self._stray, self._book.refused = bool(self._book.refused), 0
        return good

    def write(self, line: str) -> None:
        """Write the line only. Raises TransportDown, TransportFull."""
        self._write(line, [])

    # -- connecting

    def connect(self) -> None:
        """Make the connection, where that can be: else the first beat does, and says what is wrong (what answers may be
        no Redis). Once at most, and from any thread."""
        with self._connecting, contextlib.suppress(*FAULTS, ValueError, TypeError, AttributeError):
            pool = self._connect().connection_pool
            pool.release(pool.get_connection())

    def close(self) -> None:
        """Disconnect."""
        pool, self._pool = self._pool, None
        if pool is not None:
            with contextlib.suppress(*FAULTS):
                pool.disconnect()

    def _connect(self) -> Any:
        """A client of the server that holds the crawl now: looked for again after each failure."""
        if self._pool is None:
            self._place = place = self._finder.find_server()
            self._copies.known(place.replicas)
            self._pool = redis.ConnectionPool.from_url(
                **place.at.arguments(),
                socket_timeout=self._timeout,
                socket_connect_timeout=self._timeout,
                retry=Retry(NoBackoff(), 0),
                redis_connect_func=self._connected,
                client_name=self._name,
                protocol=2,
            )
            self._client = redis.Redis(connection_pool=self._pool)
        return self._client

    def _connected(self, connection: Any) -> None:
        """Every connection passes here, also those that the library makes again by itself."""
        connection.on_connect()
        if self._at.kind == "sentinel":
            connection.send_command("ROLE")
            need_master(connection.read_response())
        *names, memory = informed(connection)
        if not (memory or any(names)) and not self._uninformed:
            self._uninformed = True
            logger.warning(_UNINFORMED, self._at.shown)
        server = server_name(names)
        if not server or server != self._server:
            self._connections += 1
            self._asks = True
        self._server = server
        policy = evicts_by(memory)
        if policy and policy != self._policy:
            logger.warning(_EVICTING, self._at.shown, policy)
            self._policy = policy

    # -- writing

    def _write(self, line: str, then: list[Command]) -> tuple[bytes | None, list[Any]]:
        """Write the line, by its pulse where that says all, else plainly: a script is three commands. By the script
        where anything else is there than was left, or the server is full. What another process had said there, and the
        results of `then`."""
        own = BeatLine.from_text(encode(line))
        first = not self._writers
        self._writers.add(writer(own.text))
        wanted = len(then)
        if self._garbage:
            then = [("HDEL", self._keys.beats, *self._garbage), *then]
        there, cell = None, None
        if self._own is not None and self._slot is not None:
            done, there, cell, results = self._write_plainly(own, self._own, self._slot, then)
            if done:
                return None, results[-wanted:]
        before = None if first else self._others(there, cell)
        wrote, *results = self._run([self._by_script(own), *then])
        if wrote == []:
            raise fault(lib.ResponseError(f"no slot is free of {MOST_SLOTS}"), self._place.at, self._timeout)
        token, slot = self._list(wrote, 2)
        if not isinstance(slot, int):
            raise fault(lib.InvalidResponse(ODD), self._place.at, self._timeout)
        self._own, self._slot, self._token = own, slot, _bytes(token)
        self._book.forget()
        self._asks = True
        return before, results[-wanted:]

    def _others(self, there: bytes | None, cell: bytes | None) -> bytes | None:
        """What another process says under the own name; None where none does. `there`, `cell`: line and pulse that were
        written over, None where none was."""
        if cell is not None and not self._is_anothers(there):
            return None
        whole, me = self._whole(self._run([self._all], waits=False)[0]), self._agent.encode()
        slot = next((slot for slot, agent in whole.owners().items() if agent == me), None)
        if cell is None:
            there = whole.lines.get(me)
        if cell is None or slot != self._slot:
            cell = b"" if slot is None else cell_of(whole.pulses, slot)
        return said_by(there, cell) if there is not None and self._is_anothers(there) else None

    def _write_plainly(
        self, own: BeatLine, former: BeatLine, slot: int, then: list[Command]
    ) -> tuple[bool, bytes | None, bytes, list[Any]]:
        """Write as an agent that finds what it has left there; whether it was so, the line and the pulse before, and
        the results of `then`."""
        same, at, pulses = own.says_as(former), slot * WIDTH, self._keys.pulses
        line = former if same else own
        write: list[Command] = [] if same else [("HSET", self._keys.beats, self._agent, own.text)]
        write.append(("SETRANGE", pulses, at, own.pulse(line.version)))
        look: list[Command] = [("HMGET", self._keys.beats, self._agent, MEMORY), ("HGET", self._keys.slots, slot)]
        look.append(("GETRANGE", pulses, at, at + WIDTH - 1))
        results = self._run([*look, *write, *then], full_is_an_error=False)
        (there, token), owner, cell, *rest = self._list(results[0], 2), *results[1:]
        full = any(isinstance(one, lib.OutOfMemoryError) for one in rest[: len(write)])
        done = not full and (there, token, owner) == (former.text, self._token, self._agent.encode())
        if done:
            self._own = line
        return done, there, _bytes(cell), rest[len(write) :]

    def _by_script(self, own: BeatLine) -> Command:
        slot = "" if self._slot is None else self._slot
        given = (self._agent, own.text, MEMORY, secrets.token_hex(4), own.pulse(own.version), MOST_SLOTS, slot)
        return ("EVAL", scripts.BEAT, 3, *self._keys.heart, *given)

    def _run(self, commands: list[Command], full_is_an_error: bool = True, waits: bool = True) -> list[Any]:
        """The results. With `waits` replicas must have what was written, where there are any."""
        wait = self._copies.command() if waits else []
        commands = [*commands, *wait]
        try:
            results = self._pipeline(commands)
            if any(map(spoilt, results)):
                self._set_aside()
                results = self._pipeline(commands)
            for command, result in zip(commands, results, strict=True):
                if isinstance(result, Exception):
                    if command[1] is scripts.WATCHED and isinstance(result, lib.ResponseError):
                        continue  # the key may not be allowed
                    if full_is_an_error or not isinstance(result, lib.OutOfMemoryError):
                        raise result
                elif not _is_redis(result):
                    raise lib.InvalidResponse(ODD)
            if wait and (lack := self._copies.lack(results.pop())) and not self._finder.confirm(self._place):
                raise NotReplicated(lack)
        except FAULTS as error:
            if not isinstance(error, lib.OutOfMemoryError):
                self._copies.failed()
                self.close()  # a new connection next time: after a failover the name may lead to another server
            raise fault(error, self._place.at, self._timeout) from error
        return results

    def _set_aside(self) -> None:
        """Rename what has not the type that it should have."""
        kinds = zip(self._keys.heart, ("hash", "hash", "string"), strict=True)
        aside = [("EVAL", scripts.SET_ASIDE, 2, key, key + ASIDE, kind) for key, kind in kinds]
        for key, result in zip(self._keys.heart, self._pipeline(aside), strict=True):
            if result == 1:
                self._counts["set_aside"] += 1
                logger.warning(SET_ASIDE, key, key, ASIDE)

    def _pipeline(self, commands: list[Command]) -> list[Any]:
        results = self._sent(commands)
        if self._at.kind == "cluster" and (moved := moved_to(results)) is not None:
            self._finder.moved(moved)
            self.close()
            results = self._sent(commands)
        return results

    def _sent(self, commands: list[Command]) -> list[Any]:
        with self._connecting:
            pipeline = self._connect().pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command)
        try:
            results: list[Any] = pipeline.execute(raise_on_error=False)
        except (TypeError, ValueError, AttributeError) as error:  # the library takes the answers to be of their kinds
            raise lib.InvalidResponse(ODD) from error
        return results


def _watched(answer: Any) -> Watched:
    """What the script says."""
    if isinstance(answer, Exception):
        return Watched(0.0, DENIED)
    if not isinstance(answer, list) or len(answer) != 2 or not isinstance(answer[0], int):
        return Watched(0.0, UNTOLD)
    return Watched(answer[0] / 1000, _bytes(answer[1]).decode(errors="replace"))


def _bytes(answer: Any) -> bytes:
    return answer if isinstance(answer, bytes) else b""


def _is_redis(result: object) -> bool:
    """Whether that may be what a Redis says to one of the commands here: a text, a number, nothing, or a list."""
    if isinstance(result, list):
        return all(map(_is_redis, result))
    return result is None or isinstance(result, bytes | int)
