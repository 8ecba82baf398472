"""What a node asks of the keys of requests, and the nonces of requests that are taken in again.

Rules of this module:

* A node knows no Scrapy: `adapter.requests.identity.RequestKeys` is what implements `Keys`.
* A request that failed after all retries and is requeued is done under its own key: it is taken in again under another
  one. So is what lossy steps of the normal form joined wrongly (`hosts/learned_forms`).
* The nonce says why, and under which key the request was taken first: so its host's owner, whichever agent that is by
  then, does not take it for a new one.
* A page whose outputs were lost is taken in again under a nonce that every agent makes alike, so it is fetched once,
  whichever agents know of it. It keeps its name (`name_of`): its outputs, and the nonces of what it yields, are called
  as before. What it redirects to is another page, with the nonce that it had before (`before_loss`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from scrapy_ubi.protocol.frontier_contract import OUTPUTS_LOST
from scrapy_ubi.protocol.host import Entry, Failure

REQUEUED, UNJOINED, LOST = "requeued", "unjoined", "lost"  # why a request is taken in again
AGAIN = "ubi-"  # the nonces of such begin with it

NAMES_HOST = '"ubi_host'  # in the texts of requests that name their hosts; in few others

MOST_NONCE = 256  # characters
_NONCE = re.compile(r'"ubi_nonce": ?"([^"\\]*)"')
_LOST = re.compile(r"ubi-lost\.([0-9a-f]{16})\.[0-9a-f]{16}\.?(.*)")
_FIRST = re.compile(r'"ubi_nonce": ?"ubi-(\w+)\.([0-9a-f]{16})')


class Keys(Protocol):
    """Keys under one agent's settings."""

    @property
    def normal_form(self) -> Callable[[str], str | None]:
        """The normal form of a URL; None where it has none."""

    def named_host(self, entry: Entry) -> str | None:
        """The partition key of an entry whose text may name its host (`NAMES_HOST`); None where it has none."""

    def again(self, entry: Entry, nonce: str) -> Entry | None:
        """The same request under a key of its own, with its retries before it again; None when the entry's text cannot
        be read.
        """


def again_nonce(why: str, entry: Entry, more: str = "") -> str:
    """The nonce of a request that is taken in again; `more` where it may be so more than once."""
    return f"{AGAIN}{why}.{entry.key:016x}{more and '.'}{more}"


def requeued_nonce(failure: Failure, more: str) -> str:
    """The nonce of what is requeued: a failed request, or a page whose outputs were lost."""
    if failure.reason == OUTPUTS_LOST:
        return lost_nonce(failure.entry)
    return again_nonce(REQUEUED, failure.entry, more)


def taken_first(entry: Entry) -> tuple[str, int] | None:
    """Why this request was taken in again, and the key under which it was taken first; None where it was not. It may
    come from another agent, and a redirect has it from its page: the key counts where the host knows it.
    """
    found = _FIRST.search(entry.request) if entry.request else None
    return (found[1], int(found[2], 16)) if found is not None else None


def lost_nonce(entry: Entry) -> str:
    """The nonce of a page whose outputs were lost: it says the page's first key, the present one, and the nonce that
    the page had before any of its outputs were lost."""
    found = _NONCE.search(entry.request) if entry.request else None
    nonce = found[1] if found is not None else ""
    before = before_loss(nonce)
    made = f"{AGAIN}{LOST}.{name_of(entry):016x}.{entry.key:016x}{before and '.'}{before}"
    return made if len(made) <= MOST_NONCE else made[:MOST_NONCE]


def before_loss(nonce: str) -> str:
    """The nonce that a page had before its outputs were lost: this one, where they were not."""
    found = _LOST.fullmatch(nonce)
    return found[2] if found is not None else nonce


def name_of(entry: Entry) -> int:
    """The key by which a page's outputs are called: its own, or that under which it was taken before its outputs were
    lost."""
    first = taken_first(entry)
    return first[1] if first is not None and first[0] == LOST else entry.key
