"""What the tests of handlers share."""

from __future__ import annotations

from collections.abc import Callable

from scrapy_ubi.urls.links.handlers.bounds import FetchedBody, LinksCut, Values

URL = "http://h1.example/dir/page"


def fetched(body: bytes | str = b"", content_type: str = "", url: str = URL, **headers: str) -> FetchedBody:
    """A response as handlers see it; `content_location` stands for the field Content-Location."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return FetchedBody(url, content_type, named, body.encode() if isinstance(body, str) else body)


def found(links: Callable[[FetchedBody], Values], received: FetchedBody) -> list[str]:
    """The links that a handler finds, all of them."""
    values, cut = read(links, received)
    assert cut is None
    return values


def read(links: Callable[[FetchedBody], Values], received: FetchedBody) -> tuple[list[str], LinksCut | None]:
    """The links that a handler finds, and why there may be more."""
    values: list[str] = []
    try:
        for value in links(received):
            values += [] if value is None else [value]
    except LinksCut as cut:
        return values, cut
    return values, None
