"""What a node asks of the keys of requests. `requests.identity.RequestKeys` is it; a node knows no Scrapy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from scrapy_ubi.protocol.host import Entry


class Keys(Protocol):
    """Keys under one agent's settings."""

    @property
    def normal_form(self) -> Callable[[str], str | None]:
        """The normal form of a URL; None where it has none."""

    def again(self, entry: Entry, nonce: str) -> Entry | None:
        """The same request under a key of its own, with its retries before it again; None when the entry's text cannot
        be read.
        """
