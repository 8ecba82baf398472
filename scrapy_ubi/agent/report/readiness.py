"""Whether an agent is ready: whether another one may be taken away now, as a rolling restart does.

Rules of this module:

* It only reads. Who is asked is the agent that was restarted last; so what it says covers all others: a view is
  complete for it only when everybody alive has settled in that view, and holds up no host
  (docs/explanation/protocol.md).
* Then every host has its owner and all copies that so many agents can keep, and what is found from now on is
  acknowledged by owner and successors. One more agent may leave, or be lost, and nothing is lost with it.
* An agent whose mail or disk waits is not ready: what no other agent has heard of has no second copy.
"""

from __future__ import annotations

from scrapy_ubi.agent.report.status import Status

READY = ("crawling", "waiting", "paused")
_WHY = {
    "joining": "it is joining the group",
    "fenced": "its lease has ended: Redis does not answer, or the agent was paused",
    "blocked": "Redis or the disk is full",
    "leaving": "it leaves",
    "left": "it has left",
    "finished": "the crawl is over",
}


def why_not_ready(status: Status, redis_up: bool = True) -> str:
    """Why this agent is not ready, as a part of a sentence; empty when it is. `redis_up`: its last exchange was
    answered."""
    agent, state = status.agent, status.state
    if agent.usurped:
        return "another process lives under its name"
    if state not in READY:
        return _WHY.get(state, state)
    if not redis_up or not status.holds_lease:
        return "Redis does not answer"
    if not agent.group.sure:
        return "it is not sure yet which agents there are"
    if not agent.self_status.settled:
        return "it has not handed over all copies"
    if not is_complete(status):
        return f"not all of the {len(agent.view.members)} agents have settled in one view"
    return ""


def is_complete(status: Status) -> bool:
    """Whether the view that the agent believes in is complete for it."""
    return status.agent.view_history.complete is status.agent.view
