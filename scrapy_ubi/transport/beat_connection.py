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
from scrapy_ubi.transport.redis_keys import ASIDE, SET_ASIDE, RedisKeys
from scrapy_ubi.transport.topology import ServerFinder, ServerPlace

logger = logging.getLogger(__name__)

_NAMES = re.compile(rb"^(?:run_id|master_replid):(\w+)", re.MULTILINE)
_BOUND = re.compile(rb"^maxmemory:0*[1-9]", re.MULTILINE)
_EVICTS = re.compile(rb"^maxmemory_policy:(allkeys-[a-z]{1,20})\s*$", re.MULTILINE)

WAITS_FOR = 0.5  # of the time-out, for replicas
LACKED_WAITS_MS = 50  # for replicas that had no beat the last time

_EVICTING = (
    "%s: when its memory is full this Redis throws letters and beats away (its maxmemory-policy is %s). They are sent "
    "again, so nothing is lost, but the crawl may all but stand still. Let it refuse them: CONFIG SET maxmemory-policy "
    "noeviction."
)


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
        self._lacked = False  # last time

    def known(self, replicas: int) -> None:
        """The cluster, or Sentinels, know of so many."""
        if self._given is None:
            self._need = max(self._need, replicas)

    def command(self) -> list[tuple[Any, ...]]:
        """What asks how many have what was written before on the same connection. Not long for one that is away."""
        limit = 1 if not self._need else LACKED_WAITS_MS if self._lacked else self._limit
        return [("WAIT", max(1, self._need), limit)] if self._waits else []

    def lack(self, have: object) -> str:
        """What lacks, when so many have it; "" where nothing does."""
        count = have if isinstance(have, int) else 0
        self.known(count)
        self._lacked = count < self._need
        return f"{count} of {self._need} have it" if self._lacked else ""


class RedisLink:
    """A `BeatConnection` to a Redis: connects when first used, and again after a failure."""

    def __init__(
        self, at: Address, keys: RedisKeys, agent: str, timeout: float, largest: int, counts: Counter[str]
    ) -> None:
        self._at, self._key, self._agent = at, keys.beats, agent
        self._place = ServerPlace(at)  # where the pool leads
        self._finder = ServerFinder(at, keys.slot, timeout)
        self._copies = Replicas(at, timeout)
        self._timeout, self._largest, self._counts = timeout, largest, counts
        self._garbage: list[bytes] = []  # fields to delete: no text, or too long
        self._connections = 0  # that may have led to another server
        self._server = b""  # what named the one that the last connection led to
        self._policy = ""  # the one of a server that throws keys away, when that was last said
        self._writers: set[bytes] = set()  # of the own lines
        self._name = f"ubi:{keys.crawl}:{agent}:beat"
        self._pool: redis.ConnectionPool | None = None
        self._client: Any = None  # of that pool

    def beat(self, line: str) -> dict[str, str]:
        """Write the line, then read all beats. Raises TransportDown; then the line may still be read."""
        more: list[tuple[Any, ...]] = [("HDEL", self._key, *self._garbage)] if self._garbage else []
        first = not self._writers
        before, *_, read = self._write(line, [*more, ("HGETALL", self._key)], look=True)
        if MEMORY.encode() not in read:  # no read since the server forgot
            read = self._run([self._with_token(line), ("HGETALL", self._key)])[-1]
        good = self._texts(read)
        if not first and self._is_anothers(before):  # it was written over
            good |= texts([(self._agent.encode(), before)], self._largest)[0]
        return good

    def look(self) -> dict[str, str] | None:
        """All beats where the own one is another's line. Raises TransportDown."""
        read = self._run([("HGETALL", self._key)])[-1]
        return self._texts(read) if self._is_anothers(read.get(self._agent.encode())) else None

    def _is_anothers(self, line: bytes | None) -> bool:
        return isinstance(line, bytes) and writer(line) not in self._writers

    def _texts(self, read: dict[bytes, bytes]) -> dict[str, str]:
        good, bad = texts(read.items(), self._largest)
        # After kill -9, or a failover, a server is one that has forgotten the last moments, with a token or without.
        # Where only the connection was cut it is not: a proxy, or a server that cuts idle ones, does so all the time.
        good[MEMORY] = f"{good.get(MEMORY, '')} {self._connections}"
        self._garbage = bad
        if bad:
            self._counts["garbage"] += len(bad)
            logger.warning("%d fields of %s are no text or too long: skipped and deleted", len(bad), self._key)
        return good

    def write(self, line: str) -> None:
        """Write the line only. Raises TransportDown, TransportFull."""
        self._write(line, [])

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

    def _write(self, line: str, then: list[tuple[Any, ...]], look: bool = False) -> list[Any]:
        """Write plainly: a script is three commands. By the script where the server is full. The results, with `look`
        that of a look at what was there before first."""
        text = encode(line)
        self._writers.add(writer(text))
        before = [("HGET", self._key, self._agent)] if look else []
        results = self._run([*before, ("HSET", self._key, self._agent, text), *then], full_is_an_error=False)
        full = isinstance(results[len(before)], lib.OutOfMemoryError)
        return self._run([*before, self._with_token(line), *then]) if full else results

    def _with_token(self, line: str) -> tuple[Any, ...]:
        return ("EVAL", scripts.BEAT, 1, self._key, self._agent, encode(line), MEMORY, secrets.token_hex(4))

    def _run(self, commands: list[tuple[Any, ...]], full_is_an_error: bool = True) -> list[Any]:
        wait = self._copies.command()
        commands = [*commands, *wait]
        try:
            results = self._pipeline(commands)
            if any(map(spoilt, results)):
                if self._pipeline([("EVAL", scripts.SET_ASIDE, 2, self._key, self._key + ASIDE, "hash")]) == [1]:
                    self._counts["set_aside"] += 1
                    logger.warning(SET_ASIDE, self._key, self._key, ASIDE)
                results = self._pipeline(commands)
            if not full_is_an_error and any(isinstance(result, lib.OutOfMemoryError) for result in results[:2]):
                return results
            for result in results:
                if isinstance(result, Exception):
                    raise result
                if not _is_redis(result):
                    raise lib.InvalidResponse("it answers something else than it was asked for")
            if wait and (lack := self._copies.lack(results.pop())) and not self._finder.confirm(self._place):
                raise NotReplicated(lack)
        except FAULTS as error:
            if not isinstance(error, lib.OutOfMemoryError):
                self.close()  # a new connection next time: after a failover the name may lead to another server
            raise fault(error, self._place.at, self._timeout) from error
        return results

    def _pipeline(self, commands: list[tuple[Any, ...]]) -> list[Any]:
        results = self._sent(commands)
        if self._at.kind == "cluster" and (moved := moved_to(results)) is not None:
            self._finder.moved(moved)
            self.close()
            results = self._sent(commands)
        return results

    def _sent(self, commands: list[tuple[Any, ...]]) -> list[Any]:
        pipeline = self._connect().pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command)
        try:
            results: list[Any] = pipeline.execute(raise_on_error=False)
        except (TypeError, ValueError, AttributeError) as error:  # the library takes the answers to be of their kinds
            raise lib.InvalidResponse("it answers something else than it was asked for") from error
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


def _is_redis(result: object) -> bool:
    """Whether that may be what a Redis says to one of the commands here: a text, a number, nothing, or a hash."""
    if isinstance(result, dict):
        return all(isinstance(one, bytes) for pair in result.items() for one in pair)
    return result is None or isinstance(result, bytes | int)
