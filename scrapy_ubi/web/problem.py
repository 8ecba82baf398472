"""What goes wrong with a request, as an answer: a status, a kind for programs, a sentence for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrapy.exceptions import UsageError

from scrapy_ubi.cli.commands.crawl_choice import UbiNoCrawl
from scrapy_ubi.cli.commands.failed import UbiNotChosen
from scrapy_ubi.cli.commands.query_live import UbiNotAsked
from scrapy_ubi.cli.commands.redis_connection import UbiNotFound
from scrapy_ubi.errors import UbiDirectoryError, UbiError, UbiSettingError, UbiUnavailable

KINDS: Mapping[type[Exception], tuple[int, str]] = {
    UsageError: (400, "bad_request"),
    UbiNotChosen: (400, "bad_request"),
    UbiNotAsked: (400, "bad_request"),
    UbiNoCrawl: (404, "not_found"),
    UbiNotFound: (404, "not_found"),
    UbiSettingError: (409, "refused"),
    UbiUnavailable: (503, "unavailable"),
    UbiDirectoryError: (503, "unavailable"),
    UbiError: (409, "refused"),
}


class Problem(Exception):
    """Raised where a request cannot be answered. `headers` go with the answer."""

    def __init__(self, status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message
        self.headers: Mapping[str, str] = headers or {}

    def document(self) -> dict[str, Any]:
        """The body of the answer."""
        return {"error": {"status": self.status, "kind": self.kind, "message": self.message}}


def bad(message: str) -> Problem:
    """A parameter or a field that does not hold."""
    return Problem(400, "bad_request", message)


def problem_of(error: UbiError | UsageError) -> Problem:
    """The problem that a command's error is."""
    status, kind = next(KINDS[cls] for cls in type(error).__mro__ if cls in KINDS)
    return Problem(status, kind, str(error))
