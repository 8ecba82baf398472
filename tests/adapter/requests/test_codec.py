"""Requests as text, and back: what travels is the same, what cannot is named."""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import http
import inspect
import json
import pathlib
from collections.abc import Iterator
from typing import Any

import attr
import pytest
import scrapy
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request, Spider
from scrapy.downloadermiddlewares.httpproxy import HttpProxyMiddleware
from scrapy.http import FormRequest, JsonRequest, Response, XmlRpcRequest
from scrapy.http.request import NO_CALLBACK
from scrapy.link import Link
from scrapy.linkextractors import LinkExtractor
from scrapy.loader import ItemLoader
from scrapy.settings import Settings
from scrapy.spiders import CrawlSpider, Rule

from scrapy_ubi.adapter.requests.callbacks import callback_names, errback_lost
from scrapy_ubi.adapter.requests.check import DERIVED_META, META_CHECKS
from scrapy_ubi.adapter.requests.codec import Codec, Encoded
from scrapy_ubi.adapter.requests.item_classes import class_name
from scrapy_ubi.adapter.requests.untravelled import CodecError
from scrapy_ubi.protocol.host import Entry

URL = "http://h1.example/a?b=%20c"
PROXY = "http://127.0.0.1:1"  # of this machine's environment, in tests that say so


class Special(Request):
    """A class of the project's, with nothing of its own."""


class Own(FormRequest):
    """Another one, whose constructor wants something else."""

    def __init__(self, page: int, **more: Any) -> None:
        super().__init__(**more)


class Stateful(Request):
    def __init__(self, url: str, wait: float) -> None:
        super().__init__(url)
        self.wait = wait


class Slotted(Request):
    __slots__ = ("wait",)


@dataclasses.dataclass
class Page:
    url: str
    words: list[str]


@attr.define
class Document:
    path: str

    @functools.cached_property
    def text(self) -> str:
        raise FileNotFoundError(self.path)


class Wild(dict):  # type: ignore[type-arg]
    def __reduce_ex__(self, protocol: Any) -> Any:
        raise FileNotFoundError


class Walk(Spider):
    name = "walk"
    state = "not a method"

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        yield {}

    def parse_item(self, response: Response, item: Any = None) -> None: ...

    def failed(self, failure: Any) -> None: ...

    def _private(self, response: Response) -> None: ...

    def no_response(self) -> None: ...

    def start_something(self, *anything: Any) -> None: ...

    @classmethod
    def made(cls, response: Response) -> None: ...

    @staticmethod
    def stood(response: Response) -> None: ...

    @staticmethod
    def alone() -> None: ...

    @property
    def danger(self) -> Any:
        raise AssertionError("a property was looked at")

    def __call__(self, response: Response) -> None: ...

    def closed(self, reason: str) -> None: ...


class Aunt:
    def mixed(self, response: Response) -> None: ...

    @staticmethod
    def aside(failure: Any, more: int = 0) -> None: ...

    def __own(self, response: Response) -> None: ...

    @property
    def hers(self) -> Any:
        return self.__own


class Family(Aunt, Walk):
    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        yield {}

    @classmethod
    def made(cls, response: Response) -> None: ...

    def __own(self, response: Response) -> None: ...

    @property
    def own(self) -> Any:
        return self.__own


class Rules(CrawlSpider):
    name = "rules"
    rules = (Rule(LinkExtractor()),)


def codec_of(spider: Spider, **settings: Any) -> Codec:
    return Codec(spider, Settings(settings))


spider = Walk()
codec = codec_of(spider)


def through(request: Request, codec: Codec = codec) -> Request:
    """The request as another agent with the same spider makes it."""
    encoded = codec.encode(request)
    assert encoded.losses == ()
    return arrive(request, encoded, codec)


def arrive(request: Request, encoded: Encoded, codec: Codec = codec) -> Request:
    assert codec.check(encoded.text) is None
    return codec.decode(Entry(1, request.url, encoded.depth, encoded.priority, encoded.text))


def attributes(request: Request) -> dict[str, Any]:
    return {name: getattr(request, name) for name in Request.attributes}


def refused_for(part: str, request: Request) -> str:
    """What an agent without the original object says, which refuses the request for this reason."""
    with pytest.raises(CodecError) as caught:
        arrive(request, codec.encode(request))
    assert caught.value.reason == part
    return str(caught.value)


