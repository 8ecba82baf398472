"""robots.txt: fetched once per authority when it is first met, obeyed, refreshed, and handed over with the host.

* `text`: what the lines mean (RFC 9309), written so that Protego agrees.
* `record`: what is remembered of one authority, what follows from it, and how it travels.
* `cache`: the parsers in memory.
* `load`: a transfer of robots.txt that is bounded, whatever the server sends, and its redirects.
* `components.robots_middleware`: the place in Scrapy, where its own RobotsTxtMiddleware was.
"""

from __future__ import annotations
