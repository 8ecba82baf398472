"""The cookies that one of Scrapy's jars holds for a domain.

The jar itself can only be gone through as a whole, and in a broad crawl it has the cookies of all hosts.
"""

from __future__ import annotations

from collections.abc import Iterator
from http.cookiejar import Cookie

from scrapy.http.cookies import CookieJar


def cookies_of_domain(jar: CookieJar, domain: str) -> Iterator[Cookie]:
    """The cookies of this domain, as the jar spells it (`.example.com` for one that the server named)."""
    for of_path in jar._cookies.get(domain, {}).values():
        yield from of_path.values()
