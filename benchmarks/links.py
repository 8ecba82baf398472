"""Link extraction: UbiLinkExtractor, and Scrapy's LinkExtractor with UBI_LEAN, beside Scrapy's alone, on made pages
and on a directory of real ones.

    python benchmarks/links.py                        # pages of 10 kB with 40 links, 50 kB with 200, 300 kB with 1,500
    python benchmarks/links.py --parsed               # the same of a spider that has called `response.css` before
    python benchmarks/links.py --pages DIR [DIR...]   # and on the *.html below these; differences are listed

Each extractor gets a response that nothing has been read of, as the first one to look at a page does; with `--parsed`
one that was parsed for a selector. Both take turns page by page. Every page's links are compared; made pages must give
the same, and real ones that were parsed before, too; others show how they differ. Made pages come with their charset in
the header, as most do; real ones without, so that it is looked for.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path

from rounds import save, table, take_turns
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor

from scrapy_ubi.adapter.extraction.linkextractor import UbiLinkExtractor
from scrapy_ubi.fast.link_extractor import FastLinkExtraction

SIZES = ((10_000, 40, 60), (50_000, 200, 12), (300_000, 1_500, 3))
WORDS = "time node page crawl graph lorem ipsum dolor sit amet index".split()
ADDRESS = "http://h0001.example/d1/index.html"

theirs, ours = LinkExtractor(), UbiLinkExtractor()
LEAN = "Scrapy with UBI_LEAN"
undo = FastLinkExtraction.change()
in_their_place = LinkExtractor.extract_links
undo()


def lean(page: HtmlResponse) -> list:
    """The links that Scrapy's extractor finds with UBI_LEAN."""
    return in_their_place(theirs, page)


def made_page(size: int, links: int) -> bytes:
    """A page of about so many bytes with so many links of four kinds."""
    chance = random.Random(links)
    start = '<!DOCTYPE html><html><head><meta charset="utf-8"><title>Made</title><script>1 < 2</script></head><body>'
    rows = []
    for i in range(links):
        kinds = (f"/d{i % 7}/p{i}.html", f"../a/p{i}.html?x={i}&amp;y=2", f"http://h{i % 99:04d}.example/p{i}.html")
        href = chance.choice((*kinds, f"p{i}.html#top"))
        link = f'<a class="link" href="{href}" title="t">link {i}</a>'
        rows.append(f'<div class="row c{i % 5}" id="r{i}"><span>{chance.choice(WORDS)}</span> {link}</div>')
    words = max(0, size - len(start) - sum(map(len, rows))) // links // 6
    body = "".join(row + "<p>" + " ".join(chance.choices(WORDS, k=words)) + "</p>" for row in rows)
    return f"{start}{body}</body></html>".encode()


def response(body: bytes, address: str = ADDRESS, content: str = "text/html; charset=utf-8") -> HtmlResponse:
    return HtmlResponse(address, body=body, headers={"Content-Type": content})


def parsed(page: HtmlResponse) -> HtmlResponse:
    """After a spider has asked it for something."""
    page.css("title")
    return page


def on_made_pages(rounds: int, before: bool) -> dict[str, dict[str, float]]:
    """Seconds a page each way, for each size; `before`: of pages that were parsed before."""
    found = {}
    gc.collect()
    gc.freeze()
    for size, links, times in SIZES:
        body = made_page(size, links)
        assert theirs.extract_links(response(body)) == ours.extract_links(response(body)) == lean(response(body))

        def by(extract, body: bytes = body, times: int = times):
            pages = [parsed(response(body)) for _ in range(times)] if before else None

            def way(turn: int) -> None:
                for page in pages or range(times):
                    extract(page if pages else response(body))
                gc.collect()  # Scrapy's parsed pages are cycles: who leaves some clears them away

            return way

        ways = {"Scrapy": by(theirs.extract_links), LEAN: by(lean), "UbiLinkExtractor": by(ours.extract_links)}
        ways["extract_urls"] = by(ours.extract_urls)
        found[f"{size // 1000} kB, {links}"] = take_turns(ways, times, rounds)
    return found


