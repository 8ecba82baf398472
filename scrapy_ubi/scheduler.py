"""The documented path of the scheduler: `SCHEDULER = "scrapy_ubi.scheduler.UbiScheduler"`, which the add-on sets."""

from __future__ import annotations

from scrapy_ubi.components.scheduler import UbiScheduler

__all__ = ["UbiScheduler"]
