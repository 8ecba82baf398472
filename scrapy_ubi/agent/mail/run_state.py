"""Which run of the crawl this is, as the control hash says: its name, the end of it, and whether Redis has forgotten.

Rules of this module:

* Redis has forgotten everything when the `memory` token in the control hash is not the one seen before: an agent that
  sees it missing writes a new one, and an agent that sees another sends again what is under way. The `run` is written
  again as it was. So it is where Redis comes back as it was in a former run (restored from its file): that one's end is
  not this one's. Letters name their run: what was sent in one that is past is not for this one, and goes unsaid; what
  names one that is not known here, or none, is refused (`inbox_check`).
* Who comes to a Redis that has forgotten finds no name there, and makes one up. Who knew the name puts it back, for
  `PUT_BACK` seconds since it saw that: outputs and what is given to readers bear it, and are of one run. A name is
  known from the disk or the control hash, and for longer than `PUT_BACK`: who has made one up does not insist on it.
  Where all who knew it were gone when Redis forgot, the one that a newcomer made up stays: a disk that says another
  may be of a crawl that was reset.
* Who can write nothing new says the name and what is live again, and leaves no token: that would be news to the others,
  each time.
* Who finds another run there, to which its own is past, was away over the end of its crawl: it closes, and
  does not tell of what it holds, for the same pages are to be fetched again.
* `finished` in the control hash names the run that is over, who saw it first, and `lossy` where agents had been lost
  with what they knew; `finished_at` is when, by the clock of the transport.
* What people have said of the running crawl (`agent.steering`) is written there again where it is missing, or older.
* At the start of a crawl, and when Redis has forgotten, others may write there what this agent has written, too.
"""

from __future__ import annotations

import logging
import math
import secrets
from collections.abc import Mapping

from scrapy_ubi.agent.crawl.finished_run import end_fields, is_finished, is_lossy
from scrapy_ubi.agent.steering.runtime import RuntimeSettings
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.quiescence import Ending
from scrapy_ubi.transport import Fields, Outgoing
from scrapy_ubi.transport.contract import EndOfCrawl

logger = logging.getLogger("scrapy_ubi")

ONE_RESTART = 10.0  # s within which news that Redis has forgotten is of one restart
PUT_BACK = 10.0  # s for which the name of the run is put back, over one that was made up since
RIVALS = 2.0  # s within which two agents may each write a new memory token, or name the run

LOSSY_END = (
    "The others have ended the crawl, but more agents were lost at once than there are copies (UBI_REPLICATION): this "
    "one has work left, and goes on. What only those others know to be fetched is fetched again."
)

TAKEN_SINCE = (
    "The others have ended the crawl, and this agent has URLs from outside left that it has taken since Redis forgot: "
    "it goes on."
)


