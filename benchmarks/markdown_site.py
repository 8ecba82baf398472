"""From an empty directory to the Markdown of a documentation site, in one command: time, and text beside the sources.

    python benchmarks/markdown_site.py                           500 pages of the largest documentation found: minutes
    python benchmarks/markdown_site.py --site python3.11 --pages 100 --pairs 1
    python benchmarks/markdown_site.py --peers VENV/bin/python   where trafilatura and crawl4ai are installed

Ours is `scrapy ubi crawl URL --markdown`. Beside it: trafilatura in a loop (urllib3, as its own downloads refuse
loopback; all links; its Markdown), and Crawl4AI's breadth-first crawl over HTTP, without a browser, as `crwl` does it
with one; as far as they are there.
Runs take turns, and the time is given as a ratio to ours of the same turn, starts included: none waits between pages.
F1 is of words: beside what a selector finds on each page, and beside the reST sources, where the site has them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import mean, median
from urllib.parse import unquote, urlsplit

from selectolax.lexbor import LexborHTMLParser

from benchmarks.documentation import default_places, find_sites
from benchmarks.main_text import as_words, f1

LIMIT = 900.0  # s a run may take
MAIN = 'div[role="main"], main, article, div.body'  # of Sphinx and others
LOOP = """
import json, sys
from collections import deque
from urllib.parse import urldefrag, urljoin
import trafilatura, urllib3
from lxml import html
pool = urllib3.PoolManager()
start, most, out = sys.argv[1], int(sys.argv[2]), open(sys.argv[3], "w")
waits, known, done = deque([start]), {start}, 0
while waits and done < most:
    url = waits.popleft()
    answer = pool.request("GET", url)
    if answer.status != 200:
        continue
    page, done = answer.data.decode("utf-8", "replace"), done + 1
    text = trafilatura.extract(page, url=url, output_format="markdown", include_links=True, include_formatting=True)
    out.write(json.dumps({"url": url, "markdown": text or ""}) + "\\n")
    for href in html.fromstring(page.encode()).xpath("//a/@href"):
        link = urldefrag(urljoin(url, href))[0]
        if link.startswith(start) and link.endswith(".html") and link not in known:
            known.add(link)
            waits.append(link)
"""
CRAWL4AI = """
import asyncio, json, sys
from crawl4ai import AsyncWebCrawler, CrawlerRunConfig
from crawl4ai.async_crawler_strategy import AsyncHTTPCrawlerStrategy
from crawl4ai.deep_crawling import BFSDeepCrawlStrategy
from crawl4ai.deep_crawling.filters import FilterChain, URLPatternFilter
async def main():
    html = FilterChain([URLPatternFilter(patterns=["*.html"])])
    deep = BFSDeepCrawlStrategy(max_depth=50, max_pages=int(sys.argv[2]), include_external=False, filter_chain=html)
    config = CrawlerRunConfig(deep_crawl_strategy=deep, stream=True, verbose=False)
    with open(sys.argv[3], "w") as out:
        async with AsyncWebCrawler(crawler_strategy=AsyncHTTPCrawlerStrategy()) as crawler:
            async for result in await crawler.arun(sys.argv[1], config=config):
                if result.success:
                    text = result.markdown.raw_markdown if result.markdown else ""
                    out.write(json.dumps({"url": result.url, "markdown": text}) + "\\n")
