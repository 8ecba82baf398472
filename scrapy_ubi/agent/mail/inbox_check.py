"""What comes out of the own inbox is sorted: letters for the protocol, dead letters for people.

Rules of this module:

* A letter is validated whole before the protocol sees it. One that does not hold goes to the dead-letter stream with
  its reason, is counted, and answered: sent again it would be no better.
* A letter of another run, of none, or in another form is not merged, and not answered: where it is good, its sender
  keeps it, and sends it again when the two agree.
* Agents that start together may each have named the run. A letter under another name from one whose first beat has
  not come yet waits (`settle`) until it is known whether that agent is there: then its letter comes again, under the
  name that stays.
* A letter of what is no host (`#` is in the names of shards only) is set aside whole.
* Of a letter that holds, what this agent's spider cannot take is set aside alone.
* The log says so `MOST_SAID` times of each, so that a sender of thousands does not fill it. The rest is counted.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from scrapy_ubi.agent.keys import NAMES_HOST, Keys
from scrapy_ubi.agent.mail.seed_inbox import SeedInbox
from scrapy_ubi.ground.untrusted.checks import Malformed
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.bundle import opened
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.protocol.received import OtherVersion, Received, Refused, sift
from scrapy_ubi.protocol.wire import decode, decode_header
from scrapy_ubi.transport import Fields, RawFields
from scrapy_ubi.urls.host_keys import HostOf, starts_of
from scrapy_ubi.urls.host_shards import HostShards

logger = logging.getLogger("scrapy_ubi")

RUN = "run"  # the field of a letter that names the run it was sent in
MOST_RECORDS = 100_000  # in a letter: far above what an agent sends
HEAD = 256  # characters of a refused letter that people see
MOST_SAID = 20  # warnings of either kind
MOST_REASONS = 5  # of one letter's requests that are said
HOSTS_KEPT = 10_000  # of which it is remembered what their URLs begin with
MOST_HELD = 64  # letters that wait for their senders' first beats; those beyond are dead at once

Judge = Callable[[str, Entry], str | None]  # host, entry -> why it cannot be accepted, None when it can


def judge_of(keys: Keys, host_of: HostOf, check: Callable[[str], str | None]) -> Judge:
    """Refuses a URL under another host's name, and a request that this spider cannot make: `check` says why."""
    starts: dict[str, tuple[str, ...]] = {}  # host -> what URLs begin with that are surely its own

    def judge(host: str, entry: Entry) -> str | None:
        _, url, _, _, request = entry
        if not request:
            usual = starts.get(host)
            if usual is None:
                if len(starts) >= HOSTS_KEPT:
                    starts.clear()
                usual = starts[host] = starts_of(host, host_of)
            if url.startswith(usual) and url.isascii():
                return None
        if (keys.named_host(entry) if NAMES_HOST in request else host_of(url)) != host:
            return f"{url[:100]!r} does not belong to host {host[:100]!r}"
        return check(request) if request else None

    return judge


class Queries(Protocol):
    """Answers what people ask in the control hash (`report.query_inbox.QueryInbox`)."""

    def read_questions(self, control: Mapping[str, str], now: float, /) -> None:
        """Answer what is new there, at this time (s)."""

    def replies(self) -> dict[str, str]:
        """Return id -> answer, of all that were made since the last call."""

    def fields_to_remove(self) -> Sequence[str]:
        """Return the fields of the control hash to be removed, since the last call."""

    def refused(self) -> Sequence[Fields]:
        """Return what was no question since the last call, as dead letters."""


