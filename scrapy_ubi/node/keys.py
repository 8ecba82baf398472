"""What a node asks of the keys of requests, and the nonces of requests that are taken in again.

Rules of this module:

* A node knows no Scrapy: `requests.identity.RequestKeys` is what implements `Keys`.
* A request that failed after all retries and is requeued is done under its own key: it is taken in again under another
  one. So is what lossy steps of the normal form joined wrongly (`hosts/learned_forms`).
* The nonce says why, and under which key the request was taken first: so its host's owner, whichever agent that is by
  then, does not take it for a new one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from scrapy_ubi.protocol.host import Entry

REQUEUED, UNJOINED = "requeued", "unjoined"  # why a request is taken in again
AGAIN = "ubi-"  # the nonces of such begin with it

_FIRST = re.compile(r'"ubi_nonce": ?"ubi-(\w+)\.([0-9a-f]{16})')


class Keys(Protocol):
    """Keys under one agent's settings."""

    @property
    def normal_form(self) -> Callable[[str], str | None]:
        """The normal form of a URL; None where it has none."""

    def again(self, entry: Entry, nonce: str) -> Entry | None:
        """The same request under a key of its own, with its retries before it again; None when the entry's text cannot
        be read.
        """


def again_nonce(why: str, entry: Entry, more: str = "") -> str:
    """The nonce of a request that is taken in again; `more` where it may be so more than once."""
    return f"{AGAIN}{why}.{entry.key:016x}{more and '.'}{more}"


def taken_first(entry: Entry) -> tuple[str, int] | None:
    """Why this request was taken in again, and the key under which it was taken first; None where it was not. It may
    come from another agent, and a redirect has it from its page: the key counts where the host knows it.
    """
    found = _FIRST.search(entry.request) if entry.request else None
    return (found[1], int(found[2], 16)) if found is not None else None
