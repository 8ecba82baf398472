"""The reason phrase of a response: what a server has written behind its status, which Scrapy's `Response` leaves out."""

from __future__ import annotations

from http import HTTPStatus

from scrapy.http import Response

_NAME = "ubi_reason"
_USUAL = {status.value: status.phrase for status in HTTPStatus}


def keep_reason(response: Response, reason: str) -> None:
    """Note what a server has written, where it is not the phrase that everybody writes."""
    if reason != _USUAL.get(response.status):
        setattr(response, _NAME, reason)


def reason_of(response: Response) -> str:
    """What the server has written, as far as that is known; else the phrase of the standard, '' where there is none."""
    found = getattr(response, _NAME, None)
    return found if isinstance(found, str) else _USUAL.get(response.status, "")
