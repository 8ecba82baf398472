"""The demo web over real sockets: proxy and origin form, forms, cookies, trouble, and its own report."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from demo import servers
from demo.graph import Document, Graph, digest
from demo.web import main
from demo.wire import MAX_HEAD
from tests.support.web import DemoWeb

HOME = "http://alder.example/"


@pytest.fixture
def web() -> Iterator[DemoWeb]:
    with DemoWeb(Graph(seed=1, hosts=8, pages=200)) as running:
        yield running


def fetch(
    web: DemoWeb, url: str, method: str = "GET", body: str | None = None, headers: dict[str, str] | None = None
) -> tuple[int, http.client.HTTPMessage, bytes]:
    """One request through the web as a proxy, redirects not followed."""
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=10)
    try:
        connection.request(method, url, body, headers or {})
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def raw(web: DemoWeb, data: bytes) -> bytes:
    """What the server answers to these bytes until it closes the connection."""
    with socket.create_connection(("127.0.0.1", web.port), timeout=10) as peer:
        peer.sendall(data)
        parts = []
        while part := peer.recv(65_536):
            parts.append(part)
        return b"".join(parts)


def test_page_by_absolute_form_is_the_graph_s(web: DemoWeb) -> None:
    status, headers, body = fetch(web, HOME)
    assert (status, body.decode()) == (200, web.graph.html(Document("page", 0, 0)))
    assert headers["Content-Type"] == "text/html; charset=utf-8"


def test_page_by_origin_form_is_the_same(web: DemoWeb) -> None:
    assert fetch(web, "/", headers={"Host": "ALDER.example:80"})[2] == fetch(web, HOME)[2]


def test_unknown_host_and_unknown_page(web: DemoWeb) -> None:
    assert fetch(web, "http://nowhere.example/")[0] == 502
    assert fetch(web, HOME + "nothing.html")[0] == 404
    assert web.stats()["unknown"] == 2


def test_redirect_leads_to_the_page_the_graph_names(web: DemoWeb) -> None:
    redirect = next(d for d in web.graph.documents() if d.kind == "redirect")
    status, headers, _ = fetch(web, web.graph.url(redirect))
    assert (status, headers["Location"]) == (302, web.graph.url(web.graph.target(redirect)))


def test_flaky_page_fails_once_then_answers(web: DemoWeb) -> None:
    flaky = next(d for d in web.graph.documents() if web.graph.flaky(d))
    assert [fetch(web, web.graph.url(flaky))[0] for _ in range(3)] == [503, 200, 200]
    web.reset()
    assert fetch(web, web.graph.url(flaky))[0] == 503


def test_robots_forbids_private_pages_and_the_record_notices(web: DemoWeb) -> None:
    assert b"Disallow: /private/" in fetch(web, HOME + "robots.txt")[2]
    private = next(d for d in web.graph.documents() if d.kind == "private")
    assert fetch(web, web.graph.url(private))[0] == 200
    stats = web.stats()
    assert (stats["robots"], stats["robots_violations"]) == (1, 1)


def test_echo_shows_what_was_posted(web: DemoWeb) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": "a=1; b=2", "User-Agent": "tester"}
    said = json.loads(fetch(web, HOME + "echo?q=1", "POST", "name=value", headers)[2])
    assert said == {
        "method": "POST",
        "path": "/echo",
        "query": "q=1",
        "type": headers["Content-Type"],
        "body": "name=value",
        "agent": "tester",
        "cookies": {"a": "1", "b": "2"},
    }


def test_cookies_are_set_and_shown(web: DemoWeb) -> None:
    status, headers, _ = fetch(web, HOME + "cookies/set?a=1&b=2")
    assert (status, headers["Location"]) == (302, HOME + "cookies")
    assert headers.get_all("Set-Cookie") == ["a=1; Path=/", "b=2; Path=/"]
    assert json.loads(fetch(web, HOME + "cookies", headers={"Cookie": "a=1"})[2]) == {"a": "1"}


def test_post_to_a_page_is_not_allowed(web: DemoWeb) -> None:
    assert fetch(web, HOME, "POST", "x")[0] == 405


def test_head_sends_no_body(web: DemoWeb) -> None:
    status, headers, body = fetch(web, HOME, "HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 0


def test_requests_in_one_packet_are_answered_in_order(web: DemoWeb) -> None:
    post = b"POST http://alder.example/echo HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"
    last = b"GET http://alder.example/robots.txt HTTP/1.1\r\nConnection: close\r\n\r\n"
    answer = raw(web, post + post + last)
    assert answer.count(b"HTTP/1.1 200 OK") == 3
    assert answer.endswith(b"Disallow: /private/\n")


@pytest.mark.parametrize(
    "request_",
    [
        b"CONNECT alder.example:443 HTTP/1.1",
        b"GET https://alder.example/ HTTP/1.1",
        b"GET / HTTP/2",
        b"nonsense",
        b"POST http://alder.example/echo HTTP/1.1\r\nTransfer-Encoding: chunked",
        b"POST http://alder.example/echo HTTP/1.1\r\nContent-Length: -1",
        b"POST http://alder.example/echo HTTP/1.1\r\nContent-Length: 99999999999",
    ],
)
def test_what_it_does_not_speak_gets_one_clear_answer(web: DemoWeb, request_: bytes) -> None:
    assert raw(web, request_ + b"\r\n\r\n").startswith(b"HTTP/1.1 400 Bad Request")


def test_endless_head_ends_the_connection(web: DemoWeb) -> None:
    assert raw(web, b"GET / HTTP/1.1\r\nX: ".ljust(MAX_HEAD + 1, b"x")).startswith(b"HTTP/1.1 400")


def test_two_at_once_on_one_host_are_seen_although_short() -> None:
    with DemoWeb(Graph(seed=1, hosts=2, pages=10), latency=0.2) as web:
        line = b"GET http://alder.example/ HTTP/1.1\r\nConnection: close\r\n\r\n"
        with (
            socket.create_connection(("127.0.0.1", web.port), timeout=10) as one,
            socket.create_connection(("127.0.0.1", web.port), timeout=10) as two,
        ):
            one.sendall(line)
            two.sendall(line)
            assert one.recv(100) and two.recv(100)
        stats = web.stats()
    assert (stats["most_simultaneous"], stats["violations"], stats["duplicates"]) == (2, 1, 1)


def test_client_that_goes_away_ends_its_request() -> None:
    with DemoWeb(Graph(seed=1, hosts=2, pages=10), latency=3600) as web:
        with socket.create_connection(("127.0.0.1", web.port), timeout=10) as peer:
            peer.sendall(b"GET http://alder.example/ HTTP/1.1\r\n\r\n")
            while web.count() == 0:  # ends as soon as the request has come, each look is a round trip
                pass
        while web.stats()["aborted"] == 0:
            pass
        assert web.stats()["fetched"] == 0


def test_log_and_visits_agree_with_the_truth(web: DemoWeb) -> None:
    todo, seen = [HOME], {HOME}
    while todo:
        url = todo.pop()
        status, headers, body = fetch(web, url)
        if status == 503:
            status, headers, body = fetch(web, url)
        found = [headers["Location"]] if status == 302 else []
        if status == 200:
            path = url.split("/", 3)[3]
            document = web.graph.find(url.split("/")[2], "/" + path)
            assert document is not None and body.decode() == web.graph.html(document)
            found = [web.graph.url(link) for link in web.graph.links(document)]
        for link in found:
            if link not in seen:
                seen.add(link)
                todo.append(link)
    truth = web.graph.reachable([HOME], obey_robots=False)
    assert web.fetched() == truth == seen
    stats = web.stats()
    assert (stats["unique"], stats["duplicates"], stats["digest"]) == (len(truth), 0, digest(truth))
    assert len(web.log()) == stats["requests"] == web.count()


@pytest.mark.parametrize("how", [["-m", "demo.web"], ["demo/web.py"]])
def test_command_line_by_module_and_by_path(how: list[str]) -> None:
    where = Path(__file__).resolve().parents[2] / "example_project"
    command = [sys.executable, *how, "reachable", "--hosts", "8", "--pages", "200"]
    said = json.loads(subprocess.run(command, cwd=where, capture_output=True, check=True, timeout=60).stdout)
    truth = Graph(1, 8, 200).reachable([HOME])
    assert said == {"reachable": len(truth), "digest": digest(truth)}


def test_stats_of_no_web_are_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--port", str(port), "--hosts", "2", "--pages", "10"]) == 1
        assert capsys.readouterr().err.startswith(f"the demo web cannot be served on port {port}: ")
    assert main(["serve", "--port", "99999", "--hosts", "2", "--pages", "10"]) == 1
    assert capsys.readouterr().err.startswith("the demo web cannot be served on port 99999: ")
    assert main(["stats", "--port", str(port)]) == 1
    assert capsys.readouterr().err == f"no demo web answers on port {port}: start it, or name its --port\n"


@pytest.mark.parametrize("program", [main, servers.main])
def test_a_web_that_cannot_be_is_a_sentence(
    program: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        program([*(["reachable"] if program is main else []), "--hosts", "0"])
    assert "error: a web of 0 hosts and 1500 pages: at least 1 host" in capsys.readouterr().err