def lost(request: Request) -> list[str]:
    return [loss.kind for loss in codec.encode(request).losses]


@pytest.mark.parametrize(
    "request_",
    [
        Request(URL),
        Request(URL, callback=spider.parse),
        Request(URL, meta={"depth": 3}, priority=-3),
        Request(URL, meta={"depth": 3, "download_latency": 0.1, "_dont_cache": True, "download_timeout": 180.0}),
        Request(URL, meta={"proxy": PROXY, "_scheme_proxy": True}),
        Request(URL, meta={"retry_times": 1, "download_slot": "h1.example"}),
        Request(URL, meta={"retry_times": 1, "redirect_urls": ["http://h2.example/"], "download_slot": "h2.example"}),
        Request(URL, headers={"User-Agent": Settings()["USER_AGENT"], "Accept-Encoding": "gzip, deflate, br, zstd"}),
        Request(URL, headers={"Accept-Language": "en", "Cookie": "a=b"}),
    ],
)
def test_a_plain_get_is_nothing_but_url_depth_and_priority(request_: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", PROXY)
    encoded = codec_of(spider).encode(request_)
    retried = {key: value for key, value in request_.meta.items() if key in ("retry_times", "redirect_urls")}
    assert json.loads(encoded.text or "{}").get("meta", {}) == retried
    assert encoded.depth == request_.meta.get("depth", 0)
    assert encoded.priority == request_.priority
    assert bool(encoded.text) == bool(retried)


@pytest.mark.parametrize(
    "request_",
    [
        Request(URL, method="post", body=b"a=1&b=\xff\x00"),
        Request(URL, method="PUT", body="naïve", encoding="cp1252"),
        Request(URL, headers={"X-A": ["1", "2"], "X-B": b"\xff", "Referer": "http://h2.example/"}),
        Request(URL, headers={"X": "naïve"}, encoding="cp1252"),
        Request(URL, cookies={"a": "1", "b": b"2", "c": 3, "d": True}),
        Request(URL, cookies=[{"name": "a", "value": "1", "domain": "h1.example", "path": "/", "secure": True}]),
        Request(URL, meta={"item": {"title": "x", "tags": ("a", "b")}, "cookiejar": 1, "page": Page("u", ["w"])}),
        Request(URL, meta={"~": {"~": 1}, "handle_httpstatus_list": [404, 500], "is_start_request": True}),
        Request(URL, meta={"proxy": "http://user:pass@proxy.example:3128", "download_slot": "mine"}),
        Request(URL, meta={"download_timeout": 3.5, "verbatim_url": True}),
        Request(URL, headers={"User-Agent": None, "Accept": []}),  # type: ignore[dict-item]
        Request(URL, meta={"retry_times": 1, "download_slot": "mine"}),
        Request(URL, meta={"redirect_times": 1, "redirect_urls": ["http://h2.example/"], "download_slot": "mine"}),
        Request(URL, cookies={"a": None, "b": "1"}),
        Request(URL, cookies=[{"name": "a", "value": "1", "domain": None, "sameSite": None}]),  # type: ignore[typeddict-unknown-key]
        Request(URL, cookies=({"name": "a", "value": "1"},)),  # type: ignore[arg-type]
        Request(URL, meta={"download_timeout": 0, "download_slot": None, "proxy": "", "redirect_ttl": None}),
        Request(URL, meta={"handle_httpstatus_list": {404: True}, "download_slot": ("a", 1)}, flags=[1]),  # type: ignore[list-item]
        Request(URL, meta={"redirect_times": 2, "redirect_ttl": 18, "redirect_urls": ["http://a.example/"]}),
        Request(URL, cb_kwargs={"item": {1: {2, 3}}, "~": b"x"}, callback=spider.parse_item),
        Request(URL, errback=spider.failed, flags=["a"], dont_filter=True, priority=7),
        Request(URL, callback=NO_CALLBACK),
        Request(URL, callback=spider._private),
        Request(URL, meta={"handle_httpstatus_list": [http.HTTPStatus.NOT_FOUND], "at": pathlib.Path("a")}),
        Request("http://h1.example/a b|c", meta={"verbatim_url": True}),
    ],
)
def test_all_of_a_request_arrives(request_: Request) -> None:
    assert attributes(through(request_)) == attributes(request_)


@pytest.mark.parametrize(
    "request_",
    [
        FormRequest(URL, formdata={"a": "ü", "b": ["1", "2"]}),
        JsonRequest(URL, data={"a": [1, 2]}),
        XmlRpcRequest(URL, methodname="m", params=(1, "x")),
    ],
)
def test_ready_made_requests_arrive_as_they_are(request_: Request) -> None:
    arrived = through(request_)
    assert attributes(arrived) == attributes(request_)
    assert type(arrived) is type(request_)
    assert attributes(through(arrived)) == attributes(arrived)
    assert type(arrive(request_, codec.encode(arrived.copy()))) is type(request_)


def test_what_a_ready_made_request_has_been_given_or_lacks_is_left_so() -> None:
    """Its class would add headers, and choose method and dont_filter by itself."""
    bare = JsonRequest(URL, data=1, method="GET")
    bare.headers.clear()
    usual = JsonRequest(URL, data=1, headers={"Accept": Settings()["DEFAULT_REQUEST_HEADERS"]["Accept"]})
    once = XmlRpcRequest(URL, methodname="m", params=(), dont_filter=False, method="PUT", encoding="cp1252")
    for request in (bare, once, FormRequest(URL, method="GET", formdata={"a": "1"}), JsonRequest(URL)):
        assert attributes(through(request)) == attributes(request)
    assert "Accept" not in through(usual).headers, "the default that it has, which is made again"


def test_a_ready_made_request_may_be_made_anew_with_other_data() -> None:
    json_, form = through(JsonRequest(URL, data=1)), through(FormRequest(URL, formdata={"a": "1"}))
    assert json_.replace(data={"b": 1, "a": 2}).body == b'{"a": 2, "b": 1}'  # type: ignore[call-arg]
    assert form.replace(formdata={"a": "2"}).body == b"a=2"  # type: ignore[call-arg]


def test_how_a_json_request_is_written_does_not_travel() -> None:
    request = JsonRequest(URL, data={"b": 1, "a": 2}, dumps_kwargs={"sort_keys": False})
    assert lost(request) == ["dumps_kwargs"]
    arrived = arrive(request, codec.encode(request))
    assert (arrived.body, type(arrived)) == (request.body, JsonRequest)
    assert not lost(JsonRequest(URL, dumps_kwargs={"sort_keys": True}))


def test_a_class_that_is_none_of_these_is_not_made() -> None:
    with pytest.raises(CodecError) as caught:
        codec.decode(Entry(1, URL, 0, 0, '{"class":"Special"}'))
    assert caught.value.reason == "class"
    assert codec.check('{"class":"tests.adapter.requests.test_codec.Page"}') is not None, "no class of requests"


texts = st.text(st.characters(codec="utf-8"))


@given(
    st.builds(
        Request,
        st.just(URL),
        method=st.sampled_from(["GET", "POST", "DELETE"]),
        body=st.binary(max_size=20) | texts,
        meta=st.dictionaries(texts.map("x".__add__), st.none() | texts | st.lists(st.integers() | st.floats(-1, 1))),
        cb_kwargs=st.dictionaries(texts, st.tuples(texts, st.binary())),
        headers=st.dictionaries(st.from_regex(r"\AX-[A-Za-z0-9]{1,5}\Z"), st.text("abc ;é=/", max_size=9)),
        priority=st.integers(-1000, 1000),
        dont_filter=st.booleans(),
    )
)
def test_any_request_arrives(request_: Request) -> None:
    assert attributes(through(request_)) == attributes(request_)


@pytest.mark.parametrize(
    ("request_", "kinds"),
    [
        (Request(URL, meta={"download_timeout": "5", "n": 1}), ["meta/download_timeout"]),
        (Request(URL, meta={"proxy": "http://p:1 ", "retry_times": -1, "n": 1}), ["meta/proxy", "meta/retry_times"]),
        (Request(URL, headers={"Authorization": "Bearer x\n", ":authority": "h"}, meta={"n": 1}), ["headers"] * 2),
        (Request(URL, cookies={"a": dt.date(2020, 1, 1)}, meta={"n": 1}), ["cookies"]),  # type: ignore[dict-item]
        (Request(URL, flags=[["a"]], meta={"n": 1}), ["flags"]),  # type: ignore[list-item]
    ],
)
def test_what_receivers_would_refuse_is_left_out_and_named(request_: Request, kinds: list[str]) -> None:
    assert lost(request_) == kinds
    text = codec.encode(request_).text
    assert codec.check(text) is None
    fields = json.loads(text)
    assert fields.pop("lost", [kinds[0].partition("/")[0]])[0] == kinds[0].partition("/")[0]
    assert fields == {"meta": {"n": 1}}
    if kinds == ["flags"]:
        assert arrive(request_, codec.encode(request_)).flags == []
    else:
        refused_for(kinds[0].partition("/")[0], request_)


def test_nobody_sends_a_request_without_the_method_that_it_has() -> None:
    request = Request(URL, method="GET x", callback=spider.parse_item)
    encoded = codec.encode(request)
    assert [loss.kind for loss in encoded.losses] == ["method"]
    refused_for("method", request)


odd_texts = st.text(max_size=6) | st.sampled_from(["", "X-A", ":authority", "a\r\nb", "x\n", "http://p:1", "\ud800"])
odd_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | odd_texts
    | st.binary(max_size=4)
    | st.dates()
    | st.decimals(allow_nan=False)
)
odd_values: st.SearchStrategy[Any] = st.recursive(
    odd_scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(odd_scalars, inner, max_size=3)
        | st.builds(Page, inner, inner)
    ),
    max_leaves=6,
)
looked_at = sorted({*META_CHECKS, *DERIVED_META, "max_retry_times", "bindaddress", "~"})
sendable = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(["", "X-A", ":authority", "x\n", "a\0"])


