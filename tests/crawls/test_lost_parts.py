"""Real agents and requests that cannot travel whole: the items are those of plain Scrapy, but for pages that failed
with a reason; nothing is fetched or parsed with less than it was asked for; the last lines say what was lost.
"""

from __future__ import annotations

import json
import re
import signal
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.preloaded import Running
from tests.support.project import LIMIT, Project, until_there
from tests.support.server import Server
from tests.support.site import Site

pytestmark = pytest.mark.processes

HOSTS = [f"http://h{number}.example" for number in range(10)]
START = f"{HOSTS[0]}/start"

ITEMS = """
    import dataclasses, enum
    import scrapy

    class Colour(enum.Enum):
        RED = "red"

    @dataclasses.dataclass
    class Book:
        title: str
        colour: Colour

    class Get(scrapy.Request):
        pass
"""

# UBI_CODECS names both. The second one forgets the currency.
CODECS = """
    class Price:
        def __init__(self, amount, currency):
            self.amount, self.currency = amount, currency

    class Whole:
        def encode(self, price):
            return [price.amount, price.currency]

        def decode(self, data):
            return Price(*data)

    class Forgetful(Whole):
        def encode(self, price):
            return [price.amount, "EUR"]
"""
NAMED = json.dumps({"price": "project.codecs.Whole", "forgotten": "project.codecs.Forgetful"})

# As scrapy-playwright's.
PAGE_METHOD = """
    class PageMethod:
        def __init__(self, method, *args, **kwargs):
            self.method, self.args, self.kwargs, self.result = method, args, kwargs, None
"""

SPIDER = f"""
    import pathlib
    import scrapy
    from scrapy.loader import ItemLoader
    from scrapy_playwright.page import PageMethod
    from project import codecs, items

    class Parts(scrapy.Spider):
        name = "parts"
        start_urls = ["{START}"]
        custom_settings = {{"DOWNLOADER_MIDDLEWARES": {{"project.browser.Browser": 900}}}}

        def parse(self, response):
            for host in {HOSTS!r}:
                yield scrapy.Request(host + "/lambda", callback=lambda response: [{{"lambda": response.url}}])
                book = items.Book(host, items.Colour.RED)
                yield items.Get(host + "/kept", self.kept, cb_kwargs={{"book": book}}, meta={{"at": pathlib.Path("a")}})
                loader = ItemLoader(item={{}}, response=response)
                yield scrapy.Request(host + "/loader", self.loaded, cb_kwargs={{"loader": loader}})
                clicks = [PageMethod("click", "a", timeout=5)]
                yield scrapy.Request(host + "/clicked", self.shown, meta={{"playwright_page_methods": clicks}})
                touches = [PageMethod(lambda page: None)]
                yield scrapy.Request(host + "/touched", self.shown, meta={{"playwright_page_methods": touches}})

                price = codecs.Price(3, "CHF")
                yield scrapy.Request(host + "/priced", self.priced, meta={{"price": price}})
                yield scrapy.Request(host + "/forgotten", self.priced, meta={{"forgotten": price}})

        def priced(self, response):
            price = response.meta.get("price") or response.meta["forgotten"]
            yield {{"priced": response.url, "in": price.currency}}

        def kept(self, response, book=None):
            assert type(response.request) is items.Get and response.meta["at"] == pathlib.Path("a")
            yield {{"kept": response.url, "colour": book and book.colour.value}}

        def loaded(self, response, loader=None):
            yield {{"loader": response.url, "given": loader is not None}}

        def shown(self, response):
            yield {{"shown": response.url, "did": response.meta["did"]}}
"""

# Does what a browser would, before the page is loaded.
BROWSER = """
    class Browser:
        def process_request(self, request):
            for method in request.meta.get("playwright_page_methods", ()):
                name = method.method if isinstance(method.method, str) else "a function"
                request.meta["did"] = [name, list(method.args), method.kwargs]
"""


def expected() -> dict[str, Any]:
    """URL -> the item of plain Scrapy."""
    found = {}
    for host in HOSTS:
        found[f"{host}/lambda"] = {"lambda": f"{host}/lambda"}
        found[f"{host}/kept"] = {"kept": f"{host}/kept", "colour": "red"}
        found[f"{host}/loader"] = {"loader": f"{host}/loader", "given": True}
        found[f"{host}/clicked"] = {"shown": f"{host}/clicked", "did": ["click", ["a"], {"timeout": 5}]}
        found[f"{host}/priced"] = {"priced": f"{host}/priced", "in": "CHF"}
        found[f"{host}/forgotten"] = {"priced": f"{host}/forgotten", "in": "CHF"}
        found[f"{host}/touched"] = {"shown": f"{host}/touched", "did": ["a function", [], {}]}
    return found


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as running:
        for url in (START, *expected()):
            running.page(url, "page")
        yield running


class Parts(Project):
    """The project, whose processes end with the test."""

    def __init__(self, place: Path, proxy: str) -> None:
        super().__init__(place, proxy)
        self.started: list[Running] = []

    def crawl(self, *arguments: str) -> Running:
        self.started.append(self.start("crawl", "parts", "-s", f"UBI_CODECS={NAMED}", *arguments))
        return self.started[-1]

    def close(self) -> None:
        for process in self.started:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


