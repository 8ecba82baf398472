"""What of a request cannot travel: which of it makes the page fail at another agent, why, and what the user can do.

Rules of this module:

* A page is fetched as it was asked for, and its callback called with all that it was to be called with, or the page
  fails with a reason. So a request that lacks a part fails, wherever its original object is not at hand: at another
  agent, and after a restart. The text says so itself (`mark`).
* There are three exceptions, `HARMLESS`: a part without which the page is the same. An errback that is lost fails the
  page only when it would have been called.
* A kind of loss begins with the name of the part: `meta/Selector`, `cb_kwargs/ItemLoader`, `class/MyRequest`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scrapy_ubi.errors import UbiError

LOST = "lost"  # the field of a text that says what it lacks: [part, what, for people]
LONGEST_SHOWN = 200  # characters of what it lacks

# Without one of these a page is not fetched, or its callback not called.
NEEDED = frozenset(
    {"callback", "cb_kwargs", "meta", "class", "method", "body", "headers", "cookies", "encoding", "proxy"}
)

# Why a page may be fetched without this part of its request.
HARMLESS = {
    "errback": "it is called only if the page fails, which then has the reason codec/errback",
    "flags": "Scrapy only logs them",
    "dumps_kwargs": "the body is written already; they are for the next request made of this one",
}

_PASS_ON = "Pass what JSON can express, items, or what can be made of such at the page"

# What can be done instead. Of meta, some keys say how a page is fetched; all of it reaches the callback.
_REMEDIES = {
    "callback": "Make it a method of the spider, and give what it needs in cb_kwargs: what JSON can express, and items",
    "errback": "Make it a method of the spider",
    "cb_kwargs": f"{_PASS_ON}: loader.load_item() in place of an ItemLoader",
    "meta": f"{_PASS_ON}: text in place of a selector. Or name a codec for the key in UBI_CODECS",
    "class": "Let it hold what JSON can express, and no slots; or make a Request, and say that in its meta",
    "dumps_kwargs": "Write the body yourself",
    "proxy": "Set UBI_PROXIES to the hosts of your proxies",
}
_CORRECT = "Correct it: no agent takes such a value from another one"


class CodecError(UbiError):
    """This entry cannot become a request here. `reason` is a short word for counting."""

    def __init__(self, reason: str, text: str) -> None:
        self.reason = reason
        super().__init__(text)


class Loss(NamedTuple):
    """Something of a request that cannot travel: `kind` for counting, `what` for people, with file and line where they
    are known."""

    kind: str
    what: str
    refused: bool = False  # receivers would take no such value


def part_of(loss: Loss) -> str:
    """The part of the request of which something is lost: `meta`, `callback`, ..."""
    return loss.kind.partition("/")[0]


def mark(losses: Sequence[Loss]) -> list[str] | None:
    """What the text of a request with these losses says of them; None where it may be fetched without. Of several the
    callback's, as nothing can be done without."""
    needed = [loss for loss in losses if part_of(loss) not in HARMLESS]
    if not needed:
        return None
    first = next((loss for loss in needed if loss.kind == "callback"), needed[0])
    return [part_of(first), first.what.encode(errors="replace").decode()[:LONGEST_SHOWN]]


def sentences(loss: Loss) -> str:
    """What follows of a loss, and what can be done."""
    part = part_of(loss)
    if part in HARMLESS:
        follows = f"another agent fetches the page without it ({HARMLESS[part]})"
    else:
        follows = f"at another agent, or after a restart, the page fails with the reason codec/{part}"
    remedy = _CORRECT if loss.refused else _REMEDIES.get(part, _CORRECT)
    return f"It is there if this agent fetches the request; {follows}. {remedy}."


def refused_loss(name: str, key: str | None) -> Loss:
    """What is left out as its receivers would refuse it. Metadata is counted by its key: only Scrapy's own is looked
    at so closely."""
    if name == "meta":
        return Loss(f"meta/{key}", f"meta[{key!r:.60}] with such a value", refused=True)
    if name == "state":
        return Loss("class", "what its class holds", refused=True)
    if key is None:
        return Loss(name, f"its {name} with such a value" if name != "method" else "such a method", refused=True)
    return Loss(name, f"{name}[{key!r:.60}] with such a name or value", refused=True)
