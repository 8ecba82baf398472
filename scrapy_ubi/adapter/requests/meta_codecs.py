"""Meta that does not travel as it is: a codec for a key, out of UBI_CODECS or one of the built-in ones.

A codec makes plain data of the value under its key, and the value of such data:

    class PriceCodec:
        def encode(self, price):
            return [str(price.amount), price.currency]

        def decode(self, data):
            amount, currency = data
            return Price(Decimal(amount), currency)

Rules of this module:

* A value whose key has a codec travels by it, or not at all: as `{"~": "codec", "v": data}`.
* What a codec loses is noticed before the request leaves: the data is read again, and has to give the same value. Equal
  is what `==` calls so; where a class has no `==`, its attributes are compared. A codec may have a method
  `same(value, again)` that decides instead.
* `decode` is given data from outside. What it raises fails the page with the reason `codec/meta`.
* A codec is named by the user's settings and never by the data: it is loaded at the start, and made once.
* Errors name the setting, the key and the class.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol

from scrapy.utils.misc import load_object

from scrapy_ubi.adapter.requests.check import DERIVED_META, META_CHECKS
from scrapy_ubi.adapter.requests.item_classes import Untravelled, class_name
from scrapy_ubi.adapter.requests.plugin_codecs import BUILT_IN, LOOKED_AT, is_left_out
from scrapy_ubi.adapter.requests.scalars import CODEC_TAG, tagged
from scrapy_ubi.adapter.requests.untravelled import Loss
from scrapy_ubi.adapter.requests.values import MAX_DEPTH, ItemClasses, pack, unpack
from scrapy_ubi.errors import UbiError, UbiSettingError

SETTING = "UBI_CODECS"
LONGEST_REASON = 100  # characters of what a codec raises
METHODS = ("encode", "decode")


class MetaCodec(Protocol):
    """What is asked of a codec. `same(value, again)` may be there as well."""

    def encode(self, value: Any, /) -> Any:
        """The value as what JSON can express; raises where it cannot be."""

    def decode(self, data: Any, /) -> Any:
        """The value of this data; raises where it is of none."""


class CodecFailure(UbiError):
    """A codec cannot make the data of a value, or the value of data. The text names key and class; `kind` is the name
    of the type that does not travel, for counting."""

    def __init__(self, text: str, kind: str = "") -> None:
        self.kind = kind
        super().__init__(text)


class MetaCodecs:
    """The codecs of one crawl, by the key in meta."""

    def __init__(self, codecs: Mapping[str, tuple[str, MetaCodec]], checked: frozenset[str] = frozenset()) -> None:
        """`codecs`: key -> (name for people, codec). `checked`: keys whose codecs are known to lose nothing."""
        self._codecs = dict(codecs)
        self._checked = checked
        self.keys = frozenset({*codecs, *LOOKED_AT})

    def extract(self, meta: dict[str, Any], items: ItemClasses, losses: list[Loss]) -> dict[str, Any]:
        """Take out of `meta` what travels by a codec, and what need not travel; give the former as what JSON can
        express. What a codec cannot make is a loss."""
        packed = {}
        for key in [key for key in meta if key in self.keys]:
            if is_left_out(key, meta[key], meta):
                del meta[key]
            elif key in self._codecs:
                try:
                    packed[key] = self.pack(key, meta.pop(key), items)
                except CodecFailure as failure:
                    losses.append(Loss(f"meta/{failure.kind}", str(failure)))
        return packed

    def pack(self, key: str, value: object, items: ItemClasses) -> Any:
        """The value under this key as what JSON can express. Raises CodecFailure."""
        name, codec = self._codecs[key]
        kind = type(value).__name__
        what = f"meta[{key!r}] (a {kind})"
        try:
            packed = pack(codec.encode(value), items)
            if key not in self._checked:
                _check_whole(codec, value, packed, items)
        except Untravelled as error:
            raise CodecFailure(f"{what}: {name} gives a {error.kind}, which does not travel", error.kind) from error
        except _Lossy as error:
            raise CodecFailure(f"{what}: {name} loses {error}", kind) from error
        except Exception as error:  # the user's own code
            raise CodecFailure(f"{what}: {name} raises {_said(error)}", kind) from error
        return tagged(CODEC_TAG, packed)

    def unpack(self, key: str, data: Any, items: ItemClasses) -> Any:
        """The value of what `pack` gave under this key. Raises CodecFailure; ValueError for what `pack` cannot give."""
        value = unpack(data, items)
        if key not in self._codecs:
            raise CodecFailure(f"meta[{key!r:.60}]: {SETTING} of this agent names no codec for it")
        name, codec = self._codecs[key]
        try:
            return codec.decode(value)
        except Exception as error:  # the user's own code
            raise CodecFailure(f"meta[{key!r}]: {name} raises {_said(error)}") from error


def make_codecs(named: Mapping[str, object]) -> MetaCodecs:
    """The codecs that UBI_CODECS names (None: none for that key) and the built-in ones. Raises UbiSettingError."""
    codecs: dict[str, tuple[str, MetaCodec]] = {
        key: (class_name(type(codec)), codec) for key, codec in BUILT_IN.items() if key not in named
    }
    built_in = frozenset(codecs)
    for key, entry in named.items():
        if key in META_CHECKS or key in DERIVED_META or key.startswith("ubi_"):
            raise UbiSettingError(
                SETTING, f"has a codec for {key!r}, which is read on the way", "choose a key of yours"
            )
        if entry is not None:
            name = entry if isinstance(entry, str) else class_name(entry if isinstance(entry, type) else type(entry))
            codecs[key] = f"{name} of {SETTING}", _made(key, name, entry)
    return MetaCodecs(codecs, built_in)


def _made(key: str, name: str, entry: object) -> MetaCodec:
    """The codec of an entry: the dotted path of one, its class, or itself."""
    try:
        found: Any = load_object(entry) if isinstance(entry, str) else entry
        made: MetaCodec = found() if isinstance(found, type) else found
    except Exception as error:  # the user's own code
        raise UbiSettingError(
            SETTING, f"has {name!r} for {key!r}, which cannot be made: {_said(error)}", "name a class without arguments"
        ) from error
    if missing := [method for method in METHODS if not callable(getattr(made, method, None))]:
        raise UbiSettingError(
            SETTING,
            f"has {name!r} for {key!r}, which has no {missing[0]}()",
            "give a class with encode(value) and decode(data)",
        )
    return made


# -- is it the same value? ---------------------------------------------------------------------------------------------


class _Lossy(Exception):
    """A codec does not give back the value that it was given."""


def _check_whole(codec: MetaCodec, value: object, packed: Any, items: ItemClasses) -> None:
    """Raise `_Lossy` where the data gives another value; whatever the codec raises."""
    again = codec.decode(unpack(packed, items))
    same = getattr(codec, "same", None)
    if not (same(value, again) if same is not None else _is_same(value, again, 0)):
        raise _Lossy(f"a part of it: {value!r:.60} becomes {again!r:.60}")


def _is_same(value: Any, again: Any, depth: int) -> bool:
    """Whether two values are equal, types included; objects without an `==` of their own, by their attributes."""
    if value is again:
        return True
    cls = type(value)
    if type(again) is not cls or depth > MAX_DEPTH:
        return False
    if cls is float:
        return bool(value == again) or (math.isnan(value) and math.isnan(again))
    if cls in (list, tuple):
        return len(value) == len(again) and all(map(_is_same, value, again, [depth + 1] * len(value)))
    if cls is dict:
        return value.keys() == again.keys() and all(_is_same(value[key], again[key], depth + 1) for key in value)
    if getattr(cls, "__eq__") is not object.__eq__:  # noqa: B009 - mypy takes the two for different types
        return bool(value == again)
    return _is_same(_attributes(value), _attributes(again), depth + 1)


def _attributes(value: object) -> dict[str, Any]:
    slots = [name for cls in type(value).__mro__ for name in _names(getattr(cls, "__slots__", ()))]
    return {name: getattr(value, name) for name in slots if hasattr(value, name)} | getattr(value, "__dict__", {})


def _names(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:LONGEST_REASON]
