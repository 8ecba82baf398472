"""An agent: what turns the protocol, a frontier and a transport into a running agent. asyncio, no Scrapy.

`node.Node` is what the Scrapy adapters talk to; `builder.build_node` puts it together; `start` is what it is given and
what it tells. Each of these rooms may import those below it:

* `report`: how the agent stands, its timeline, answers to people's queries. It reads all others.
* `group`: joining and leaving, heartbeats, the passing of time, agents that are dead or lost.
* `mail`: one exchange with Redis (`exchange`), when there is one (`exchange_loop`, `timing`), in which thread; seeds.
* `work`: which request is next, its visit and its permit, what a page has given, waking the engine.
* `hosts`: what is noted of them, their limits and those of the crawl, politeness by address, learned forms.
* `crawl`: the agent, its frontier and its counts, on its disk; why it cannot go on.
* `profile`: what an agent counts, and says of itself, as values. `steering`: what people change while it runs.

A command that only reads what agents say needs `profile` and little more: so the names below are imported when they are
asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy_ubi.agent.builder import build_node
    from scrapy_ubi.agent.node import Node
    from scrapy_ubi.agent.start import NodeEvents, Start
    from scrapy_ubi.agent.work.visits import Visit

__all__ = ["Node", "NodeEvents", "Start", "Visit", "build_node"]

_PLACES = {"Node": "node", "NodeEvents": "start", "Start": "start", "Visit": "work.visits", "build_node": "builder"}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = value  # the next use finds it without this call
    return value
