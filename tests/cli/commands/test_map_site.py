"""`scrapy ubi map`: before it fetches anything; then real processes against a web on loopback."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
from os import environ
from pathlib import Path

import pytest

from tests.cli.commands.test_ubi import Shell
from tests.cli.mapping.test_site_walk import HOME, index, urlset
from tests.support.site import Page, Site


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ftp://a.example/"], "URL: crawl.start[0] 'ftp://a.example/' is no address of a page"),
        (["a.example", "--hosts", "a b"], "--hosts: crawl.hosts[0] 'a b' is no host"),
        (["a.example", "-o", "there"], "there is there already: name a new file, or write -O there."),
        (["a.example", "-o", "none/urls"], "none/urls cannot be written (No such file or directory)."),
    ],
)
def test_what_does_not_hold_is_said_in_a_sentence(shell: Shell, arguments: list[str], said: str) -> None:
    Path("there").write_text("")
    assert shell("map", *arguments) == 1
    assert shell.err.startswith(f"scrapy ubi: {said}"), shell.err


def command(place: Path, proxy: str, *arguments: str) -> subprocess.Popen[str]:
    """Run it in this directory, as a person does."""
    return subprocess.Popen(
        [sys.executable, "-m", "scrapy", "ubi", "map", *arguments],
        cwd=place,
        env={**environ, "http_proxy": proxy, "no_proxy": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def text(body: str) -> Page:
    return Page(body, headers={"Content-Type": "text/plain"})


@pytest.mark.processes
def test_a_site_is_mapped_and_its_robots_txt_obeyed(tmp_path: Path, site: Site) -> None:
    site.page(HOME, "<a href='/no-link'>")
    site.page(f"{HOME}robots.txt", text("User-agent: *\nDisallow: /no\nSitemap: /map.xml\nSitemap: /no/map.xml\n"))
    site.page(f"{HOME}map.xml", index("/moved", "http://sub.site.example/s.xml", "http://127.0.0.1/s.xml"))
    site.redirect(f"{HOME}moved", f"{HOME}s.xml.gz")
    site.page(f"{HOME}s.xml.gz", Page(gzip.compress(urlset("/1?a&b", "/2", changed="2026-11-28").encode())))
    site.page("http://sub.site.example/robots.txt", text("User-agent: *\nDisallow: /\n"))
    ended = command(tmp_path, site.proxy, "site.example", "-o", "urls.jsonl", "--delay", "0")
    out, err = ended.communicate(timeout=120)
    assert ended.returncode == 1 and not out, err
    rows = [json.loads(line) for line in (tmp_path / "urls.jsonl").read_text().splitlines()]
    assert [(row["url"], row["lastmod"]) for row in rows] == [
        (f"{HOME}1?a&b", "2026-11-28"),
        (f"{HOME}2", "2026-11-28"),
    ]
    asked = site.urls()
    assert set(asked.values()) == {1}, asked
    assert not any("/no" in url or "/1" in url or "/2" in url for url in asked)
    assert "http://sub.site.example/s.xml" not in asked
    assert "2 URLs from 2 sitemaps and 0 feeds" in err
    assert "2, robots.txt forbids it" in err and "1, at a private address: http://127.0.0.1/s.xml" in err


@pytest.mark.processes
@pytest.mark.parametrize(
    ("status", "said"),
    [(503, "http://site.example/robots.txt cannot be read (status 503)"), (404, "0 URLs from 0 sitemaps")],
)
def test_a_site_that_says_nothing_is_a_failure(tmp_path: Path, site: Site, status: int, said: str) -> None:
    site.page(f"{HOME}robots.txt", Page("", status))
    ended = command(tmp_path, site.proxy, "site.example", "--delay", "0", "-s", "RETRY_ENABLED=0")
    out, err = ended.communicate(timeout=120)
    assert (ended.returncode, out) == (1, "") and said in err, err
    assert (f"{HOME}sitemap.txt" in site.urls()) == (status == 404)


@pytest.mark.processes
def test_ctrl_c_ends_it_with_what_was_listed(tmp_path: Path, site: Site) -> None:
    site.page(HOME, "<p>")
    site.page(f"{HOME}robots.txt", text("Sitemap: /a.xml\nSitemap: /b.xml\n"))
    site.page(f"{HOME}a.xml", urlset("/1"))
    with site.hold(f"{HOME}b.xml") as held:
        ended = command(tmp_path, site.proxy, "site.example", "--delay", "0")
        try:
            assert held.arrived.wait(120)
            ended.send_signal(signal.SIGINT)
            out, err = ended.communicate(timeout=120)
        finally:
            ended.kill()
    assert (ended.returncode, out) == (130, f"{HOME}1\n"), err
