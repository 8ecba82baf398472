"""What the control hash says of the end of a crawl: `finished` names the run that is over, who saw it first, and
`lossy` where agents had been lost with what they knew; `finished_at` is when, by the transport's clock.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

CLOCKS = 1.0  # s by which two agents may differ in what time the server has
_LOSSY = " lossy"


def said(run: str, agent: str, lossy: bool, now: float) -> dict[str, str]:
    """The fields that say that this run is over."""
    return {"finished": f"{run} {agent}{_LOSSY if lossy else ''}", "finished_at": f"{now:.3f}"}


def is_finished(control: Mapping[str, str]) -> bool:
    """Whether the control hash says that the present run is over. Word of an earlier run that comes late does not
    count.
    """
    run = control.get("run", "")
    return bool(run) and control.get("finished", "").split(" ")[0] == run


def is_lossy(control: Mapping[str, str]) -> bool:
    """Whether the run ended after losses."""
    return control.get("finished", "").endswith(_LOSSY)


def ended_ago(control: Mapping[str, str], now: float) -> float:
    """For how long (s) the run has been over; for ever where nobody can tell."""
    try:
        ago = now - float(control["finished_at"])
    except (KeyError, ValueError):
        return math.inf
    return ago if ago > -CLOCKS else math.inf  # nan is not, either
