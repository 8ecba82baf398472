"""What the mail of a crawl promises, by every transport: the Transport contract.

Two things carry mail: `redis.RedisTransport` (production) and `in_process.MemoryTransport` (tests, and crawls of one
process). Both pass tests/transport/test_conformance.py. The protocol relies on what stands here and on nothing else.

**What may happen to anything written** (so everything in an `Outgoing` must be idempotent):

* It may be lost at any moment, all of it or a part: a Redis restarts empty, evicts, is flushed, or is replaced.
* When a call raises `TransportDown`, nothing, a part or all of it may have been applied, and a part may even be applied
  later (bytes that wait in the socket of a paused server). Repeat it. An old beat line may thus reappear for a moment.
* Letters to one receiver arrive in the order written, but for repeats. Nothing is said about different senders.

* Where mail is in slots of its own (UBI_MAIL_SLOTS), and these at several servers, one that is away, full or slow is no
  `TransportDown`: what is for its agents is left out, and `Incoming.late` names them when it can be written. Where the
  own inbox is there, nothing is read meanwhile, and ids given back are deleted later.

**What is handed out**

* A letter is delivered *at least once* as long as its sender repeats it until acknowledged. One transport object hands
  out each inbox entry once until it is consumed; a new object (a restart) starts again with all entries that wait.
* An entry is deleted only when its id was given back in `Outgoing.consumed`. The transport remembers ids given back
  until their deletion has succeeded, so the caller need not repeat them after `TransportDown`.
* The inbox is always read from its beginning, never from a remembered position: in a replaced Redis ids start lower.
* `beats()`, and the read that belongs to each beat, are ONE atomic read of all beats (one HGETALL): no reader ever
  sees beat x before and beat y after one instant. The end of the crawl is decided on this. Nothing else is atomic:
  commands of one exchange may interleave with those of other agents.
* `claim` compares and sets in one step: of two claimers exactly one wins.

* A seed, which comes from outside, is handed out to one agent of all, once, until it was answered (`seeds_answered`),
  which deletes it, or handed to another agent (`seeds_for`). One that an agent has not looked at for `seed_idle`
  seconds, since it died or the answer to its read was lost, is handed out to the next one that reads, so that a seed
  may come twice, and is lost only with Redis. `clear` leaves seeds as they are.
* What is in the list that a transport is told of (`seed_list`) becomes seeds in one step, first come, first served, as
  long as fewer than `LIST_AHEAD` seeds wait.

**Bounds**

* At most `max_letters` letters and about `max_read_bytes` of them (but one at least) in one exchange, fewer after one
  that failed; at most `IN_HAND` letters handed out and not consumed, then none come.
* An entry larger than `max_letter_bytes` (names and values of its fields together) is never read whole: it arrives as
  `oversized` (its size in bytes), `head` (the first `HEAD` bytes of its fields) and, when it has one, `from`.
* At most `Outgoing.read_seeds` seeds in one exchange, within the same bounds; about `SEEDED` answers to them, kept for
  `SEEDED_FOR` seconds after the last one.
* About `DEAD_LETTERS` dead letters an agent, about `INBOX` entries an inbox; the oldest go first.
* No call lasts much longer than the transport's `timeout`, whatever the server does.

**Data of others**: letters are raw bytes and for the caller to judge. Fields of the hashes (beats, profiles, acks,
control) that are not UTF-8 text, or longer than `TEXT` times `max_letter_bytes`, are skipped, counted and deleted. A
key of a wrong type is renamed (`...:aside`) and counted. None of it stops an agent. Names of agents that are passed in
are expected to be checked already (`[A-Za-z0-9_.:-]{1,64}`); all else may be any text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import NamedTuple, Protocol

HEAD = 256  # bytes shown of what is too large to be read: enough for a person to see what it is
MOST_READ = 64  # letters that one exchange reads
IN_HAND = 256  # letters with the caller at once; a caller that consumes needs max_letters, this only bounds a bug
DEAD_LETTERS = 1000  # kept per agent: for people, who read the newest
TEXT = 10  # times max_letter_bytes: fields of hashes; an ack may name the hosts of a whole window of letters
ANSWER = 120  # seconds an answer to a person's question is kept: the one that asked reads it within two
MOST_SEED_URL = 500  # characters of a seed's URL in its answer
SEEDED = 10_000  # answers to seeds: a writer of so many at once reads them meanwhile
SEEDED_FOR = 3600  # seconds they are kept after the last one
SEED_IDLE = 30.0  # seconds after which a seed that an agent has taken, and not looked at since, is another's
LIST_AHEAD = 1000  # seeds that wait, from which on none are made of a list: that is where the rest waits
LISTED = "listed"  # the only field of a seed that was in a list
MOST_START_ITEMS = 100_000  # items of start() that are known: some 10 MB; spiders yield few there
INBOX = 10_000  # entries; windows of unacknowledged letters keep it far below, this bounds a flood of garbage

MEMORY = "*"
"""Field of the beats hash, beside the agents' own (no name of an agent): a random token, written by the first beat that
finds none, and in what `on_read` gets the number of the server besides (of the connection, where that
does not say who it is). So it is another one whenever Redis has forgotten everything, or may have forgotten the last
moments."""

WATCHED = "**"
"""What `on_read` gets besides, with the first read and after anything that may have changed the memory: for how long
(s) this data set is known to have lost nothing, and why where that is 0 (`watched.Watched`). Where it lacks it is 0."""

SUMMED_UP = "*"
"""Field of the agents hash, beside the agents' own: the sum of the profiles that were taken away (`sum_up`)."""

