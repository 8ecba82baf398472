"""The documented path of `TooLong`: what an errback is given for a page that was cut or refused for its size."""

from __future__ import annotations

from scrapy_ubi.requests.page_outcome import TooLong

__all__ = ["TooLong"]
