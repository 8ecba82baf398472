"""Rates that a group keeps: at most so many loads of a name in any window of so many seconds (docs/decisions/0142).

Each rate has a *lender*, the agent that owns its name in the ring. It lends *shares* to those who ask, itself among
them: with a share of n an agent has at most n loads in its own last window. Rules of this module:

* No clock is shared. A share holds for `lease` seconds from the moment (the borrower's clock) at which it was asked
  for, and counts for `expiry` seconds from the moment (the lender's clock) at which the question was read, which is
  later; `expiry` is the longer one, for clocks that run at different rates.
* A load counts from its start until a window after its end, for the server has seen it somewhere in between.
* A share counts as it was lent until the borrower has said that it has seen a smaller one, or until it has expired; and
  for a window more. All that counts is never more than the rate.
* The lender lends while it alone may: the same right as that to fetch a host, without the exception of the handoff
  time-out. A lender lends nothing for an expiry and a window after it has become one: what the one before has lent has
  expired by then. It need not wait where it is the first agent of a run, and alone.
* Messages may be lost, late, repeated or out of order: each is numbered, says all there is to say, and replaces the
  one before.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

from scrapy_ubi.ground.untrusted.checks import is_whole

LANE = "rates "
"""What the names of the answers begin with that carry these messages; the sender's name follows."""

DRIFT = 1.001  # windows are so much longer: clocks of two machines differ less
RENEWALS = 8  # times that a share is asked for in a lease
HURRY = 4  # times as often where one is given back, or more is wanted than was lent
SOON, LATE = 0.25, 10.0  # s: when somebody who waits looks again, at the earliest and at the latest
MOST_WAITING = 10_000  # hosts that are known to wait for a rate
MOST_LENT = 64  # shares lent to one borrower of which it is not known whether it has seen them; then the largest counts
SLICES = 4  # x window and expiry: for so long the same agents have a share, where there are more agents than loads
MOST_NUMBER = 10**15
MOST_SENDERS = 4096  # whose last messages are remembered


class Asked(NamedTuple):
    """What a borrower says: the number of the question; the share that it could use; the one that it has, or more
    where more loads are under way; the number of the last share that it has seen of this lender."""

    number: int
    wants: int
    held: int
    seen: int


class Lent(NamedTuple):
    """What a lender says: the number of the share, that of the question, and how many loads it is of."""

    number: int
    asked: int
    most: int


