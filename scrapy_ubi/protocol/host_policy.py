"""What a node lays down for hosts: its agent asks the policy, and tells it what has come from elsewhere.

Rules of this module:

* The policy is made before the agent, and does not change while the agent lives: the same URL is judged alike whether
  it was found here, came by mail, or was handed over.
* All of it is called in the middle of the protocol's work: it changes nothing of the agent but the notes of hosts, and
  when they are fetched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scrapy_ubi.protocol.host import Entry, HostState, VisitRow


def refuses_none(state: HostState | None, entry: Entry) -> bool:
    """What is refused where there are no limits."""
    return False


def _pass_turn(state: HostState, now: float) -> None: ...


def _pass_notes(state: HostState) -> None: ...


def _pass_request(state: HostState, entry: Entry) -> None: ...


def _as_it_is(row: VisitRow) -> VisitRow:
    return row


def _no_row(state: HostState, entry: Entry) -> VisitRow | None:
    return None


@dataclass(frozen=True, slots=True)
class HostPolicy:
    """`refuses(state, entry)` says of a URL of an own host, whose state may be None, that it is not taken. `on_turn`
    is told of a host whose turn it is at that time (s), and may put it off. `on_notes` is told of a host when notes of
    it come from elsewhere; `on_request` of an entry with a text that comes from elsewhere, of an own host met before,
    before it is judged. `may_take` says of a host whose turn it is whether a request of it may be handed out;
    where it says no, the frontier is told when to look again. `redone_row` gives the visit row of a page that is done
    without a fetch, for its owner, who had fetched it, has died. `visit_told` makes of a visit row that comes from
    elsewhere what is believed of it.
    """

    refuses: Callable[[HostState | None, Entry], bool] = refuses_none
    on_turn: Callable[[HostState, float], None] = _pass_turn
    on_notes: Callable[[HostState], None] = _pass_notes
    on_request: Callable[[HostState, Entry], None] = _pass_request
    may_take: Callable[[HostState], bool] | None = None
    redone_row: Callable[[HostState, Entry], VisitRow | None] = _no_row
    visit_told: Callable[[VisitRow], VisitRow] = _as_it_is


FREE = HostPolicy()  # no limits, and no interest in what comes
