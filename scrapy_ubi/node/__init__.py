"""The node: what turns the protocol, a frontier and a transport into a running agent.

`node.Node` is what the Scrapy adapters talk to; `joining` brings an agent into its group, `post` carries its mail,
`permits` lets one load at a time start at a host, `profile` says in JSON what people want to know. asyncio, no
Scrapy.
"""

from __future__ import annotations

from .node import Node
from .visits import Visit

__all__ = ["Node", "Visit"]
