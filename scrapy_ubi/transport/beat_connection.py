"""The beating thread's connection: one, synchronous, of its own (heartbeat.py says why)."""

from __future__ import annotations

import contextlib
import logging
import re
import secrets
from collections import Counter
from typing import Any

import redis
from redis import exceptions as lib
from redis.backoff import NoBackoff
from redis.retry import Retry

from scrapy_ubi.transport import scripts
from scrapy_ubi.transport.address import Address
from scrapy_ubi.transport.beat_text import encode, texts, writer
from scrapy_ubi.transport.contract import MEMORY
from scrapy_ubi.transport.faults import FAULTS, NotReplicated, fault, moved_to, need_master, spoilt
from scrapy_ubi.transport.pulses import MOST_SLOTS, WIDTH, BeatLine, PulseBook, Wanted, Whole
from scrapy_ubi.transport.redis_keys import ASIDE, SET_ASIDE, RedisKeys
from scrapy_ubi.transport.replicas import Command, Replicas
from scrapy_ubi.transport.round_trips import paired
from scrapy_ubi.transport.topology import ServerFinder, ServerPlace

logger = logging.getLogger(__name__)

_NAMES = re.compile(rb"^(?:run_id|master_replid):(\w+)", re.MULTILINE)
_BOUND = re.compile(rb"^maxmemory:0*[1-9]", re.MULTILINE)
_EVICTS = re.compile(rb"^maxmemory_policy:(allkeys-[a-z]{1,20})\s*$", re.MULTILINE)

ODD = "it answers something else than it was asked for"
TRIES = 4  # to bring pulses and lines together by what is new, before all is read

_EVICTING = (
    "%s: when its memory is full this Redis throws letters and beats away (its maxmemory-policy is %s). They are sent "
    "again, so nothing is lost, but the crawl may all but stand still. Let it refuse them: CONFIG SET maxmemory-policy "
    "noeviction."
)


