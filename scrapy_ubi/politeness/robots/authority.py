"""The authority of a request: scheme, host and port, whose robots.txt holds for it.

Rules of this module: two requests have one authority just when one robots.txt holds for both (RFC 9309, section 2.3).
"""

from __future__ import annotations

from scrapy import Request
from scrapy.utils.httpobj import urlparse_cached

DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def authority_of(request: Request) -> str | None:
    """Scheme, host and port, None for what has no robots.txt."""
    parts = urlparse_cached(request)
    if parts.scheme not in DEFAULT_PORTS or not parts.netloc:
        return None
    place = parts.netloc.rpartition("@")[2].lower()
    return f"{parts.scheme}://{place.removesuffix(DEFAULT_PORTS[parts.scheme])}"
