"""A transport whose entries are signed (`UBI_SECRET`): around another one, in which everyone with access may write.

Rules of this module:

* What leaves is signed, what comes is checked, in both directions by `signer`. The protocol sees texts and letters as
  if nothing was signed, and nothing at all of what does not hold: that is a dead letter, with the reason.
* Signed are letters, acknowledgements, beats, profiles, the control hash and seeds. Answers to people and to seeds,
  dead letters and the token of the beats (`MEMORY`) are not: nothing is fetched or decided on these.
* A letter is good once, in one inbox, for one process of the receiver: it names the incarnation that the receiver's
  beat says, the process that sends it, and a number. A seed is good once: it has a token.
* Signing is repeatable: the same text has the same signature, so that `claim`, `forget` and `clear` can compare.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from scrapy_ubi.protocol.beat import LEFT, Beat
from scrapy_ubi.transport.claimed_items import signed_claims
from scrapy_ubi.transport.contract import (
    HEAD,
    MEMORY,
    MOST_SEED_URL,
    NO_FIELDS,
    SUMMED_UP,
    WATCHED,
    Fields,
    Incoming,
    Line,
    Outgoing,
    RawFields,
    SeedAnswer,
    Transport,
    TransportError,
    TransportFull,
    always,
)
from scrapy_ubi.transport.redis_keys import ASK
from scrapy_ubi.transport.replay_window import Gone, ReplayWindows, UsedOnce
from scrapy_ubi.transport.signer import RUN_FREE, SIGNED, Signer, bare, without_signature
from scrapy_ubi.transport.wire_text import size_of, writer

logger = logging.getLogger("scrapy_ubi")

SEVERAL = 2.5  # heartbeat intervals, within which a beat comes from each agent that lives
USED = 100_000  # tokens of seeds, and names of questions, that are remembered
MOST_KNOWN = 20_000  # other agents that are remembered: a crawl of months may see more than a group has
MOST_REFUSED = 1000  # texts of hashes that are remembered as refused
MOST_SAID = 20  # warnings

UNSIGNED = "it is not signed, and UBI_SECRET is set"
WRONG = "its signature does not hold"
REPLAYED = "replayed: it has come before"
FORMER = "it was signed for an earlier process of this agent"
STRANGER = (
    "UBI_SECRET: agent {agent} lives in crawl {crawl} and signs with another secret, or does not sign: all agents of a "
    "crawl must have the same one, so set it alike, or choose another UBI_CRAWL."
)


class SignedTransport:
    """`inner`, signed, for this agent. `interval` is that of its beats (s)."""

    def __init__(self, inner: Transport, signer: Signer, agent: str, crawl: str, interval: float) -> None:
        self._inner = inner
        self._signer = signer
        self._agent = agent
        self._crawl = crawl
        self._interval = interval
        self._stream = secrets.token_hex(4)  # names this process's letters
        self._numbers: Counter[str] = Counter()  # letters signed, by receiver
        self._incarnations: dict[str, str] = {}  # of the others, by their last beats
        self._own = ""  # this agent's
        self._run = ""  # as the control hash said last
        self._raw_control: Fields = {}  # all that it said last, with signatures
        self._said_control: Fields = {}  # and what of it held
        self._windows = ReplayWindows()
        self._seeds, self._seed_tokens = UsedOnce(USED), dict[str, str]()  # the second: of those in hand, by id
        self._questions = Gone(USED)
        self._strange: dict[str, str] = {}  # agent -> its line, where that does not hold
        self._refused: dict[tuple[str, str], str] = {}  # key and field -> text that was refused
        self._strange_sum: str | None = None  # the sum of profiles, where it does not hold
        self._turn, self._said = asyncio.Lock(), 0
        self._dead: list[Fields] = []
        self._consumed: list[str] = []  # refused letters
        self._answers: list[SeedAnswer] = []  # to refused seeds
        self._counts: Counter[str] = Counter()

    @property
    def counts(self) -> Counter[str]:
        """See the contract; and `unsigned`, `replayed`: what was refused."""
        return self._inner.counts + self._counts

    @property
    def takes_seeds(self) -> bool:
        """See the contract."""
        return self._inner.takes_seeds

    @property
    def line(self) -> Line:
        """See the contract."""
        return self._inner.line

    async def open(self) -> None:
        """As the contract; raises TransportError where an agent lives that has another secret."""
        await self._inner.open()
        before = self._strangers(await self._inner.beats())
        if not before:
            return
        await asyncio.sleep(SEVERAL * self._interval)
        after = self._strangers(await self._inner.beats())
        for agent, line in after.items():
            if agent in before and before[agent] != line:
                await self._inner.close()
                raise TransportError(STRANGER.format(agent=agent, crawl=self._crawl))

    def _strangers(self, lines: Mapping[str, str]) -> dict[str, str]:
        """Lines that do not hold, of agents that have not left."""
        odd = {name: line for name, line in lines.items() if not self._signer.checked("beat", name, name, line)}
        beats = {agent: Beat.parse(bare(line)) for agent, line in odd.items()}
        return {agent: odd[agent] for agent, beat in beats.items() if beat is not None and LEFT not in beat.flags}

    def now(self) -> float:
        """See the contract."""
        return self._inner.now()

    async def close(self) -> None:
        """See the contract."""
        await self._inner.close()

    # -- beats -------------------------------------------------------------------------------------------------------

    def _line(self, agent: str, line: str) -> str:
        return self._signer.text("beat", agent, agent, line)

    def _heard(self, lines: Mapping[str, str]) -> dict[str, str]:
        """The lines that hold. Who is who by now is noted."""
        held: dict[str, str] = {}
        strange: dict[str, str] = {}
        for agent, line in lines.items():
            text = line if agent in (MEMORY, WATCHED) else self._signer.checked("beat", agent, agent, line)
            if text is None:
                strange[agent] = line
            else:
                held[agent] = text
        self._strange = strange
        now = {agent: _incarnation(line) for agent, line in held.items() if agent not in (MEMORY, WATCHED)}
        # Those that are not heard are kept, while they are not too many: Redis may have forgotten the beats.
        self._incarnations = now if len(self._incarnations) > MOST_KNOWN else self._incarnations | now
        return held

    async def beats(self) -> dict[str, str]:
        """See the contract; those that hold."""
        return self._heard(await self._inner.beats())

    async def profiles(self) -> dict[str, str]:
        """See the contract; those that hold."""
        profiles = await self._inner.profiles()
        checked = {name: self._signer.checked("profile", name, name, text) for name, text in profiles.items()}
        self._strange_sum = profiles.get(SUMMED_UP) if checked.get(SUMMED_UP) is None else None
        return {name: text for name, text in checked.items() if text is not None}

    async def former_profiles(self) -> dict[str, str]:
        """See the contract. No former version has signed."""
        return await self._inner.former_profiles()

    async def tell_former(self, fields: Fields) -> None:
        """See the contract."""
        await self._inner.tell_former(fields)

    async def claim(self, agent: str, expected: str | None, line: str) -> bool:
        """See the contract. A line that does not hold counts as none, and is written over."""
        there = self._strange.get(agent) if expected is None else self._line(agent, expected)
        if agent == self._agent:
            self._own = _incarnation(line)
        return await self._inner.claim(agent, there, self._line(agent, line))

    async def forget(self, gone: Fields) -> None:
        """See the contract."""
        await self._inner.forget({agent: self._line(agent, line) for agent, line in gone.items()})

    async def sum_up(self, gone: Fields, before: str | None, after: str) -> bool:
        """See the contract. A sum that does not hold counts as none, and is written over."""
        there = self._strange_sum if before is None else self._profile(SUMMED_UP, before)
        signed = {agent: self._profile(agent, text) for agent, text in {**gone, SUMMED_UP: after}.items()}
        return await self._inner.sum_up(signed, there, signed.pop(SUMMED_UP))

    async def claim_items(self, claims: Mapping[str, tuple[str | None, str]]) -> dict[str, str]:
        """See the contract. What is said without a signature that holds counts as nothing, and is written over."""
        return await signed_claims(self._inner, self._signer, claims, partial(self._texts, "start", whose=str))

    def _profile(self, agent: str, text: str) -> str:
        return self._signer.text("profile", agent, agent, text)

    async def prepare_beats(self) -> None:
        """See the contract."""
        await self._inner.prepare_beats()

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
        """See the contract. `line` and its signing run in the beating thread."""

        def signed(counter: int) -> str:
            text = line(counter)
            self._own = _incarnation(text)
            return self._line(agent, text)

        def read(sent: float, received: float, beats: dict[str, str]) -> None:
            on_read(sent, received, self._heard(beats))

        self._inner.start_beating(agent, interval, signed, on_ack, read, clock, stalled, apart)

    def beat_now(self) -> None:
        """See the contract."""
        self._inner.beat_now()

    async def stop_beating(self, last_line: str | None) -> None:
        """See the contract."""
        await self._inner.stop_beating(None if last_line is None else self._line(self._agent, last_line))

    async def clear(self, finished: str | None = None, control: Fields = NO_FIELDS) -> bool:
        """See the contract."""
        text = None if finished is None else self._signer.text("control", "", "finished", finished)
        return await self._inner.clear(text, self._signer.control("", control))

    # -- mail --------------------------------------------------------------------------------------------------------

    async def empty_inbox(self) -> int:
        """See the contract."""
        return await self._inner.empty_inbox()

    async def exchange(self, out: Outgoing) -> Incoming:
        """See the contract. What was refused is in `Incoming.refused`."""
        async with self._turn:
            answers, self._answers = self._answers, []
            signed = self._signed(out, answers)
            self._consumed = []  # the transport inside remembers them
            try:
                incoming = await self._inner.exchange(signed)
            except TransportFull as error:
                raise TransportFull(str(error), self._checked(error.incoming)) from error
            except TransportError:
                self._answers = answers
                raise
            self._settle_seeds(out)
            return self._checked(incoming)

    def _signed(self, out: Outgoing, answers: Sequence[SeedAnswer]) -> Outgoing:
        signer, me = self._signer, self._agent
        run = out.control.get("run", self._run)
        return replace(
            out,
            letters=[(receiver, self._letter(receiver, fields)) for receiver, fields in out.letters],
            acks={(to, lane): signer.text("ack", to, lane, text) for (to, lane), text in out.acks.items()},
            consumed=[*out.consumed, *self._consumed],
            profile=None if out.profile is None else self._profile(me, out.profile),
            control=signer.control(run, out.control),
            control_changes=self._changes(run, out.control_changes),
            seeds_answered=[*out.seeds_answered, *answers],
            end=None if out.end is None else out.end._replace(control=signer.control(run, out.end.control)),
        )

    def _changes(self, run: str, changes: Mapping[str, tuple[str | None, str]]) -> dict[str, tuple[str | None, str]]:
        """Changes of the control hash, where it said what is expected when it was read last: a text without a signature
        that holds is nothing, and is written over."""
        signed = self._signer.control(run, {name: after for name, (_, after) in changes.items()})
        return {
            name: (self._raw_control.get(name), signed[name])
            for name, (before, _) in changes.items()
            if self._said_control.get(name) == before
        }

    def _letter(self, receiver: str, fields: Fields) -> Fields:
        if len(self._numbers) > MOST_KNOWN:  # they begin from 1 again, in another stream
            self._numbers.clear()
            self._stream = secrets.token_hex(4)
        self._numbers[receiver] += 1
        own = self._own if receiver == self._agent else self._incarnations.get(receiver, "")
        bound = f"{self._stream}.{self._numbers[receiver]}.{own}"
        return self._signer.entry("letter", receiver, bound, fields)

    def _checked(self, incoming: Incoming) -> Incoming:
        """What of it holds."""
        letters = [(number, good) for number, raw in incoming.letters if (good := self._opened(number, raw))]
        seeds = [(number, good) for number, raw in incoming.seeds if (good := self._seed(number, raw))]
        acks = self._texts("ack", incoming.acks, lambda lane: self._agent)
        control = None if incoming.control is None else self._control(incoming.control)
        dead, self._dead = self._dead, []
        return replace(incoming, letters=letters, acks=acks, control=control, seeds=seeds, refused=dead)

    def _opened(self, number: str, raw: RawFields) -> RawFields | None:
        """A letter without its signature; None where it is refused."""
        if b"oversized" in raw and raw.keys() <= {b"oversized", b"head", b"from"}:
            return raw  # it was never read whole, and becomes a dead letter
        why = self._why_not(raw)
        if not why:
            return without_signature(raw)
        self._consumed.append(number)
        self._refuse(raw, why, raw.get(b"from", b"?")[:64].decode("utf-8", "replace"), quiet=why == FORMER)
        return None

    def _why_not(self, raw: RawFields) -> str:
        """Why a letter is refused; "" where it holds."""
        bound = self._signer.bound("letter", self._agent, raw)
        if bound is None or len(bound) != 3:
            return WRONG if SIGNED.encode() in raw else UNSIGNED
        stream, number, receiver = bound
        if self._own and receiver != self._own:
            return FORMER
        sender = raw.get(b"from", b"").decode("utf-8", "replace")
        return "" if self._windows.is_new(f"{sender} {stream}", int(number)) else REPLAYED

    # -- seeds -------------------------------------------------------------------------------------------------------

    def _seed(self, number: str, raw: RawFields) -> RawFields | None:
        """A seed without its signature; None where it is refused."""
        if b"oversized" in raw and raw.keys() <= {b"oversized", b"head"}:
            return raw
        bound = self._signer.bound("seed", "", raw)
        if bound is None or len(bound) != 1:
            why = WRONG if SIGNED.encode() in raw else UNSIGNED
        elif self._seeds.use_token(bound[0], number):
            self._seed_tokens[number] = bound[0]
            return without_signature(raw)
        else:
            why = REPLAYED
        name = raw.get(b"id", b"")[:200].decode("utf-8", "replace")
        url = raw.get(b"url", b"")[:MOST_SEED_URL].decode("utf-8", "replace")
        self._answers.append(SeedAnswer(number, "REFUSED", why, name, url))
        self._refuse(raw, why, "seeds")
        return None

    def _settle_seeds(self, out: Outgoing) -> None:
        """An exchange has succeeded: who was handed a seed uses its token."""
        for answer in out.seeds_answered:
            self._seed_tokens.pop(answer.number, None)
        for number, _ in out.seeds_for:
            if (token := self._seed_tokens.pop(number, None)) is not None:
                self._seeds.give_back(token)

    # -- hashes ------------------------------------------------------------------------------------------------------

    def _control(self, raw: Fields) -> dict[str, str]:
        """The control hash, of which most holds in the present run only."""
        free = {name: text for name, text in raw.items() if name in RUN_FREE}
        good = self._texts("control", free, lambda name: "")
        self._run = good.get("run", "")
        bound = {name: text for name, text in raw.items() if name not in RUN_FREE}
        good |= self._texts("control", bound, lambda name: self._run)
        asked = {name for name in good if name.startswith(ASK)}
        for name in self._questions.come_again(asked):
            self._refuse({name.encode(): good.pop(name).encode()}, REPLAYED, "control", quiet=True)
        self._raw_control = raw
        self._said_control = good
        return good

    def _texts(self, kind: str, raw: Fields, whose: Callable[[str], str]) -> dict[str, str]:
        """The texts of a hash that hold; the others are dead letters, each once."""
        good: dict[str, str] = {}
        for name, text in raw.items():
            checked = self._signer.checked(kind, whose(name), name, text)
            if checked is not None:
                good[name] = checked
            elif self._refused.get((kind, name)) != text:
                if len(self._refused) >= MOST_REFUSED:
                    self._refused.clear()
                self._refused[kind, name] = text
                why = UNSIGNED if bare(text) == text else WRONG
                self._refuse({name.encode(errors="replace"): text.encode(errors="replace")}, why, kind)
        return good

    def _refuse(self, raw: RawFields, why: str, sender: str, quiet: bool = False) -> None:
        """A dead letter of it."""
        self._counts["replayed" if why == REPLAYED else "unsigned"] += 1
        head = raw.get(b"body") or b" ".join(name + b"=" + value[:HEAD] for name, value in raw.items())
        text = head[:HEAD].decode("utf-8", "replace")
        self._dead.append({"reason": why, "from": sender, "size": str(size_of(raw)), "head": text})
        self._said += not quiet
        if not quiet and self._said <= MOST_SAID:
            more = "" if self._said < MOST_SAID else " More of this kind is only counted (ubi/dead_letters)."
            logger.warning("Something from %r was set aside: %s; see the dead letters.%s", sender, why, more)


def _incarnation(line: str) -> str:
    return writer(line.encode()).decode("utf-8", "replace")