class RedisLink:
    """A `BeatConnection` to a Redis: connects when first used, and again after a failure."""

    def __init__(
        self, at: Address, keys: RedisKeys, agent: str, timeout: float, largest: int, counts: Counter[str]
    ) -> None:
        self._at, self._keys, self._key, self._agent = at, keys, keys.beats, agent
        self._place = ServerPlace(at)  # where the pool leads
        self._finder = ServerFinder(at, keys.slot, timeout)
        self._copies = Replicas(at, timeout)
        self._timeout, self._largest, self._counts = timeout, largest, counts
        self._garbage: list[bytes] = []  # fields to delete: no text, or too long
        self._connections = 0  # that may have led to another server
        self._server = b""  # what named the one that the last connection led to
        self._policy = ""  # the one of a server that throws keys away, when that was last said
        self._writers: set[bytes] = set()  # of the own lines
        self._own: BeatLine | None = None  # the line that was written last
        self._slot: int | None = None
        self._token = b""
        self._book = PulseBook(largest)
        self._name = f"ubi:{keys.crawl}:{agent}:beat"
        self._pool: redis.ConnectionPool | None = None
        self._client: Any = None  # of that pool

    def beat(self, line: str) -> dict[str, str]:
        """Write the line, then read all beats. Raises TransportDown; then the line may still be read."""
        first = not self._writers
        wanted = self._all if self._book.wants_all else self._pulses
        before, read = self._write(line, [wanted])
        good = self._read(read)
        if before is not None and not first and self._is_anothers(before):  # it was written over
            good |= texts([(self._agent.encode(), before)], self._largest)[0]
        return good

    def look(self) -> dict[str, str] | None:
        """All beats where the own one is another's line. Raises TransportDown."""
        whole = self._whole(self._run([self._all])[0])
        read = self._take(whole)
        return read if self._is_anothers(whole.lines.get(self._agent.encode())) else None

    def _is_anothers(self, line: bytes | None) -> bool:
        return isinstance(line, bytes) and writer(line) not in self._writers

    # -- reading

    @property
    def _all(self) -> Command:
        return ("EVAL", scripts.WHOLE, 3, *self._keys.heart, MOST_SLOTS * WIDTH - 1)

    @property
    def _pulses(self) -> Command:
        return ("GETRANGE", self._keys.pulses, 0, MOST_SLOTS * WIDTH - 1)

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
            commands.append(("HMGET", self._key, *(name.encode() for name in wanted.lines.values())))
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
            logger.warning("%d fields of %s are no text or too long: skipped and deleted", len(bad), self._key)
        return self._shown(good)

    def _shown(self, good: dict[str, str]) -> dict[str, str]:
        # After kill -9, or a failover, a server is one that has forgotten the last moments, with a token or without.
        # Where only the connection was cut it is not: a proxy, or a server that cuts idle ones, does so all the time.
        good[MEMORY] = f"{good.get(MEMORY, '')} {self._connections}"
        if self._book.refused:
            self._counts["garbage"] += self._book.refused
            logger.warning("%d pulses in %s are of no agent: passed over", self._book.refused, self._keys.pulses)
            self._book.refused = 0
        return good

    def write(self, line: str) -> None:
        """Write the line only. Raises TransportDown, TransportFull."""
        self._write(line, [])

    # -- connecting

    def close(self) -> None:
        """Disconnect."""
        pool, self._pool = self._pool, None
        if pool is not None:
            with contextlib.suppress(*FAULTS):
                pool.disconnect()

    def _connect(self) -> Any:
        """A client of the server that holds the crawl now: looked for again after each failure."""
        if self._pool is None:
            self._place = place = self._finder.find()
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
        *names, memory = _informed(connection)
        server = _server(names)
        self._connections += not server or server != self._server
        self._server = server
        policy = _evicts_by(memory)
        if policy and policy != self._policy:
            logger.warning(_EVICTING, self._at.shown, policy)
            self._policy = policy

    # -- writing

    def _write(self, line: str, then: list[Command]) -> tuple[bytes | None, Any]:
        """Write the line, by its pulse where that says all, else plainly: a script is three commands. By the script
        where anything else is there than was left, or the server is full. The line that was there before, and the
        result of `then`."""
        own = BeatLine.of(encode(line))
        self._writers.add(writer(own.text))
        if self._garbage:
            then = [("HDEL", self._key, *self._garbage), *then]
        before = None
        if self._own is not None and self._slot is not None:
            before, done, results = self._write_plainly(own, self._own, self._slot, then)
            if done:
                return before, results[-1] if then else None
        wrote, *results = self._run([self._by_script(own), *then])
        if wrote == []:
            raise fault(lib.ResponseError(f"no slot is free of {MOST_SLOTS}"), self._place.at, self._timeout)
        token, slot = self._list(wrote, 2)
        if not isinstance(slot, int):
            raise fault(lib.InvalidResponse(ODD), self._place.at, self._timeout)
        self._own, self._slot, self._token = own, slot, _bytes(token)
        self._book.forget()
        return before, results[-1] if then else None

    def _write_plainly(
        self, own: BeatLine, former: BeatLine, slot: int, then: list[Command]
    ) -> tuple[bytes | None, bool, list[Any]]:
        """Write as an agent that finds what it has left there; the line before, whether it was so, and the results of
        `then`."""
        same = own.says_as(former)
        line = former if same else own
        write: list[Command] = [] if same else [("HSET", self._key, self._agent, own.text)]
        write.append(("SETRANGE", self._keys.pulses, slot * WIDTH, own.pulse(line.version)))
        look: list[Command] = [("HMGET", self._key, self._agent, MEMORY), ("HGET", self._keys.slots, slot)]
        results = self._run([*look, *write, *then], full_is_an_error=False)
        (before, token), owner, written = self._list(results[0], 2), results[1], results[2 : 2 + len(write)]
        if any(isinstance(one, lib.OutOfMemoryError) for one in written):
            return before, False, []
        if (before, token, owner) != (former.text, self._token, self._agent.encode()):
            return before, False, []
        self._own = line
        return before, True, results[2 + len(write) :]

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
            for result in results:
                if isinstance(result, Exception):
                    if full_is_an_error or not isinstance(result, lib.OutOfMemoryError):
                        raise result
                elif not _is_redis(result):
                    raise lib.InvalidResponse(ODD)
            if wait and (lack := self._copies.lack(results.pop())) and not self._finder.confirm(self._place):
                raise NotReplicated(lack)
        except FAULTS as error:
            if not isinstance(error, lib.OutOfMemoryError):
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
        pipeline = self._connect().pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command)
        try:
            results: list[Any] = pipeline.execute(raise_on_error=False)
        except (TypeError, ValueError, AttributeError) as error:  # the library takes the answers to be of their kinds
            raise lib.InvalidResponse(ODD) from error
        return results


def _informed(connection: Any) -> list[bytes]:
    """What a server says of itself, its replication and its memory; b"" for what it does not tell (INFO is not allowed
    to everybody)."""
    sections = ("server", "replication", "memory")
    connection.send_packed_command(connection.pack_commands([("INFO", section) for section in sections]))
    return [_answer(connection) for _ in sections]


def _server(said: list[bytes]) -> bytes:
    """What names the server and what it holds: another text after a new start, or when a replica took over; b"" where
    it does not tell."""
    found = [_NAMES.search(text) for text in said]
    return b" ".join(one[1] for one in found if one is not None) if None not in found else b""


def _evicts_by(memory: bytes) -> str:
    """The policy by which the server throws any key away when its memory is full; "" where it does not, or no memory
    is too much for it."""
    policy = _EVICTS.search(memory)
    return policy[1].decode("ascii") if policy is not None and _BOUND.search(memory) else ""


def _answer(connection: Any) -> bytes:
    """The text that is answered, b"" where there is none."""
    try:
        said = connection.read_response()
    except lib.ResponseError:
        return b""
    return said if isinstance(said, bytes) else b""


def _bytes(answer: Any) -> bytes:
    return answer if isinstance(answer, bytes) else b""


def _is_redis(result: object) -> bool:
    """Whether that may be what a Redis says to one of the commands here: a text, a number, nothing, or a list."""
    if isinstance(result, list):
        return all(map(_is_redis, result))
    return result is None or isinstance(result, bytes | int)
