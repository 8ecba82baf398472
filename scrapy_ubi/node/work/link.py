"""What a node knows of hosts, asked once for all links of a page."""

from __future__ import annotations

from collections.abc import Callable

from scrapy_ubi.protocol.agent import Agent

Holds = Callable[[int, int, int], bool]


def nothing(key: int, depth: int, priority: int) -> bool:
    """What is known of a host that nothing is known of."""
    return False


def holders(agent: Agent) -> Callable[[str], Holds]:
    """What tells of a host what tells of a key, depth and priority whether this agent knows it; of another's host,
    whether that one was told.

    It holds for a moment of the loop: until the view changes, or a host is met that was not known. `Agent.met` is the
    same for one link, strays and counting included.
    """
    me, find, keeping = agent.me, agent.frontier.find, agent.keeping
    owner, told = keeping.ring.owner if keeping.view.members else None, agent.discovery.told

    def holder(host: str) -> Holds:
        if owner is not None and owner(host) != me:
            return told
        state = find(host)
        return nothing if state is None else state.holds

    return holder
