"""WebSub, by the W3C's rules for subscribers: discovery, verification of intent, leases, signatures, content."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from scrapy_ubi.web import web_sub
from scrapy_ubi.web.problem import Problem
from scrapy_ubi.web.security import Access
from scrapy_ubi.web.web_app import WebApp
from scrapy_ubi.web.web_sub import Reply, WebSub, hub_of, is_signed, path_of
from tests.web.served import Crawl, reader_of

FEED, HUB = "https://site.example/feed", "https://hub.example/"
PATH = path_of(FEED)
HOSTS = frozenset({"site.example"})
ATOM = b"""<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><link rel="hub" href="https://hub.example/"/>
<link rel="self" href="https://site.example/feed.atom"/><entry><link href="/new?a=1"/></entry>
<entry><link href="https://evil.example/x"/></entry></feed>"""

RSS = b"""<?xml version="1.0"?><rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>
<link>https://site.example/</link><atom:link rel="hub" href="https://hub.example/"/>
<atom:link rel="self" href="https://site.example/rss"/></channel></rss>"""


class Net:
    """The topic and its hub; what was sent to it. `now` is set by hand."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = [*replies] or [Reply(200, "", ATOM), Reply(202, "", b"")]
        self.sent: list[tuple[str, str, Mapping[str, str] | None]] = []
        self.now = 0.0

    async def send(self, method: str, url: str, form: Mapping[str, str] | None) -> Reply:
        self.sent.append((method, url, form))
        return self.replies[(len(self.sent) - 1) % len(self.replies)]

    def hubs(self) -> WebSub:
        return WebSub([FEED], "https://crawl.example/", HOSTS, self.send, lambda: self.now)


def subscribed(net: Net) -> WebSub:
    hubs = net.hubs()
    asyncio.run(hubs.subscribe(PATH, hubs.subscriptions[PATH]))
    return hubs


def asks(**changes: str) -> dict[str, str]:
    usual = {"mode": "subscribe", "topic": "https://site.example/feed.atom", "challenge": "c9", "lease_seconds": "1000"}
    return {f"hub.{name}": value for name, value in {**usual, **changes}.items()}


def signed(hubs: WebSub, body: bytes, method: str = "sha256") -> str:
    return f"{method}={hmac.new(hubs.subscriptions[PATH].secret.encode(), body, method).hexdigest()}"


@pytest.mark.parametrize(
    ("reply", "hub", "itself"),
    [
        (Reply(200, "", ATOM), HUB, "https://site.example/feed.atom"),
        (Reply(200, f'<{HUB}>; rel="hub", <https://site.example/f>; rel=self', b""), HUB, "https://site.example/f"),
        (Reply(200, '<https://other.example/>; rel="hub"', ATOM), "https://other.example/", "https://site.example/feed.atom"),
        (Reply(200, "", b'<html><head><link rel="hub" href="/hub"><body>'), "https://site.example/hub", FEED),
        (Reply(200, "", RSS), HUB, "https://site.example/rss"),
        (Reply(200, "", b"\x00\xff nothing"), "", FEED),
        (Reply(200, "<ftp://hub.example/>; rel=hub", b""), "", FEED),
        (Reply(200, "<http://169.254.169.254/>; rel=hub", b""), "", FEED),
        (Reply(200, "<http://localhost:6379/>; rel=hub", b""), "", FEED),
    ],
    ids=["atom", "header", "header-first", "html", "rss", "nothing", "ftp", "metadata", "localhost"],
)  # fmt: skip
def test_the_hub_that_a_topic_names(reply: Reply, hub: str, itself: str) -> None:
    assert hub_of(FEED, reply) == (hub, itself)


def test_a_subscription_is_asked_for_verified_and_renewed() -> None:
    net = Net()
    hubs = subscribed(net)
    method, url, form = net.sent[-1]
    assert form is not None
    assert (method, url) == ("POST", HUB)
    assert form["hub.callback"] == f"https://crawl.example/websub/{PATH}"
    assert (form["hub.mode"], form["hub.topic"]) == ("subscribe", "https://site.example/feed.atom")
    one = hubs.subscriptions[PATH]
    assert form["hub.secret"] == one.secret and len(one.secret) < 200 and not one.held
    assert hubs.verified(PATH, asks()) == "c9"
    assert (one.held, one.due) == (True, 800.0)  # four fifths of the lease


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("another", asks()),
        (PATH, asks(topic="https://evil.example/")),
        (PATH, asks(mode="unsubscribe")),
        (PATH, asks(challenge="")),
        (PATH, asks(challenge="x" * 2001)),
        (PATH, {}),
    ],
    ids=["path", "topic", "unsubscribe", "no-challenge", "long-challenge", "nothing"],
)
def test_what_was_not_meant_is_not_confirmed(path: str, said: dict[str, str]) -> None:
    hubs = subscribed(Net())
    with pytest.raises(Problem) as refused:
        hubs.verified(path, said)
    assert refused.value.status == 404


