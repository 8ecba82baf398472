"""A crawl with the store `markdown`, in this process; and what is collected of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scrapy.crawler import Crawler
from scrapy.settings import Settings

from scrapy_ubi.errors import UbiDirectoryError, UbiError, UbiSettingError
from scrapy_ubi.outputs.markdown import page_markdown
from scrapy_ubi.outputs.stores import make
from tests.outputs.index.kept_pages import IndexCommands
from tests.support import office_files, pdfs
from tests.support.crawls import Walk, crawl
from tests.support.site import Page, Site, links

pytest.importorskip("html_to_markdown")
HOME = "http://a.example/"
TEXT = "The harbour was quiet in the morning, and the boats lay still at the pier until noon. " * 3
command = IndexCommands()


@pytest.fixture
def kept(site: Site, tmp_path: Path) -> tuple[Path, Crawler]:
    """The directory of an agent that has crawled four pages and two documents."""
    urls = [
        f"http://b.example/{path}" for path in ("Docs/One.html", "docs/one.html", "p.pdf", "w.docx", "i.png", "deep")
    ]
    site.page(HOME, f"<html lang=en><title>Home</title><h1>Home</h1><p>{TEXT}</p>" + links(*urls))
    site.page(urls[0], f"<title>One</title><h1>One</h1><p>{TEXT}</p><h2>Part</h2><p>{TEXT}</p>")
    site.page(urls[1], f"<title>Other</title><p>{TEXT}</p>")
    site.page(urls[2], Page(pdfs.plain([], "wheels of paper"), headers={"Content-Type": "application/pdf"}))
    word = office_files.docx(office_files.paragraph("wheels of words"))
    site.page(urls[3], Page(word, headers={"Content-Type": office_files.TYPES["docx"]}))
    site.page(urls[4], Page(bytes(range(256)), headers={"Content-Type": "image/png"}))
    site.page(urls[5], "<div>" * 60_000 + "x")

    stores = ["markdown(documents=yes)", "index(documents=yes)"]
    (outcome,) = crawl(Walk, site.proxy, settings={"UBI_STORES": stores}, place=tmp_path)
    return tmp_path / "a0", outcome.crawler


def test_a_crawl_as_lines_as_chunks_and_as_a_tree(kept: tuple[Path, Crawler], tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    place, crawler = kept
    stats, at = crawler.stats, ("--dir", str(place))
    assert stats is not None
    told = {name: stats.get_value(f"ubi/store/markdown/{name}") for name in ("pages", "left_out", "refused/costly")}
    assert told == {"pages": 6, "left_out": 1, "refused/costly": 1}

    command("collect", "markdown", *at, "-o", str(tmp_path / "pages.jsonl"))
    pages = [json.loads(line) for line in (tmp_path / "pages.jsonl").read_text().splitlines()]
    by_url = {page["url"]: page for page in pages}
    home = by_url[HOME]
    assert (home["title"], home["language"], home["status"], home["depth"]) == ("Home", "en", 200, 0)
    assert home["markdown"].startswith("# Home\n\nThe harbour")
    assert by_url["http://b.example/p.pdf"]["markdown"] == "wheels of paper\n"
    assert (by_url["http://b.example/w.docx"]["title"], by_url["http://b.example/w.docx"]["kind"]) == (
        "The title",
        "docx",
    )
    assert by_url["http://b.example/deep"]["refused"] == "costly"
    assert len(command("search", "wheels", *at).document["results"]) == 2

    command("collect", "markdown", *at, "-o", str(tmp_path / "chunks.jsonl"), "--chunks", "200")
    chunks = [json.loads(line) for line in (tmp_path / "chunks.jsonl").read_text().splitlines()]
    assert all(0 < chunk["characters"] == len(chunk["text"]) <= 200 for chunk in chunks)
    assert ["One", "Part"] in [chunk["path"] for chunk in chunks]
    assert len({chunk["id"] for chunk in chunks}) == len(chunks)

    for _ in range(2):  # the second one takes the place of the first
        command("collect", "markdown", *at, "-o", str(tmp_path / "tree"))
        index = [json.loads(line) for line in (tmp_path / "tree/index.jsonl").read_text().splitlines()]
        files = {str(path.relative_to(tmp_path / "tree")) for path in (tmp_path / "tree").rglob("*.md")}
        assert files == {line["file"] for line in index} and len({file.casefold() for file in files}) == 6
        one = (tmp_path / "tree" / next(x["file"] for x in index if x["url"].endswith("Docs/One.html"))).read_text()
        assert (
            one.startswith('---\nurl: "http://b.example/Docs/One.html"\ntitle: "One"\n') and "\n---\n\n# One\n" in one
        )
    assert not list(tmp_path.glob("tree.*"))


def test_what_is_markdown_already_is_kept_and_what_is_left_out_is_said_once(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = f"# Wheels\n\n{TEXT}\n"
    site.page(HOME, links(*(f"{HOME}{path}" for path in ("a.md", "a.txt", "a.json", "b.json"))))
    site.page(f"{HOME}a.md", Page(text, headers={"Content-Type": "text/markdown; charset=utf-8"}))
    site.page(f"{HOME}a.txt", Page(text, headers={"Content-Type": "text/plain"}))
    for name in "ab":
        site.page(f"{HOME}{name}.json", Page("{}", headers={"Content-Type": "application/json"}))
    settings = {"UBI_STORES": ["markdown"], "UBI_DIR": str(tmp_path / "a")}
    with caplog.at_level("INFO"):
        crawl(Walk, site.proxy, settings=settings)
    command("collect", "markdown", "--dir", str(tmp_path / "a"), "-o", str(tmp_path / "pages.jsonl"))
    pages = map(json.loads, (tmp_path / "pages.jsonl").read_text().splitlines())
    found = {page["url"].rpartition("/")[2]: (page["title"], page["markdown"]) for page in pages}
    assert (found["a.md"], found["a.txt"]) == (("Wheels", text), ("", text)) and len(found) == 3
    assert caplog.text.count("The store markdown keeps nothing of http://a.example/") == 1


def test_what_is_no_tree_is_not_replaced(kept: tuple[Path, Crawler], tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/letter.txt").write_text("dear")
    with pytest.raises(UbiDirectoryError, match="it is no tree of Markdown that may be replaced"):
        command("collect", "markdown", "--dir", str(kept[0]), "-o", str(tmp_path / "mine"))
    with pytest.raises(UbiError, match="--chunks are JSON lines"):
        command("collect", "markdown", "--dir", str(kept[0]), "-o", str(tmp_path / "tree"), "--chunks", "500")
    assert (tmp_path / "mine/letter.txt").read_text() == "dear"


def test_what_is_not_installed_is_said_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_markdown, "MODULE", "no_such_module")
    with pytest.raises(UbiSettingError, match=r"pip install 'scrapy-ubi\[markdown\]'"):
        make(["markdown"], Settings())


def test_what_does_not_hold_is_said_at_the_start() -> None:
    with pytest.raises(UbiSettingError, match="give main or page"):
        make(["markdown(content=some)"], Settings())
