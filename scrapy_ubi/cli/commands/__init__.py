"""Commands that `scrapy` gains with this package: `scrapy ubi ...`, found by the `scrapy.commands` entry point."""

from __future__ import annotations
