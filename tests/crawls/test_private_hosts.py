"""Whole crawls in processes of their own: where links of public pages may not lead, nothing is ever written.

All addresses are this machine's: the table of private networks is another one here, by which 127.0.0.2 is public and
127.0.0.1 is not; and names lead where the tests say.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import pytest
from scrapy.settings.default_settings import DOWNLOAD_HANDLERS_BASE

from tests.support.project import LIMIT, Project
from tests.support.site import Page, Site, links

pytestmark = pytest.mark.processes

# Loaded before anything else.
ELSEWHERE = """
    import socket
    from ipaddress import ip_network

    NAMES = dict.fromkeys(["inner.example", "wiki.corp", "jira.corp"], "127.0.0.1") | {"pub.example": "127.0.0.2"}
    by_name, infos = socket.gethostbyname, socket.getaddrinfo
    socket.gethostbyname = lambda host: by_name(NAMES.get(host, host))
    socket.getaddrinfo = lambda host, *args, **named: infos(NAMES.get(host, host), *args, **named)

    from scrapy_ubi.urls import private
    private.NETWORKS = tuple(network for network in private.NETWORKS if "127." not in str(network))
    private.NETWORKS += (ip_network("127.0.0.1/32"),)
"""

SPIDER = """
    import scrapy

    class Walk(scrapy.Spider):
        name = "walk"

        def __init__(self, seeds):
            self.start_urls = seeds.split(",")

        async def start(self):
            for url in self.start_urls:
                yield scrapy.Request(url, errback=self.failed)

        def parse(self, response):
            yield {"url": response.url, "body": response.text[:20]}
            for url in getattr(response, "css", lambda _: ())("a::attr(href)").getall():
                yield self.link(response, url)

        def link(self, response, url):
            return scrapy.Request(response.urljoin(url), errback=self.failed)

        def failed(self, failure):
            yield {"failed": failure.request.url, "why": type(failure.value).__name__}

    class Plain(Walk):
        name = "plain"

        def parse(self, response):
            from scrapy_ubi import PlainLinks
            yield {"url": response.url, "body": response.text[:20]}
            urls = [response.urljoin(url) for url in response.css("a::attr(href)").getall()]
            yield PlainLinks(urls, errback=self.failed)
"""


class Listener:
    """Something on 127.0.0.1 that nobody is to talk to: what it was sent."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.heard: list[bytes] = []
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(LIMIT)
                if said := connection.recv(1000):
                    self.heard.append(said)

    def __enter__(self) -> Listener:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(LIMIT)


@pytest.fixture
def redis() -> Iterator[Listener]:
    with Listener() as listener:
        yield listener


