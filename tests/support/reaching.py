"""A `Reach` for tests of what asks one: names lead where `addresses` says, anything else to a public address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scrapy.settings import Settings

from scrapy_ubi.adapter.downloads.reach import Reach
from scrapy_ubi.adapter.process.log_once import Notices
from scrapy_ubi.settings import UbiSettings


def reach(
    settings: UbiSettings | None = None,
    addresses: Mapping[str, str] | None = None,
    count: Callable[[str], Any] = lambda name: None,
) -> Reach:
    async def resolve(host: str) -> list[str]:
        return [(addresses or {}).get(host, "93.184.216.34")]

    return Reach(settings or UbiSettings(), Settings(), resolve, Notices(), count)