@given(
    st.builds(
        Request,
        st.just(URL),
        method=st.sampled_from(["GET", "POST", "GET x", "M-SEARCH", "straße"]),
        body=st.binary(max_size=5),
        meta=st.dictionaries(st.sampled_from(looked_at) | odd_scalars, odd_values, max_size=4),
        cb_kwargs=st.dictionaries(odd_texts, odd_values, max_size=2),
        headers=st.dictionaries(sendable, st.none() | sendable | st.lists(sendable, max_size=2), max_size=3),
        cookies=st.dictionaries(odd_scalars, odd_values, max_size=2)
        | st.lists(st.dictionaries(st.sampled_from(["name", "value", "domain", "sameSite"]), odd_values), max_size=2)
        | odd_values,
        flags=st.lists(odd_values, max_size=2),
        encoding=st.sampled_from(["utf-8", "utf-16"]),
        callback=st.sampled_from([None, spider.parse_item, NO_CALLBACK]),
    )
)
def test_whatever_is_written_is_accepted(request_: Request) -> None:
    encoded = codec.encode(request_)
    assert codec_of(spider).check(encoded.text) is None


def test_the_depth_travels_beside_the_text() -> None:
    assert through(Request(URL, meta={"depth": 4})).meta == {"depth": 4}
    assert codec.encode(Request(URL, meta={"depth": "deep"}))[:2] == ("", 0)


