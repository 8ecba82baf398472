"""What settings of iterations mean together: UBI_HOST_ITERATE, UBI_HOST_LOAD_TAKE, UBI_RANK.

Rules of this module: nothing here is read of Scrapy's settings; values are those that `settings` has read.
"""

from __future__ import annotations

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.settings_table.host_loads import MOST, Loads, LoadsByHost


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


def loads_of_iteration(take: int) -> LoadsByHost:
    """UBI_HOST_CONCURRENCY, where UBI_HOST_ITERATE is True and it is not set: the requests of an iteration are loaded
    together."""
    return LoadsByHost(others=Loads(min(take, MOST)))


def hosts_at_once(concurrent_requests: object, take: int) -> int:
    """Hosts whose iterations are loaded at once (TC), of Scrapy's CONCURRENT_REQUESTS."""
    try:
        return max(1, int(str(concurrent_requests)) // take)
    except ValueError:  # Scrapy says so
        return 1
