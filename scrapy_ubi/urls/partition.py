"""The partition key of a URL: what agents divide among themselves, and fetch from one request at a time.

Either the host, with its port unless that is the scheme's own: `h1.example`, `h1.example:8080`, `[::1]`. Or the
registered domain, the public suffix and one label more: all of `a.site.co.uk` and `b.site.co.uk:8080` is `site.co.uk`,
ports included, as a domain stands for one owner's machines. The list of public suffixes is the one that tldextract
brings along; it is never fetched, so agents with the same tldextract agree. Suffixes that private owners registered
(`github.io`) do not count as public. Where there is no registered domain (IP addresses, unknown suffixes, a suffix
itself) the host is the key.

With rules for hosts (`urls.host_rules`) the host is the one that they resolve it to, for either kind of key.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal

from scrapy_ubi.urls.host_rules import HostRules
from scrapy_ubi.urls.normal import SITE, SITES_KEPT, USUAL_HOST, host_and_port, normal_form

if TYPE_CHECKING:
    from tldextract import TLDExtract

Partition = Literal["host", "domain"]

DOMAINS_KEPT = 1 << 16  # hosts whose domain is remembered: about 10 MB

_usual_host = re.compile(rf"https?://({USUAL_HOST})/").match
_site = re.compile(rf"{SITE}(?=/)").match


def partition_key(url: str, partition: Partition = "host", rules: HostRules | None = None) -> str | None:
    """The key of a URL, in normal form or not; None for what has no normal form."""
    match = _usual_host(url)
    if match is not None and url.isascii():
        host = match[1]
        port = ""
    else:
        site = _site(url) if url.isascii() else None
        found = _host_of(url) if site is None else _host_of_site(site[0])
        if found is None:
            return None
        host, port = found
    if rules is not None:
        host = rules.resolve(host)
    if partition == "domain":
        return registered_domain(host) or host + port
    return host + port


def _host_of(url: str) -> tuple[str, str] | None:
    normal = normal_form(url)
    return None if normal is None else host_and_port(normal)


@lru_cache(SITES_KEPT)
def _host_of_site(site: str) -> tuple[str, str] | None:
    """Host and `:port` of the URLs that begin so, whatever their paths."""
    return _host_of(f"{site}/")


@lru_cache(DOMAINS_KEPT)
def registered_domain(host: str) -> str | None:
    """The domain below a public suffix that this host belongs to; None where there is none. Remembered."""
    if host.startswith("["):
        return None
    parts = extractor()(host)
    return f"{parts.domain}.{parts.suffix}" if parts.domain and parts.suffix else None


@cache
def extractor() -> TLDExtract:
    """Return what knows the public suffixes, made once."""
    # Imported here as it takes 0.1 s and 10 MB, requests with it, which a crawl divided by hosts does without.
    from tldextract import TLDExtract

    return TLDExtract(suffix_list_urls=(), cache_dir=None)
