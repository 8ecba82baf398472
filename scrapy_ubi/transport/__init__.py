"""How agents reach each other: mail and beats, by Redis or Valkey, or in memory. contract.py holds the promises."""

from __future__ import annotations

from scrapy_ubi.transport.contract import (
    Fields,
    Incoming,
    Line,
    Outgoing,
    RawFields,
    Transport,
    TransportDown,
    TransportError,
    TransportFull,
)

__all__ = [
    "Fields",
    "Incoming",
    "Line",
    "Outgoing",
    "RawFields",
    "Transport",
    "TransportDown",
    "TransportError",
    "TransportFull",
]