class RunState:
    """The run that `agent` takes part in. `control` is what the control hash said at the start, then what it said last;
    `run` the name of the run, which is `known` from the disk where the control hash has none. `live` hears what people
    say there."""

    def __init__(self, agent: Agent, control: Fields, known: str, live: RuntimeSettings) -> None:
        self._agent = agent
        self._live = live
        self.control = control
        # Over, since this agent looked first: it is outlived, and finds that.
        is_over = known in control.get("past", "").split()
        self.run = known if is_over else control.get("run") or known
        self._named_at = -math.inf if self.run else math.inf  # s; since when the name is known that it did not make up
        self._put_back_until = -math.inf
        self._past = control.get("past", "")
        self._memory = control.get("memory", "")
        self._wrote_memory = -RIVALS
        self.forgotten_at = -ONE_RESTART  # s; when it was last in the log that Redis has forgotten everything
        self._rivals_until = 0.0
        self._announced = False
        self._denied = False  # others have said that the crawl is over, and it is not

    def begin_exchanges(self, now: float) -> None:
        """The first exchange begins at this time (s). Who starts at the same time may write a token now, in the place
        of the one that was seen, too."""
        self._expect_rivals(now)
        if self.run and not self.control.get("run"):  # the disk knows it, and Redis does not
            self._put_back_until = now + PUT_BACK

    def _expect_rivals(self, now: float) -> None:
        self._wrote_memory = now
        self._rivals_until = now + RIVALS

    def has_rivals(self, now: float) -> bool:
        """Whether others may be writing there at this time (s) what this agent has written."""
        return now < self._rivals_until

    def lacks(self, now: float, there: float) -> dict[str, str]:
        """What the control hash lacks at this time (s; `there` by the clock of Redis): the name of this run, a token
        that is gone when Redis has forgotten, and the end."""
        lacks: dict[str, str] = {}
        if self._agent.end.outlived:
            return lacks
        if not self.control.get("run"):
            self.run = self.run or secrets.token_hex(4)
        lacks |= self._forgotten(now)
        if self._agent.end.finished and not self._announced:
            self._announced = True
            if not is_finished(self.control):
                lacks |= end_fields(self.run, self._agent.me, self._agent.lossy, there)
        elif self._denied:
            lacks["finished"] = ""
        return lacks

    def lacking_words(self) -> dict[str, tuple[str | None, str]]:
        """What the control hash lacks of what people have said of the running crawl (`Outgoing.control_changes`): what
        they say meanwhile stays."""
        return {} if self._agent.end.outlived else self._live.lacking(self.control)

    def knows_more(self, now: float) -> Outgoing:
        """What the control hash lacks at this time (s) of what was there before: all that may be written while nothing
        new may leave."""
        if self._agent.end.outlived or self._agent.end.finished or not self._is_known(now):
            return Outgoing()
        return Outgoing(control=self._lacking_name(), control_changes=self.lacking_words())

    def _lacking_name(self) -> dict[str, str]:
        """The name of the run, and those of former ones, where there is none."""
        if self.control.get("run"):
            return {}
        return {"run": self.run, "past": self._past} if self._past else {"run": self.run}

    def _forgotten(self, now: float) -> dict[str, str]:
        """What is written again where Redis has forgotten it: the name, and a token."""
        lacks = self._lacking_name()
        if not self.control.get("memory"):
            lacks["memory"] = secrets.token_hex(4)
            self._expect_rivals(now)
        return lacks

    def end(self, ending: Ending, there: float) -> EndOfCrawl:
        """What says that this run is over, at this time by the clock of Redis, if nothing has come from outside."""
        return EndOfCrawl(ending.mark, end_fields(self.run, self._agent.me, ending.lossy, there))

    def is_past(self, run: str) -> bool:
        """Whether the run of this name was over before this one began."""
        return run != self.run and run in self._past.split()

    def read_control(self, control: Fields, now: float) -> Fields:
        """Take in what the control hash says at this time (s). What of it is of this run; nothing where the agent is
        outlived by now."""
        run, past = control.get("run", ""), control.get("past", "")
        if self.run != run and self.run in past.split():
            logger.warning("The crawl ended while this agent was away, and another one of its name has begun: it ends.")
            self._agent.outlive()
            return {}
        if self.is_past(run):  # Redis has come back as it was in that run
            control = {}
        self._remember(control.get("memory", ""), now)
        if self._is_made_up(run, now):
            control = {name: text for name, text in control.items() if name != "run"}
        named = control.get("run", "") or self.run
        if named != self.run:  # another has named it: letters of this name find no receiver
            self._agent.mail_lost()
            self._named_at = now
        elif named:
            self._named_at = min(self._named_at, now)
        self.run = named
        self._past = control.get("past", "") or self._past
        self._hear_of_the_end(control)
        self._live.read_control(control)
        self.control = control
        return control

    def _is_made_up(self, run: str, now: float) -> bool:
        """Whether somebody has named the run who did not know its name, as Redis had forgotten it."""
        insists = self._is_known(now) and now < self._put_back_until and not self._agent.end.finished
        return insists and run not in ("", self.run)

    def _is_known(self, now: float) -> bool:
        """Whether the run has borne this name for long, as this agent knows."""
        return now - self._named_at > PUT_BACK

    def _remember(self, memory: str, now: float) -> None:
        rival = bool(memory) and now - self._wrote_memory < RIVALS  # another wrote one at the same time
        if self._memory and memory != self._memory and not rival:
            self._put_back_until = now + PUT_BACK
            if now - self.forgotten_at >= ONE_RESTART:  # the first token of several that agents have written meanwhile
                logger.warning("Redis has forgotten everything: sending what was under way again.")
                self.forgotten_at = now
            self._agent.mail_lost()
        self._memory = memory

    def _hear_of_the_end(self, control: Mapping[str, str]) -> None:
        self._denied = False
        if is_finished(control) and not self._agent.end.finished:
            self._agent.accept_end(is_lossy(control))
            self._denied = not self._agent.end.finished
            if self._denied:
                logger.warning(LOSSY_END if is_lossy(control) else TAKEN_SINCE)
