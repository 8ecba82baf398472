"""What an exchange with a Redis says: a command for each thing that is to be written, deleted and read.

Rules of this module:

* Values to values: nothing is sent here, and nothing is kept.
* Every command is idempotent, as an exchange is no transaction and may be sent again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from scrapy_ubi.transport import scripts, seed_scripts
from scrapy_ubi.transport.contract import (
    ANSWER,
    DEAD_LETTERS,
    HEAD,
    INBOX,
    LIST_AHEAD,
    LISTED,
    MOST_START_ITEMS,
    SEEDED,
    SEEDED_FOR,
    SUMMED_UP,
    EndOfCrawl,
    Fields,
    Outgoing,
    RawFields,
)
from scrapy_ubi.transport.packed_letters import packed
from scrapy_ubi.transport.redis_keys import AGENT_KEYS, RedisKeys
from scrapy_ubi.transport.round_trips import RedisCommand
from scrapy_ubi.transport.wire_text import FROM, encode

GROUP = "agents"  # of the seeds' readers
MOST_CONTROL = 2**53  # fields of the control hash: what is put there again knows its own bound
CONSUMER_FOR = 3_600_000  # ms after which the name of an agent that reads no seeds, and has none, is forgotten


@dataclass(frozen=True, slots=True)
class ExchangeCommands:
    """The commands of one agent. `largest` is how many bytes a letter may have that is read whole."""

    keys: RedisKeys
    agent: str
    largest: int

    def probes(self, budget: int) -> list[RedisCommand]:
        """What the transport cannot do without, tried without changing anything: a field without a value is refused,
        but not before the user's rights were looked at."""
        inbox, beats = self.keys.inbox(self.agent), self.keys.beats
        return [
            RedisCommand(("TIME",)),
            RedisCommand(("XLEN", inbox), inbox, "stream"),
            RedisCommand(("XDEL", inbox, "0-0"), inbox, "stream"),
            RedisCommand(("XADD", inbox, "*", "", "", ""), inbox, "stream"),
            RedisCommand(("HDEL", beats, ""), beats, "hash"),
            RedisCommand(("HSET", beats, "", "", "")),
            RedisCommand(("SETRANGE", self.keys.pulses, 0, ""), self.keys.pulses, "string"),
            RedisCommand(("GETRANGE", self.keys.pulses, 0, 0), self.keys.pulses, "string"),
            RedisCommand(("HGETALL", self.keys.control), self.keys.control, "hash"),
            self.read_inbox(1, budget, ()),
        ]

    def deletions(
        self, out: Outgoing, leaving: Sequence[str], garbage: Mapping[str, Iterable[bytes]]
    ) -> Iterator[RedisCommand]:
        """What the agent needs no longer: letters, answers to letters, control fields, fields that hold no text."""
        inbox, acks = self.keys.inbox(self.agent), self.keys.acks(self.agent)
        if leaving:
            yield RedisCommand(("XDEL", inbox, *leaving), inbox, "stream")
        if out.forget_acks:
            yield RedisCommand(("HDEL", acks, *map(encode, out.forget_acks)), acks, "hash")
        if out.forget_control:
            key = self.keys.control
            yield RedisCommand(("HDEL", key, *map(encode, out.forget_control)), key, "hash")
        for key, names in garbage.items():
            yield RedisCommand(("HDEL", key, *names), key, "hash")

    def writes(self, out: Outgoing, packs: bool = False) -> Iterator[RedisCommand]:
        """Answers, letters, dead letters, the profile, control fields, answers to questions. `packs`: letters are sent
        in few bytes."""
        by_sender: dict[str, list[bytes]] = {}
        for (sender, lane), text in out.acks.items():
            by_sender.setdefault(sender, []).extend((encode(lane), encode(text)))
        for sender, pairs in by_sender.items():
            key = self.keys.acks(sender)
            yield RedisCommand(("HSET", key, *pairs), key, "hash")
        yield from self.answer_seeds(out)
        for receiver, fields in out.letters:
            yield _append(self.keys.inbox(receiver), INBOX, packed(fields) if packs else fields)
        for fields in out.dead_letters:
            yield _append(self.keys.dead(self.agent), DEAD_LETTERS, fields)
        if out.profile is not None:
            key = self.keys.agents
            said = (self.agent, encode(out.profile), SUMMED_UP, int(out.counts_anew))
            yield RedisCommand(("EVAL", scripts.PUBLISH, 1, key, *said), key, "hash")
        if out.control:
            key = self.keys.control
            yield RedisCommand(("HSET", key, *_flat(out.control)), key, "hash")
        if out.control_changes:
            yield _change(self.keys.control, MOST_CONTROL, out.control_changes)
        for question, text in out.replies.items():
            key = self.keys.answers(question)
            yield RedisCommand(("EVAL", scripts.REPLY, 1, key, self.agent, encode(text), ANSWER), key, "hash")

    def remember(self, token: str) -> RedisCommand:
        """That the own mail slot has lost nothing from now on, where it says nothing yet."""
        key = self.keys.memory(self.agent)
        return RedisCommand(("SET", key, token, "NX"), key, "string")

    def sum_up(self, gone: Fields, before: str | None, after: str) -> RedisCommand:
        """The sum in place of these profiles, if all is as it is given."""
        key, present = self.keys.agents, "" if before is None else _digest(before)
        said = [part for agent, text in gone.items() for part in (agent, _digest(text))]
        args: list[str | bytes | int] = [SUMMED_UP, present, encode(after), *said]
        return RedisCommand(
            ("EVAL", scripts.SUM_UP, 2, key, self.keys.beats, *args), key, "hash", ((self.keys.beats, "hash"),)
        )

    def claim_items(self, claims: Mapping[str, tuple[str | None, str]]) -> RedisCommand:
        """What is said of items of start(), changed where it is as expected."""
        return _change(self.keys.start, MOST_START_ITEMS, claims)

    def answer_seeds(self, out: Outgoing) -> Iterator[RedisCommand]:
        """Seeds are answered, or handed on."""
        if not out.seeds_answered and not out.seeds_for:
            return
        args: list[str | bytes | int] = [GROUP, SEEDED, SEEDED_FOR, self.agent, len(out.seeds_answered)]
        args += [encode(text) for answer in out.seeds_answered for text in answer]
        args += [text for one in out.seeds_for for text in one]
        seeds, seeded = self.keys.seeds, self.keys.seeded
        yield RedisCommand(
            ("EVAL", seed_scripts.ANSWER, 2, seeds, seeded, *args), seeds, "stream", ((seeded, "stream"),)
        )

    def move_list(self, seed_list: str, most: int) -> RedisCommand:
        """Up to so many of what that list, set or sorted set holds become seeds."""
        args = (2, seed_list, self.keys.seeds, LISTED, most, LIST_AHEAD)
        return RedisCommand(("EVAL", seed_scripts.MOVE, *args))

    def read_seeds(self, most: int, budget: int, idle: float | None, held: Iterable[str]) -> RedisCommand:
        """Up to so many seeds, of so many bytes together, but for those that are held already; `idle`: claim those that
        another agent has not looked at for so long (s), None: none."""
        key = self.keys.seeds
        claim: tuple[str | int, str | int] = ("", "") if idle is None else (int(idle * 1000), CONSUMER_FOR)
        limits = (most, self.largest, budget, HEAD, *claim)
        return RedisCommand(("EVAL", seed_scripts.READ, 1, key, GROUP, self.agent, *limits, *held), key, "stream")

    def look_outside(self) -> RedisCommand:
        """What is there of seeds."""
        seeds, control = self.keys.seeds, self.keys.control
        return RedisCommand(("EVAL", seed_scripts.LOOK, 2, seeds, control), seeds, "stream", ((control, "hash"),))

    def end_crawl(self, end: EndOfCrawl) -> RedisCommand:
        """The crawl is over, if nothing has come from outside."""
        seeds, control = self.keys.seeds, self.keys.control
        said = (encode(end.mark), *_flat(end.control))
        return RedisCommand(("EVAL", seed_scripts.END, 2, seeds, control, *said), seeds, "stream", ((control, "hash"),))

    def read_inbox(self, most: int, budget: int, held: Iterable[str]) -> RedisCommand:
        """Up to so many letters, of so many bytes together, but for those that are held already."""
        key = self.keys.inbox(self.agent)
        limits = (most, self.largest, budget, HEAD, FROM)
        return RedisCommand(("EVAL", scripts.READ_INBOX, 1, key, *limits, *held), key, "stream")

    def reads(self, out: Outgoing, room: int, budget: int, held: Iterable[str]) -> dict[str, RedisCommand]:
        """Key -> the command that reads it. `room`: how many letters more the agent can hold."""
        reads = {}
        if room and out.read_inbox:
            reads[self.keys.inbox(self.agent)] = self.read_inbox(room, budget, held)
        if self.keys.mail_slots > 1 and out.read_inbox:
            key = self.keys.memory(self.agent)
            reads[key] = RedisCommand(("GET", key), key, "string")
        hashes = ((self.keys.acks(self.agent), out.read_acks), (self.keys.control, out.read_control))
        reads |= {key: RedisCommand(("HGETALL", key), key, "hash") for key, wanted in hashes if wanted}
        return reads

    def clear(self, finished: str | None, control: Fields) -> RedisCommand:
        """The keys of all known agents, in one step."""
        shared = self.keys.shared
        expected: tuple[str, bytes] = ("0", b"") if finished is None else ("1", encode(finished))
        args: tuple[str | bytes | int, ...] = (
            "EVAL",
            scripts.CLEAR,
            len(shared),
            *shared,
            *expected,
            self.keys.prefix,
            len(AGENT_KEYS),
            *AGENT_KEYS,
            *_flat(control),
        )
        return RedisCommand(args)


def _change(key: str, most: int, changes: Mapping[str, tuple[str | None, str]]) -> RedisCommand:
    """Fields of a hash, of which there may be so many, changed where they are as expected."""
    args: list[str | bytes | int] = [most]
    for name, (before, after) in changes.items():
        args += [encode(name), int(before is not None), encode(before or ""), encode(after)]
    return RedisCommand(("EVAL", scripts.CHANGE, 1, key, *args), key, "hash")


def _append(key: str, most: int, fields: Fields | RawFields) -> RedisCommand:
    return RedisCommand(("XADD", key, "MAXLEN", "~", most, "*", *_flat(fields)), key, "stream")


def _flat(fields: Fields | RawFields) -> Iterator[bytes]:
    """Names and values in turn, as Redis takes them."""
    for pair in fields.items():
        for one in pair:
            yield one if isinstance(one, bytes) else encode(one)


def _digest(text: str) -> str:
    """As `redis.sha1hex` has it, in a script: it is to tell texts apart, and proves nothing."""
    return hashlib.sha1(encode(text), usedforsecurity=False).hexdigest()
