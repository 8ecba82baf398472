"""Main text of pages: how well, how fast and how heavy our way and the libraries are that find it.

    python benchmarks/main_text.py                       a hundred pages of ten kinds, made by code
    python benchmarks/main_text.py --pages DIR           real pages: DIR/ground-truth.json and DIR/html/<id>.html.gz, as
                                                         scrapinghub/article-extraction-benchmark on GitHub has them
    python benchmarks/main_text.py --docs DIR SELECTOR   pages of documentation below DIR (Debian's python3.11-doc),
                                                         whose main text is what a CSS selector finds; may be repeated

F1 is of words, each counted as often as it is there; a letter of Chinese or Japanese is a word. Libraries are compared
as far as they are installed: pip install trafilatura resiliparse readability-lxml lxml_html_clean justext html2text.
Of Markdown the words count, without addresses of links and numbers of lists. Times are of the processor.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import logging
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from pathlib import Path
from statistics import mean

from scrapy.http import HtmlResponse
from selectolax.lexbor import LexborHTMLParser

from benchmarks.main_text_pages import MadePage, made_pages

MOST_DOCS = 25  # pages of each tree
_words = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")
_addresses = re.compile(r"\]\((?:<[^>]*>|[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)")
_numbers = re.compile(r"^\s*\d+\. ", re.MULTILINE)
Extract = Callable[[str, str], str]  # of HTML and URL


def words(text: str) -> Counter[str]:
    """The words of a text."""
    return Counter(_words.findall(text.lower()))


def f1(found: str, wanted: str) -> float:
    """Of the words of both; 1.0 where neither has any."""
    one, two = words(found), words(wanted)
    both, all_of_them = sum((one & two).values()), sum(one.values()) + sum(two.values())
    return 2 * both / all_of_them if all_of_them else 1.0


def as_words(markdown: str) -> str:
    """Markdown without addresses of links and numbers of lists."""
    return _numbers.sub("", _addresses.sub("] ", markdown))


def ours(html: str, url: str) -> str:
    """The words of our Markdown."""
    from scrapy_ubi.outputs.markdown.page_markdown import markdown_of

    response = HtmlResponse(
        url, body=html.encode("utf-8", "replace"), headers={"Content-Type": "text/html; charset=utf-8"}
    )
    return as_words(markdown_of(response).markdown)


def extractors() -> Iterator[tuple[str, str, Extract]]:
    """Name, distribution and function of each that is installed."""
    yield "ours", "html-to-markdown", ours
    if trafilatura := _installed("trafilatura"):
        yield "trafilatura", "trafilatura", lambda h, u: trafilatura.extract(h, include_comments=False) or ""
        yield (
            "trafilatura fast",
            "trafilatura",
            lambda h, u: trafilatura.extract(h, fast=True, include_comments=False) or "",
        )
        yield (
            "trafilatura recall",
            "trafilatura",
            (lambda h, u: trafilatura.extract(h, favor_recall=True, include_comments=False) or ""),
        )
    if resiliparse := _installed("resiliparse.extract.html2text"):
        plain = resiliparse.extract_plain_text
        yield (
            "resiliparse",
            "resiliparse",
            lambda h, u: plain(h, main_content=True, list_bullets=False, alt_texts=False),
        )
    if readability := _installed("readability"):
        lxml = importlib.import_module("lxml.html")
        yield (
            "readability",
            "readability-lxml",
            (lambda h, u: lxml.fromstring(readability.Document(h).summary() or "<p>").text_content()),
        )
    if justext := _installed("justext"):
        stop = justext.get_stoplist("English")
        yield (
            "justext",
            "justext",
            lambda h, u: "\n".join(
                part.text for part in justext.justext(h.encode(), stop, encoding="utf-8") if not part.is_boilerplate
            ),
        )
    if html2text := _installed("html2text"):
        yield "html2text", "html2text", lambda h, u: as_words(html2text.html2text(h))
    if converter := _installed("html_to_markdown"):
        options = converter.ConversionOptions(
            preprocessing=converter.PreprocessingOptions(enabled=True, preset="aggressive"), extract_metadata=False
        )
        yield (
            "html-to-markdown",
            "html-to-markdown",
            lambda h, u: as_words(converter.convert(h, options).content),
        )


def _installed(name: str) -> object | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def of_articles(place: Path) -> Iterator[MadePage]:
    """Real pages with their main text."""
    for name, page in json.loads((place / "ground-truth.json").read_text("utf-8")).items():
        html = gzip.decompress((place / "html" / f"{name}.html.gz").read_bytes()).decode("utf-8", "replace")
        yield MadePage("articles", name, page["url"], html, page["articleBody"])


def of_docs(place: Path, selector: str) -> Iterator[MadePage]:
    """Real pages of documentation, drawn by a seed, with the text that a selector finds."""
    files = sorted(path for path in place.rglob("*.html") if 2_500 < path.stat().st_size < 800_000)
    for path in random.Random(5).sample(files, min(MOST_DOCS, len(files))):
        html = path.read_text("utf-8", "replace")
        tree = LexborHTMLParser(html)
        for tag in ("script", "style"):
            for node in tree.tags(tag):
                node.decompose()
        found = tree.css_first(selector)
        if found is not None:
            for mark in found.css("a.headerlink,.navheader,.navfooter"):
                mark.decompose()
            yield MadePage("docs", str(path), f"http://docs.example/{path.name}", html, found.text(separator=" "))


def weight(name: str) -> float:
    """MB that a distribution takes on the disk, with all that it needs and Scrapy does not bring."""
    waits, seen = [name], set(_needed("scrapy"))
    size = 0
    while waits:
        one = waits.pop()
        if one not in seen:
            seen.add(one)
            try:
                found = metadata.distribution(one)
            except metadata.PackageNotFoundError:
                continue
            size += sum(
                Path(str(found.locate_file(file))).stat().st_size
                for file in found.files or ()
                if _is_there(found, file)
            )
            waits += _requirements(found)
    return size / 1e6


def _is_there(found: metadata.Distribution, file: object) -> bool:
    return Path(str(found.locate_file(str(file)))).is_file()


def _requirements(found: metadata.Distribution) -> list[str]:
    plain = [text for text in found.requires or () if "extra ==" not in text]
    return [re.split(r"[\s<>=!~;\[(]", text)[0].lower() for text in plain]


def _needed(name: str) -> Iterator[str]:
    waits, seen = [name], set[str]()
    while waits:
        one = waits.pop()
        if one not in seen:
            seen.add(one)
            yield one
            try:
                waits += _requirements(metadata.distribution(one))
            except metadata.PackageNotFoundError:
                continue


def measure(pages: Iterable[MadePage], extract: Extract) -> tuple[dict[str, float], float, int]:
    """The mean F1 of each kind of page, ms of processor time a page, and pages on which it failed."""
    found: dict[str, list[float]] = defaultdict(list)
    spent, failed, number = 0.0, 0, 0
    for page in pages:
        begin = time.process_time()
        try:
            text = extract(page.html, page.url) or ""
        except Exception:  # noqa: BLE001 - of any library, about any page
            text, failed = "", failed + 1
        spent += time.process_time() - begin
        number += 1
        found[page.kind].append(f1(text, page.text))
    return {kind: mean(scores) for kind, scores in found.items()}, 1000 * spent / max(number, 1), failed


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=Path, metavar="DIR")
    parser.add_argument("--docs", nargs=2, action="append", default=[], metavar=("DIR", "SELECTOR"))
    parser.add_argument("--seed", type=int, default=1, help="of the pages that are made (default: 1)")
    opts = parser.parse_args()
    logging.disable(logging.CRITICAL)
    pages = list(of_articles(opts.pages)) if opts.pages else []
    for place, selector in opts.docs:
        pages += of_docs(Path(place), selector)
    pages = pages or list(made_pages(opts.seed))
    kinds = list(dict.fromkeys(page.kind for page in pages))
    print(f"{len(pages)} pages\n| way | F1 | ms a page | MB | failed | {' | '.join(kinds)} |")
    print("|" + " --- |" * (5 + len(kinds)))
    for name, distribution, extract in extractors():
        scores, spent, failed = measure(pages, extract)
        whole = mean(scores[page.kind] for page in pages)
        each = " | ".join(f"{scores[kind]:.3f}" for kind in kinds)
        print(f"| {name} | {whole:.3f} | {spent:.1f} | {weight(distribution):.0f} | {failed} | {each} |", flush=True)


if __name__ == "__main__":
    main()