@given(st.integers(0, 9), st.integers(-9, 9))
def test_a_plain_get_is_made_as_any_other(depth: int, priority: int) -> None:
    short, long = (codec.decode(Entry(1, URL, depth, priority, text)) for text in ("", "{}"))
    assert short.to_dict() == long.to_dict()


def test_a_depth_that_begins_anew_is_told_from_none() -> None:
    """Scrapy counts a page without a depth as one of depth 0, once more."""
    assert through(Request(URL, meta={"depth": 0})).meta == {"depth": 0}
    assert through(Request(URL)).meta == {}


def test_a_crawl_spider_keeps_its_rules_and_tells_parse_from_the_default() -> None:
    rules = Rules()
    own = codec_of(rules)
    request = rules._build_request(0, Link(URL, "text"))
    arrived = through(request, own)
    assert (arrived.callback, arrived.errback) == (rules._callback, rules._errback)
    assert arrived.meta == {"rule": 0, "link_text": "text"}
    assert own.encode(Request(URL)).text == ""


def test_names_that_may_be_callbacks() -> None:
    usual = {"parse", "_parse", "parse_item", "failed", "_private", "start_something"}
    assert set(callback_names(Walk)) == {*usual, "made", "stood"}
    assert set(callback_names(Family)) == {*usual, "made", "stood", "mixed", "aside", "_Family__own", "_Aunt__own"}


family = Family()


