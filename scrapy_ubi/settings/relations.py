"""What settings mean together: which values exclude each other, and which one makes another.

Rules of this module: values are those that `ubi_settings` has read and checked, one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.settings import presets
from scrapy_ubi.settings.host_limits import HostLimitsTable
from scrapy_ubi.settings.loads_at_once import MOST, Loads, LoadsByHost
from scrapy_ubi.settings.values import SitemapUse
from scrapy_ubi.urls import HostRules
from scrapy_ubi.urls.host_shards import HostShards
from scrapy_ubi.urls.partition import Partition, partition_key

if TYPE_CHECKING:
    from scrapy_ubi.settings.ubi_settings import UbiSettings

MOST_REPLICAS = 999_999  # of one agent: as many digits as a beat has for them
LEAST_GAP = 0.04  # seconds: an agent looks at its lease four times in it


def check_relations(settings: UbiSettings) -> None:
    """Raise UbiSettingError for the first of these settings that does not go with another one.

    heartbeat < lease < failure: an agent stops fetching before the others can take its hosts
    (docs/explanation/protocol.md#membership).
    """
    beat, lease, failure = settings.heartbeat_interval, settings.lease_timeout, settings.failure_timeout
    if not lease < failure:
        raise UbiSettingError(
            "UBI_LEASE_TIMEOUT",
            f"is {lease:g} s and UBI_FAILURE_TIMEOUT is {failure:g} s",
            "make the lease shorter, so that an agent stops fetching before the others take its hosts",
        )
    if settings.redis_url is not None and failure - lease < LEAST_GAP:
        raise UbiSettingError(
            "UBI_LEASE_TIMEOUT",
            f"is {lease:g} s and UBI_FAILURE_TIMEOUT is {failure:g} s",
            f"make the lease shorter by at least {LEAST_GAP:g} s, so that an agent ends its loads before the others "
            "take its hosts",
        )
    if not beat < lease:
        raise UbiSettingError(
            "UBI_HEARTBEAT_INTERVAL",
            f"is {beat:g} s and UBI_LEASE_TIMEOUT is {lease:g} s",
            "make the heartbeat shorter, so that an agent can keep its lease",
        )
    check_shards(settings.host_shards, settings.partition, settings.host_rules)
    check_hosts(settings.host_concurrency, settings.partition, settings.host_rules, by_ip=settings.polite_by_ip)
    check_limits(settings.host_limits, settings.partition, settings.host_rules)
    check_recrawl(settings.recrawl.rule, iterate=settings.host_iterate, sitemaps=settings.sitemaps)
    fingerprinter = settings.fingerprinter if settings.fingerprints else None
    check_iterations(settings.host_iterate, settings.max_load_seconds, settings.rank, fingerprinter)


def check_shards(cut: HostShards, partition: Partition, rules: HostRules | None) -> None:
    """Raise UbiSettingError where a host that is cut is none that the other settings make partition keys of."""
    for host in cut.numbers:
        if (key := partition_key(f"http://{host}/", partition, rules)) != host:
            raise UbiSettingError(
                "UBI_HOST_SHARDS",
                f"names {host!r}, which is a part of {key!r} by UBI_PARTITION and UBI_HOST_RULES",
                f"name {key!r} instead",
            )


def check_hosts(loads: LoadsByHost, partition: Partition, rules: HostRules | None, *, by_ip: bool) -> None:
    """Raise UbiSettingError where loads at once are said of no host: it would be passed over in silence."""
    for name in loads.named:
        if (key := partition_key(f"http://{name}/", partition, rules)) != name:
            remedy = f"name {key!r}, under which all its pages are" if key else "name a host as it stands in URLs"
            raise UbiSettingError("UBI_HOST_CONCURRENCY", f"names {name!r}, which is no host of this crawl", remedy)
    if by_ip and loads.others.most > 1:
        raise UbiSettingError(
            "UBI_HOST_CONCURRENCY",
            f"is {loads.others} for all hosts, and UBI_POLITE_BY_IP is on",
            "name the hosts that may have more than one load at once, or turn UBI_POLITE_BY_IP off",
        )


def check_limits(limits: HostLimitsTable | None, partition: Partition, rules: HostRules | None) -> None:
    """Raise UbiSettingError where limits are said of no host: they would be passed over in silence."""
    if limits is None or (partition == "host" and rules is None):
        return
    for name in limits.named:
        if not name.startswith(".") and (key := partition_key(f"http://{name}/", partition, rules)) != name:
            raise UbiSettingError(
                "UBI_HOST_LIMITS", f"names {name!r:.100}, which is a part of {key!r:.100}", f"name {key!r:.100} instead"
            )


def check_recrawl(recrawl: str, *, iterate: bool, sitemaps: SitemapUse) -> None:
    """Raise UbiSettingError where the rule cannot be kept with other settings."""
    if recrawl.startswith("sitemap") and not sitemaps:
        raise UbiSettingError(
            "UBI_RECRAWL",
            f"is {recrawl!r}, and UBI_SITEMAPS is 'no'",
            "set UBI_SITEMAPS = 'first'",
        )
    if recrawl and iterate:
        raise UbiSettingError(
            "UBI_RECRAWL", "is set, and so is UBI_HOST_ITERATE", "remove one of them: iterations are for pages found"
        )


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
    if values["host_iterate"] and presets.given(given, "UBI_HOST_CONCURRENCY") is None:
        found["host_concurrency"] = LoadsByHost(others=Loads(min(take, MOST)))
    return found


def _hosts_at_once(concurrent_requests: object, take: int) -> int:
    try:
        return max(1, int(str(concurrent_requests)) // take)
    except ValueError:  # Scrapy says so
        return 1
