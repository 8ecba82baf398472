"""Which of a page's links are wanted, by their URLs: Scrapy's rules (scheme, expressions, domains, extensions), faster.

What is asked of every link is asked without parsing its URL again; the domains are asked once for each host.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import urlparse

from scrapy_ubi.urls.links.joiner import WEB

_SCHEMES = frozenset({"http", "https", "file", "ftp"})
_MOST_KNOWN = 10_000  # hosts whose answer is kept
_LONGEST = 300  # characters of a host, with user name and port, whose answer is kept

Patterns = Collection[re.Pattern[str]]


class DeniedExtensions:
    """Whether the path of a URL ends with one of these, whatever its case. Each begins with its dot."""

    __slots__ = ("_all", "_last", "_odd", "_search", "short")

    def __init__(self, extensions: Collection[str]) -> None:
        self._all = tuple(extensions)
        self._last = frozenset(each for each in extensions if each.rfind(".") == 0)
        self._odd = tuple(each for each in extensions if each.rfind(".") != 0)  # .tar.gz
        self._search = _pattern({each.rpartition(".")[2] for each in extensions}).search
        self.short = not any(set(each) & set("/?#;") for each in extensions)

    def lines(self, text: str) -> set[str]:
        """Which lines of this text end with an extension before their query and fragment, in lower case. `text`: URLs
        as pages write them, one a line, each with its line end. Some of the answer may be wrong, nothing is missing."""
        text = text.lower()
        found: set[str] = set()
        at = 0
        while match := self._search(text, at):
            end = text.index("\n", match.start())
            found.add(text[max(at, text.rfind("\n", at, end) + 1) : end])
            at = end + 1
        return found

    def on(self, url: str) -> bool:
        """`url`: absolute. Raises ValueError as urlparse does."""
        begins = 7 if url.startswith("http://") else 8 if url.startswith("https://") else 0
        if not begins or not self.short or ";" in url:
            return urlparse(url).path.lower().endswith(self._all)
        if "#" in url or "?" in url:
            url = url.partition("#")[0].partition("?")[0]
        slash = url.rfind("/")
        dot = url.rfind(".", slash)
        if dot < 0 or slash < begins:
            return False
        return url[dot:].lower() in self._last or (bool(self._odd) and url.lower().endswith(self._odd))


def _pattern(endings: Collection[str]) -> re.Pattern[str]:
    """What follows the last dot of a path is one of these. By first letters: that takes a third of the time."""
    rests: dict[str, list[str]] = {}
    for each in sorted(endings, reverse=True):
        rests.setdefault(each[:1], []).append(re.escape(each[1:]))
    groups = "|".join(f"{re.escape(first)}(?:{'|'.join(rest)})" for first, rest in rests.items())
    return re.compile(rf"\.(?:{groups})[?#\n]" if groups else r"(?!)")


class Domains:
    """Whether a URL's host is one of these domains, or in one of them."""

    __slots__ = ("_exact", "_known", "_within")

    def __init__(self, domains: Collection[str]) -> None:
        self._exact = frozenset(each.lower() for each in domains)
        self._within = tuple(f".{each}" for each in self._exact)
        self._known: dict[str, bool] = {}

    def hold(self, url: str) -> bool:
        """Raises ValueError as urlparse does."""
        site = url.split("/", 3)[2] if "://" in url else ""
        answer = self._known.get(site) if site else None
        if answer is None:
            host = urlparse(url).netloc.lower()
            answer = bool(host) and (host in self._exact or host.endswith(self._within))
            if len(site) > _LONGEST:
                return answer
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[site] = answer
        return answer


class Allowed:
    """Whether a URL passes `allow`, `deny`, `allow_domains`, `deny_domains` and `deny_extensions` of an extractor."""

    def __init__(
        self,
        allow: Patterns,
        deny: Patterns,
        allow_domains: Collection[str],
        deny_domains: Collection[str],
        deny_extensions: Collection[str],
    ) -> None:
        self._allow = tuple(pattern.search for pattern in allow)
        self._deny = tuple(pattern.search for pattern in deny)
        self._inside = Domains(allow_domains) if allow_domains else None
        self._outside = Domains(deny_domains) if deny_domains else None
        self._extensions = DeniedExtensions(deny_extensions)
        # Nothing but extensions counts, and of a web page's path only what follows its last dot needs to be looked at:
        # it passes if it is not doubtful, and there is no `;` in it.
        self.by_extension = self._extensions.short and not (allow or deny or allow_domains or deny_domains)
        self.doubtful = self._extensions.lines

    def passes(self, url: str) -> bool:
        """`url`: absolute, as Joiner makes them. One that cannot be parsed does not pass."""
        if not url.startswith(WEB) and url.partition("://")[0] not in _SCHEMES:
            return False
        try:
            return self._expressions_pass(url) and self._host_passes(url) and not self._extensions.on(url)
        except ValueError:
            return False

    def _expressions_pass(self, url: str) -> bool:
        if self._allow and not any(search(url) for search in self._allow):
            return False
        return not any(search(url) for search in self._deny)

    def _host_passes(self, url: str) -> bool:
        if self._inside is not None and not self._inside.hold(url):
            return False
        return self._outside is None or not self._outside.hold(url)
