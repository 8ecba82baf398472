"""Python values that hold no other values, as JSON and back: numbers, text, bytes, dates, paths.

Rules of this module:

* A writer gives what `json.dumps` writes, or raises `Untravelled`; there is one for each exact type.
* A reader gets the payload of a tag, which is data from outside. What it raises for one that does not hold its caller
  makes a `ValueError` of; none of them imports or calls what the data names.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import decimal
import math
import pathlib
import re
import uuid
from collections.abc import Callable
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

from scrapy_ubi.adapter.requests.item_classes import Untravelled

TAG = "~"
CODEC_TAG = "codec"  # what a codec of `meta_codecs` has made of a value in meta
MAX_BITS = 1024  # of a whole number; Python itself refuses to read more than 4300 digits

_PATHS: dict[str, type[pathlib.PurePath]] = {
    cls.__name__: cls for cls in (pathlib.PurePosixPath, pathlib.PureWindowsPath, type(pathlib.Path()))
}
_ZONE = re.compile(r"[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,2}")  # no path that leads elsewhere


def tagged(tag: str, payload: Any) -> dict[str, Any]:
    return {TAG: tag, "v": payload}


def is_encoded(packed: object) -> bool:
    """Whether this is what a codec has made of a value."""
    return type(packed) is dict and packed.get(TAG) == CODEC_TAG and len(packed) == 2 and "v" in packed


def encoded_data(packed: Any) -> Any:
    """The data in what a codec has made; anything else as it is."""
    return packed["v"] if is_encoded(packed) else packed


def is_encodable(text: str) -> bool:
    """Whether a text is UTF-8 text at all: half of a surrogate pair is not, and no letter could carry it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def pack_text(text: str) -> Any:
    if text.isascii() or is_encodable(text):
        return text
    return tagged("text", base64.b64encode(text.encode("utf-8", "surrogatepass")).decode())


def _pack_int(value: int) -> int:
    if value.bit_length() > MAX_BITS:
        raise Untravelled("int")
    return value


def _pack_float(value: float) -> Any:
    return value if math.isfinite(value) else tagged("float", repr(value))


def _pack_moment(value: dt.datetime | dt.time) -> Any:
    if isinstance(value, dt.datetime) and type(value.tzinfo) is ZoneInfo and value.tzinfo.key is not None:
        return tagged("zoned", [value.replace(tzinfo=None, fold=0).isoformat(), value.fold, value.tzinfo.key])
    # A time zone of another kind and the second of two equal wall clock times are not in the ISO text.
    if value.fold or not (value.tzinfo is None or type(value.tzinfo) is dt.timezone):
        raise Untravelled(type(value).__name__)
    return tagged(type(value).__name__, value.isoformat())


def _pack_zone(value: dt.timezone | ZoneInfo) -> Any:
    if isinstance(value, ZoneInfo):
        if value.key is None:  # of a file
            raise Untravelled("ZoneInfo")
        return tagged("zone", value.key)
    offset, *name = value.__getinitargs__()  # type: ignore[attr-defined]
    return tagged("timezone", [offset.days, offset.seconds, offset.microseconds, *name])


WRITERS: dict[type, Callable[[Any], Any]] = {
    int: _pack_int,
    float: _pack_float,
    bytes: lambda value: tagged("bytes", base64.b64encode(value).decode()),
    dt.datetime: _pack_moment,
    dt.time: _pack_moment,
    dt.date: lambda value: tagged("date", value.isoformat()),
    dt.timedelta: lambda value: tagged("timedelta", [value.days, value.seconds, value.microseconds]),
    decimal.Decimal: lambda value: tagged("decimal", str(value)),
    uuid.UUID: lambda value: tagged("uuid", value.hex),
    Fraction: lambda value: tagged("fraction", [_pack_int(value.numerator), _pack_int(value.denominator)]),
    complex: lambda value: tagged("complex", [_pack_float(value.real), _pack_float(value.imag)]),
    range: lambda value: tagged("range", [_pack_int(one) for one in (value.start, value.stop, value.step)]),
    dt.timezone: _pack_zone,
    ZoneInfo: _pack_zone,
    bytearray: lambda value: tagged("bytearray", base64.b64encode(value).decode()),
    **dict.fromkeys(_PATHS.values(), lambda value: tagged("path", [type(value).__name__, str(value)])),
}


def _read_bytes(payload: Any) -> bytes:
    try:
        return base64.b64decode(payload, validate=True)
    except binascii.Error as error:
        raise ValueError("malformed bytes") from error


def _read_float(payload: Any) -> float:
    if payload not in ("nan", "inf", "-inf"):
        raise ValueError("malformed float")
    return float(payload)


def _read_timedelta(payload: Any) -> dt.timedelta:
    days, seconds, microseconds = payload
    if not all(type(part) is int for part in payload):
        raise ValueError("malformed timedelta")
    return dt.timedelta(days, seconds, microseconds)


def _read_decimal(payload: Any) -> decimal.Decimal:
    if not isinstance(payload, str):
        raise ValueError("malformed decimal")
    return decimal.Decimal(payload)


def _read_zone(payload: Any) -> ZoneInfo:
    if not isinstance(payload, str) or not _ZONE.fullmatch(payload):
        raise ValueError("malformed time zone")
    return ZoneInfo(payload)


def _read_zoned(payload: Any) -> dt.datetime:
    text, fold, zone = payload
    return dt.datetime.fromisoformat(text).replace(fold=fold, tzinfo=_read_zone(zone))


def _read_timezone(payload: Any) -> dt.timezone:
    offset, name = _read_timedelta(payload[:3]), payload[3:]
    if len(name) > 1 or not all(isinstance(one, str) for one in name):
        raise ValueError("malformed time zone")
    return dt.timezone(offset, *name)


def _read_numbers(payload: Any, number: int) -> list[int]:
    if not isinstance(payload, list) or len(payload) != number or not all(type(one) is int for one in payload):
        raise ValueError("malformed numbers")
    if any(one.bit_length() > MAX_BITS for one in payload):
        raise ValueError("number too large")
    return payload


def _read_complex(payload: Any) -> complex:
    parts = [_read_float(one["v"]) if isinstance(one, dict) else one for one in payload]
    if len(parts) != 2 or not all(type(one) is float for one in parts):
        raise ValueError("malformed complex")
    return complex(*parts)


def _read_path(payload: Any) -> pathlib.PurePath:
    name, text = payload
    if not isinstance(text, str):
        raise ValueError("malformed path")
    return _PATHS[name](text)


READERS: dict[str, Callable[[Any], Any]] = {
    "bytes": _read_bytes,
    "text": lambda payload: _read_bytes(payload).decode("utf-8", "surrogatepass"),
    "float": _read_float,
    "datetime": dt.datetime.fromisoformat,
    "time": dt.time.fromisoformat,
    "date": dt.date.fromisoformat,
    "timedelta": _read_timedelta,
    "decimal": _read_decimal,
    "uuid": lambda payload: uuid.UUID(hex=payload),
    "bytearray": lambda payload: bytearray(_read_bytes(payload)),
    "fraction": lambda payload: Fraction(*_read_numbers(payload, 2)),
    "complex": _read_complex,
    "range": lambda payload: range(*_read_numbers(payload, 3)),
    "timezone": _read_timezone,
    "zone": _read_zone,
    "path": _read_path,
    "zoned": _read_zoned,
}
