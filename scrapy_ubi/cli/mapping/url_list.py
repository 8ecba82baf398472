"""The URLs that were listed so far: which of them count, and where they are written to.

Rules of this module:

* A URL counts once, by its normal form, and within the scope of `scrapy ubi crawl` with the same hosts.
* What does not count is counted by its reason, with the first one that had it: nothing is left out in silence.
* A URL is data from outside: what is written is printable ASCII on one line.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TextIO
from urllib.parse import urljoin

from scrapy_ubi.urls import normal_form
from scrapy_ubi.urls.filters import FilterChain, Link
from scrapy_ubi.urls.links.handlers.bounds import MOST_URL
from scrapy_ubi.urls.listings.entries import Listed, read_time, shown_time

MOST_URLS = 5_000_000  # that are told apart, at some hundred bytes each


class UrlListFull(Exception):
    """As many URLs are listed as were asked for."""


class UrlList:
    """Writes the URLs of a site to `out`. `scope`: the text of a filter, "" for all; `since`: unix time, before which
    a page that was not changed is left out."""

    def __init__(
        self, out: TextIO, scope: str, *, as_json: bool = False, since: float = 0.0, most: int = MOST_URLS
    ) -> None:
        self.listed = 0
        self.undated = 0  # of them, with `since`
        self.again = 0
        self.left_out: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()  # sitemaps, feeds and pages, or parts of them
        self.first: dict[str, str] = {}  # reason -> the first URL that had it
        self.since = since
        self._out = out
        self._scope = FilterChain.read([scope] if scope else [])
        self._as_json = as_json
        self.most = most
        self._seen: set[int] = set()

    def know_start(self, url: str) -> None:
        """Let the host of this URL be one of the site's."""
        self._scope.seed(Link(url, normal_form(url) or ""))

    def add(self, entry: Listed, kind: str, source: str) -> None:
        """List what `source` lists, if it counts. Raises UrlListFull."""
        url = entry.url.strip()
        if not url.startswith(("https://", "http://")):
            url = _joined(source, url)
        normal = normal_form(url) if url.startswith(("https://", "http://")) and len(url) <= MOST_URL else None
        if normal is None:
            self._leave_out("no URLs of the web", entry.url)
            return
        key = hash(normal)
        if key in self._seen:
            self.again += 1
            return
        if self._scope.refusal(Link(url, normal)) is not None:
            self._leave_out("of other hosts (--hosts)", url)
            return
        if self.since and (when := read_time(entry.changed)) < self.since:
            if when:
                self._leave_out("not changed since then", url)
                return
            self.undated += 1
        if self.listed >= self.most:
            raise UrlListFull
        self._seen.add(key)
        self.listed += 1
        self._write(url if url.isascii() and url.isprintable() and " " not in url else normal, entry, kind, source)

    def refuse(self, reason: str, url: str) -> None:
        """Note that a sitemap, feed or page, or a part of it, could not be read, and why."""
        self.refused[reason] += 1
        self.first.setdefault(reason, url)

    def _leave_out(self, reason: str, url: str) -> None:
        self.left_out[reason] += 1
        self.first.setdefault(reason, url)

    def _write(self, url: str, entry: Listed, kind: str, source: str) -> None:
        changed = shown_time(entry.changed) if entry.changed else ""
        if self._as_json:
            line = json.dumps({"url": url, "lastmod": changed or None, "kind": kind, "from": source})
        else:
            line = f"{url}\t{changed}" if changed else url
        self._out.write(line + "\n")


def _joined(base: str, url: str) -> str:
    try:
        return urljoin(base, url) if 0 < len(url) <= MOST_URL else ""
    except ValueError:
        return ""
