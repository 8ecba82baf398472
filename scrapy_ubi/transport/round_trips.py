"""Pipelined round trips to a Redis, from the event loop.

Rules of this module:
* One call is one round trip, not a transaction, and ends within the time-out, whatever the server does. The time-out
  follows from how far the server is (`RoundTripTime`), within bounds: far away a lost packet costs more, and less fits
  in a second.
* redis-py never retries here: the caller backs off, and knows the lease.
* Of redis-py only connections and their pool are used. Its pipelines and its time-out for each reply cost half as much
  again as the round trip itself; there is one time-out for a call, and a connection with replies unread is closed.
* In a cluster, and with Sentinels, the server is looked for before the first connection, and after any failure: it may
  be another one then. One that says MOVED is left at once, and the commands go to the one it names.
* A key that somebody spoilt (a wrong type) is renamed aside, and the commands that failed by it are sent once more.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import redis.asyncio
from redis import exceptions as lib
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from scrapy_ubi.ground import clock
from scrapy_ubi.transport import scripts
from scrapy_ubi.transport.address import Address
from scrapy_ubi.transport.faults import (
    FAULTS,
    allowed,
    explain,
    fault,
    fault_at_start,
    is_elsewhere,
    moved_to,
    need_master,
    spoilt,
    unwrapped,
)
from scrapy_ubi.transport.redis_keys import ASIDE, SET_ASIDE
from scrapy_ubi.transport.server_facts import run_id
from scrapy_ubi.transport.topology import ServerFinder

logger = logging.getLogger(__name__)

LATELY = 32  # round trips that count for how far the server is
CONNECTIONS = 2  # an exchange, and beside it a look at beats or profiles
ROUND_TRIPS = 30  # that a call may last, where that is longer than the time-out it was given

Argument = bytes | str | int


class RoundTripTime:
    """How long a word to the server and back takes (s); 0.0 where none was made yet.

    It is the shortest of the last round trips: what is longer was a lost packet, a large letter or a busy processor,
    and says nothing of how far the server is.
    """

    def __init__(self) -> None:
        self._lately: deque[float] = deque(maxlen=LATELY)
        self.seconds = 0.0

    def took(self, seconds: float) -> None:
        """A first answer came so long after it was asked for."""
        self._lately.append(max(0.0, seconds))
        self.seconds = min(self._lately)


class RedisCommand(NamedTuple):
    """One command of a pipeline, its key and the type that key should have; no key where it cannot be spoilt. `more`:
    the further keys of a script, with their types."""

    args: tuple[Argument, ...]
    key: str = ""
    kind: str = ""
    more: tuple[tuple[str, str], ...] = ()


IS_CLUSTERED = RedisCommand(("CLUSTER", "INFO"))  # an error everywhere else


class RoundTrips:
    """The process's pool of connections to the server that holds a hash slot. `timeout` in seconds bounds each call;
    with a server that is far away it is longer, up to `longest` (s). `round_trip`: how far that is.

    `fixed`: to the server at that address, whoever holds what; of a key that is not there the answer is a result.
    `asks_name`: `server` names the one that the last connection led to: another text after a new start, too.
    """

    def __init__(
        self,
        at: Address,
        name: str,
        timeout: float,
        counts: Counter[str],
        slot: int = 0,
        *,
        longest: float = 0.0,
        fixed: bool = False,
        asks_name: bool = False,
    ) -> None:
        self.at = at
        self._is_looked_for = at.kind != "single" and not fixed
        self._asks_name = asks_name
        self.server = ""
        self._unnamed = 0
        self._server = at  # where the pool leads
        self._name = name
        self._least = timeout
        self._longest = max(timeout, longest)
        self.round_trip = RoundTripTime()
        self._counts = counts
        self._finder = ServerFinder(at, slot, timeout)
        self._finding = asyncio.Lock()
        self._open = fixed
        self._pool: redis.asyncio.ConnectionPool | None = None

    async def connect(
        self, probes: Sequence[RedisCommand], judge: Callable[[Sequence[Any]], Exception | None]
    ) -> list[Any]:
        """Connect and send `probes`; their results. Raises TransportError with one sentence when that, or one of them,
        fails, unless it is `allowed`, or `judge` finds something wrong with them; TransportDown where trying again may
        help."""
        self._open = True
        try:
            async with asyncio.timeout(self.timeout):
                *results, clustered = await self._run([*probes, IS_CLUSTERED])
            if isinstance(clustered, bytes) and self.at.kind != "cluster":
                raise lib.ClusterCrossSlotError("it is a part of a cluster")
            if (wrong := judge(results)) is not None:
                raise wrong
            for result in results:
                if isinstance(result, Exception) and not allowed(result):
                    raise result
            return results
        except (*FAULTS, ValueError, TypeError) as error:  # the last two: bad ssl_ options, or no Redis at all
            await self.close()
            raise fault_at_start(error, self._server, self.timeout) from error

    @property
    def timeout(self) -> float:
        """How long a call may last (s)."""
        return min(max(self._least, ROUND_TRIPS * self.round_trip.seconds), self._longest)

    async def close(self) -> None:
        """Disconnect. Calls after this raise TransportDown."""
        self._open = False
        await self._leave()

    async def _leave(self) -> None:
        """Disconnect, and look for the server before the next connection."""
        pool, self._pool = self._pool, None
        if pool is not None:
            with contextlib.suppress(*FAULTS):
                await pool.disconnect()

    def explain(self, error: Exception) -> str:
        """One sentence for people."""
        return explain(error, self._server, self.timeout)

    async def call(self, commands: Sequence[RedisCommand], full_is_an_error: bool = True) -> list[Any]:
        """Results in the order of `commands`. Raises TransportDown and TransportFull; with `full_is_an_error` false,
        the errors of writes that were refused because there is no memory are left in the results."""
        try:
            async with asyncio.timeout(self.timeout):
                results = await self._run(commands)
        except FAULTS as error:
            if self.at.kind != "single" or self.at.url.startswith("rediss"):
                await self._leave()  # the server may be another one, its certificate or ours renewed
            raise fault(error, self._server, self.timeout) from error
        for result in results:
            if isinstance(result, Exception) and (full_is_an_error or not isinstance(result, lib.OutOfMemoryError)):
                if is_elsewhere(result):
                    await self._leave()  # the primary became a replica; its name may lead to the new one
                raise fault(result, self._server, self.timeout) from result
        return results

    async def attempt(self, commands: Sequence[RedisCommand]) -> list[Any]:
        """As `call`, but that what the server refuses is a result. Raises TransportDown."""
        try:
            async with asyncio.timeout(self.timeout):
                return await self._run(commands)
        except FAULTS as error:
            if self.at.url.startswith("rediss") and not isinstance(error, TimeoutError | lib.TimeoutError):
                await self._leave()  # its certificate or ours renewed; what is merely slow goes on beside
            raise fault(error, self._server, self.timeout) from error

    async def _run(self, commands: Sequence[RedisCommand]) -> list[Any]:
        """One round trip, or three when a key must be put aside. Failed commands leave their error as the result."""
        results = await self._pipeline(commands)
        if self.at.kind == "cluster" and self._is_looked_for and (moved := moved_to(results)) is not None:
            self._finder.moved(moved)
            await self._leave()
            results = await self._pipeline(commands)
        again = [at for at, result in enumerate(results) if spoilt(result)]
        if again:
            failed = [commands[at] for at in again]
            wanted = {key: kind for command in failed for key, kind in command.more}  # which of them it was, none says
            await self._set_aside(wanted | {commands[at].key: _wanted(commands[at], results[at]) for at in again})
            for at, result in zip(again, await self._pipeline(failed), strict=True):
                results[at] = result
        return results

    async def _set_aside(self, wanted: Mapping[str, str]) -> None:
        """Rename keys that have not the type wanted ("": in any case)."""
        aside = [RedisCommand(("EVAL", scripts.SET_ASIDE, 2, key, key + ASIDE, kind)) for key, kind in wanted.items()]
        for key, result in zip(wanted, await self._pipeline(aside), strict=True):
            if result == 1:
                self._counts["set_aside"] += 1
                logger.warning(SET_ASIDE, key, key, ASIDE)

    async def _pipeline(self, commands: Sequence[RedisCommand]) -> list[Any]:
        pool: Any = self._pool or await self._connected()
        connection = await pool.get_connection()
        try:
            began = clock.now()
            await connection.send_packed_command(connection.pack_commands([c.args for c in commands]))
            results = [await _reply(connection, command) for command in commands[:1]]
            if commands:
                self.round_trip.took(clock.now() - began)
            return results + [await _reply(connection, command) for command in commands[1:]]
        except BaseException:  # replies may be left: they would answer the next call
            await connection.disconnect(nowait=True)
            raise
        finally:
            await pool.release(connection)

    async def _connected(self) -> redis.asyncio.ConnectionPool:
        """The pool, made for the server that holds the slot now."""
        async with self._finding:
            if not self._open:
                raise lib.ConnectionError("the transport is closed")
            if self._pool is not None:
                return self._pool
            self._server = self.at
            if self._is_looked_for:
                place = await asyncio.get_running_loop().run_in_executor(None, self._finder.find_server)
                self._server = place.at
            self._pool = redis.asyncio.BlockingConnectionPool.from_url(
                **self._server.arguments(),
                max_connections=CONNECTIONS,
                timeout=self.timeout,
                socket_timeout=None,
                socket_connect_timeout=self.timeout,
                retry=Retry(NoBackoff(), 0),
                client_name=self._name,
                protocol=2,  # RESP2: known to every server, and all that is needed
                redis_connect_func=self._greet if self.at.kind == "sentinel" or self._asks_name else None,
            )
            return self._pool

    async def _greet(self, connection: Any) -> None:
        """What Sentinels name may be a master no longer: it is asked at each connection."""
        await connection.on_connect()
        if self.at.kind == "sentinel":
            await connection.send_command("ROLE")
            need_master(await connection.read_response())
        if not self._asks_name:
            return
        await connection.send_command("INFO", "server")
        try:
            run = run_id(await connection.read_response())
        except lib.ResponseError:
            run = ""
        self._unnamed += not run
        self.server = run or f"?{self._unnamed}"


async def _reply(connection: Any, command: RedisCommand) -> Any:
    """What the server says to a command; an error it says is the result."""
    try:
        result = await connection.read_response()
    except lib.ResponseError as error:
        return unwrapped(error)
    if command.args[0] == "HGETALL":
        return paired(result)
    if command.args[0] == "SCAN":
        return int(result[0]), result[1]
    return result


def paired(answer: object) -> dict[bytes, bytes]:
    """The names and values of an answer, which follow each other. Raises InvalidResponse when it has none such: what
    answers is no Redis."""
    if not isinstance(answer, list) or len(answer) % 2 or not all(isinstance(one, bytes) for one in answer):
        raise lib.InvalidResponse("it answers something else than names and values")
    return dict(zip(answer[::2], answer[1::2], strict=True))


def _wanted(command: RedisCommand, error: object) -> str:
    """The type its key must have to stay: a stream that has used up its ids may not stay at all."""
    return command.kind if "WRONGTYPE" in str(error) else ""
