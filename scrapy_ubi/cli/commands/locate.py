"""Where a URL that a person types belongs, by the code that the scheduler uses: its host, its key, or why neither."""

from __future__ import annotations

from dataclasses import dataclass

from scrapy import Request

from scrapy_ubi.adapter.requests.identity import RequestKeys
from scrapy_ubi.cli.monitor.url_owner import GroupSettings
from scrapy_ubi.urls import Partition, normal_form, partition_key
from scrapy_ubi.urls.filters import FilterChain, Link
from scrapy_ubi.urls.host_rules import name_of
from scrapy_ubi.urls.host_shards import MARK
from scrapy_ubi.urls.host_shards import read_name as shards_named


@dataclass(frozen=True, slots=True)
class Spot:
    """A plain GET of a URL as the scheduler would take it. `filtered`: the filter that drops it, '' when none does;
    `why` says what that means. `host` and `key` are '' for what has no host. `fingerprinter`: who makes keys of more
    than the URL, so that `key` is not that of such a request; '' where none does. `shards`: how many its host has."""

    url: str
    host: str = ""
    key: str = ""
    filtered: str = ""
    why: str = ""
    fingerprinter: str = ""
    shards: int = 1


def spot(url: str, group: GroupSettings, longest: int, chain: FilterChain | None = None) -> Spot:
    """The place of `url` in a crawl with URLs of at most `longest` characters, as a link that the filters of `chain`
    judge.
    """
    settings = group.settings
    keys = RequestKeys(settings)
    try:
        request = Request(url)  # escapes what it escapes for the spider, too
    except ValueError:
        return Spot(url, filtered="scheme", why="it is no absolute URL")
    place = keys.place(request)
    name, why = _refusal(request, chain) if chain else ("", "")
    if place is None and name:
        return Spot(url, filtered=name, why=why)
    if place is None:
        return Spot(
            url,
            filtered="scheme",
            why="it is no http or https URL with a host: such a request is not shared, the agent that finds it "
            "fetches it by itself",
        )
    key = f"{keys.key(request, place):016x}"
    by = group.fingerprinter if settings.fingerprints else ""
    shards = settings.host_shards.number(place.host)
    if len(request.url) > longest:
        name, why = "url_too_long", f"it has more than {longest} characters (URLLENGTH_LIMIT)"
    return Spot(url, place.host, key, name, why, by, shards)


def _refusal(request: Request, chain: FilterChain) -> tuple[str, str]:
    """The filter that refuses a link to this, and why, in words; empty where none does."""
    refusal = chain.refusal(Link(request.url, normal_form(request.url) or ""))
    if refusal is None:
        return "", ""
    return refusal.filter.name, f"a link to it is refused by {refusal.filter} ({refusal.why})"


def key_of(url: str, group: GroupSettings) -> str:
    """The key of a plain GET, 16 hex digits; '' for what has none."""
    return spot(url, group, len(url)).key


def host_of(text: str, group: GroupSettings) -> str | None:
    """The host that a person means by its name, in whatever spelling, or by a URL, or the shard of one; None for what
    is none. Rules for hosts count where they are known.
    """
    rules = group.rules if name_of(group.rules) == group.rules_name else None
    partition: Partition = "domain" if group.partition == "domain" else "host"
    name, mark, number = text.partition(MARK)
    if mark and "://" not in name:
        shards, host = shards_named(group.shards), partition_key(as_requested(f"http://{name}/"), partition, rules)
        key = f"{host}{MARK}{number}"
        return key if shards.holds(key) else None
    return partition_key(as_requested(text if "://" in text else f"http://{text}/"), partition, rules)


def as_requested(url: str) -> str:
    """A URL as a request has it: there some hosts have other names than in normal forms (`straße.de` is `strasse.de`).
    One that can be no request stays."""
    try:
        return Request(url).url
    except ValueError:
        return url
