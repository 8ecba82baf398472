"""What the rules of a crawl mean as settings of its agents, and what the crawl is called.

Rules of this module: values are texts, as on a command line; what a person has set there wins.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from scrapy_ubi.cli.patterns.page_rules import PageRules
from scrapy_ubi.settings import default_crawl
from scrapy_ubi.urls.filters.filter_text import Call, write
from scrapy_ubi.urls.private import host_of

ANY = "*"
WWW = "www."


def settings_of(rules: PageRules) -> dict[str, str]:
    """Settings by name."""
    crawl = rules.crawl
    found = {
        "FEED_EXPORT_FIELDS": ",".join(rules.columns),
        "ROBOTSTXT_OBEY": str(crawl.obey_robots),
        "HTTPERROR_ALLOW_ALL": str(rules.collect.errors),
    }
    if scope := filter_of(rules):
        found["UBI_FILTERS"] = scope
    if crawl.max_pages:
        found["UBI_CRAWL_LIMITS"] = f"pages={crawl.max_pages}"
    if crawl.delay is not None:
        found |= {"DOWNLOAD_DELAY": f"{crawl.delay:g}", "UBI_DELAY_FACTOR": "0"}
    if crawl.sitemaps != "no":
        found["UBI_SITEMAPS"] = f"{crawl.sitemaps}(since={crawl.since})" if crawl.since else crawl.sitemaps
    if crawl.contact:
        found["UBI_BOT_PAGE"] = crawl.contact
    return found


def filter_of(rules: PageRules) -> str:
    """The filter that says which links are followed; '' where all are. Without hosts in the rules these are the hosts
    of the start pages, with and without `www.`, and the host that a start page redirects to."""
    scope: dict[str, list[str]] = {"hosts": [], "domains": []}
    if rules.crawl.hosts:
        for name in rules.crawl.hosts:
            bare = name.removeprefix("-")
            kind = "domains" if bare.startswith("*.") else "hosts"
            scope[kind].append(name.replace("*.", "", 1))
        if ANY in scope["hosts"]:  # the others are among them, but for what is excluded
            scope = {kind: [name for name in names if name.startswith("-")] for kind, names in scope.items()}
    else:
        own = {host_of(url) for url in rules.crawl.start}
        twins = {host.removeprefix(WWW) if host.startswith(WWW) else WWW + host for host in own if _has_twin(host)}
        scope |= {"hosts": sorted(own | twins), "stay": ["host"]}
    scope |= {"allow": list(rules.follow.allow), "deny": list(rules.follow.deny)}
    said = {key: tuple(values) for key, values in scope.items() if values}
    return write(Call("scope", {**said, "redirects": ("yes",)})) if said else ""


def _has_twin(host: str) -> bool:
    """Whether a host may have a name with `www.`, too: one with a dot that is no address."""
    return "." in host and not host.startswith("[") and not host.replace(".", "").isdigit()


def crawl_name(rules: PageRules, mark: str) -> str:
    """`<host of the first start page>:<8 hex digits of the rules>`."""
    return default_crawl("", urlsplit(rules.crawl.start[0]).hostname or "", mark[:8])
