"""UBI_CODECS: what a codec makes of a value travels and is whole, or the page fails with a reason."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.settings import Settings

from scrapy_ubi.adapter.requests.codec import Codec, Encoded
from scrapy_ubi.adapter.requests.identity import RequestKeys
from scrapy_ubi.adapter.requests.meta_codecs import make_codecs
from scrapy_ubi.adapter.requests.untravelled import CodecError
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.settings import UbiSettings

URL = "http://h1.example/"
HERE = __name__


class Walk(Spider):
    name = "walk"

    def parse(self, response: Response) -> None: ...


class Price:
    """No item, and without an `==`."""

    def __init__(self, amount: Decimal, currency: str) -> None:
        self.amount, self.currency = amount, currency


class PriceCodec:
    def encode(self, price: Price) -> Any:
        return [str(price.amount), price.currency]

    def decode(self, data: Any) -> Price:
        amount, currency = data
        return Price(Decimal(amount), currency)


class Forgetful(PriceCodec):
    def encode(self, price: Price) -> Any:
        return [str(price.amount), "EUR"]


class Rounding(PriceCodec):
    def decode(self, data: Any) -> Any:
        return float(data[0])


class Raising(PriceCodec):
    def encode(self, price: Price) -> Any:
        raise KeyError("currency")


class Unread(PriceCodec):
    def decode(self, data: Any) -> Any:
        raise ValueError("no such currency")


class Unplain(PriceCodec):
    def encode(self, price: Price) -> Any:
        return [price]


class Tolerant(Forgetful):
    def same(self, value: Price, again: Price) -> bool:
        return value.amount == again.amount


class Slots:
    __slots__ = ("a", "b")

    def __init__(self, a: int, b: int) -> None:
        self.a, self.b = a, b


class SlotsCodec:
    def encode(self, value: Slots) -> Any:
        return {"a": value.a}

    def decode(self, data: Any) -> Slots:
        return Slots(data["a"], 1)


def codec(named: dict[str, object]) -> Codec:
    return Codec(Walk(), Settings(), codecs=make_codecs(named))


def encoded(cls: object, value: object = None) -> Encoded:
    price = Price(Decimal("9.90"), "CHF") if value is None else value
    return codec({"price": cls}).encode(Request(URL, meta={"price": price, "page": 3}))


def entry(text: str) -> Entry:
    return Entry(1, URL, 0, 0, text)


@pytest.mark.parametrize("named", [f"{HERE}.PriceCodec", PriceCodec, PriceCodec()], ids=["path", "class", "object"])
def test_a_value_travels_by_its_codec(named: object) -> None:
    text, *_, losses, _ = encoded(named)
    there = codec({"price": named})
    assert not losses and there.check(text) is None
    assert json.loads(text)["meta"]["price"] == {"~": "codec", "v": ["9.90", "CHF"]}
    meta = there.decode(entry(text)).meta
    assert (meta["price"].amount, meta["price"].currency, meta["page"]) == (Decimal("9.90"), "CHF", 3)


@pytest.mark.parametrize(
    ("cls", "said"),
    [
        (Forgetful, "loses a part of it"),
        (Rounding, "loses a part of it"),
        (Raising, "raises KeyError: 'currency'"),
        (Unread, "raises ValueError: no such currency"),
        (Unplain, "gives a Price, which does not travel"),
    ],
)
def test_a_codec_that_loses_or_raises_fails_the_page_and_says_so(cls: type, said: str) -> None:
    result = encoded(cls)
    (loss,) = result.losses
    assert loss.kind == "meta/Price"
    assert loss.what.startswith(f"meta['price'] (a Price): {HERE}.{cls.__name__} of UBI_CODECS {said}")
    there = codec({"price": cls})
    assert there.check(result.text) is None, "the letter is taken, and the page fails where it goes"
    with pytest.raises(CodecError, match=r"meta\['price'\]") as caught:
        there.decode(entry(result.text))
    assert caught.value.reason == "meta"


def test_attributes_of_slots_are_looked_at_too() -> None:
    assert not encoded(SlotsCodec, Slots(1, 1)).losses
    assert [loss.kind for loss in encoded(SlotsCodec, Slots(1, 2)).losses] == ["meta/Slots"]


def test_a_codec_may_say_itself_what_is_the_same() -> None:
    assert not encoded(Tolerant).losses


def test_an_agent_without_the_codec_fails_the_page() -> None:
    text = encoded(PriceCodec).text
    there = codec({})
    assert there.check(text) is None
    with pytest.raises(CodecError, match="UBI_CODECS of this agent names no codec for it") as caught:
        there.decode(entry(text))
    assert caught.value.reason == "meta"


def test_data_that_a_codec_refuses_fails_the_page() -> None:
    text = json.dumps({"meta": {"price": {"~": "codec", "v": ["1"]}}})
    with pytest.raises(CodecError, match=r"meta\['price'\]: .*PriceCodec of UBI_CODECS raises ValueError") as caught:
        codec({"price": PriceCodec}).decode(entry(text))
    assert caught.value.reason == "meta"


@pytest.mark.parametrize("field", ["cb_kwargs", "meta"])
def test_outside_of_meta_and_malformed_it_is_no_value(field: str) -> None:
    packed = {"~": "codec", "v": 1} | ({} if field == "cb_kwargs" else {"more": 1})
    assert codec({}).check(json.dumps({field: {"k": packed}})) is not None


def test_scrapys_own_meta_is_checked_through_it() -> None:
    assert codec({}).check(json.dumps({"meta": {"retry_times": {"~": "codec", "v": "x"}}})) is not None


def test_a_dict_that_looks_like_it_is_a_dict() -> None:
    value = {"~": "codec", "v": 1}
    own = codec({})
    text = own.encode(Request(URL, meta={"k": value})).text
    assert own.decode(entry(text)).meta["k"] == value


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"price": "no.such.Codec"}, "UBI_CODECS has 'no.such.Codec' for 'price', which cannot be made"),
        ({"price": f"{HERE}.Price"}, "UBI_CODECS has .*Price' for 'price', which cannot be made: TypeError"),
        ({"price": f"{HERE}.Walk"}, "UBI_CODECS has .*Walk' for 'price', which has no encode"),
        ({"proxy": PriceCodec}, "UBI_CODECS has a codec for 'proxy', which is read on the way"),
        ({"ubi_host": PriceCodec}, "UBI_CODECS has a codec for 'ubi_host'"),
    ],
)
def test_what_is_no_codec_is_said_at_the_start(named: dict[str, object], said: str) -> None:
    with pytest.raises(UbiSettingError, match=said):
        make_codecs(named)


def test_a_built_in_one_may_be_taken_away() -> None:
    assert "inject" in make_codecs({}).keys and "inject" not in make_codecs({"inject": None}).keys


@pytest.mark.parametrize("value", ['{"price": "a.B"}', {"price": "a.B"}])
def test_the_setting_is_read(value: object) -> None:
    assert UbiSettings.from_scrapy({"UBI_CODECS": value}).codecs == {"price": "a.B"}


@pytest.mark.parametrize("value", ["{", "[]", 3, {"price": 3}, {"price": "Codec"}, {"": "a.B"}, {3: "a.B"}])
def test_the_setting_is_checked(value: object) -> None:
    with pytest.raises(UbiSettingError, match="UBI_CODECS"):
        UbiSettings.from_scrapy({"UBI_CODECS": value})


def test_a_request_whose_meta_is_known_to_a_codec_alone_can_be_taken_in_again() -> None:
    """As one that failed is, by a command, which knows no codec."""
    waiting = entry(encoded(PriceCodec).text)
    again = RequestKeys(UbiSettings.from_scrapy({})).again(waiting, "again")
    assert again is not None and again.key != waiting.key
    assert codec({"price": PriceCodec}).decode(again).meta["price"].currency == "CHF"
