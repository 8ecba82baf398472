"""What makes and checks the signatures of `UBI_SECRET`: HMAC-SHA256 over what is written to Redis, and where.

Rules of this module:

* The key is made of the secret and the name of the crawl: what was signed in one crawl holds in no other.
* A signature covers what kind of thing it is, whose it is, and each part with its length: nothing can be moved from
  one field, key or kind to another.
* Neither the secret nor the key leaves this object; `repr` shows neither.
* The signature of a text in a hash stands behind it (` ~` and 24 hex digits), that of an entry of a stream is a field
  of it: so all stays readable with redis-cli.
* Few letters have a line end in a part; then the parts are joined by line ends, else their lengths stand before them.
  It is a matter of some microseconds for each letter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b, sha256
from hmac import compare_digest
from itertools import chain

SIGNED = "signed"
"""The field of an entry that holds its signature: what it is bound to besides, and the digits, joined by full stops."""

_SIGNED = SIGNED.encode()
MAC = 12  # bytes of a signature: as IPsec's; 24 hex digits
_BLOCK = 64  # bytes of a block of SHA-256, to which a key is filled up (RFC 2104, section 2)
TAIL = 2 + 2 * MAC  # characters behind a text
ROOM = 128  # bytes by which a signature makes an entry longer, at most
RUN_FREE = frozenset(("run", "past", "finished", "memory"))
"""Fields of the control hash that name the run themselves. All others hold in the run only that they were signed in."""

_TAIL = re.compile(rf" ~[0-9a-f]{{{2 * MAC}}}\Z")
_TAIL_BYTES = re.compile(_TAIL.pattern.encode())


def bare_bytes(raw: bytes) -> bytes:
    """As `bare`, of what Redis holds."""
    return _TAIL_BYTES.sub(b"", raw)


def bare(text: str) -> str:
    """The text in front of a signature, which is not checked; the whole where there is none."""
    return _TAIL.sub("", text)


def is_signed(text: str) -> bool:
    """Whether a signature stands behind this text; it may be anyone's."""
    return _TAIL.search(text) is not None


class Signer:
    """Signs and checks for one crawl. May be used from any thread."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, secret: str, crawl: str) -> None:
        root = blake2b(secret.encode("utf-8", "surrogatepass"), digest_size=64, person=b"scrapy-ubi 1").digest()
        key = blake2b(crawl.encode(), key=root, digest_size=_BLOCK, person=b"crawl").digest()
        self._inner = sha256(bytes(byte ^ 0x36 for byte in key))  # copied for each signature: it has read its block
        self._outer = sha256(bytes(byte ^ 0x5C for byte in key))

    def _digits(self, text: bytes) -> str:
        """HMAC-SHA256 (RFC 2104), of which the first digits are taken (section 5)."""
        inner = self._inner.copy()
        inner.update(text)
        outer = self._outer.copy()
        outer.update(inner.digest())
        return outer.hexdigest()[: 2 * MAC]

    def _mac(self, parts: list[bytes]) -> str:
        joined = b"\n".join(parts)
        if joined.count(b"\n") >= len(parts):
            lengths = ",".join([str(len(part)) for part in parts]).encode()
            joined = b"\n".join((b"", lengths, *parts))  # no kind is empty: so it is not of the other form
        return self._digits(joined)

    def _mac_of(self, parts: list[str]) -> str:
        """As `_mac`, of texts: encoded in one piece, where that can be."""
        joined = "\n".join(parts)
        if joined.count("\n") >= len(parts):
            return self._mac([_bytes(part) for part in parts])
        return self._digits(_bytes(joined))

    # -- texts in hashes

    def text(self, kind: str, whose: str, name: str, text: str) -> str:
        """The text with its signature: of this kind (`beat`, `profile`, `ack`, `control`), in the field `name` of what
        is `whose` (an agent's, or a run's)."""
        return f"{text} ~{self._mac_of([kind, whose, name, text])}"

    def checked(self, kind: str, whose: str, name: str, signed: str) -> str | None:
        """The text of what `text` has made, None where the signature does not hold, or there is none."""
        text = signed[:-TAIL]
        return text if compare_digest(_bytes(signed), _bytes(self.text(kind, whose, name, text))) else None

    def control(self, run: str, fields: Mapping[str, str]) -> dict[str, str]:
        """Fields for the control hash, signed in this run."""
        return {
            name: self.text("control", "" if name in RUN_FREE else run, name, text) for name, text in fields.items()
        }

    # -- entries of streams

    def entry(self, kind: str, receiver: str, bound: str, fields: Mapping[str, str]) -> dict[str, str]:
        """The fields of an entry of this kind (`letter`, `seed`) for `receiver` alone ("": for all), with the
        signature, which covers `bound`, too: words joined by full stops, which are sent along."""
        mac = self._mac_of([kind, receiver, bound, *chain.from_iterable(fields.items())])
        return {**fields, SIGNED: f"{bound}.{mac}"}

    def bound(self, kind: str, receiver: str, raw: Mapping[bytes, bytes]) -> list[str] | None:
        """What an entry's signature is bound to, word by word; None where it does not hold, or there is none."""
        parts = [kind.encode(), receiver.encode(), b"", *chain.from_iterable(raw.items())]
        if not raw or parts[-2] != _SIGNED:  # it stands at the end
            return None
        parts[2], _, mac = parts.pop().rpartition(b".")
        parts.pop()
        return parts[2].decode("ascii").split(".") if compare_digest(mac, self._mac(parts).encode()) else None


def _bytes(text: str) -> bytes:
    """As the transport sends it."""
    return text.encode("utf-8", "backslashreplace")


def without_signature(raw: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """The fields of an entry but for its signature."""
    return {name: value for name, value in raw.items() if name != _SIGNED}
