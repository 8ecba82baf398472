"""What settings of iterations mean together: UBI_HOST_ITERATE, UBI_HOST_LOAD_TAKE, UBI_RANK.

Rules of this module: values are those that `settings` has read and checked, one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.settings_table.loads_at_once import MOST, Loads, LoadsByHost


def check_iterations(iterate: bool, load_seconds: float, rank: object, fingerprinter: str | None) -> None:
    """Raises UbiSettingError where one load that does not end would hold a host up, and where nothing would be ranked.
    `fingerprinter`: one that is not Scrapy's own."""
    if iterate and not load_seconds:
        raise UbiSettingError(
            "UBI_MAX_LOAD_SECONDS",
            "is 0 and UBI_HOST_ITERATE is True",
            "say how long a load may take, as one that does not end would hold up its iteration",
        )
    if rank is not None and not iterate:
        raise UbiSettingError(
            "UBI_RANK",
            "is set and UBI_HOST_ITERATE is False",
            "set UBI_HOST_ITERATE = True: hosts are ranked between iterations",
        )
    if rank is not None and fingerprinter is not None:
        raise UbiSettingError(
            "UBI_RANK",
            f"is set and REQUEST_FINGERPRINTER_CLASS is {fingerprinter}",
            "use Scrapy's own fingerprinter: a ranker tells pages apart by the normal form of their URLs",
        )


def of_iterations(values: Mapping[str, object], given: Mapping[Any, Any]) -> dict[str, object]:
    """What these values make of others, where these are not `given` among Scrapy's settings: the requests of an
    iteration are loaded together, and so many hosts at once (TC)."""
    take = values["host_load_take"]
    assert isinstance(take, int)
    found: dict[str, object] = {"hosts_at_once": _hosts_at_once(given.get("CONCURRENT_REQUESTS"), take)}
    if values["host_iterate"] and given.get("UBI_HOST_CONCURRENCY") is None:
        found["host_concurrency"] = LoadsByHost(others=Loads(min(take, MOST)))
    return found


def _hosts_at_once(concurrent_requests: object, take: int) -> int:
    try:
        return max(1, int(str(concurrent_requests)) // take)
    except ValueError:  # Scrapy says so
        return 1
