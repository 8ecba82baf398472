"""The authority of a request: scheme, host and port, whose robots.txt holds for it.

Rules of this module:

* Two requests have one authority just when one robots.txt holds for both (RFC 9309, section 2.3).
* A request to an API gateway that names the host it is for (`meta["ubi_host"]`, UBI_PARTITION) most often carries the
  URL that is really asked for, as an argument of its own: then the robots.txt of that URL holds for it. Where none is
  found, that of its own URL does, as in Scrapy: rules are of paths, and no other is known.
"""

from __future__ import annotations

from urllib.parse import ParseResult, parse_qsl, urlparse

from scrapy import Request
from scrapy.utils.httpobj import urlparse_cached

from scrapy_ubi.adapter.requests.check import ASKED, HOST

MOST_QUERY = 16_384  # characters of arguments that are looked through
DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def authority_of(request: Request) -> str | None:
    """Scheme, host and port, None for what has no robots.txt."""
    return _authority(urlparse_cached(request))


def _authority(parts: ParseResult) -> str | None:
    if parts.scheme not in DEFAULT_PORTS or not parts.netloc:
        return None
    place = parts.netloc.rpartition("@")[2].lower()
    return f"{parts.scheme}://{place.removesuffix(DEFAULT_PORTS[parts.scheme])}"


def asked_for(request: Request) -> tuple[str | None, str]:
    """The authority whose robots.txt holds for a request, None where none does, and the URL that is looked up there."""
    name = request.meta.get(HOST) or request.meta.get(ASKED)
    if isinstance(name, str):
        for _, value in parse_qsl(urlparse_cached(request).query[:MOST_QUERY]):
            try:
                parts = urlparse(value)
                authority = _authority(parts)
            except ValueError:
                continue
            if authority is not None and (parts.hostname or "") == urlparse(f"//{name}").hostname:
                return authority, value
    return authority_of(request), request.url
