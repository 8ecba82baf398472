"""What Prometheus is told of agents: a table of metrics, their values as text, and where one agent answers.

Rules of this room:

* Nothing is counted for a page here but the histogram of loads; everything else is read when somebody asks.
* A label has few values, all of them ours: never a host, never a URL.
* It is imported where `UBI_METRICS` is set, or by a command that shows a crawl; else no agent pays for it.
"""

from __future__ import annotations