@pytest.mark.parametrize(
    "callback",
    [family.parse, family.parse_item, family.mixed, family.made, type(family).made, family.stood, Walk.stood,
     family.aside, family.own, family.hers],
    ids=lambda callback: callback.__qualname__,
)  # fmt: skip
def test_every_method_of_the_spider_travels_static_of_the_class_inherited_or_private(callback: Any) -> None:
    own = codec_of(family)
    arrived = through(Request(URL, callback=callback, errback=callback), own)
    assert arrived.errback == callback
    assert arrived.callback == (None if callback == family.parse else callback), "the default needs no name"
    encoded = own.encode(Request(URL, callback=functools.partial(callback, 1)))
    assert encoded.losses == () and '"method"' in encoded.text


def test_what_hides_a_method_in_the_spider_object_is_not_called_in_its_place() -> None:
    hiding = Walk()
    hiding.parse_item = print  # type: ignore[method-assign]
    own = codec_of(hiding)
    assert [loss.kind for loss in own.encode(Request(URL, callback=hiding.parse_item)).losses] == ["callback"]
    method = Walk.parse_item.__get__(hiding)
    assert through(Request(URL, callback=method), own).callback == method


@pytest.mark.parametrize(
    "callback",
    [
        lambda response: None,
        functools.partial(print, 1),
        functools.partial(Walk().parse, 1),
        functools.partial(spider.parse_item, item=object()),
        functools.partial(spider.parse_item, item=lambda: None),
        Walk().parse,
        Walk.parse_item,
        Family.made,
        spider.log,
        spider.alone,
        super(Family, Family()).parse,
        spider,
    ],
)
def test_a_callback_without_a_name_is_lost_and_never_replaced(callback: Any) -> None:
    request = Request(URL, callback=callback)
    assert lost(request) == ["callback"]
    assert URL in refused_for("callback", request)


def test_a_callback_that_cannot_travel_is_named_with_its_file_and_line() -> None:
    line = inspect.currentframe().f_lineno  # type: ignore[union-attr]
    named = {
        Request(URL, callback=lambda response: None): line + 2,
        Request(URL, callback=functools.partial(spider.parse, n=st)): Walk.parse.__code__.co_firstlineno,
        Request(URL, callback=Walk()): Walk.__call__.__code__.co_firstlineno,
    }
    for request, at in named.items():
        (loss,) = codec.encode(request).losses
        assert f" at {__file__}:{at} (" in loss.what
        assert f" at {__file__}:{at} (" in refused_for("callback", request), "the other agent says it too"
    (loss,) = codec.encode(Request(URL, callback=print)).losses
    assert "its callback print (no method of the spider)" in loss.what


@pytest.mark.parametrize(
    "function",
    [
        functools.partial(spider.parse_item),
        functools.partial(spider.parse_item, item={"a": (1, b"2")}),
        functools.partial(functools.partial(spider.start_something, 1), [Page("u", ["w"])], **{"~": None}),
    ],
)
def test_a_partial_of_a_method_arrives_with_its_arguments(function: functools.partial[Any]) -> None:
    request = Request(URL, callback=function, errback=functools.partial(spider.failed, 1))
    arrived = through(request)
    for made, before in ((arrived.callback, function), (arrived.errback, request.errback)):
        assert isinstance(made, functools.partial) and isinstance(before, functools.partial)
        assert (made.func, made.args, made.keywords) == (before.func, before.args, before.keywords)
    assert codec.methods(request) is None, "no other request is the same by its names alone"
    assert codec.encode(request).objects, "the agent that made it hands out its very arguments"


def test_an_errback_without_a_name_is_stood_for() -> None:
    """Without it the page is the same as long as it does not fail."""
    request = Request(URL, errback=lambda failure: None, callback=spider.parse_item)
    assert lost(request) == ["errback"]
    arrived = arrive(request, codec.encode(request))
    assert (arrived.errback, arrived.callback) == (errback_lost, spider.parse_item)
    again = arrived.replace(dont_filter=True)
    assert through(again).errback is errback_lost, "a retry has lost nothing more"


@pytest.mark.parametrize(
    "request_",
    [Special(URL, meta={"n": 1}), Own(1, url=URL, formdata={"a": "b"}), Special(URL, method="POST", body="x")],
)
def test_a_class_of_the_projects_arrives_as_such(request_: Request) -> None:
    arrived = through(request_)
    assert type(arrived) is type(request_)
    assert attributes(arrived) == attributes(request_)


