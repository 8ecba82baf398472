"""The stream of items in Redis: what agents append to, consumer groups read, and nobody loses.

Rules of this module:

* An entry has the fields `id`, `run` and `item` (JSON). It stays at least until every consumer group has acknowledged
  it, and beyond that while there is room: so what was read can be read again. Without a group nothing is taken out.
* A group whose name begins with `follow:` is one of `scrapy ubi items --follow`: it counts while it says so in the hash
  `followers`, at least every `GONE_AFTER` seconds by the server's clock. Others count until somebody destroys them.
* The field `*` of that hash is a token. When it has changed, Redis has lost its data; so it has when the stream's last
  id is lower than one that it has given (an older state was restored).
* All calls block, for people's commands and for threads of their own.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import redis

from scrapy_ubi.transport.redis_keys import RedisKeys

FOLLOW = "follow:"
TOKEN = "*"
GONE_AFTER = 60.0  # s
AT_ONCE = 500  # entries that are taken out in one step

Id = tuple[int, int]


class Added(NamedTuple):
    """What came of appending: the last id, the token, and how many entries there are now."""

    last: str
    token: str
    length: int


class Group(NamedTuple):
    """A consumer group. `needs` is the first id that it has not acknowledged."""

    name: str
    needs: Id


def read_id(text: str | bytes) -> Id:
    """`milliseconds-number` as numbers. Raises ValueError."""
    said = text.decode("ascii", "replace") if isinstance(text, bytes) else text
    first, _, second = said.partition("-")
    return int(first), int(second or 0)


class ItemStream:
    """The stream of one crawl. All methods raise what redis-py raises."""

    def __init__(self, client: redis.Redis, crawl: str) -> None:
        self.client: Any = client
        self.keys = RedisKeys(crawl)

    def append(self, entries: Iterable[tuple[str, bytes]], run: str) -> Added:
        """Append items (identity, JSON), in their order; none: only look."""
        pipe = self.client.pipeline(transaction=False)
        number = 0
        for name, item in entries:
            pipe.xadd(self.keys.items, {"id": name, "run": run, "item": item})
            number += 1
        # After them: where the token is the known one, all of them are in the data that has it.
        pipe.hsetnx(self.keys.followers, TOKEN, secrets.token_hex(4))
        pipe.hget(self.keys.followers, TOKEN)
        pipe.xlen(self.keys.items)
        said = pipe.execute()
        return Added(_text(said[number - 1]) if number else "", _text(said[-2]), int(said[-1]))

    def last_id(self) -> Id:
        """The highest id that the stream has given; (0, 0) where there is none."""
        try:
            return read_id(self.client.xinfo_stream(self.keys.items)["last-generated-id"])
        except redis.ResponseError as error:
            if "no such key" in str(error):
                return (0, 0)
            raise

    def gone_to(self) -> Id:
        """The highest id of what was taken out; where the server does not know it (before Redis 7), (0, 0)."""
        try:
            return read_id(self.client.xinfo_stream(self.keys.items)["max-deleted-entry-id"])
        except (KeyError, redis.ResponseError):
            return (0, 0)

    def groups(self) -> list[Group]:
        """The groups that count; followers that are gone are destroyed."""
        try:
            told = self.client.xinfo_groups(self.keys.items)
        except redis.ResponseError as error:
            if "no such key" in str(error):
                return []
            raise
        there = self._followers() if any(_text(one["name"]).startswith(FOLLOW) for one in told) else {}
        found = []
        for one in told:
            name = _text(one["name"])
            if name.startswith(FOLLOW) and name not in there:
                self.client.xgroup_destroy(self.keys.items, name)
                continue
            read = read_id(one["last-delivered-id"])
            needs = (read[0], read[1] + 1)
            if one["pending"] and (lowest := self.client.xpending(self.keys.items, name)["min"]) is not None:
                needs = min(needs, read_id(lowest))
            found.append(Group(name, needs))
        return found

    def _followers(self) -> set[str]:
        """Those that have said within `GONE_AFTER` that they are there."""
        seconds, micro = self.client.time()
        there = set()
        for name, said in self.client.hgetall(self.keys.followers).items():
            if _text(name) != TOKEN:
                if abs(seconds + micro / 1e6 - _number(said)) < GONE_AFTER:
                    there.add(_text(name))
                else:
                    self.client.hdel(self.keys.followers, name)
        return there

    def take_out(self, number: int, before: Id) -> int:
        """Take out the oldest entries, at most so many, with ids below `before`; how many that were."""
        taken = 0
        while taken < number:
            found = self.client.xrange(self.keys.items, count=min(AT_ONCE, number - taken))
            ids = [name for name, _ in found if read_id(name) < before]
            if not ids:
                break
            self.client.xdel(self.keys.items, *ids)
            taken += len(ids)
        return taken

    # -- for those who read along

    def say_there(self, group: str) -> None:
        """A follower is there."""
        seconds, micro = self.client.time()
        self.client.hset(self.keys.followers, group, f"{seconds + micro / 1e6:.3f}")

    def join_at(self, group: str, after: str) -> None:
        """Begin to follow behind this id (`$`: what comes from now on)."""
        self.say_there(group)
        self.client.xgroup_create(self.keys.items, group, after, mkstream=True)

    def read(self, group: str, wait: float) -> list[tuple[str, dict[str, str]]]:
        """The next entries for a follower; waits for them so long (s). Raises NoSuchGroup where Redis has lost it."""
        try:
            said = self.client.xreadgroup(
                group, "reader", {self.keys.items: ">"}, count=AT_ONCE, block=max(1, int(wait * 1000))
            )
        except redis.ResponseError as error:
            if str(error).startswith(("NOGROUP", "UNBLOCKED")):  # the second: while this waited
                raise NoSuchGroup from error
            raise
        return [entry for _, entries in said or () for entry in _entries(entries)]

    def acknowledge(self, group: str, ids: Sequence[str]) -> None:
        """A follower has these."""
        if ids:
            self.client.xack(self.keys.items, group, *ids)

    def unfollow(self, group: str) -> None:
        """It follows no longer."""
        self.client.xgroup_destroy(self.keys.items, group)
        self.client.hdel(self.keys.followers, group)

    def newest(self, number: int) -> list[tuple[str, dict[str, str]]]:
        """The last entries, the oldest of them first."""
        return _entries(reversed(self.client.xrevrange(self.keys.items, count=number)))

    def after(self, place: str, number: int = AT_ONCE) -> list[tuple[str, dict[str, str]]]:
        """Entries behind an id, for who reads without a group."""
        said = self.client.xread({self.keys.items: place}, count=number)
        return [entry for _, entries in said or () for entry in _entries(entries)]

    def ends(self) -> tuple[str, str]:
        """The ids of the first and the last entry that are there; ("", "") where there is none."""
        first = self.client.xrange(self.keys.items, count=1)
        last = self.client.xrevrange(self.keys.items, count=1)
        return (_text(first[0][0]), _text(last[0][0])) if first and last else ("", "")


class NoSuchGroup(Exception):
    """Redis has forgotten the group, or somebody has destroyed it."""


def _entries(found: Iterable[Any]) -> list[tuple[str, dict[str, str]]]:
    return [
        (_text(name), {_text(key): _text(value) for key, value in (fields or {}).items()}) for name, fields in found
    ]


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _number(value: Any) -> float:
    try:
        return float(value)
    except ValueError:
        return 0.0