@pytest.fixture
def project(tmp_path: Path, site: Site) -> Iterator[Parts]:
    project = Parts(tmp_path, site.proxy)
    files = {
        "project/items.py": ITEMS,
        "project/browser.py": BROWSER,
        "project/codecs.py": CODECS,
        "project/spiders/parts.py": SPIDER,
        "scrapy_playwright/__init__.py": "",
        "scrapy_playwright/page.py": PAGE_METHOD,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text))
    yield project
    project.close()


def until(condition: Callable[[], object], what: str) -> None:
    limit = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < limit, f"never: {what}"
        time.sleep(0.05)


def ended(processes: list[Running]) -> list[str]:
    """The logs, when all have ended well by themselves."""
    logs = [process.communicate(timeout=LIMIT)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), "\n".join(logs)
    return logs


def items(project: Parts) -> dict[str, Any]:
    rows = [json.loads(line) for path in project.place.glob("*.jsonl") for line in path.read_text().splitlines()]
    found = {next(value for value in row.values() if str(value).startswith("http")): row for row in rows}
    assert len(found) == len(rows), "nothing twice"
    return found


def stats(log: str) -> Counter[str]:
    return Counter({name: int(number) for name, number in re.findall(r"'(ubi/[^']+)': (\d+)", log)})


def last_lines(log: str) -> str:
    """What is said behind Scrapy's stats."""
    return log.rpartition("Spider closed (finished)")[2]


def _judge_failed(missing: Counter[str], told: Counter[str]) -> None:
    """Each page that is missing has failed with its reason."""
    assert missing["lambda"] == told["ubi/failed/codec/callback"]
    assert missing["loader"] == told["ubi/failed/codec/cb_kwargs"]
    assert missing["touched"] + missing["forgotten"] == told["ubi/failed/codec/meta"]


def test_two_agents_give_the_items_of_plain_scrapy_or_a_reason(project: Parts, site: Site, one_server: Server) -> None:
    settings = {"UBI_REDIS_URL": one_server.url, "UBI_CRAWL": "parts"}
    options = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    processes = []
    with site.hold(START) as held:
        for name in ("a0", "a1"):
            own = ["-s", f"UBI_AGENT_ID={name}", "-s", f"UBI_DIR={project.place / name}", "-o", f"{name}.jsonl"]
            processes.append(project.crawl(*options, *own))
        until_there(one_server, 2)
        until(held.arrived.is_set, "the start page is asked for")
        held.release()
    logs = ended(processes)
    found, wanted = items(project), expected()
    assert all(found[url] == wanted[url] for url in found), "whole, or not at all"
    missing = Counter(url.rpartition("/")[2] for url in wanted.keys() - found.keys())
    assert set(missing) == {"lambda", "loader", "touched", "forgotten"}, "what can travel is all there"
    told = sum((stats(log) for log in logs), Counter[str]())
    _judge_failed(missing, told)
    fetched = {url for url in site.urls() if url != START and not url.endswith("/robots.txt")}
    assert fetched == set(found), "what fails for this is not fetched"
    everything = "\n".join(logs)
    line = 1 + next(
        number for number, text in enumerate(textwrap.dedent(SPIDER).splitlines()) if "lambda response" in text
    )
    assert (
        f"its callback Parts.parse.<locals>.<lambda> at {project.place}/project/spiders/parts.py:{line}" in everything
    )
    assert "cb_kwargs['loader'] (a ItemLoader) cannot travel to another agent" in everything
    assert "meta['forgotten'] (a Price): project.codecs.Forgetful of UBI_CODECS loses a part of it" in everything
    failing = next(log for log in logs if "ubi/failed/codec/callback" in log)
    assert re.search(
        r"WARNING: Lost, of the crawl.*codec/callback: \d+.*`scrapy ubi failed --crawl parts", last_lines(failing)
    )


def test_after_a_restart_what_could_not_be_kept_fails_with_a_reason(project: Parts, site: Site) -> None:
    """Alone: the original objects have gone with the process."""
    command = ("-s", "CONCURRENT_REQUESTS=1", "-o")
    with ExitStack() as stack:
        pages = {f"{host}/lambda": stack.enter_context(site.hold(f"{host}/lambda")) for host in HOSTS}
        first = project.crawl(*command, "first.jsonl")
        until(lambda: any(held.arrived.is_set() for held in pages.values()), "the first page with a lambda")
        first.send_signal(signal.SIGTERM)
        for held in pages.values():
            held.release()
        (log,) = ended([first])
    (url,) = [url for url, held in pages.items() if held.arrived.is_set()]
    assert items(project)[url] == {"lambda": url}, "while it is at hand nothing is lost"
    assert "ubi/failed/codec" not in log
    (log,) = ended([project.crawl(*command, "second.jsonl")])
    found, wanted = items(project), expected()
    assert all(found[url] == wanted[url] for url in found)
    missing = Counter(url.rpartition("/")[2] for url in wanted.keys() - found.keys())
    _judge_failed(missing, stats(log))
    assert "WARNING: Lost, of this agent: " in last_lines(log)


def test_one_agent_gives_the_items_of_plain_scrapy(project: Parts) -> None:
    (log,) = ended([project.crawl("-o", "items.jsonl")])
    assert items(project) == expected()
    assert "Lost, of" not in log and "cannot travel" not in log
