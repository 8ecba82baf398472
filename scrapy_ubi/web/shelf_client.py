"""The part of a Redis client that people's commands use, over what the agent of a crawl without Redis has in memory.

So that every command's function, which knows Redis only, answers for such a crawl as well: questions lie in the control
hash, and the agent finds them there. Rules of this module:

* The shelf belongs to the event loop: a call comes from a thread of the reader, is made in the loop, and waited for.
* Bytes come back, as from Redis. What the commands do not use is not here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar, cast

import redis

from scrapy_ubi.cli.commands.redis_connection import RedisConnection
from scrapy_ubi.transport.address import Address
from scrapy_ubi.transport.redis_keys import RedisKeys
from scrapy_ubi.transport.shelf import Shelf
from scrapy_ubi.transport.wire_text import encode

PATIENCE = 10.0  # s for the event loop
MEMORY_URL = "memory"  # stands for the address of a Redis, where only whether there is one matters

Raw = dict[bytes, bytes]
Text = str | bytes
T = TypeVar("T")


def connection(shelf: Callable[[], Shelf], crawl: str, loop: asyncio.AbstractEventLoop) -> RedisConnection:
    """What commands take for the connection to a Redis that holds this one crawl."""
    at = Address(MEMORY_URL, "the memory of this agent", None)
    return RedisConnection(cast(redis.Redis, ShelfClient(shelf, crawl, loop)), at, "UBI_REDIS_URL")


class ShelfClient:
    """Reads and writes the shelf that `shelf` gives, which is another one after the crawl was forgotten."""

    def __init__(self, shelf: Callable[[], Shelf], crawl: str, loop: asyncio.AbstractEventLoop) -> None:
        self._shelf = shelf
        self._loop = loop
        self._keys = RedisKeys(crawl)
        self._crawl = crawl

    def in_loop(self, do: Callable[[], T]) -> T:
        """What `do` gives in the event loop. Raises redis.TimeoutError where that has no time, or has ended."""
        done: Future[T] = Future()

        def call() -> None:
            try:
                done.set_result(do())
            except Exception as error:  # noqa: BLE001 - it is raised again, in the thread that has called
                done.set_exception(error)

        try:
            self._loop.call_soon_threadsafe(call)
            return done.result(PATIENCE)
        except (TimeoutError, RuntimeError) as error:
            raise redis.TimeoutError("the agent does not answer") from error

    # -- hashes

    def fields(self, key: str) -> Raw:
        """A hash itself; called in the loop."""
        keys, shelf = self._keys, self._shelf()
        if key in (keys.beats, keys.agents, keys.control):
            found: Raw = getattr(shelf, key.rpartition(":")[2])
            return found
        owner, kind = self._owner(key)
        return shelf.answers[owner] if kind == "answers" else {}

    def _owner(self, key: str) -> tuple[str, str]:
        """Whose key that is, and what it is: `inbox`, `dead`, `answers`."""
        return self._keys.owner(encode(key)) or ("", "")

    def hgetall(self, key: str) -> Raw:
        """All fields."""
        return self.in_loop(lambda: dict(self.fields(key)))

    def hmget(self, key: str, names: Iterable[str]) -> list[bytes | None]:
        """Some fields."""
        return self.in_loop(lambda: [self.fields(key).get(encode(name)) for name in names])

    def hset(
        self, key: str, name: Text | None = None, value: Text | None = None, mapping: Mapping[Text, Text] | None = None
    ) -> int:
        """Write fields."""
        given = dict(mapping or {}) | ({name: value} if name is not None and value is not None else {})
        self.in_loop(lambda: self.fields(key).update({_raw(one): _raw(text) for one, text in given.items()}))
        return len(given)

    def hdel(self, key: str, *names: str) -> int:
        """Remove fields."""
        return self.in_loop(lambda: sum(self.fields(key).pop(encode(name), None) is not None for name in names))

    def delete(self, key: str) -> int:
        """Forget an answer; nothing else is deleted by commands that look."""
        owner, kind = self._owner(key)
        return self.in_loop(lambda: int(kind == "answers" and self._shelf().answers.pop(owner, None) is not None))

    # -- streams

    def stream(self, key: str) -> list[tuple[bytes, Raw]]:
        """The entries, the oldest first; called in the loop."""
        shelf = self._shelf()
        if key == self._keys.seeds:
            return [(encode(number), dict(fields)) for number, fields in shelf.seeds.waiting.items()]
        if key == self._keys.seeded:
            return [*_numbered(shelf.seeds.answers)]
        owner, kind = self._owner(key)
        if kind == "inbox" and owner in shelf.inbox:
            return [(encode(number), dict(fields)) for number, fields in shelf.inbox[owner].items()]
        return [*_numbered(shelf.dead[owner])] if kind == "dead" and owner in shelf.dead else []

    def xlen(self, key: str) -> int:
        """How many there are."""
        return self.in_loop(lambda: len(self.stream(key)))

    def xrange(self, key: str, count: int) -> list[tuple[bytes, Raw]]:
        """The oldest."""
        return self.in_loop(lambda: self.stream(key)[:count])

    def xrevrange(self, key: str, count: int) -> list[tuple[bytes, Raw]]:
        """The newest, the newest first."""
        return self.in_loop(lambda: self.stream(key)[::-1][:count])

    def seed(self, key: str, fields: Mapping[Text, Text]) -> bytes:
        """Write a seed; its id. Called in the loop."""
        raw = {_raw(name): _raw(value) for name, value in fields.items()}
        return encode(self._shelf().seeds.append(raw)) if key == self._keys.seeds else b""

    def eval(self, script: str, keys: int, *given: Text) -> list[bytes]:
        """Write seeds, unless the crawl is over: the one script that commands send here (`seed_scripts.APPEND`)."""
        [seeds, _], texts, found = given[:keys], [*given[keys:]], []
        while texts:
            flat = [texts.pop(0) for _ in range(int(texts.pop(0)))]
            found.append(dict(zip(flat[::2], flat[1::2], strict=True)))
        key = str(seeds)
        return self.in_loop(lambda: [] if self._shelf().over else [self.seed(key, fields) for fields in found])

    def xread(self, streams: Mapping[str, bytes], count: int, block: int | None = None) -> list[Any]:
        """What is new in the answers to seeds; with `block` (ms) after a pause where there is nothing."""
        [(key, after)] = streams.items()
        for attempt in range(2):
            found = self.in_loop(lambda: [one for one in self.stream(key) if _place(one[0]) > _place(after)][:count])
            if found or not block or attempt:
                return [(key, found)] if found else []
            time.sleep(block / 1000)
        return []

    # -- the server

    def ping(self) -> bool:
        """It is there as long as the agent is."""
        return self.in_loop(lambda: True)

    def time(self) -> tuple[int, int]:
        """Seconds and microseconds, of this machine."""
        now = time.time()
        return int(now), int(now % 1 * 1e6)

    def scan_iter(self, **choice: Any) -> Iterator[bytes]:
        """The keys of crawls: of this one, where there is anything of it."""
        for key in (self._keys.control, self._keys.agents):
            if self.hgetall(key):
                yield key.encode()

    def pipeline(self, transaction: bool = False) -> _Calls:
        """Several calls, made one after the other."""
        return _Calls(self)


class _Calls:
    """Calls kept until `execute`."""

    def __init__(self, client: ShelfClient) -> None:
        self._client = client
        self._calls: list[Callable[[], Any]] = []

    def __enter__(self) -> _Calls:
        return self

    def __exit__(self, *error: object) -> None:
        self._calls.clear()

    def hgetall(self, key: str) -> None:
        """See the client."""
        self._calls.append(lambda: dict(self._client.fields(key)))

    def xlen(self, key: str) -> None:
        """See the client."""
        self._calls.append(lambda: len(self._client.stream(key)))

    def type(self, key: str) -> None:
        """Memory holds what it should: no key has another type."""
        self._calls.append(lambda: b"none")

    def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Make them, in one turn of the loop; what each has given."""
        calls, self._calls = self._calls, []
        return self._client.in_loop(lambda: [call() for call in calls])


def _raw(text: Text) -> bytes:
    return text if isinstance(text, bytes) else encode(text)


def _numbered(entries: Iterable[Raw]) -> Iterator[tuple[bytes, Raw]]:
    """With ids by their places, as these are kept without."""
    return ((f"{place}-0".encode(), dict(fields)) for place, fields in enumerate(entries, 1))


def _place(number: bytes) -> int:
    head = number.split(b"-")[0]
    return int(head) if head.isdigit() else 0