def test_before_anything_was_asked_nothing_is_confirmed() -> None:
    with pytest.raises(Problem):
        Net().hubs().verified(PATH, asks(topic=FEED))


def test_a_lease_is_renewed_before_it_ends_with_the_same_secret_and_callback() -> None:
    net = Net()
    hubs = subscribed(net)
    one, first = hubs.subscriptions[PATH], net.sent[-1]
    hubs.verified(PATH, asks(lease_seconds="1000"))
    net.now = one.due
    assert net.now < 1000
    asyncio.run(hubs.subscribe(PATH, one))
    assert net.sent[-1] == first
    hubs.verified(PATH, asks(lease_seconds="2000"))
    assert one.due == net.now + 1600


@pytest.mark.parametrize(
    ("given", "due"),
    [("", 0.8 * web_sub.LEASE), ("nonsense", 0.8 * web_sub.LEASE), ("1", 48.0), ("9" * 11, 0.8 * web_sub.MOST_LEASE)],
    ids=["none", "nonsense", "short", "long"],
)
def test_leases_that_cannot_be_believed(given: str, due: float) -> None:
    hubs = subscribed(Net())
    assert hubs.verified(PATH, asks(lease_seconds=given)) == "c9"
    assert hubs.subscriptions[PATH].due == due


def test_a_hub_may_send_a_subscription_elsewhere_but_not_into_the_private_network() -> None:
    elsewhere = Reply(307, "", b"", "https://hub2.example/take")
    net = Net(Reply(200, "", ATOM), elsewhere, Reply(202, "", b""))
    subscribed(net)
    assert [url for _, url, _ in net.sent[1:]] == [HUB, "https://hub2.example/take"]
    assert net.sent[1][2] == net.sent[2][2]
    net = Net(Reply(200, "", ATOM), Reply(308, "", b"", "http://127.0.0.1:6379/"))
    hubs = subscribed(net)
    assert len(net.sent) == 2 and hubs.subscriptions[PATH].due == web_sub.FIRST_PAUSE
    net = Net(Reply(200, "", ATOM), *[Reply(307, "", b"", f"https://hub{n}.example/") for n in range(20)])
    subscribed(net)
    assert len(net.sent) == 1 + web_sub.MOST_HUBS


def test_who_ends_takes_subscriptions_back_and_the_hub_asks_whether_that_is_meant() -> None:
    async def body() -> None:
        net = Net(Reply(200, "", ATOM), Reply(202, "", b""), Reply(202, "", b""))
        hubs = net.hubs()
        await hubs.subscribe(PATH, hubs.subscriptions[PATH])
        hubs.verified(PATH, asks())
        leaving = asyncio.create_task(hubs.leave(60))
        while len(net.sent) < 3:
            await asyncio.sleep(0)
        method, url, form = net.sent[-1]
        assert (method, url) == ("POST", HUB) and form is not None
        topic, callback = "https://site.example/feed.atom", f"https://crawl.example/websub/{PATH}"
        assert form == {"hub.mode": "unsubscribe", "hub.topic": topic, "hub.callback": callback}
        with pytest.raises(Problem):
            hubs.verified(PATH, asks())  # a question of before, that comes late
        with pytest.raises(Problem):
            hubs.verified(PATH, asks(mode="unsubscribe", topic="https://evil.example/"))
        assert not leaving.done()
        assert hubs.verified(PATH, asks(mode="unsubscribe", challenge="c10")) == "c10"
        await leaving
        with pytest.raises(Problem) as gone:
            hubs.delivered(PATH, signed(hubs, ATOM), ATOM)
        assert gone.value.status == 410

    asyncio.run(body())


@pytest.mark.parametrize("reply", [Reply(500, "", b""), Reply(202, "", b"")], ids=["refuses", "is-silent"])
def test_a_hub_that_does_not_take_the_end_holds_nobody_up(reply: Reply, caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        net = Net(Reply(200, "", ATOM), Reply(202, "", b""), reply)
        hubs = net.hubs()
        await hubs.leave(60)  # of what was never asked for nothing is taken back
        assert net.sent == []
        await hubs.subscribe(PATH, hubs.subscriptions[PATH])
        await hubs.leave(0.01)
        assert len(net.sent) == 3

    asyncio.run(body())
    assert "did not take the end" in caplog.text


def test_what_fails_is_tried_again_after_growing_pauses() -> None:
    net = Net(Reply(200, "", ATOM), Reply(500, "", b""))
    hubs = net.hubs()
    one, waits = hubs.subscriptions[PATH], []
    for _ in range(8):
        asyncio.run(hubs.subscribe(PATH, one))
        waits.append(one.due - net.now)
        net.now = one.due
    assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600]


