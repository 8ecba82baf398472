"""The key of a request: 64 bits that stand for it in the sets of URLs discovered and done."""

from __future__ import annotations

from mmh3 import hash128

URL_SEED = 0x75726C  # "url": keys are independent of the points of hosts on the ring, which hash with another seed

_LOW = (1 << 64) - 1
SEED = "seed"  # the nonces of seeds begin with it; it alone is that of one like a link to the same page


def seed_key(key: int, nonce: str = SEED) -> int:
    """The key of a seed with this nonce whose page, as a link, has that key: so the one tells the other."""
    return url_key("", f"{key:016x}", b"", nonce)


def led_on(key: int) -> str:
    """The nonce of what the seed of this key leads to, as by a redirect: each seed has its own."""
    return f"{SEED}>{key:016x}"


def asked_name(key: int, nonce: str) -> str:
    """What a page is called that, as a link, has that key: by what was asked of it. `nonce`: of a bare seed that asks
    for the same; "" where none does. A page asked for by default callbacks is called by its key alone.
    """
    asked = "+" if not nonce else nonce.removeprefix(SEED).lstrip(".")
    return f"{key:016x}.{asked}" if asked else f"{key:016x}"


def url_key(method: str, normal: str, body: bytes = b"", nonce: str = "") -> int:
    """64 bits, unsigned, of method (its case matters: RFC 9110, section 9.1), normal form and body.

    Requests that are alike but meant to be fetched each (`dont_filter`) are told apart by a nonce. Half of
    MurmurHash3 x64 128: a hash against chance, not against malice. Of a billion requests, two have the same key with
    a chance of 3 %.
    """
    if method == "GET" and not body and not nonce:
        # mmh3 5.3 crashes on a str with a lone surrogate. Normal forms are ASCII; should this not be one, it is bytes.
        return hash128(normal if normal.isascii() else normal.encode("utf-8", "surrogatepass"), URL_SEED) & _LOW
    # A NUL, which no normal form begins with, then the lengths: no two requests are written alike.
    head = f"\0{len(method)} {len(nonce)} {len(normal)} {method}{nonce}{normal}"
    return hash128(head.encode("utf-8", "surrogatepass") + body, URL_SEED) & _LOW
