"""no_proxy is read once, and asked once for a host, while a spider runs, and says what it says without us."""

from __future__ import annotations

import urllib.request

import pytest
from scrapy import Request, signals
from scrapy.downloadermiddlewares import httpproxy

from scrapy_ubi.fast.noproxy import NoProxyOnce
from tests.fast.crawlers import crawler_with, send

ORIGINAL = httpproxy.proxy_bypass


def proxy_of(middleware: httpproxy.HttpProxyMiddleware, url: str) -> object:
    request = Request(url)
    middleware.process_request(request)
    return request.meta.get("proxy")


def test_it_is_asked_once_and_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "inside.example")
    asked: list[str] = []

    def ask(host: str) -> object:
        asked.append(host)
        return ORIGINAL(host)

    monkeypatch.setattr(httpproxy, "proxy_bypass", ask)
    middleware, one, other = httpproxy.HttpProxyMiddleware(), crawler_with(NoProxyOnce), crawler_with(NoProxyOnce)
    send(one, signals.spider_opened)
    send(other, signals.spider_opened)
    for _ in range(2):
        assert proxy_of(middleware, "http://inside.example/") is None
        assert proxy_of(middleware, "http://sub.inside.example/") is None
        assert proxy_of(middleware, "http://outside.example/") == "http://proxy.example:3128"
    assert len(asked) == 3
    send(one, signals.spider_closed)
    proxy_of(middleware, "http://outside.example/")
    assert len(asked) == 3
    send(other, signals.spider_closed)
    send(other, signals.spider_closed)
    assert httpproxy.proxy_bypass is ask


@pytest.mark.parametrize("excepted", ["", "*", "inside.example, .Other.example,third.example:8080"])
def test_the_environment_is_read_once_and_says_the_same(monkeypatch: pytest.MonkeyPatch, excepted: str) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", excepted)
    middleware, crawler = httpproxy.HttpProxyMiddleware(), crawler_with(NoProxyOnce)
    hosts = ["inside.example", "a.inside.example", "Other.example", "third.example", "outside.example", "insideexample"]
    usual = [proxy_of(middleware, f"http://{host}/") for host in hosts]
    assert len({*usual}) == (1 if excepted in ("", "*") else 2)
    send(crawler, signals.spider_opened)
    monkeypatch.setattr(urllib.request, "getproxies_environment", lambda: pytest.fail("the environment is read again"))
    assert [proxy_of(middleware, f"http://{host}/") for host in hosts] == usual
    send(crawler, signals.spider_closed)
