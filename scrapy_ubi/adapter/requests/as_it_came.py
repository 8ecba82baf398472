"""A response that stays as it came: Scrapy's decompression takes Content-Encoding out of the head that it gets."""

from __future__ import annotations

from copy import copy

from scrapy.http import Response

from scrapy_ubi.adapter.requests.reason_phrase import copy_head


def as_it_came(response: Response) -> Response:
    """The response; where it will be decompressed, another one with a head of its own."""
    if b"Content-Encoding" not in response.headers:
        return response
    own = copy(response)
    own.headers = response.headers.copy()
    copy_head(response, own)
    return own
