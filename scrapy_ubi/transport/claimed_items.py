"""What is said of items of start(): as Redis answers it, and with signatures (`Transport.claim_items`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from scrapy_ubi.transport.contract import Fields, Transport
from scrapy_ubi.transport.signer import Signer
from scrapy_ubi.transport.wire_text import encode, texts

Claims = Mapping[str, tuple[str | None, str]]
KIND = "start"  # of what is signed


def said_of(claims: Claims, answer: Iterable[object], most: int) -> dict[str, str]:
    """What is said of each item, by this answer in the order of the claims; "" for what is no text of `most` bytes."""
    found = {encode(item): text for item, text in zip(claims, answer, strict=False) if isinstance(text, bytes)}
    good, _ = texts(found.items(), most)
    return dict.fromkeys(claims, "") | good


async def signed_claims(
    inner: Transport, signer: Signer, claims: Claims, refuse: Callable[[Fields], object]
) -> dict[str, str]:
    """`Transport.claim_items` by the one inside. `refuse` is told of what holds no signature, which is written over."""

    def signed(item: str, text: str) -> str:
        return signer.text(KIND, item, item, text)

    def checked(item: str, text: str) -> str | None:
        return signer.checked(KIND, item, item, text)

    said = await inner.claim_items(
        {item: (None if old is None else signed(item, old), signed(item, new)) for item, (old, new) in claims.items()}
    )
    odd = {item: text for item, text in said.items() if text and checked(item, text) is None}
    if odd:
        refuse(odd)
        said |= await inner.claim_items({item: (text, signed(item, claims[item][1])) for item, text in odd.items()})
    return {item: checked(item, text) or "" for item, text in said.items()}
