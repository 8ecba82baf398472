"""What one agent tells the others beside the crawl, and hears from them: all its talks (`talk.py`).

What is told leaves with the answers of a drain, and is heard where answers are read. The protocol itself knows two
kinds, rates and lost mail; others are added by those whose matter they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from scrapy_ubi.protocol.keepers import Keepers
from scrapy_ubi.protocol.lost_mail import LostMail
from scrapy_ubi.protocol.rates import GroupRates, NoGroupRates
from scrapy_ubi.protocol.talk import Talk
from scrapy_ubi.protocol.work import Work


class Talks(list[Talk]):
    """The talks of one agent. `rates` are those that the group keeps, if any (`keep_rates`); `repeat` sends again what
    is under way to some agents."""

    def __init__(self, keeping: Keepers, work: Work, repeat: Callable[[Collection[str]], None]) -> None:
        super().__init__()
        self.rates = NoGroupRates()
        self._keeping = keeping
        self._work = work
        self._repeat = repeat

    @property
    def is_open(self) -> bool:
        """Whether some may come that are to be read."""
        return any(talk.is_open for talk in self)

    def messages(self, now: float) -> dict[tuple[str, str], str]:
        """What to tell at this time (s): (receiver, name) -> text."""
        return {to: text for talk in self for to, text in talk.messages(now).items()}

    def hear(self, lane: str, text: str, now: float) -> bool:
        """Take in a text of that name; False where it is of none of these talks."""
        return any(talk.hear(lane, text, now) for talk in self)

    def keep_rates(self, rates: Mapping[str, tuple[int, float]]) -> GroupRates:
        """Have this agent keep these rates with the others: name -> loads, and seconds of the window."""
        keeping, group = self._keeping, self._keeping.group

        def lender(name: str) -> tuple[str, str]:
            owner = keeping.owner(name)
            return owner, keeping.view.incarnation(owner)

        def may_lend(name: str, now: float) -> bool:
            return (
                lender(name) == (keeping.me, group.incarnation)
                and self._work.may_act(now)
                and not keeping.view_history.is_overdue(name, group.alive)
            )

        self.rates = kept = GroupRates(
            keeping.me,
            rates,
            keeping.config.lease_timeout,
            keeping.config.failure_timeout,
            lambda: group.incarnation,
            lender,
            may_lend,
            lambda: keeping.view.members.keys() <= {keeping.me},
        )
        self.append(kept)
        return kept

    def keep_mail_slot(self) -> LostMail:
        """Have this agent tell others when its mail slot has lost something, and hear of theirs."""
        keeping = self._keeping
        lost = LostMail(
            keeping.me,
            lambda: keeping.group.incarnation,
            lambda: keeping.view.members,
            self._repeat,
            keeping.outbox.forgotten.append,
        )
        self.append(lost)
        return lost