@pytest.mark.parametrize("cls", [Slotted, type("Local", (Request,), {})])
def test_a_request_of_a_class_that_holds_more_or_is_unknown_is_not_made_without(cls: type[Request]) -> None:
    assert lost(cls(URL)) == [f"class/{cls.__name__}"]
    refused_for("class", cls(URL))


def test_nothing_that_a_value_raises_when_it_is_looked_at_leaves_the_codec() -> None:
    document = through(Request(URL, meta={"document": Document("a")})).meta["document"]
    assert document == Document("a")
    assert lost(Request(URL, meta={"wild": Wild(a=1)}, cb_kwargs={"wild": [Wild(a=1)]})) == [
        "meta/Wild",
        "cb_kwargs/Wild",
    ]


@pytest.mark.parametrize("wait", [1.0, None, {"a": (1, {2})}, Page("u", ["w"])])
def test_a_request_of_the_projects_arrives_with_what_it_holds_besides(wait: Any) -> None:
    request = Stateful(URL, wait)
    arrived = through(request)
    assert type(arrived) is Stateful and attributes(arrived) == attributes(request)
    assert vars(arrived) == {"wait": wait}


def test_a_request_that_holds_what_cannot_travel_is_not_made_without() -> None:
    for state in ({"wait": lambda: 0}, {"replace": 1}, {"no name": 1}):
        request = Stateful(URL, 1.0)
        vars(request).update(state)
        assert [kind.partition("/")[0] for kind in lost(request)] == ["class"]
        refused_for("class", request)


@pytest.mark.parametrize("state", [[], {"replace": 1}, {"meta": 1}, {"no name": 1}, {"a": {"~": "pickle", "v": ""}}])
def test_what_a_request_may_not_hold_is_refused_when_it_comes(state: Any) -> None:
    assert codec.check(json.dumps({"class": class_name(Stateful), "state": state})) is not None


@pytest.mark.parametrize("part", ["meta", "cb_kwargs"])
def test_a_request_that_lacks_a_value_is_not_fetched_without(part: str) -> None:
    loader = ItemLoader(item={}, selector=scrapy.Selector(text="<a>"))
    request = Request(URL, spider.parse_item, **{part: {"loader": loader, "n": 1}})  # type: ignore[arg-type]
    assert lost(request) == [f"{part}/ItemLoader"]
    assert f"{part}['loader'] (a ItemLoader)" in refused_for(part, request)


def test_values_that_cannot_travel_are_named_and_the_text_has_the_others() -> None:
    class Special(Request):
        pass

    request = Special(
        URL,
        meta={"selector": scrapy.Selector(text="<a>"), "n": 1, 2: 3},
        cb_kwargs={"f": lambda: 0, "n": 2},
    )
    encoded = codec.encode(request)
    assert [loss.kind for loss in encoded.losses] == [
        "meta/Selector",
        "meta/int key",
        "cb_kwargs/function",
        "class/Special",
    ]
    assert "meta['selector']" in encoded.losses[0].what
    assert json.loads(encoded.text) == {
        "meta": {"n": 1},
        "cb_kwargs": {"n": 2},
        "lost": ["meta", "meta['selector'] (a Selector)"],
    }
    refused_for("callback", request.replace(callback=lambda response: None))