def test_a_denied_subscription_is_said_and_tried_later() -> None:
    hubs = subscribed(Net())
    assert hubs.verified(PATH, asks(mode="denied")) == ""
    assert hubs.subscriptions[PATH].due == web_sub.MOST_PAUSE


@pytest.mark.parametrize("method", web_sub.METHODS)
def test_content_counts_with_the_signature_of_each_method_and_is_else_taken_and_ignored(method: str) -> None:
    async def body() -> None:
        crawl, hubs = Crawl(), Net().hubs()
        await hubs.subscribe(PATH, hubs.subscriptions[PATH])
        reader = reader_of(crawl)
        right = signed(hubs, ATOM, method)
        wrong = (f"{method}={'0' * (len(right) - len(method) - 1)}", f"{method}=", f"md5={right}", right[:-2], "")
        try:
            app = WebApp(reader, Access("127.0.0.1"), None, hubs)
            async with TestClient[Any, Any](TestServer(app.application)) as client:
                for signature, seeds in (*((one, 0) for one in wrong), (right, 1), (right.upper(), 1)):
                    headers = {"X-Hub-Signature": signature} if signature else {}
                    answer = await client.post(f"/websub/{PATH}", data=ATOM, headers=headers)
                    assert (answer.status // 100, len(crawl.shelf.seeds.waiting)) == (2, seeds), signature
        finally:
            reader.close()

    asyncio.run(body())


@pytest.mark.parametrize("method", web_sub.METHODS)
def test_signatures_by_each_method(method: str) -> None:
    right = hmac.new(b"secret", b"body", getattr(hashlib, method)).hexdigest()
    assert is_signed(f"{method}={right}", "secret", b"body")
    for wrong in (f"{method}={right[:-1]}0x", f"{method}=", right, f"md5={right}", "", f"{method}=\udcff"):
        assert not is_signed(wrong, "secret", b"body")
    assert not is_signed(f"{method}={right}", "another", b"body")
    assert not is_signed(f"{method}={right}", "secret", b"bodY")


def test_only_links_of_heard_hosts_with_the_right_signature_count() -> None:
    hubs = subscribed(Net())
    assert hubs.delivered(PATH, signed(hubs, ATOM), ATOM) == ["https://site.example/new?a=1"]
    assert hubs.delivered(PATH, "sha256=00", ATOM) == []
    assert hubs.delivered(PATH, "", ATOM) == []
    page = b"<html>not a feed"
    assert hubs.delivered(PATH, signed(hubs, page), page) == [FEED]
    with pytest.raises(Problem) as refused:
        hubs.delivered("another", "", ATOM)
    assert refused.value.status == 410


def test_a_hub_that_delivers_gives_seeds() -> None:
    async def body() -> None:
        crawl, hubs = Crawl(), Net().hubs()
        await hubs.subscribe(PATH, hubs.subscriptions[PATH])
        reader = reader_of(crawl)
        try:
            async with TestClient[Any, Any](
                TestServer(WebApp(reader, Access("127.0.0.1"), None, hubs).application)
            ) as client:
                answer = await client.get(f"/websub/{PATH}", params=asks())
                assert (answer.status, await answer.text(), answer.content_type) == (200, "c9", "text/plain")
                for signature, seeds in (("sha256=wrong", 0), (signed(hubs, ATOM, "sha1"), 1)):
                    headers = {"X-Hub-Signature": signature, "Content-Type": "application/atom+xml"}
                    answer = await client.post(f"/websub/{PATH}", data=ATOM, headers=headers)
                    assert (answer.status, len(crawl.shelf.seeds.waiting)) == (202, seeds)
                assert (await client.get("/websub/nothing", params=asks())).status == 404
        finally:
            reader.close()

    asyncio.run(body())


def test_a_topic_that_comes_in_pieces_is_read_to_its_end() -> None:
    more = asyncio.Event()

    async def topic(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Link": '<https://hub.example/>; rel="hub"'})
        await answer.prepare(request)
        await answer.write(ATOM[:20])
        await more.wait()
        await answer.write(ATOM[20:])
        return answer

    async def ask() -> Reply:
        application = web.Application()
        application.router.add_get("/", topic)
        async with TestServer(application) as server:
            asked = asyncio.create_task(web_sub.send_request("GET", str(server.make_url("/")), None))
            asyncio.get_running_loop().call_later(0.1, more.set)  # what came first is read by then, or also later
            return await asked

    assert asyncio.run(ask()) == Reply(200, '<https://hub.example/>; rel="hub"', ATOM)