def crawl(place: Path, spider: str, seeds: str, *options: str, proxy: str = "") -> tuple[list[dict[str, str]], str]:
    """The items, by URL, and the log."""
    project = Project(place / "project", proxy)
    (project.place / "project" / "spiders" / "walk.py").write_text(textwrap.dedent(SPIDER))
    (project.place / "elsewhere").mkdir()
    (project.place / "elsewhere" / "sitecustomize.py").write_text(textwrap.dedent(ELSEWHERE))
    command = [sys.executable, "-m", "scrapy", "crawl", spider, "-a", f"seeds={seeds}", "-o", "items.jsonl"]
    environment = {**project.environment, "PYTHONPATH": str(project.place / "elsewhere")}
    done = subprocess.run(
        [*command, *(part for option in options for part in ("-s", option))],
        cwd=project.place,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr
    lines = (project.place / "items.jsonl").read_text().splitlines()
    return sorted(map(json.loads, lines), key=lambda item: str(item.get("url"))), done.stderr


def stat(log: str, name: str) -> int:
    found = re.search(rf"'{name}': (\d+)", log)
    return int(found[1]) if found else 0


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret.html"
    file.write_text("a secret")
    return file


@pytest.mark.parametrize("spider", ["walk", "plain"])
@pytest.mark.parametrize("options", [(), ("UBI_FAST=True",)], ids=["scrapys handler", "ours"])
def test_no_page_of_a_public_host_leads_to_this_machine(
    tmp_path: Path, redis: Listener, secret: Path, spider: str, options: tuple[str, ...]
) -> None:
    with Site("127.0.0.2") as site:
        home = f"http://pub.example:{site.port}/"
        inner, port = f"http://inner.example:{redis.port}", redis.port
        written = [f"http://{host}:{port}/" for host in ("127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]")]
        site.page(home, links(*written, f"{inner}/", f"https://inner.example:{port}/", f"{home}hop", f"{home}hop2",
                              secret.as_uri(), "data:text/plain,harmless", f"{home}last"))  # fmt: skip
        site.redirect(f"{home}hop", f"http://127.0.0.1:{port}/hop")
        site.redirect(f"{home}hop2", f"{inner}/hop2")
        site.page(f"{home}last", "last")
        items, log = crawl(
            tmp_path, spider, home, "RETRY_TIMES=0", f"UBI_FILTER_LOG={tmp_path / 'refused.jsonl'}", *options
        )
        assert redis.heard == []
        assert [item["url"] for item in items if "url" in item] == ["data:text/plain,harmless", home, f"{home}last"]
        failed = sorted((item["failed"], item["why"]) for item in items if "failed" in item)
        expected = [f"{inner}/", f"{inner}/hop2", f"https://inner.example:{port}/"]
        assert failed == sorted((url, "PrivateHost") for url in expected), log
        assert stat(log, "ubi/scheduler/dropped/private") == len(written) + 1
        assert stat(log, "ubi/scheduler/dropped/scheme") == 1
        assert stat(log, "ubi/failed/link/private") == 3
        assert stat(log, "ubi/private/refused") == 3
        assert "UBI_PRIVATE_HOSTS = 'allow'" in log and "DOWNLOAD_HANDLERS = {'file': " in log
        noted = (tmp_path / "refused.jsonl").read_text()
        assert all(f'"{url}"' in noted for url in [*written, secret.as_uri(), f"http://127.0.0.1:{port}/hop"]), noted


@pytest.mark.parametrize("options", [(), ("UBI_FAST=True",)], ids=["scrapys handler", "ours"])
def test_settings_let_links_lead_there(tmp_path: Path, secret: Path, options: tuple[str, ...]) -> None:
    with Site("127.0.0.2") as site, Site() as inside:
        home, inner = f"http://pub.example:{site.port}/", f"http://inner.example:{inside.port}/"
        local = f"http://127.0.0.1:{inside.port}/"
        site.page(home, links(inner, local, secret.as_uri()))
        inside.page(inner, "inner")
        inside.page(local, "local")
        handlers = json.dumps({"file": DOWNLOAD_HANDLERS_BASE["file"]})
        items, _ = crawl(tmp_path, "walk", home, "UBI_PRIVATE_HOSTS=allow", f"DOWNLOAD_HANDLERS={handlers}", *options)
        assert [item["url"] for item in items] == sorted([home, inner, local, secret.as_uri()])


@pytest.mark.parametrize("obeys", ["True", "False"])
@pytest.mark.parametrize("options", [(), ("UBI_FAST=True",)], ids=["scrapys handler", "ours"])
def test_an_intranet_is_crawled_without_a_setting(tmp_path: Path, obeys: str, options: tuple[str, ...]) -> None:
    with Site() as site:
        names = [f"http://{host}:{site.port}/" for host in ("wiki.corp", "jira.corp", "127.0.0.1", "localhost")]
        site.page(names[0], links(*names[1:]))
        for url in names[1:]:
            site.page(url, "inside")
        items, _ = crawl(tmp_path, "walk", names[0], f"ROBOTSTXT_OBEY={obeys}", *options)
        assert [item["url"] for item in items] == sorted(names)


@pytest.mark.parametrize("options", [(), ("UBI_FAST=True",)], ids=["scrapys handler", "ours"])
def test_a_page_fails_at_once_whose_robots_txt_would_be_read_from_this_machine(
    tmp_path: Path, redis: Listener, options: tuple[str, ...]
) -> None:
    with Site("127.0.0.2") as site:
        home = f"http://pub.example:{site.port}/"
        site.redirect(f"{home}robots.txt", f"http://127.0.0.1:{redis.port}/robots.txt")
        site.page(home, links(f"http://inner.example:{redis.port}/"))
        items, log = crawl(tmp_path, "walk", home, "ROBOTSTXT_OBEY=True", *options)
        assert redis.heard == []
        assert sorted(str(item.get("why", item.get("url"))) for item in items) == ["PrivateHost", home]
        assert stat(log, "ubi/failed/link/private") == 1


def test_through_a_proxy_links_are_judged_as_they_are_written(tmp_path: Path, redis: Listener, secret: Path) -> None:
    """The proxy itself is on this machine, and may be; names of pages are looked up there."""
    with Site() as site:
        home, other = "http://h1.example/", "http://inner.example/"
        site.page(
            home, links(f"http://127.0.0.1:{redis.port}/", "http://169.254.169.254/latest", other, secret.as_uri())
        )
        site.page(other, Page("through the proxy"))
        items, log = crawl(tmp_path, "walk", home, proxy=site.proxy)
        assert [item["url"] for item in items] == [home, other]
        assert stat(log, "ubi/scheduler/dropped/private") == 2
        assert redis.heard == [] and not any("169.254" in url for url in site.urls())
