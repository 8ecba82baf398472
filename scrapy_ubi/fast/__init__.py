"""What Scrapy does for a page, with less ado (UBI_LEAN): the same calls, in the same order, for less processor time.

* `placing`: which of the parts have their place in a crawl's settings.
* `onetask`: a scheduled request is one task of the event loop (the way itself: `scrapy_private.leanpath`).
* `signals`: what a receiver takes is looked up once, and a task is started only for one that waits.
* `stats`: counted without a look at the name of every attribute.
* `garbage`, `unwritten`, `noproxy`, `turns`: garbage is looked for less often, records of the log that nobody writes
  are not made, `no_proxy` is asked once for a host, turns on a shared processor are longer. These are changes of the
  process (`processwide`).

Rules: only what has been measured to pay is here (docs/how-to/fast.md has the figures); spiders, middlewares,
extensions and pipelines notice nothing of it; what the user has chosen stays.
"""

from __future__ import annotations
