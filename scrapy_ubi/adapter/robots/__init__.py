"""robots.txt: fetched once per authority when it is first met, obeyed, refreshed, and handed over with the host.

* `policy.robots.text`: what the lines mean (RFC 9309), written so that Protego agrees.
* `policy.robots.record`: what is remembered of one authority, what follows from it, and how it travels.
* `cache`: the parsers in memory.
* `fetch`: a transfer of robots.txt that is bounded, whatever the server sends, and its redirects.
* `adapter.components.robots_middleware`: the place in Scrapy, where its own RobotsTxtMiddleware was.
"""

from __future__ import annotations