Fields = Mapping[str, str]
NO_FIELDS: Fields = MappingProxyType({})
RawFields = Mapping[bytes, bytes]


class Line(NamedTuple):
    """The line to the server: how long a word there and back takes, and how long mail waits for its answer (s); 0.0
    where that is not known, or takes no time."""

    round_trip: float = 0.0
    timeout: float = 0.0


class SeedAnswer(NamedTuple):
    """What became of the seed of this id, in one word, and why; `name` is what its writer calls it, `url` the begin of
    what it asks for."""

    number: str
    said: str
    why: str = ""
    name: str = ""
    url: str = ""


class Outside(NamedTuple):
    """How many seeds are there that are not answered; and, where there are none, a text that stays the same as long as
    none is written, and the server has forgotten nothing and is the same."""

    waiting: int
    mark: str


class EndOfCrawl(NamedTuple):
    """Fields for the control hash, which say that the crawl is over; `mark` is that of `Outside`."""

    mark: str
    control: Fields


@dataclass(frozen=True, slots=True)
class Outgoing:
    """All that one exchange writes. Deletions are applied first (they make room), then acks, letters, and the rest."""

    letters: Sequence[tuple[str, Fields]] = ()
    """(receiver, fields) in the order to be appended to the receivers' inboxes."""
    acks: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """(sender of the acknowledged letters, lane name) -> text, replacing what that lane said before."""
    consumed: Sequence[str] = ()
    """Ids of own inbox entries that are merged durably, or dead: deleted."""
    forget_acks: Sequence[str] = ()
    """Lane names to delete from the own acks."""
    dead_letters: Sequence[Fields] = ()
    """Refused letters, for people: `reason`, `from`, `size`, `head`."""
    profile: str | None = None
    """JSON about this agent, for people and for refusing agents whose settings differ. It is left out where this agent
    has none there, and profiles were summed up: its own may be among these. See `Incoming.published`."""
    counts_anew: bool = False
    """That this profile counts nothing that a former one of this agent has said, so it is not left out."""
    control: Fields = field(default_factory=dict)
    """Fields to set in the control hash of the crawl."""
    control_changes: Mapping[str, tuple[str | None, str]] = field(default_factory=dict)
    """Field of the control hash -> what it said when it was read, None where nothing was there, and what it is to say:
    it is set if it says so still. The look and the writing are one step, so what others say meanwhile stays."""
    forget_control: Sequence[str] = ()
    """Fields to delete from the control hash."""
    replies: Fields = field(default_factory=dict)
    """Id of a question that a person asked -> this agent's answer, JSON. It is kept for about `ANSWER` seconds. One
    that cannot be written is lost, without an error."""
    read_inbox: bool = True
    """Whether letters are to be read."""
    read_acks: bool = True
    """Whether the own acks are to be read: an agent that waits for none needs none."""
    read_control: bool = True
    """Whether the control hash is to be read."""

    waits: bool = False
    """Whether the exchange is to fail (`TransportDown`) where the own inbox cannot be read."""

    seeds_answered: Sequence[SeedAnswer] = ()
    """Seeds that are on the disk of this agent, or refused: acknowledged and deleted; the answers are for people."""
    seeds_for: Sequence[tuple[str, str]] = ()
    """(id, agent): seeds that this agent was handed, for another one to take."""
    read_seeds: int = 0
    """How many seeds may be read."""
    look_outside: bool = False
    """Whether `Incoming.outside` is wanted."""
    end: EndOfCrawl | None = None
    """That the crawl is over. It is written, after all else, if no seed waits and the mark of `Outside` is still this
    one, and if the control hash does not say so already: the look and the writing are one step, and so are for writers
    of seeds the look whether the crawl is over and the writing. So a seed is read by an agent before the end, or
    refused."""

    @property
    def changes_control(self) -> bool:
        """Whether it writes the control hash."""
        return bool(self.control or self.control_changes or self.forget_control)

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is to be written and nothing to be read, so that Redis need not be asked."""
        return not any(getattr(self, each.name) for each in fields(self))


@dataclass(frozen=True, slots=True)
class Incoming:
    """All that one exchange reads, after its writes."""

    letters: Sequence[tuple[str, RawFields]] = ()
    """(id, raw fields), oldest first, none that is still in hand."""
    acks: Fields = field(default_factory=dict)
    """Lane name -> text: the whole of the own acks; nothing when they were not to be read."""
    control: Fields | None = field(default_factory=dict)
    """The whole control hash; None when it was not to be read."""
    seeds: Sequence[tuple[str, RawFields]] = ()
    """(id, raw fields) of seeds for this agent to take, oldest first, none that is still in hand."""
    outside: Outside | None = None
    """What is there of seeds, where that was wanted."""
    refused: Sequence[Fields] = ()
    """What the transport itself has refused, as dead letters for `Outgoing.dead_letters`: see signed_transport.py."""
    published: bool | None = None
    """Whether the profile was taken; None where that is not known. Where it was left out, what this agent has counted
    is in the sum already: it counts from nothing, and says so (`Outgoing.counts_anew`)."""
    memory: str = ""
    """Names what the server of the own mail slot remembers: another text after it has lost mail, or may have. "" where
    mail is not in slots of its own, or where that is not known (yet)."""
    late: Collection[str] = ()
    """Agents for whom letters or answers could not be written before, and can be by now: say them again."""
    slots_away: int = 0
    """How many mail slots take nothing at present: what is for the agents there was left out, and is named in `late`
    when that is over."""
    put_off: int = 0
    """How many letters and answers were left out so since the last exchange."""


class TransportError(Exception):
    """The mail cannot be carried, and trying again will not help. Raised as such by `open` only: the message is one
    sentence for the user, which names UBI_REDIS_URL and the remedy and never holds a password."""


class TransportDown(TransportError):
    """Away for now: keep everything, repeat later with back-off. The message says why."""


class TransportFull(TransportError):
    """The memory limit of the server refused writes: none or some were applied; repeat later.

    Reads, deletions and the profile went through. `incoming` holds what was read, and its letters count as handed out:
    take and consume them, for reading mail is what makes room again. Beats go through as well: a server that is full
    must not silence the agents (a beat and a profile take the place of one about as long).
    """

    def __init__(self, reason: str, incoming: Incoming | None = None) -> None:
        super().__init__(reason)
        self.incoming = incoming if incoming is not None else Incoming()


def always() -> float:
    """Read with every beat."""
    return 0.0


class Transport(Protocol):
    """See the module. All coroutines belong to one event loop; `exchange` calls are served one after another."""

    @property
    def counts(self) -> Counter[str]:
        """What was unusual, since the start: `garbage` (hash fields skipped), `oversized` (letters cut), `set_aside`
        (keys renamed), `beats_failed`, `beats_stalled`, `reads_dropped` (the loop was too busy to take them)."""

    @property
    def takes_seeds(self) -> bool:
        """Whether seeds can be read; known once it is open."""

    @property
    def line(self) -> Line:
        """How far the server is, as far as is known now. From any thread."""

    async def open(self) -> None:
        """Connect and try what is needed. Raises TransportError with one sentence when it cannot be, and TransportDown
        when it cannot be now; then it may be called again."""

    def now(self) -> float:
        """Seconds of a clock that all agents of the crawl share: with Redis the server's, asked for by `open`, counted
        on since by this machine. For what may be a little out: it is no lease. Not to be asked before `open`."""

    async def beats(self) -> dict[str, str]:
        """Agent -> its beat line, of all agents at one instant, without `MEMORY`. Raises TransportDown."""

    async def profiles(self) -> dict[str, str]:
        """Agent -> its profile; among them `SUMMED_UP`, where there is one. Raises TransportDown."""

    async def former_profiles(self) -> dict[str, str]:
        """Agent -> its profile, of a crawl of this name by a version whose keys have other names; none where they may
        not be read. Raises TransportDown."""

    async def tell_former(self, fields: Fields) -> None:
        """Write these into the control hash of that crawl, where that is allowed. Raises TransportDown and
        TransportFull."""

    async def claim(self, agent: str, expected: str | None, line: str) -> bool:
        """Atomically set the beat line of `agent` if it still is `expected` (None: absent); True when it was.

        Repeatable: a line that already is `line` counts as won. Raises TransportDown (it may be won), TransportFull.
        """

    async def forget(self, gone: Fields) -> None:
        """Of each of these agents delete beat line, inbox and acks, where the line still is the text given. The
        comparison and the deletion are one step for each. Raises TransportDown (it may be done).
        """

    async def sum_up(self, gone: Fields, before: str | None, after: str) -> bool:
        """Delete these profiles and let `after` be the sum (`SUMMED_UP`), in one step, if each profile still is the
        text given, none of these agents has a beat line, and the sum still is `before` (None: there is none); True when
        done. So nothing is in the sum twice, by two at once, or by one again. Raises TransportDown (it may be done).
        """

    async def exchange(self, out: Outgoing) -> Incoming:
        """Write, then read, in one round trip. Raises TransportDown, or TransportFull (look at its `incoming`)."""

    async def empty_inbox(self) -> int:
        """Delete all letters that wait for this agent, unread; how many there were. Raises TransportDown where the own
        inbox cannot be had (it may be done)."""

    async def claim_items(self, claims: Mapping[str, tuple[str | None, str]]) -> dict[str, str]:
        """Of items of start(), by what each is known by: let the second text be said of it if the first one is (None:
        nothing), all at one instant. What is said of each then; "" of one more than `MOST_START_ITEMS`. What is no text
        counts as "". Raises TransportDown, TransportFull."""

    async def prepare_beats(self) -> None:
        """Begin to make what the beats of this agent need, beside all else, so that the first one need not wait for it.
        May be left out."""

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
        """Beat now, and then every `interval` seconds (a fixed schedule: what is missed is not made up for).

        A beat is one round trip: write `line(counter)`, read all beats, unless the last read was begun less than
        `apart()` seconds ago, give or take half an interval: then it only writes, and calls `on_ack` alone. `counter`
        grows by one with each attempt, also over a stop and a new start. On success `on_ack(sent)` is called at once
        and `on_read(sent, received, beats)` in the event loop, in order, `MEMORY` among the beats; when the loop is
        busy at most 64 reads wait, the oldest are dropped. Both times are of `clock`, `sent` taken before the first
        byte leaves. A beat that the server refused calls neither: an agent that cannot beat shall not judge others on
        what it reads. The same holds where replicas lack it, and another server may have taken over (decision 0065).
        Who wrote a line is what it begins with, up to a full stop or a space. After a silence of some intervals the own
        line is looked at first: while it is another's, for some intervals more, turns read only, and
        call `on_read` alone, without `WATCHED`. Where a beat was written over such a line, that is what is read for the
        own one. While
        `stalled()` nothing is sent or read. With Redis `line`, `on_ack`, `clock`, `stalled` and `apart` run in a
        thread: they must be quick and only look at values that the loop prepared. Failures are retried at the next
        interval, never raised.
        Raises RuntimeError when it beats already.
        """

    def beat_now(self) -> None:
        """Beat soon, out of turn: at most 20 times an interval, and not while the server is away. From any thread."""

    async def stop_beating(self, last_line: str | None) -> None:
        """Stop, then write `last_line` if given (once; a failure is only logged). When it returns no callback runs any
        more and none of this agent's beats is under way, unless the server hangs. Does nothing when not beating."""

    async def clear(self, finished: str | None = None, control: Fields = NO_FIELDS) -> bool:
        """Delete all keys of this crawl, of all agents, but that control then says `control`; True when done.

        With `finished`: only if the control hash still says `finished` = that text, else False and nothing is deleted.
        The comparison, the deletion of control, beats, profiles and the mail of all known agents, and the writing of
        `control` are one step: of several agents that start at once after a finished crawl, one clears, and wipes
        nothing of the others.
        Raises TransportDown.
        """

    async def close(self) -> None:
        """Stop beating without a last line, and disconnect. Never raises for a server that is away."""
