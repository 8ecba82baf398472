"""The node: what turns the protocol, a frontier and a transport into a running agent.

`node.Node` is what the Scrapy adapters talk to; it makes the others and lets them work together:

* `crawl`, on `keeper`'s disk: the agent, its frontier and its counts. `halt`: why it cannot go on.
* `choice` of requests, their `visits`, `waking` the engine; `hosts` and what is noted of them, `limits`, `learner`,
  `addresses`; `crawllimits` and `limitwatch`. `permits` lets one load at a time start at a host.
* `arriving` (by `joining`) and `leaving`; `beats`; `exchanges` of mail, carried by `post` through `courier`; `pulse`,
  the time.
* `profile` says in JSON what people want to know, `publishing` when; `desk`, `questions` and `living` answer them.

asyncio, no Scrapy.
"""

from __future__ import annotations

from scrapy_ubi.node.node import Node
from scrapy_ubi.node.work.visits import Visit

__all__ = ["Node", "Visit"]