def pages_below(directories: list[str]) -> list[Path]:
    files = (file for each in directories for file in Path(each).rglob("*") if file.suffix in (".html", ".htm"))
    return sorted(file for file in files if file.is_file())


def timed(extractor: LinkExtractor, body: bytes, address: str) -> tuple[float, list]:
    start = time.process_time()
    links = extractor.extract_links(response(body, address, "text/html"))
    return time.process_time() - start, links


def on_real_pages(files: list[Path], show: int) -> dict[str, object]:
    """Seconds of both over all files, and how their links differ."""
    seconds, counts = [0.0, 0.0], Counter()
    for number, file in enumerate(files):
        body = file.read_bytes()
        address = f"http://corpus.example/{file.as_posix().lstrip('/')}"
        order = (theirs, ours) if number % 2 else (ours, theirs)
        results = {extractor: timed(extractor, body, address) for extractor in order}
        assert ours.extract_urls(response(body, address, "text/html")) == [link.url for link in results[ours][1]], file
        for side, extractor in enumerate((theirs, ours)):
            seconds[side] += results[extractor][0]
        counts.update(pages=1, bytes=len(body), links=len(results[theirs][1]))
        again = parsed(response(body, address, "text/html"))
        scrapys = theirs.extract_links(again)
        assert ours.extract_links(again) == scrapys == lean(again), f"{file}, when it was parsed before"
        lines = differences(results[theirs][1], results[ours][1])
        if lines:
            counts["pages that differ"] += 1
            counts.update(kind for kind, _ in lines)
            for kind, line in lines[: 3 if show > 0 else 0]:
                print(f"{file}: {kind}: {line}")
            show -= 1
    return {"seconds": {"Scrapy": seconds[0], "UbiLinkExtractor": seconds[1]}, "counts": dict(counts)}


def differences(one: list, two: list) -> list[tuple[str, str]]:
    """What is not the same in two lists of links: (kind, line)."""
    if one == two:
        return []
    first, second = ({link.url: link for link in links} for links in (one, two))
    lines = [("only Scrapy's", repr(first[url])) for url in first if url not in second]
    lines += [("only ours", repr(second[url])) for url in second if url not in first]
    for url in first.keys() & second.keys():
        if first[url].text != second[url].text:
            lines.append(("text", f"{url}: {first[url].text!r} / {second[url].text!r}"))
        if first[url].nofollow != second[url].nofollow:
            lines.append(("nofollow", url))
    return lines or [("order", f"{len(one)} links")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="rounds, of which the median counts (%(default)s)")
    parser.add_argument("--pages", nargs="+", metavar="DIR", default=[], help="directories of real pages")
    parser.add_argument("--parsed", action="store_true", help="of pages that were parsed for a selector before")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each Nth of the real pages")
    parser.add_argument("--show", type=int, default=20, help="pages whose differences are printed (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    args = parser.parse_args()
    made = on_made_pages(args.rounds, args.parsed)
    names = ("Scrapy", LEAN, "UbiLinkExtractor", "extract_urls")
    rows = {name: [f"{each[name] * 1e6:.0f}" for each in made.values()] for name in names}
    for name in names[1:]:
        rows[f"ratio, {name}"] = [f"{each['Scrapy'] / each[name]:.1f}" for each in made.values()]
    table("microseconds a page", [f"{size:>14}" for size in made], rows)
    figures: dict[str, object] = {"made": made}
    if args.pages:
        figures["real"] = real = on_real_pages(pages_below(args.pages)[:: args.every], args.show)
        seconds = real["seconds"]
        print(f"\nreal pages: {json.dumps(real)}\nratio {seconds['Scrapy'] / seconds['UbiLinkExtractor']:.1f}")
    save(args.json, figures)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
