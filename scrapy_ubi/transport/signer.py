"""What makes and checks the signatures of `UBI_SECRET`: a keyed BLAKE2b over what is written to Redis, and where.

Rules of this module:

* The key is made of the secret and the name of the crawl: what was signed in one crawl holds in no other.
* A signature covers what kind of thing it is, whose it is, and each part with its length: nothing can be moved from
  one field, key or kind to another.
* Neither the secret nor the key leaves this object; `repr` shows neither.
* The signature of a text in a hash stands behind it (` ~` and 16 characters), that of an entry of a stream is a field
  of it: so all stays readable with redis-cli.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from hmac import compare_digest

SIGNED = "signed"
"""The field of an entry that holds its signature: what it is bound to besides, and the 16 characters, joined by full
stops."""

MAC = 12  # bytes of a signature: as IPsec's; 16 characters
ROOM = 128  # bytes by which a signature makes an entry longer, at most
RUN_FREE = frozenset(("run", "past", "finished"))
"""Fields of the control hash that name the run themselves. All others hold in the run only that they were signed in."""

_TAIL = re.compile(r" ~[\w-]{16}\Z", re.ASCII)
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

    __slots__ = ("_key",)

    def __init__(self, secret: str, crawl: str) -> None:
        root = blake2b(secret.encode("utf-8", "surrogatepass"), digest_size=64, person=b"scrapy-ubi 1").digest()
        self._key = blake2b(crawl.encode(), key=root, digest_size=64, person=b"crawl").digest()

    def _mac(self, parts: Iterable[bytes]) -> str:
        listed = list(parts)
        lengths = ",".join([str(len(part)) for part in listed]).encode()
        digest = blake2b(b"".join((lengths, b";", *listed)), key=self._key, digest_size=MAC).digest()
        return urlsafe_b64encode(digest).decode("ascii")

    # -- texts in hashes

    def text(self, kind: str, whose: str, name: str, text: str) -> str:
        """The text with its signature: of this kind (`beat`, `profile`, `ack`, `control`), in the field `name` of what
        is `whose` (an agent's, or a run's)."""
        return f"{text} ~{self._mac(map(_bytes, (kind, whose, name, text)))}"

    def checked(self, kind: str, whose: str, name: str, signed: str) -> str | None:
        """The text of what `text` has made, None where the signature does not hold, or there is none."""
        text = signed[:-18]
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
        raw = ((_bytes(name), _bytes(value)) for name, value in fields.items())
        return {**fields, SIGNED: f"{bound}.{self._mac(_parts(kind, bound, receiver, raw))}"}

    def bound(self, kind: str, receiver: str, raw: Mapping[bytes, bytes]) -> list[str] | None:
        """What an entry's signature is bound to, word by word; None where it does not hold, or there is none."""
        said = raw.get(SIGNED.encode())
        if said is None or not said.isascii():
            return None
        bound, _, mac = said.decode("ascii").rpartition(".")
        others = ((name, value) for name, value in raw.items() if name != b"signed")
        return bound.split(".") if compare_digest(mac, self._mac(_parts(kind, bound, receiver, others))) else None


def _parts(kind: str, bound: str, receiver: str, fields: Iterable[tuple[bytes, bytes]]) -> Iterator[bytes]:
    yield from (kind.encode(), bound.encode(), receiver.encode())
    for pair in fields:
        yield from pair


def _bytes(text: str) -> bytes:
    """As the transport sends it."""
    return text.encode("utf-8", "backslashreplace")
