"""The node: what turns the protocol, a frontier and a transport into a running agent. asyncio, no Scrapy.

`node.Node` is what the Scrapy adapters talk to; `start` is what it is given and what it tells. It makes the others, in
the order of their needs, and lets them work together:

* `crawl`, on `disk`: the agent, its frontier and its counts. `fatal`: why it cannot go on. `keys`: those of requests.
* `mail`: one exchange with Redis (`exchange`), when there is one (`exchange_loop`, `timing`), in which thread; seeds.
* `group`: joining and leaving, heartbeats, the passing of time, agents that are dead or lost.
* `hosts`: what is noted of them, their limits and those of the crawl, politeness by address, learned forms.
* `work`: which request is next, its visit and its permit, what a page has given, waking the engine.
* `report`: the profile, when it is published, and answers to people's queries.
"""

from __future__ import annotations

from scrapy_ubi.node.node import Node
from scrapy_ubi.node.start import NodeEvents, Start
from scrapy_ubi.node.work.visits import Visit

__all__ = ["Node", "NodeEvents", "Start", "Visit"]