def test_what_the_environment_of_this_machine_made_stays_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://user:secret@127.0.0.1:1")
    request = Request(URL, headers={"X": "y"})
    HttpProxyMiddleware().process_request(request)
    assert b"Proxy-Authorization" in request.headers and request.meta["proxy"] == PROXY
    arrived = through(request, codec_of(spider))
    assert (arrived.meta, dict(arrived.headers)) == ({}, {b"X": [b"y"]})


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:2", None, ""])
def test_a_proxy_of_the_spiders_is_kept_beside_the_mark_of_another_requests(
    proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `meta={**response.meta, "proxy": proxy}` gives it, where the page came through that of the environment."""
    monkeypatch.setenv("http_proxy", PROXY)
    page = Request(URL)
    HttpProxyMiddleware().process_request(page)
    arrived = through(Request(URL, meta={**page.meta, "proxy": proxy}), codec_of(spider))
    assert arrived.meta["proxy"] == proxy


def test_the_password_of_the_environments_proxy_stays_here_whatever_the_proxy_is_by_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://user:p%E2%82%ACss@127.0.0.1:1")
    request = Request(URL)
    HttpProxyMiddleware("utf-8").process_request(request)
    assert b"Proxy-Authorization" in request.headers
    again = request.replace(meta={**request.meta, "proxy": "http://127.0.0.1:2"})
    own = codec_of(spider, HTTPPROXY_AUTH_ENCODING="utf-8")
    assert own.encode(request).text == ""
    assert "uthorization" not in own.encode(again).text and "_auth" not in own.encode(again).text


def test_the_proxies_of_a_middleware_derived_from_scrapys_are_given_again_where_a_request_is_fetched() -> None:
    class Rotates(HttpProxyMiddleware):
        pass

    derived = {f"{SCRAPYS}.httpproxy.HttpProxyMiddleware": None, Rotates: 750}
    request = Request(URL, meta={"proxy": "http://p:1", "_scheme_proxy": True, "_auth_proxy": "http://p:1"})
    request.headers["Proxy-Authorization"] = "Basic x"
    assert through(request, codec_of(spider, DOWNLOADER_MIDDLEWARES=derived)).headers == {}


def test_the_password_of_a_proxy_is_sent_to_no_other() -> None:
    middleware = HttpProxyMiddleware()
    request = Request(URL, meta={"proxy": "http://user:secret@p:1"})
    middleware.process_request(request)
    same, other = through(request), through(request)
    other.meta["proxy"] = "http://q:1"
    for again in (same, other):
        middleware.process_request(again)
    assert same.headers["Proxy-Authorization"] == request.headers["Proxy-Authorization"]
    assert "Proxy-Authorization" not in other.headers


@pytest.mark.parametrize("proxy", ["http://user:secret@p.example:3128", "P.example:1", "socks5://p.example"])
@pytest.mark.parametrize(
    ("proxies", "obeys"),
    [
        (("*",), True),
        (("p.example",), True),
        (("q.example", "http://u:p@p.example:80"), True),
        (("p.example:3128",), True),
        ((), False),
        (("q.example", "example"), False),
    ],
)
def test_a_proxy_is_obeyed_where_it_is_named(proxy: str, proxies: tuple[str, ...], obeys: bool) -> None:
    receiver = Codec(spider, Settings(), proxies)
    request = Request(URL, meta={"proxy": proxy})
    encoded = receiver.encode(request)
    entry = Entry(1, URL, 0, 0, codec.encode(request).text)
    assert receiver.check(entry.request) is None, "it is no garbage"
    if obeys:
        assert not encoded.losses
        assert receiver.decode(entry).meta["proxy"] == proxy
        return
    assert [loss.kind for loss in encoded.losses] == ["proxy"]
    assert "secret" not in encoded.losses[0].what
    with pytest.raises(CodecError, match=r"through the proxy p\.example, which UBI_PROXIES does not name") as caught:
        receiver.decode(entry)
    assert caught.value.reason == "proxy" and "secret" not in str(caught.value)


@pytest.mark.parametrize("meta", [{"proxy": ""}, {"proxy": None}, {"proxy": PROXY, "_scheme_proxy": True}])
def test_no_proxy_and_that_of_the_environment_need_no_name(
    meta: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", PROXY)
    strict = Codec(spider, Settings(), ())
    encoded = strict.encode(Request(URL, meta=meta))
    assert not encoded.losses
    assert not strict.decode(Entry(1, URL, 0, 0, encoded.text)).meta.get("proxy")


def test_a_cookie_header_travels_where_no_jar_makes_it() -> None:
    request = Request(URL, headers={"Cookie": "a=b"}, meta={"dont_merge_cookies": True})
    assert attributes(through(request)) == attributes(request)
    without_jar = codec_of(spider, COOKIES_ENABLED=False)
    assert through(Request(URL, headers={"Cookie": "a=b"}), without_jar).headers[b"Cookie"] == b"a=b"


class Sets:
    """A middleware of a project's."""

    def process_request(self, request: Request) -> None:
        request.headers.setdefault("User-Agent", "another")


class Reads:
    def process_response(self, request: Request, response: Response) -> Response:
        return response


SCRAPYS = "scrapy.downloadermiddlewares"
COOKIES = f"{SCRAPYS}.cookies.CookiesMiddleware"
USUAL = {"User-Agent": "a1", "Accept-Language": "en", "Accept-Encoding": "gzip, deflate, br, zstd", "Cookie": "a=b"}


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({}, ""),
        ({"DOWNLOADER_MIDDLEWARES": {Reads: 1}}, ""),
        ({"DOWNLOADER_MIDDLEWARES": {COOKIES: None}}, "Cookie"),
        ({"DOWNLOADER_MIDDLEWARES": {f"{SCRAPYS}.useragent.UserAgentMiddleware": None}}, "User-Agent"),
        ({"DOWNLOADER_MIDDLEWARES": {f"{SCRAPYS}.defaultheaders.DefaultHeadersMiddleware": None}}, "Accept-Language"),
        ({"COMPRESSION_ENABLED": False}, "Accept-Encoding"),
        ({"DOWNLOADER_MIDDLEWARES": {Sets: 543}}, "Accept-Encoding"),
        ({"DOWNLOADER_MIDDLEWARES": {Sets: 450}}, "User-Agent Accept-Encoding"),
        ({"DOWNLOADER_MIDDLEWARES": {Sets: 1}}, "User-Agent Accept-Language Accept-Encoding"),
    ],
)
def test_what_a_request_says_stays_where_nobody_is_sure_to_say_the_same_again(
    settings: dict[str, Any], kept: str
) -> None:
    arrived = through(Request(URL, headers=USUAL), codec_of(spider, USER_AGENT="a1", **settings))
    assert {name.decode(): value.decode() for name, (value,) in arrived.headers.items()} == {
        name: USUAL[name] for name in kept.split()
    }