class InboxCheck:
    """Sorts for `agent`. `judge` knows what only the adapters can; `longest_url` is in characters; `shards` are the
    hosts that are cut. `set_aside`: so many dead letters there were so far; `seeds` takes those from outside,
    where it is open."""

    def __init__(
        self,
        agent: Agent,
        judge: Judge,
        longest_url: int,
        queries: Queries,
        shards: HostShards,
        seeds: SeedInbox,
    ) -> None:
        self._queries = queries
        self._shards = shards
        self.seeds = seeds
        self._agent = agent
        self._judge = judge
        self._longest_url = longest_url
        self._dead: list[Fields] = []
        self._held: list[tuple[str, RawFields, str]] = []  # sender, letter, why it is none of this run
        self._said: Counter[str] = Counter()
        self.set_aside = 0

    def dead_letters(self) -> list[Fields]:
        """Those since the last call."""
        dead, self._dead = self._dead, []
        return dead

    def add_dead_letters(self, letters: Iterable[Fields]) -> None:
        """These are dead letters."""
        before = len(self._dead)
        self._dead += letters
        self.set_aside += len(self._dead) - before

    def answer_queries(self, control: Fields, now: float) -> None:
        """Answer what people ask in the control hash, at this time (s); what is no query is a dead letter."""
        self._queries.read_questions(control, now)
        self.add_dead_letters(self._queries.refused())

    def fields_to_remove(self) -> Sequence[str]:
        """Fields of the control hash to be removed, since the last call."""
        return self._queries.fields_to_remove()

    def replies(self) -> dict[str, str]:
        """Answers to queries that were made since the last call: id -> JSON."""
        return self._queries.replies()

    def receive(self, raw: RawFields, run: str, rivals: bool = False) -> bool:
        """This entry was read, in this run. False where it holds a letter of another one. `rivals`: others may have
        named the run meanwhile; letters of those who are there are sent again under the name that stays."""
        if b"oversized" in raw:
            self._refuse(raw, "too large")
            return True
        judged = [self._receive(letter, run, rivals) for letter in opened(raw)]
        return all(judged)

    def _receive(self, raw: RawFields, run: str, rivals: bool) -> bool:
        try:
            fields = {name.decode(): value.decode() for name, value in raw.items()}
        except UnicodeDecodeError:
            self._refuse(raw, "not UTF-8 text")
            return True
        try:
            letter = decode(fields, self._agent.me, MOST_RECORDS, self._longest_url)
        except Malformed as error:
            self._refuse(raw, str(error), None if isinstance(error, OtherVersion) else fields)
            return True
        named = fields.get(RUN, "")
        there = letter.sender in self._agent.view.members
        if named != run and named and rivals and (there or len(self._held) < MOST_HELD):
            if not there:
                self._held.append((letter.sender, raw, _of_another(named, run)))
            return False
        if strange := self._strange(letter):
            self._refuse(raw, f"{strange[:100]!r} is no host, or no shard of one", fields)
            return True
        letter, refused = sift(letter, self._judge)
        if refused:
            self._leave_out(letter.sender, refused)
        if named == run:
            self._agent.inbound.receive(letter)
            return True
        if not refused or any(any(delta[1:]) for delta in letter.deltas):  # else nothing of it is left to be refused
            self._refuse(raw, _of_another(named, run))
        return False

    def _strange(self, letter: Received) -> str:
        """A name in this letter that is no host's and no shard's; empty where there is none."""
        holds = self._shards.holds
        for delta in letter.deltas:
            if not holds(delta.host):
                return delta.host
        return ""

    def settle(self) -> None:
        """All who have named the run are known by now: held letters of others are dead."""
        held, self._held = self._held, []
        for sender, raw, reason in held:
            if sender not in self._agent.view.members:
                self._refuse(raw, reason)

    def _leave_out(self, sender: str, refused: list[Refused]) -> None:
        """Entries of a letter that this agent cannot take."""
        for _, entry, reason in refused:
            text = f"{entry.url} {entry.request}".rstrip()
            letter = {"reason": reason[:HEAD], "from": sender, "size": str(len(text)), "head": text[:HEAD]}
            self.add_dead_letters((letter,))
        reasons = Counter(one.reason[:HEAD] for one in refused).most_common()
        said = [f"{number} for {reason!r}" for reason, number in reasons[:MOST_REASONS]]
        if (rest := len(refused) - sum(number for _, number in reasons[:MOST_REASONS])) > 0:
            said.append(f"{rest} for other reasons")
        self._say(
            "%d requests in a letter from %s were set aside, such as %s: %s; see the dead letters.",
            len(refused),
            sender,
            repr(refused[0].entry.url[:HEAD]),
            ", ".join(said),
        )

    def _say(self, text: str, *arguments: object) -> None:
        """Warn, unless this was said often enough."""
        self._said[text] += 1
        if self._said[text] <= MOST_SAID:
            logger.warning(text, *arguments)
        if self._said[text] == MOST_SAID:
            logger.warning("More of this kind is not said any more, only counted (ubi/dead_letters).")

    def _refuse(self, raw: RawFields, reason: str, fields: dict[str, str] | None = None) -> None:
        """Set a letter aside; and answer it where its `fields` are given, and it is one at all."""
        size = raw.get(b"oversized") or str(sum(len(name) + len(value) for name, value in raw.items())).encode()
        head = (
            raw.get(b"head") or raw.get(b"body") or b" ".join(name + b"=" + value[:HEAD] for name, value in raw.items())
        )
        sender = raw.get(b"from", b"?")[:64].decode("utf-8", "replace")
        letter = {"reason": reason[:HEAD], "from": sender, "size": size.decode("ascii", "replace")}
        self.add_dead_letters(({**letter, "head": head[:HEAD].decode("utf-8", "replace")},))
        self._say("A letter from %r in the own inbox was set aside (%s); see the dead letters.", sender, reason[:HEAD])
        if fields is not None:
            try:
                header = decode_header(fields, self._agent.me)
            except Malformed:
                return
            self._agent.inbound.refuse_whole(header.sender, header.lane, header.seq)


def _of_another(named: str, run: str) -> str:
    return f"of the run {named[:40]!r}, and this agent is in {run!r}" if named else "of no run"
