"""Requests from outside: whole and right, or refused with one short reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.adapter.requests.check import DERIVED_META, NONCE, RequestCheck

check = RequestCheck({"parse", "parse_item"}, {})

json_values: st.SearchStrategy[Any] = st.deferred(
    lambda: (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text()
        | st.lists(json_values, max_size=3)
        | st.dictionaries(st.text() | st.sampled_from(["~", "v", "meta", "callback"]), json_values, max_size=3)
    )
)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"method": "POST", "body": "a=1"},
        {"body": {"~": "bytes", "v": "/w=="}, "encoding": "cp1252", "flags": ["x"], "dont_filter": True},
        {"headers": {"X-A": ["1", "2"], "Referer": "http://h1.example/"}},
        {"cookies": {"a": "1"}},
        {"cookies": [{"name": "a", "value": 1, "secure": False}]},
        {"cookies": {"a": None}},
        {"cookies": [{"name": "a", "value": "1", "domain": None, "sameSite": None, "expiry": 1.5, "rest": {"x": []}}]},
        {"cookies": {"~": "tuple", "v": [{"name": "a", "value": None}]}},
        {"flags": ["a", 1, 1.5, None, True]},
        {"headers": {"User-Agent": []}},
        {"meta": {"item": {"a": [1, 2.5, None]}, NONCE: "0f.1", "retry_times": 2, "proxy": "http://p:3128"}},
        {"meta": {"proxy": None, "redirect_urls": ["http://h1.example/"], "handle_httpstatus_list": [404]}},
        {"meta": {"proxy": "", "download_timeout": None, "download_slot": None, "retry_times": None}},
        {"meta": {"proxy": "socks4a://p:1", "download_timeout": 0, "redirect_times": None, "redirect_ttl": None}},
        {"meta": {"download_timeout": False, "download_slot": {"~": "tuple", "v": ["a", 1]}}},
        {"meta": {"handle_httpstatus_list": {"~": "dict", "v": [[404, 1]]}, "download_slot": 0}},
        {"callback": "parse_item", "errback": "parse", "cb_kwargs": {"n": {"~": "tuple", "v": [1]}}},
        {"callback": "<none>"},
        {"callback": {"method": "parse_item"}, "errback": {"method": "parse", "args": [1], "kwargs": {"n": None}}},
        {"callback": {"method": "parse_item", "kwargs": {"~": "dict", "v": [["~", 1]]}}},
        {"retries": 2, "meta": {"retry_times": 2}},
        {"callback": "<lost>"},
        {"class": "JsonRequest", "method": "POST"},
        {"reset": True},
        {"lost": ["meta", "meta['page'] (a Page)"]},
    ],
)
def test_requests_that_hold(fields: dict[str, Any]) -> None:
    assert check(json.dumps(fields)) is None


def test_no_text_is_a_plain_get() -> None:
    assert check("") is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("\x80\x04\x95", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"meta": {"x": NaN}}', "not JSON"),
        ('{"meta": {"x": 1e999}}', "not finite"),
        ("[" * 100_000, "nested too deeply"),
        ('{"meta": {"x": ' + "[" * 50 + "]" * 50 + "}}", "nested too deeply"),
        ('{"_class": "os.system"}', "unknown field '_class'"),
        ('{"class": "os.system"}', "class: 'os.system'"),
        ('{"class": "Request"}', "class"),
        ('{"class": ["JsonRequest"]}', "class"),
        ('{"reset": 1}', "neither true nor false"),
        ('{"url": "file:///etc/passwd"}', "unknown field 'url'"),
        ('{"method": "GET /x HTTP/1.1\\r\\nX: y"}', "method"),
        ('{"method": "get"}', "method"),
        ('{"method": 1}', "method"),
        ('{"body": [1]}', "body"),
        ('{"headers": {"X\\r\\nY": "z"}}', "header name"),
        ('{"headers": {"X": "y\\r\\nZ: 1"}}', "header value"),
        ('{"headers": {"X": {"~": "bytes", "v": "Cg=="}}}', "header value"),
        ('{"headers": {"X": null}}', "header value"),
        ('{"headers": {"": "y"}}', "header name"),
        ('{"headers": [["X", "y"]]}', "headers"),
        ('{"cookies": "a=b"}', "cookies"),
        ('{"cookies": {"a": {"b": 1}}}', "cookies"),
        ('{"cookies": [{"name": "a", "value": []}]}', "cookies"),
        ('{"cookies": [["a", "b"]]}', "cookies"),
        ('{"cookies": {"~": "set", "v": ["a"]}}', "cookies"),
        ('{"meta": []}', "meta"),
        ('{"meta": {"depth": 3}}', "'depth' may not be '3'"),
        ('{"meta": {"cached_response": null}}', "cached_response"),
        ('{"meta": {"proxy": "file:///x"}}', "proxy"),
        ('{"meta": {"proxy": "http://p:1\\r\\n"}}', "proxy"),
        ('{"meta": {"proxy": "http://[::1"}}', "proxy"),
        ('{"meta": {"proxy": 1}}', "proxy"),
        ('{"meta": {"retry_times": -1}}', "retry_times"),
        ('{"meta": {"redirect_times": true}}', "redirect_times"),
        ('{"meta": {"redirect_urls": [1]}}', "redirect_urls"),
        ('{"meta": {"ubi_nonce": 1}}', "ubi_nonce"),
        ('{"meta": {"proxy": false}}', "proxy"),
        ('{"meta": {"download_slot": []}}', "download_slot"),
        ('{"meta": {"download_slot": {"~": "tuple", "v": [[]]}}}', "download_slot"),
        ('{"meta": {"download_slot": {"~": "float", "v": "nan"}}}', "download_slot"),
        ('{"meta": {"download_timeout": -1}}', "download_timeout"),
        ('{"meta": {"download_timeout": {"~": "float", "v": "nan"}}}', "download_timeout"),
        ('{"meta": {"handle_httpstatus_list": 404}}', "handle_httpstatus_list"),
        ('{"cb_kwargs": [1]}', "cb_kwargs"),
        ('{"cb_kwargs": {"x": {"~": "pickle", "v": ""}}}', "unknown tag 'pickle'"),
        ('{"callback": "__init__"}', "'__init__' is no callback of the spider"),
        ('{"callback": "os.system"}', "no callback"),
        ('{"callback": null}', "no callback"),
        ('{"callback": ["parse"]}', "no callback"),
        ('{"errback": "exploit"}', "errback"),
        ('{"callback": {"method": "exploit"}}', "callback: 'exploit' is no callback"),
        ('{"callback": {"method": "<lost>"}}', "no callback"),
        ('{"callback": {}}', "no callback"),
        ('{"callback": {"method": ["parse"]}}', "no callback"),
        ('{"callback": {"method": "parse", "args": {}}}', "no partial"),
        ('{"callback": {"method": "parse", "kwargs": []}}', "no partial"),
        ('{"callback": {"method": "parse", "kwargs": {"~": "dict", "v": [[1, 2]]}}}', "no partial"),
        ('{"callback": {"method": "parse", "more": 1}}', "no partial"),
        ('{"callback": {"method": "parse", "args": [{"~": "pickle", "v": ""}]}}', "unknown tag 'pickle'"),
        ('{"encoding": "zip"}', "encoding"),
        ('{"encoding": "rot13"}', "encoding"),
        ('{"encoding": 8}', "encoding"),
        ('{"flags": ["a", []]}', "flags"),
        ('{"flags": "a"}', "flags"),
        ('{"dont_filter": 1}', "dont_filter"),
        ('{"lost": "meta"}', "lost: not what is lost"),
        ('{"lost": ["meta"]}', "lost"),
        ('{"lost": ["anything", ""]}', "lost"),
        ('{"lost": ["errback", ""]}', "lost"),
        ('{"lost": [["meta"], ""]}', "lost"),
        ('{"lost": ["meta", 1]}', "lost"),
        ('{"lost": ["meta", "' + "x" * 201 + '"]}', "lost"),
    ],
)
def test_requests_that_do_not_hold(text: str, reason: str) -> None:
    said = check(text)
    assert said is not None
    assert reason in said


@pytest.mark.parametrize("key", sorted(DERIVED_META))
def test_what_only_middlewares_make_is_refused(key: str) -> None:
    assert check(json.dumps({"meta": {key: None}})) is not None


def test_reasons_are_short_whatever_the_data() -> None:
    for fields in (
        {"x" * 10_000: 1},
        {"callback": "x" * 10_000},
        {"meta": {"proxy": "x y" * 9999}},
        {"meta": {"depth": "x" * 9999}},
    ):
        assert len(check(json.dumps(fields)) or "") < 200


def test_what_would_be_refused_is_named_one_by_one() -> None:
    fields = {
        "method": "GET x",
        "headers": {"X": "1", ":authority": "h", "A": "1\n"},
        "meta": {"proxy": False, "n": 1},
        "cookies": {"a": [1]},
        "flags": ["x"],
    }
    found = check.refused(json.dumps(fields), fields)
    assert found == [
        ("method", None),
        ("headers", ":authority"),
        ("headers", "A"),
        ("meta", "proxy"),
        ("cookies", None),
    ]
    assert json.dumps(fields) not in check.held
    assert check.refused('{"flags":["y"]}', {"flags": ["y"]}) == []
    assert '{"flags":["y"]}' in check.held, "it need not be read again"


@given(st.text() | json_values.map(json.dumps))
def test_whatever_comes_the_answer_is_a_reason_or_none(text: str) -> None:
    said = check(text)
    assert said is None or 0 < len(said) < 200


@given(
    st.dictionaries(
        st.sampled_from(["method", "body", "headers", "cookies", "meta", "cb_kwargs", "callback", "encoding", "flags"]),
        json_values,
    )
)
def test_whatever_the_fields_are_the_answer_is_a_reason_or_none(fields: dict[str, Any]) -> None:
    said = check(json.dumps(fields))
    assert said is None or 0 < len(said) < 200
