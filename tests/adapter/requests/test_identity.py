"""Which requests are the same one, and which are meant to be fetched again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from scrapy import Request
from scrapy.utils.request import fingerprint

from scrapy_ubi.adapter.requests.check import NONCE
from scrapy_ubi.adapter.requests.identity import RequestKeys
from scrapy_ubi.agent.keys import REQUEUED, UNJOINED, again_nonce, taken_first
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.urls.host_rules import read_rules
from scrapy_ubi.urls.key import SEED, seed_key

URL = "http://www.h1.example/a"
keys = RequestKeys(UbiSettings())


def key(url: str = URL, keys: RequestKeys = keys, **arguments: Any) -> int:
    request = Request(url, **arguments)
    place = keys.place(request)
    assert place is not None
    return keys.key(request, place)


def test_equal_requests_have_one_key_whatever_they_carry() -> None:
    assert key() == key(URL + "#fragment") == key("HTTP://WWW.H1.example:80/a")
    assert key() == key(meta={"depth": 3}, priority=2, dont_filter=True, cb_kwargs={"a": 1}, headers={"X": "y"})


def test_method_body_and_nonce_make_a_difference() -> None:
    assert len({key(), key(method="POST"), key(method="POST", body="a"), key(meta={NONCE: "1"})}) == 4


def test_a_key_is_64_bits() -> None:
    assert 0 <= key() < 1 << 64


def test_the_host_is_the_partition_key() -> None:
    domain = RequestKeys(UbiSettings(partition="domain"))
    request = Request("https://www.bbc.co.uk/news")
    hosts = [place.host for place in (keys.place(request), domain.place(request)) if place is not None]
    assert hosts == ["www.bbc.co.uk", "bbc.co.uk"]


def test_what_is_no_http_url_has_no_place() -> None:
    for url in ("data:,x", "file:///etc/passwd", "ftp://h1.example/", "s3://bucket/key", "about:blank"):
        assert keys.place(Request(url)) is None, url


def test_what_asks_to_be_fetched_anyway_gets_a_nonce_of_its_own() -> None:
    requests = [Request(URL, dont_filter=True) for _ in range(2)]
    assert all(keys.mark(request, seed=False) for request in requests)
    assert requests[0].meta[NONCE] != requests[1].meta[NONCE]
    assert not keys.mark(requests[0], seed=False)


def test_seeds_retries_and_redirects_get_none() -> None:
    assert not keys.mark(Request(URL, dont_filter=True), seed=True)
    assert not keys.mark(Request(URL, dont_filter=True, meta={"retry_times": 1}), seed=False)
    assert not keys.mark(Request(URL, dont_filter=True, meta={"redirect_times": 1}), seed=False)
    assert not keys.mark(Request(URL), seed=False)


def test_what_comes_out_of_nowhere_has_a_new_nonce_whatever_it_was_copied_from() -> None:
    copied = {NONCE: SEED, "retry_times": 1, "redirect_times": 1}
    once, again = (Request(URL, dont_filter=True, meta=copied) for _ in range(2))
    keys.rename(once)
    keys.rename(again)
    assert len({SEED, once.meta[NONCE], again.meta[NONCE]}) == 3
    filtered = Request(URL, meta=copied)
    keys.rename(filtered)
    assert NONCE not in filtered.meta


def test_the_key_of_a_seed_is_told_from_that_of_a_link_to_its_page() -> None:
    seed = key("http://h/?b&a", meta={NONCE: SEED})
    assert seed == seed_key(key("http://h/?b&a")) == key("http://h/?a&b", meta={NONCE: SEED}) != key("http://h/?b&a")
    assert key(meta={NONCE: f"{SEED}.x"}) == seed_key(key(), f"{SEED}.x") != seed_key(key())


def test_without_a_filter_everything_gets_a_nonce_but_seeds() -> None:
    unfiltered = RequestKeys(UbiSettings(), unfiltered=True)
    assert unfiltered.mark(Request(URL), seed=False)
    assert not unfiltered.mark(Request(URL), seed=True)


def test_a_redirect_back_to_its_own_chain_is_a_step_on() -> None:
    back = {"redirect_urls": [URL + "#x", "http://h2.example/"], "redirect_times": 2}
    assert key(meta=back, dont_filter=True) != key()
    assert key(meta=back, dont_filter=True) == key(meta={**back, "retry_times": 1}, dont_filter=True)
    assert key(meta={**back, "redirect_times": 4}, dont_filter=True) != key(meta=back, dont_filter=True)
    assert key(meta=back) == key()  # filtered, as in plain Scrapy
    elsewhere = {"redirect_urls": ["http://h2.example/"], "redirect_times": 1}
    assert key(meta=elsewhere, dont_filter=True) == key()


def test_what_counts_as_one_page_is_chosen_by_the_settings() -> None:
    larm = RequestKeys(UbiSettings(normalise="larm"))
    assert key("http://h/A//index.html", larm) == key("http://h/a/", larm) != key("http://h/A//index.html")
    assert key("http://h/a/") == key("http://h/a/", larm)
    assert larm.changed == {"plus": 0, "characters": 0, "path-case": 1, "slashes": 1, "index": 1}
    assert keys.changed == {}


def test_a_redirect_back_to_another_spelling_is_a_step_on() -> None:
    larm = RequestKeys(UbiSettings(normalise="larm"))
    chain = {"redirect_urls": ["http://h/a/"], "redirect_times": 1}
    back = [key("http://h/A/", of, dont_filter=True, meta=chain) for of in (keys, larm)]
    assert back == [key("http://h/A/", meta={NONCE: ""}), key("http://h/a/", larm, meta={NONCE: "/1"})]


def test_names_of_one_host_have_one_owner_and_synonyms_one_page() -> None:
    rules = read_rules(["startsWith(www.) =", "synonym(h2.example) = h1.example"])
    of = RequestKeys(UbiSettings(host_rules=rules))
    urls = ["http://h1.example/", "http://h2.example/", "http://www.h1.example/", "http://www.h2.example/"]
    places = [of.place(Request(url)) for url in urls]
    assert {place.host for place in places if place is not None} == {"h1.example"}
    assert len({key(url, of) for url in urls}) == 3
    assert key(urls[0], of) == key(urls[1], of) == key(urls[0])


@pytest.mark.parametrize("pair", [("?a=1&b=2", "?b=2&a=1"), ("?a", "?a="), ("?q=a+b", "?q=a%20b"), ("%2C", ",")])
def test_what_is_one_to_scrapy_is_one(pair: tuple[str, str]) -> None:
    one, other = (URL + rest for rest in pair)
    assert fingerprint(Request(one)) == fingerprint(Request(other))
    assert key(one) == key(other)
    safe = RequestKeys(UbiSettings(normalise="safe"))
    assert key(one, safe) != key(other, safe)


@pytest.mark.parametrize("rest", ["?b=2&a=1", "?a=1&b=2", "?a", "#b", "", "?a=%20", "/../b"])
def test_a_url_that_is_to_be_taken_as_it_is_is_told_apart_as_by_scrapy(rest: str) -> None:
    def is_one(keys: Callable[[Request], object]) -> list[bool]:
        verbatim = Request(URL + rest, meta={"verbatim_url": True})
        others = [Request(URL + more, meta={"verbatim_url": True}) for more in ("?b=2&a=1", "?a=1&b=2", "", "?a=+")]
        return [keys(verbatim) == keys(other) for other in [*others, Request(URL + rest), Request(URL + "?b=2&a=1")]]

    def own(request: Request) -> int:
        place = keys.place(request)
        assert place is not None
        return keys.key(request, place)

    assert is_one(own) == is_one(fingerprint)


# -- taken in again


@pytest.mark.parametrize("first", [0, 5, (1 << 64) - 1])
@pytest.mark.parametrize(("why", "more"), [(REQUEUED, "1f"), (UNJOINED, "")])
def test_one_taken_in_again_says_why_and_under_which_key_it_was_taken_first(first: int, why: str, more: str) -> None:
    entry = Entry(first, URL, 2, 3, '{"callback":"parse_item"}')
    again = keys.again(entry, again_nonce(why, entry, more))
    assert again is not None and again.key != key()
    assert taken_first(again) == (why, first)
    spaced = again._replace(request=json.dumps(json.loads(again.request)))
    assert taken_first(spaced) == (why, first), "however its sender writes JSON"


def test_each_requeue_of_a_request_is_another_one_and_says_the_key_before() -> None:
    entry = Entry(key(), URL, 0)
    again = [keys.again(entry, again_nonce(REQUEUED, entry, more)) for more in ("a", "b")]
    assert again[0] is not None and again[1] is not None and again[0].key != again[1].key
    once_more = keys.again(again[0], again_nonce(REQUEUED, again[0], "c"))
    assert once_more is not None and taken_first(once_more) == (REQUEUED, again[0].key)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"callback":"parse_item"}',
        '{"meta":{"ubi_nonce":"0123456789abcdef"}}',
        '{"meta":{"ubi_nonce":"jar.ubi-requeued.0123456789abcdef"}}',
        '{"meta":{"ubi_nonce":"ubi-requeued.0123"}}',
        '{"meta":{"ubi_nonce":7}}',
        json.dumps({"body": json.dumps({"meta": {NONCE: "ubi-requeued.0123456789abcdef"}})}),
    ],
)
def test_what_was_not_taken_before_says_nothing(text: str) -> None:
    assert taken_first(Entry(1, URL, 0, 0, text)) is None