def test_a_spiders_own_agent_and_time_out_are_those_that_are_set_again() -> None:
    class Named(Walk):
        user_agent = "named"
        download_timeout = 5

    own = codec_of(Named(), USER_AGENT="a1")
    for agent, timeout, text in (("named", 5, True), ("a1", 180, False)):
        request = Request(URL, headers={"User-Agent": agent}, meta={"download_timeout": timeout})
        assert (own.encode(request).text == "") is text


def test_a_negative_depth_is_the_spiders_own() -> None:
    """Seeds with one may lead further than DEPTH_LIMIT."""
    assert through(Request(URL, meta={"depth": -3})).meta == {"depth": -3}


@pytest.mark.parametrize("depth", [0.5, True, None, -(10**7), "1"])
def test_what_is_no_depth_does_not_travel(depth: object) -> None:
    encoded = codec.encode(Request(URL, meta={"depth": depth}))
    assert (encoded.text, encoded.losses) == ("", ())


def test_a_time_out_stays_where_nobody_sets_it_again() -> None:
    off = {f"{SCRAPYS}.downloadtimeout.DownloadTimeoutMiddleware": None}
    assert through(Request(URL, meta={"download_timeout": 180}), codec_of(spider, DOWNLOADER_MIDDLEWARES=off)).meta


def test_the_own_user_agent_does_not_travel_another_does() -> None:
    own = codec_of(spider, USER_AGENT="a1")
    assert own.encode(Request(URL, headers={"User-Agent": "a1"})).text == ""
    assert through(Request(URL, headers={"User-Agent": "a2"}), own).headers[b"User-Agent"] == b"a2"


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "data:,x", "ftp://h/x", "s3://b/k", "javascript:1", "h1.example", "", "http:/x"]
)
def test_only_http_urls_become_requests(url: str) -> None:
    with pytest.raises(CodecError) as caught:
        codec.decode(Entry(1, url, 0))
    assert caught.value.reason == "scheme"


def test_a_callback_that_the_spider_has_no_more_is_refused() -> None:
    with pytest.raises(CodecError) as caught:
        codec.decode(Entry(1, URL, 0, 0, '{"callback":"parse_old"}'))
    assert caught.value.reason == "callback"


@pytest.mark.parametrize(
    "text", ["[", '{"meta":1}', '{"headers":[]}', '{"body":{"~":"pickle","v":""}}', '{"method":1}']
)
def test_an_entry_that_does_not_hold_raises_and_nothing_else(text: str) -> None:
    try:
        codec.decode(Entry(1, URL, 0, 0, text))
    except CodecError:
        return
    assert text == '{"method":1}'  # Request makes a text of any method; `check` refuses it when it comes


def test_an_item_whose_class_refuses_its_values_is_refused() -> None:
    text = codec.encode(Request(URL, meta={"p": Page("u", [])})).text.replace(',"words":[]', "")
    assert codec.check(text) is None
    with pytest.raises(CodecError) as caught:
        codec.decode(Entry(1, URL, 0, 0, text))
    assert caught.value.reason == "value"
