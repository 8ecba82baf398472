"""With the reactor's own download handler: robots.txt that is large, packed, slow, silent, or behind a redirect."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.project import Project
from tests.support.site import Page, Site, Visit, links

pytestmark = pytest.mark.processes

HOME = "http://h1.example/"
FORBIDS = "User-agent: *\nDisallow: /no\n"
KINDS = ("large", "announced", "bomb", "moved", "drips", "silent", "busy")


def test_robots_txt_of_every_kind(tmp_path: Path) -> None:
    stopped = threading.Event()

    def drip(visit: Visit) -> Page:
        return Page(FORBIDS, chunks=iter(lambda: b"# x\n" if not stopped.wait(0.05) else b"", b""))

    def lines() -> Iterator[bytes]:
        while not stopped.is_set():
            yield b"# and so on\n" * 5000

    with Site() as site:
        site.page(HOME, links(*(f"http://{kind}.example/{path}" for kind in KINDS for path in ("yes", "no"))))
        for kind in KINDS:
            site.page(f"http://{kind}.example/yes", "fine")
        at = {kind: f"http://{kind}.example/robots.txt" for kind in KINDS}
        site.page(at["large"], lambda visit: Page(FORBIDS, chunks=lines()))
        site.page(at["announced"], FORBIDS + "# x\n" * 500_000)
        bomb = gzip.compress(FORBIDS.encode() + b"# boom\n" * 10_000_000, 1)
        site.page(at["bomb"], Page(bomb, headers={"Content-Encoding": "gzip"}))
        site.redirect(at["moved"], "http://elsewhere.example/rules")
        site.page("http://elsewhere.example/rules", FORBIDS)
        site.page(at["drips"], drip)
        site.page(at["busy"], Page("x", 503))
        wanted = {
            "UBI_ROBOTS_TIMEOUT": 1.5,
            "UBI_ROBOTS_GIVE_UP": 0,
            "ROBOTSTXT_OBEY": 1,
            "DOWNLOAD_MAXSIZE": 1_000_000,
        }
        with site.hold(at["silent"]):
            options = [part for name, value in wanted.items() for part in ("-s", f"{name}={value}")]
            status, output = Project(tmp_path, site.proxy).run("crawl", "walk", *options)
            stopped.set()
    assert status == 0, output
    asked = {visit.url for visit in site.visits if not visit.url.endswith(("/robots.txt", "/rules"))}
    assert asked == {HOME, *(f"http://{kind}.example/yes" for kind in KINDS[:4])}
    assert "'ubi/robots/truncated': 3" in output
    assert "'ubi/failed/robots': 4" in output
    assert "'ubi/failed/robots/unreachable': 6" in output
    assert "Closing spider (finished)" in output
