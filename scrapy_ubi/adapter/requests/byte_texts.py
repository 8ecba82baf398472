"""Bytes of a request, its body and headers, as text where they are text.

Rules of this module: bytes that are UTF-8 stand as they are, readable in Redis; others in base64, marked as such.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrapy_ubi.adapter.requests.values import pack, unpack


def pack_bytes(value: bytes) -> Any:
    """Bytes as what JSON can express."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return pack(value)


def unpack_bytes(value: Any) -> bytes:
    """What `pack_bytes` was given. Never text: the request would encode it its own way."""
    unpacked: str | bytes = unpack(value)
    return unpacked.encode() if isinstance(unpacked, str) else unpacked


def unpack_headers(headers: Mapping[str, Any]) -> dict[str, list[bytes]]:
    """Headers, each with all its values."""
    return {
        name: [unpack_bytes(one) for one in (values if isinstance(values, list) else [values])]
        for name, values in headers.items()
    }