class Share:
    """What one agent has of one rate, by its own clock: `loads` in `seconds` for all, `most` for itself until then."""

    def __init__(self, loads: int, seconds: float, lease: float) -> None:
        self.loads, self.seconds, self._lease = loads, seconds * DRIFT, lease
        self.most = 0
        self.until = -math.inf
        self.under_way = 0
        self._ended: deque[float] = deque()  # when loads have ended, within the last window
        self._waiting: dict[str, float] = {}  # who waits -> when it looks again
        self._asked: dict[int, tuple[float, str]] = {}  # question -> when, and of which lender's life
        self._asked_at, self._answered, self._said = -math.inf, True, Asked(0, 0, 0, 0)
        self._lender, self._seen = "", 0  # the life that has lent, and the number of that share

    def used(self, now: float) -> int:
        """How many loads count now."""
        while self._ended and self._ended[0] + self.seconds <= now:
            self._ended.popleft()
        return self.under_way + len(self._ended)

    def may_start(self, now: float) -> bool:
        """Whether one more load may start."""
        return now < self.until and self.used(now) < self.most

    def start_load(self, who: str) -> None:
        """A load starts."""
        self._waiting.pop(who, None)
        self.under_way += 1

    def end_load(self, now: float) -> None:
        """A load has ended; nothing of it reaches a server from now on."""
        self.under_way -= 1
        self._ended.append(now)

    def wait(self, who: str, now: float) -> float:
        """Let somebody wait, and say for how long (s) before it looks again; those who wait take turns."""
        self._prune_waiting(now)
        self._waiting.pop(who, None)
        ahead = len(self._waiting)
        wait = SOON
        if now < self.until and self.most:
            used = self.used(now)
            if self.under_way < self.most <= used:
                wait = self._ended[used - self.most] + self.seconds - now
            wait += ahead * self.seconds / self.most
        wait = min(max(wait, 0.001), LATE)
        if len(self._waiting) < MOST_WAITING:
            self._waiting[who] = now + wait
        return wait

    def _prune_waiting(self, now: float) -> None:
        if len(self._waiting) >= MOST_WAITING or any(now > at + LATE for at in self._waiting.values()):
            self._waiting = {who: at for who, at in self._waiting.items() if now <= at + LATE}

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def wants(self, now: float) -> int:
        """The share that would be of use: for what was loaded, and where somebody waits, for more."""
        self._prune_waiting(now)
        used = self.used(now)
        more = max(len(self._waiting), used // 2 + 1) if self._waiting else 0
        return min(self.loads, used + more)

    def held(self, now: float) -> int:
        """What counts of it at the lender, at least."""
        return max(self.under_way, self.most if now < self.until else 0)

    def is_due(self, now: float) -> bool:
        """Whether it is time to ask (again)."""
        wants, held, said = self.wants(now), self.held(now), self._said
        if not (wants or held or said.wants or said.held):
            return False
        hurry = held < said.held or (self._answered and wants > (self.most if now < self.until else 0))
        return now - self._asked_at >= self._lease / RENEWALS / (HURRY if hurry else 1)

    def ask(self, number: int, lender: str, now: float) -> Asked:
        """Ask that life of a lender, by this number."""
        self._asked = {n: said for n, said in self._asked.items() if now - said[0] < self._lease}
        self._asked[number] = now, lender
        self._asked_at, self._answered = now, False
        self._said = Asked(number, self.wants(now), self.held(now), self._seen if self._lender == lender else 0)
        return self._said

    def take(self, lender: str, lent: Lent) -> None:
        """A share has come from that life of a lender."""
        when, life = self._asked.get(lent.asked, (0.0, ""))
        if life != lender or (self._lender == lender and lent.number <= self._seen) or lent.most > self.loads:
            return
        self._lender, self._seen = lender, lent.number
        self.most, self.until = lent.most, when + self._lease
        self._answered = self._answered or lent.asked == max(self._asked)


class Borrower:
    """What a lender knows of one life of a borrower."""

    def __init__(self) -> None:
        self.asked = Asked(0, 0, 0, 0)
        self.until = -math.inf
        self.lent: deque[Lent] = deque()  # shares that it may have seen or see yet, since the one it has named
        self.last: Lent | None = None
        self._level = 0
        self._former: deque[tuple[float, int]] = deque()  # what counted before -> until when it does

    def hear(self, asked: Asked, now: float, expiry: float, window: float) -> None:
        self.settle(now, window)
        self.asked, self.until = asked, now + expiry
        while self.lent and self.lent[0].number <= asked.seen:
            self.lent.popleft()
        self._set(max((lent.most for lent in self.lent), default=0), now, window)

    def lend(self, lent: Lent, now: float, window: float) -> None:
        self.last = lent
        self.lent.append(lent)
        if len(self.lent) > MOST_LENT:
            first = self.lent.popleft()
            self.lent[0] = self.lent[0]._replace(most=max(first.most, self.lent[0].most))
        self._set(max(lent.most for lent in self.lent), now, window)

    def _set(self, lent: int, now: float, window: float) -> None:
        level = max(self.asked.held, lent)
        if level < self._level:
            self._former.append((now + window, self._level))
        self._level = level

    def settle(self, now: float, window: float) -> None:
        """It may have expired meanwhile."""
        if now >= self.until and self._level:
            self._former.append((self.until + window, self._level))
            self._level, self.asked = 0, self.asked._replace(wants=0, held=0)
            self.lent.clear()
        while self._former and self._former[0][0] <= now:
            self._former.popleft()

    def counts(self) -> int:
        """What counts of it: what it has or may have, and what it had within the last window."""
        return max([self._level, *(level for _, level in self._former)])


class Desk:
    """One rate at its lender, which lends nothing before `opens`. Borrowers are known by name and life; `numbers` are
    those of the shares of one life of the lender, whatever desks it has had."""

    def __init__(self, loads: int, seconds: float, expiry: float, opens: float, numbers: Iterator[int]) -> None:
        self.loads, self._window, self._expiry, self.opens = loads, seconds * DRIFT, expiry, opens
        self.borrowers: dict[tuple[str, str], Borrower] = {}
        self._numbers = numbers

    def hear(self, who: tuple[str, str], asked: Asked, now: float) -> None:
        """A borrower asks; a question that was overtaken by a later one says nothing."""
        borrower = self.borrowers.setdefault(who, Borrower())
        if asked.number > borrower.asked.number:
            borrower.hear(asked, now, self._expiry, self._window)

    def lend(self, now: float) -> dict[tuple[str, str], Lent]:
        """Share the rate out among those who ask, as far as it is free; what each is told."""
        for borrower in self.borrowers.values():
            borrower.settle(now, self._window)
        gone = [who for who, one in self.borrowers.items() if now >= one.until and not one.counts()]
        for who in gone:
            del self.borrowers[who]
        asking = {who: one for who, one in self.borrowers.items() if now < one.until}
        wants = {who: one.asked.wants for who, one in asking.items() if one.asked.wants} if now >= self.opens else {}
        turn = int(now // (SLICES * (self._window + self._expiry)))
        wanted = divide(self.loads, wants, turn)
        free = self.loads - sum(one.counts() for one in self.borrowers.values())
        # Late mail may say what somebody held whose share has expired, and was lent to others since: it has none now.
        excess = max(0, -free)
        told = {}
        for who, one in sorted(asking.items(), key=lambda each: (each[1].counts(), each[0])):
            counts = one.counts()
            most = min(wanted.get(who, 0), max(0, counts - excess) + max(0, free))
            free -= max(0, most - counts)
            if one.last is None or (one.last.asked, one.last.most) != (one.asked.number, most):
                one.lend(Lent(next(self._numbers), one.asked.number, most), now, self._window)
            assert one.last is not None
            told[who] = one.last
        return told


def divide(loads: int, wants: Mapping[tuple[str, str], int], turn: int = 0) -> dict[tuple[str, str], int]:
    """Divide so many among those who want some: nobody has less than it wants while another has more than that. Where
    there are more of them than loads, they take turns; what nobody wants is divided as well."""
    names = sorted(wants)
    if not names:
        return {}
    at = turn * loads % len(names) if len(names) > loads else 0
    names = names[at:] + names[:at]
    shares, left = dict.fromkeys(names, 0), loads
    hungry = names
    while left and hungry:
        each = max(1, left // len(hungry))
        for name in hungry:
            more = min(each, wants[name] - shares[name], left)
            shares[name] += more
            left -= more
        hungry = [name for name in hungry if shares[name] < wants[name]]
    for number, name in enumerate(names):
        shares[name] += left // len(names) + (number < left % len(names))
    return shares


class NoGroupRates:
    """There are no rates."""

    def view_entered(self) -> None:
        """The agent believes in another view: where another agent lends a rate in it, this one begins anew."""

    def check_lending(self, now: float) -> None:
        """See which rates this agent may lend; to be called with all that may change it."""

    def lose_all(self) -> None:
        """Others may have lent meanwhile: this agent may have lost its right, though it has it again."""


class GroupRates(NoGroupRates):
    """The rates of one agent, as borrower and lender: name -> loads, and seconds of the window.

    `lease` and `expiry` in seconds. `life` gives its own incarnation, `lender` name and incarnation of the agent that
    lends a rate, `may_lend` whether this one alone may lend it now, `alone` whether it is alone in its group. `fresh`:
    no agent was in this run before it.
    """

    def __init__(
        self,
        me: str,
        rates: Mapping[str, tuple[int, float]],
        lease: float,
        expiry: float,
        life: Callable[[], str],
        lender: Callable[[str], tuple[str, str]],
        may_lend: Callable[[str, float], bool],
        alone: Callable[[], bool],
    ) -> None:
        self.me, self._rates = me, rates
        self._expiry = expiry
        self._life, self._lender, self._may_lend, self._alone = life, lender, may_lend, alone
        self.fresh = False
        self.shares = {name: Share(loads, seconds, lease) for name, (loads, seconds) in rates.items()}
        self.desks: dict[str, Desk] = {}
        self._questions, self._numbers = count(1), count(1)
        self._asks: dict[str, tuple[str, str, Asked]] = {}  # rate -> what was asked last, and whom
        self._told: dict[str, str] = {}  # receiver -> the last message
        self._heard: dict[str, str] = {}  # sender -> the last one

    # -- loads

    def start_load(self, names: Sequence[str], who: str, now: float) -> float:
        """Start a load under all of these rates, and return 0; or, where one has no room, start none and return the
        seconds after which `who` may try again."""
        wait = self.wait(names, who, now)
        for name in names if not wait else ():
            self.shares[name].start_load(who)
        return wait

    def wait(self, names: Sequence[str], who: str, now: float) -> float:
        """How long (s) `who` is to wait before it tries to start a load under these; 0 where it may now."""
        for name in names:
            if not (share := self.shares[name]).may_start(now):
                share.wait(who, now)
                self._ask_own(name, now)
        lacking = [name for name in names if not self.shares[name].may_start(now)]
        return max([self.shares[name].wait(who, now) for name in lacking], default=0.0)

    def holds(self, names: Iterable[str], now: float) -> bool:
        """Whether a load that has started may send its request now."""
        return all(now < self.shares[name].until for name in names)

    def end_load(self, names: Iterable[str], now: float) -> None:
        """A load has ended that was started under these."""
        for name in names:
            self.shares[name].end_load(now)

    # -- time and views

    def view_entered(self) -> None:
        """The agent believes in another view: where another agent lends a rate in it, this one begins anew."""
        for name in [name for name in self.desks if self._lender(name) != (self.me, self._life())]:
            self._close(name)

    def check_lending(self, now: float) -> None:
        """See which rates this agent may lend; to be called with all that may change it."""
        self.fresh = self.fresh and self._alone()
        for name, (loads, seconds) in self._rates.items():
            if not self._may_lend(name, now):
                self._close(name)
            elif name not in self.desks:
                opens = now if self.fresh else now + self._expiry + seconds * DRIFT
                self.desks[name] = Desk(loads, seconds, self._expiry, opens, self._numbers)

    def lose_all(self) -> None:
        """Others may have lent meanwhile: this agent may have lost its right, though it has it again."""
        for name in list(self.desks):
            self._close(name)

    def _close(self, name: str) -> None:
        if self.desks.pop(name, None) is not None:
            self.fresh = False

    # -- mail

    def _ask_own(self, name: str, now: float) -> None:
        """Ask this agent itself, where it lends the rate."""
        desk = self.desks.get(name)
        if desk is None or not self._may_lend(name, now):
            return
        who = (self.me, self._life())
        desk.hear(who, self.shares[name].ask(next(self._questions), self._life(), now), now)
        self.shares[name].take(self._life(), desk.lend(now)[who])

    def messages(self, now: float) -> dict[tuple[str, str], str]:
        """What is to be told to others: (receiver, lane) -> text, of those to whom something new is to be said."""
        self.check_lending(now)
        said: dict[tuple[str, str], dict[str, Any]] = {}
        for name, share in self.shares.items():
            lender, life = self._lender(name)
            if lender == self.me:
                if share.is_due(now):
                    self._ask_own(name, now)
                continue
            if life and share.is_due(now):
                self._asks[name] = lender, life, share.ask(next(self._questions), life, now)
        for name, (lender, life, asked) in self._asks.items():
            if self._lender(name) == (lender, life):
                said.setdefault((lender, life), {}).setdefault("ask", {})[name] = asked
        for name, desk in self.desks.items():
            for (borrower, life), lent in desk.lend(now).items():
                if borrower != self.me:
                    said.setdefault((borrower, life), {}).setdefault("lend", {})[name] = lent
        texts = {
            receiver: json.dumps({"from": self._life(), "to": life, **parts}, separators=(",", ":"))
            for (receiver, life), parts in said.items()
        }
        new = {receiver: text for receiver, text in texts.items() if self._told.get(receiver) != text}
        self._told = texts
        return {(receiver, LANE + self.me): text for receiver, text in new.items()}

    @property
    def is_open(self) -> bool:
        """Whether messages may come that are to be read."""
        return bool(self._asks or self.desks)

    def hear(self, lane: str, text: str, now: float) -> bool:
        """Take in a message; False where this is none. What does not hold in it says nothing."""
        if not lane.startswith(LANE):
            return False
        sender = lane.removeprefix(LANE)
        if self._heard.get(sender) == text:
            return True
        if len(self._heard) >= MOST_SENDERS:
            self._heard.clear()
        self._heard[sender] = text
        try:
            said = json.loads(text)
        except (ValueError, RecursionError):
            return True
        if not isinstance(said, dict) or said.get("to") != self._life() or not isinstance(said.get("from"), str):
            return True
        for name, numbers in _numbers(said.get("ask"), len(Asked._fields)):
            desk = self.desks.get(name)
            if desk is not None and max(numbers[1:3]) <= desk.loads:
                desk.hear((sender, said["from"]), Asked(*numbers), now)
        for name, numbers in _numbers(said.get("lend"), len(Lent._fields)):
            if name in self.shares and self._lender(name)[0] == sender:
                self.shares[name].take(said["from"], Lent(*numbers))
        return True


def _numbers(said: object, many: int) -> Iterable[tuple[str, list[int]]]:
    """Name -> so many numbers, as far as it is that."""
    for name, numbers in said.items() if isinstance(said, dict) else ():
        if isinstance(numbers, list) and len(numbers) == many and all(is_whole(n, 0, MOST_NUMBER) for n in numbers):
            yield name, numbers
