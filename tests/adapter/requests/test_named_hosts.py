"""Requests that name the host they are for: in their meta, or by a function of the project."""

from __future__ import annotations

import json
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.settings import Settings

from scrapy_ubi.adapter.requests.check import ASKED, HOST
from scrapy_ubi.adapter.requests.codec import Codec
from scrapy_ubi.adapter.requests.identity import RequestKeys
from scrapy_ubi.adapter.requests.named_hosts import BadHost
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.urls.host_shards import HostShards

GATE = "http://gate.example/get?url=http://target.example/a"
HERE = "tests.adapter.requests.test_named_hosts"


def by_callback(request: Request) -> Any:
    """A function of a project."""
    if request.flags:
        raise KeyError(request.flags[0])
    return request.cb_kwargs.get("host")


def keys(**settings: Any) -> RequestKeys:
    return RequestKeys(UbiSettings(**settings))


def entry(request: Request) -> Entry:
    encoded = Codec(Spider("walk"), Settings()).encode(request)
    assert not encoded.losses
    return Entry(1, request.url, encoded.depth, encoded.priority, encoded.text)


def test_the_meta_names_the_host_and_the_key_is_that_of_the_url() -> None:
    request = Request(GATE, meta={HOST: "Target.example"})
    place, plain = keys().named_place(request), keys().place_of(GATE)
    assert place is not None and plain is not None
    assert place.host == "target.example" and place.normal == plain.normal
    assert keys().key(request, place) == keys().key(Request(GATE), plain)


def test_other_agents_see_in_the_text_where_it_belongs() -> None:
    assert keys().named_host(entry(Request(GATE, meta={HOST: "target.example"}))) == "target.example"
    by = keys(named_by=f"{HERE}.by_callback")
    request = Request(GATE, cb_kwargs={"host": "asked.example"})
    place = by.place(request)
    assert place is not None and place.host == "asked.example"
    assert by.named_host(entry(request)) == "asked.example"
    assert keys().named_host(entry(request)) == "gate.example"  # who has no such function counts by the URL
    lying = Entry(1, GATE, 0, 0, json.dumps({"meta": {HOST: "no host"}}))
    assert keys().named_host(lying) is None


def test_a_named_host_may_be_cut_into_shards() -> None:
    cut = keys(host_shards=HostShards({"target.example": 4}))
    request = Request(GATE, meta={HOST: "target.example"})
    place = cut.place(request)
    assert place is not None and place.host.startswith("target.example#")
    assert cut.named_host(entry(request)) == place.host


def test_the_function_is_asked_anew_of_a_request_whose_meta_was_copied() -> None:
    by = keys(named_by=f"{HERE}.by_callback")
    first = Request(GATE, cb_kwargs={"host": "asked.example"})
    by.place(first)
    following = Request(f"{GATE}b", meta=first.meta, cb_kwargs={"host": "other.example"})
    none = Request(f"{GATE}c", meta=first.meta)
    own = Request(f"{GATE}d", meta={**first.meta, HOST: "own.example"}, cb_kwargs={"host": "other.example"})
    hosts = [place.host for one in (following, none, own) if (place := by.place(one)) is not None]
    assert hosts == ["other.example", "gate.example", "own.example"]
    assert ASKED not in none.meta


@pytest.mark.parametrize("request_", [Request(GATE, meta={HOST: "no host"}), Request(GATE, meta={HOST: 7})])
def test_what_is_no_host_is_said(request_: Request) -> None:
    with pytest.raises(BadHost, match="is no host name"):
        keys().named_place(request_)
    assert keys().place(request_) is None


def test_a_function_that_raises_or_names_no_host_is_said() -> None:
    by = keys(named_by=f"{HERE}.by_callback")
    with pytest.raises(BadHost, match="raised KeyError"):
        by.named_place(Request(GATE, flags=["x"]))
    with pytest.raises(BadHost, match="is no host name"):
        by.named_place(Request(GATE, cb_kwargs={"host": ["a"]}))


@pytest.mark.parametrize("path", ["no.such.module", f"{HERE}.missing", f"{HERE}.GATE"])
def test_a_path_that_leads_to_no_function_is_an_error_at_start(path: str) -> None:
    with pytest.raises(UbiSettingError, match="UBI_PARTITION names"):
        keys(named_by=path)


def test_the_setting_takes_a_word_or_a_path() -> None:
    def read(value: object) -> tuple[str, str]:
        settings = UbiSettings.from_scrapy(Settings({"UBI_PARTITION": value}))
        return settings.partition, settings.named_by

    assert read("domain") == ("domain", "")
    assert read("my.module.host_of") == ("host", "my.module.host_of")
    for wrong in ("hosts", "my module.f", 7, ".f"):
        with pytest.raises(UbiSettingError, match="UBI_PARTITION is"):
            read(wrong)


def test_shards_of_what_is_no_partition_key_are_refused() -> None:
    with pytest.raises(UbiSettingError, match=r"UBI_HOST_SHARDS names 'www.shop.com'.*name 'shop.com'"):
        UbiSettings(partition="domain", host_shards=HostShards({"www.shop.com": 2}))
    with pytest.raises(UbiSettingError, match="UBI_HOST_SHARDS is"):
        UbiSettings.from_scrapy(Settings({"UBI_HOST_SHARDS": {"shop.example": 1}}))
