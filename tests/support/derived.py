"""Values that agents derive from their settings, as a test gives them: smaller than any setting makes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from scrapy_ubi.settings import UbiSettings


@contextmanager
def derived(**given: Any) -> Iterator[None]:
    """Let the settings that are read meanwhile, in this process, have these values."""
    read = UbiSettings.from_scrapy

    def from_scrapy(*arguments: Any, **named: Any) -> UbiSettings:
        return replace(read(*arguments, **named), **given)

    with mock.patch.object(UbiSettings, "from_scrapy", from_scrapy):
        yield