asyncio.run(main())
"""
Run = Callable[[str, int, Path], list[str]]  # URL, pages, file -> command


@contextmanager
def served(root: Path) -> Iterator[str]:
    """Serve a directory on loopback; its address."""

    class Handler(SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 65536

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """Nothing: a client has closed its connection."""

    server = Server(("127.0.0.1", 0), partial(Handler, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def ways(peers: str) -> Iterator[tuple[str, Run]]:
    """Name and command of each way that is there; of others it is said that they are not."""
    scrapy = str(Path(sys.executable).with_name("scrapy"))

    def ours(url: str, pages: int, out: Path) -> list[str]:
        bounds = ["--follow", r"\.html$", "--max-pages", str(pages), "--delay", "0"]
        return [scrapy, "ubi", "crawl", url, "--markdown", str(out), *bounds]

    yield "ours", ours
    for name, module, script in (("trafilatura", "trafilatura", LOOP), ("Crawl4AI (HTTP)", "crawl4ai", CRAWL4AI)):
        tried = subprocess.run([peers, "-c", f"import {module}"], capture_output=True, text=True, timeout=LIMIT)
        if tried.returncode:
            why = (tried.stderr.splitlines() or ["?"])[-1]
            print(f"{name} is left out: {peers} cannot import {module} ({why})", flush=True)
            continue

        def theirs(url: str, pages: int, out: Path, script: str = script) -> list[str]:
            return [peers, "-c", script, url, str(pages), str(out)]

        yield name, theirs


def run(way: Run, url: str, pages: int) -> tuple[float, dict[str, str]]:
    """Seconds from an empty directory to the end of the command, and the Markdown of each path of the site."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "pages.jsonl"
        command = way(url, pages, out)
        begin = time.monotonic()
        ended = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=LIMIT)
        seconds = time.monotonic() - begin
        if ended.returncode or not out.exists():
            raise SystemExit(f"{' '.join(command[:4])} ended with {ended.returncode}:\n{ended.stderr[-2000:]}")
        records = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
        if not records:
            raise SystemExit(f"{' '.join(command[:1])} has found no page:\n{ended.stderr[-2000:]}")
    return seconds, {path_of(record["url"]): record["markdown"] for record in records}


def path_of(url: str) -> str:
    """The file of the site that a URL names."""
    path = unquote(urlsplit(url).path).lstrip("/")
    return f"{path}index.html" if path.endswith("/") or not path else path


def main_of(root: Path, path: str, selector: str) -> str | None:
    """The main text of a page, as a selector finds it."""
    try:
        tree = LexborHTMLParser((root / path).read_bytes())
    except OSError:
        return None
    for mark in tree.css("script,style,a.headerlink"):
        mark.decompose()
    found = tree.css_first(selector)
    return found.text(separator=" ") if found is not None else None


def source_of(root: Path, path: str) -> str | None:
    """The reST that a page was made of, where Sphinx has left it there."""
    for folder in ("_sources", "."):
        source = root / folder / f"{path.removesuffix('.html')}.rst.txt"
        if source.is_file():
            return source.read_text("utf-8", "replace")
    return None


def score(found: Mapping[str, str], wanted: Callable[[str], str | None]) -> tuple[float, int]:
    """The mean F1 of the pages of which it is known what is wanted, and how many these are."""
    pairs = [(as_words(text), text_wanted) for path, text in found.items() if (text_wanted := wanted(path))]
    return (mean(f1(text, text_wanted) for text, text_wanted in pairs) if pairs else 0.0), len(pairs)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", default="", help="a part of the name of a site that is found here, or a directory")
    parser.add_argument("--pages", type=int, default=500)
    parser.add_argument("--pairs", type=int, default=2, help="turns of all ways (default: 2)")
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON", help="the Python that has the others")
    parser.add_argument("--selector", default=MAIN, help="CSS of the main text")
    opts = parser.parse_args()
    root = Path(opts.site)
    if not opts.site or not root.is_dir():
        sites = [place for name, place in find_sites(default_places()).items() if opts.site in name]
        if not sites:
            raise SystemExit("no documentation is found here: install python3-doc, or unpack it below $REALWEB_DIR")
        root = max(sites, key=lambda place: sum(1 for _ in place.rglob("*.html")))
    there = dict(ways(opts.peers))
    times: dict[str, list[float]] = {name: [] for name in there}
    texts: dict[str, dict[str, str]] = {}
    with served(root) as url:
        for _ in range(opts.pairs):
            for name, way in there.items():
                seconds, texts[name] = run(way, url, opts.pages)
                times[name].append(seconds)
    print(f"{root}\n| way | pages | s | times ours | F1, main text | F1, sources |\n|{' --- |' * 6}")
    for name, spent in times.items():
        ratio = median(theirs / ours for theirs, ours in zip(spent, times["ours"], strict=True))
        main_text, _ = score(texts[name], lambda path: main_of(root, path, opts.selector))
        sources, known = score(texts[name], lambda path: source_of(root, path))
        of_sources = f"{sources:.3f} ({known} pages)" if known else "none here"
        row = f"{len(texts[name])} | {median(spent):.1f} | {ratio:.2f} | {main_text:.3f} | {of_sources}"
        print(f"| {name} | {row} |", flush=True)


if __name__ == "__main__":
    main()
