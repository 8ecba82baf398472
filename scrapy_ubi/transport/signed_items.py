"""What is said of items of start(), with signatures: for the transport that signs (`signed_transport`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scrapy_ubi.transport.contract import Fields, Transport
from scrapy_ubi.transport.signer import Signer

KIND = "start"


async def claim_items(
    inner: Transport,
    signer: Signer,
    claims: Mapping[str, tuple[str | None, str]],
    refuse: Callable[[Fields], object],
) -> dict[str, str]:
    """`Transport.claim_items` by the one inside. `refuse` is told of what holds no signature, which is written over."""

    def signed(item: str, text: str) -> str:
        return signer.text(KIND, "", item, text)

    def checked(item: str, text: str) -> str | None:
        return signer.checked(KIND, "", item, text)

    said = await inner.claim_items(
        {item: (None if old is None else signed(item, old), signed(item, new)) for item, (old, new) in claims.items()}
    )
    odd = {item: text for item, text in said.items() if text and checked(item, text) is None}
    if odd:
        refuse(odd)
        said |= await inner.claim_items({item: (text, signed(item, claims[item][1])) for item, text in odd.items()})
    return {item: checked(item, text) or "" for item, text in said.items()}
