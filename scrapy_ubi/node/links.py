"""What a node knows of a host, asked once for all links of a page to it."""

from __future__ import annotations

from collections.abc import Callable

from scrapy_ubi.protocol.agent import Agent

Holds = Callable[[int, int, int], bool]


def nothing(key: int, depth: int, priority: int) -> bool:
    """What is known of a host that nothing is known of."""
    return False


def holder(agent: Agent, host: str) -> Holds | None:
    """What tells of a key, depth and priority whether this agent knows it; None for a host of another's.

    It holds until the view changes, or the host is met that was not known: for a moment of the loop, so to say.
    `Agent.met` is the same for one link, strays and counting included.
    """
    if agent.view.members and agent.ring.owner(host) != agent.me:
        return None
    state = agent.frontier.find(host)
    return state.holds if state is not None else nothing
