"""The end of a run, as the control hash has it: which run is over, since when, and whether agents had been lost.

`finished` names the run, who saw its end first, and `lossy` where agents had been lost with what they knew;
`finished_at` is when, by the clock of the transport; `past` names the runs before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

CLOCKS = 1.0  # s by which two agents may differ in what time the server has
_LOSSY = " lossy"

REQUEUED = "requeued"  # what a disk says of the crawl where requests were queued again while its agent was stopped
FINISHED = (
    "The crawl of this name is finished: nothing is fetched (UBI_AGAIN = 'never'). scrapy ubi reset forgets it, and "
    "the next start begins a new one."
)
LOST = (
    "The crawl of this name is finished, and agents were lost ({names}): nothing is fetched. Where the directories of "
    "those agents still exist, start them: they go on. Else `scrapy ubi reset` forgets the crawl, and the next start "
    "begins a new one."
)


def end_fields(run: str, agent: str, lossy: bool, now: float) -> dict[str, str]:
    """Return the fields that say that this run is over."""
    return {"finished": f"{run} {agent}{_LOSSY if lossy else ''}", "finished_at": f"{now:.3f}"}


def is_finished(control: Mapping[str, str]) -> bool:
    """Tell whether the control hash says that the present run is over. Word of an earlier run that comes late does
    not count.
    """
    run = control.get("run", "")
    return bool(run) and control.get("finished", "").split(" ")[0] == run


def is_lossy(control: Mapping[str, str]) -> bool:
    """Tell whether the run ended after losses."""
    return control.get("finished", "").endswith(_LOSSY)


def ended_ago(control: Mapping[str, str], now: float) -> float:
    """Return for how long (s) the run has been over; infinity where that is not known."""
    try:
        ago = now - float(control["finished_at"])
    except (KeyError, ValueError):
        return math.inf
    return ago if ago > -CLOCKS else math.inf  # nan is not, either


def is_past(control: Mapping[str, str], run: str) -> bool:
    """Tell whether that run is known to be over: what a disk still holds of it is not to be brought into another one.
    One that has ended after losses, and is the present one, goes on where a disk has more of it.
    """
    ended = is_finished(control) and control["run"] == run and not is_lossy(control)
    return bool(run) and (ended or run in control.get("past", "").split())
