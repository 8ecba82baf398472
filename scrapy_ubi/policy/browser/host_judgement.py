"""Whether the pages of a host go to a browser, by what was seen of a few of them: a note of the host.

Rules of this module:

* The first pages of a host are looked at both ways. Two that say the same decide, so three are enough.
* A decision holds for a week; then the next pages are looked at again, as sites change.
* The note is data from outside, as it travels with the host: what does not hold counts as not there, and a time of a
  clock that was ahead as now.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from scrapy_ubi.ground.clock import no_later
from scrapy_ubi.ground.untrusted.checks import is_number, is_whole

SECTION = "browser"  # of a host's notes
ENOUGH = 2  # pages that say the same
HOLDS = 7 * 86_400.0  # s

Decision = Literal["", "browser", "plain"]


class HostJudgement(NamedTuple):
    """How many pages of a host scripts have `made`, how many came `whole`, and when (unix s) it was last judged."""

    made: int = 0
    whole: int = 0
    when: float = 0.0

    @property
    def decision(self) -> Decision:
        """What that decides; '' where it is open."""
        if self.made >= ENOUGH:
            return "browser"
        return "plain" if self.whole >= ENOUGH else ""

    def with_page(self, made: bool, now: float) -> HostJudgement:
        """The judgement with one page more."""
        return HostJudgement(self.made + made, self.whole + (not made), round(now))

    def to_note(self) -> list[float]:
        """As the value of a section."""
        return [self.made, self.whole, self.when]


def read_judgement(note: object, now: float) -> HostJudgement:
    """Read what is noted of a host, as far as it holds at this unix time (s)."""
    if not isinstance(note, list) or len(note) != 3:
        return HostJudgement()
    made, whole, when = note
    if not (is_whole(made, 0, ENOUGH) and is_whole(whole, 0, ENOUGH) and is_number(when, 1e12)):
        return HostJudgement()
    since = now - no_later(float(when), now, 0.0)
    return HostJudgement(made, whole, float(when)) if 0 <= since < HOLDS else HostJudgement()


def shown_judgement(note: object, now: float) -> str:
    """What people see of the note: `browser`, `no browser`, `browser 1/2` (one page of two) while it is open; empty for
    none."""
    judged = read_judgement(note, now)
    looked = judged.made + judged.whole
    if not looked:
        return ""
    return {"browser": "browser", "plain": "no browser", "": f"browser {judged.made}/{looked}"}[judged.decision]
