"""Filters that look at one thing: length, scheme, extension, depth, whether the URL is known."""

from __future__ import annotations

import re
from collections.abc import Callable

from scrapy_ubi.urls.filters.base import Link, SuiteFilter, one, only, target_of, whole_number
from scrapy_ubi.urls.filters.filter_text import Arguments, FilterError

LONGEST = 65_536  # characters: as of all URLs

_scheme = re.compile(r"[a-z][a-z0-9+.-]*").fullmatch  # RFC 3986, section 3.1
_extension = re.compile(r"-?[a-z0-9_+~-]+").fullmatch
_pass_over = str.maketrans("", "", " \t\r\n")


class Length(SuiteFilter):
    """`length(2048)`: no URL of more characters, as found."""

    def __init__(self, most: int) -> None:
        self.most = most

    @classmethod
    def parse(cls, arguments: Arguments) -> Length:
        only(arguments, "")
        return cls(whole_number(one(arguments, "", ""), 1, LONGEST))

    def arguments(self) -> Arguments:
        return {"": (str(self.most),)}

    def refuses(self, link: Link) -> str:
        return "longer" if len(link.url) > self.most else ""


class Schemes(SuiteFilter):
    """`schemes(http, https)`: these schemes only. The one filter of the suite that judges other URLs than http and
    https, too: without it they are left to the agent that finds them.
    """

    hostless = True

    def __init__(self, *schemes: str) -> None:
        self.schemes = tuple(dict.fromkeys(scheme.lower() for scheme in schemes))
        if not self.schemes or not all(map(_scheme, self.schemes)):
            raise FilterError("lacks schemes, or has one that is none", "name some, as in 'schemes(http, https)'")
        self._prefixes = tuple(f"{scheme}:" for scheme in self.schemes)

    @classmethod
    def parse(cls, arguments: Arguments) -> Schemes:
        only(arguments, "")
        return cls(*arguments.get("", ()))

    def arguments(self) -> Arguments:
        return {"": self.schemes}

    def refuses(self, link: Link) -> str:
        text = link.normal or link.url.translate(_pass_over).lower()
        return "" if text.startswith(self._prefixes) else (text.partition(":")[0][:20] or "none")


class Extensions(SuiteFilter):
    """`extensions(-pdf, -zip)`: none of these; `extensions(html, htm, php)`: these only, and paths without any.

    The extension is what follows the last dot of the path's last segment, in small letters, without `;` parameters.
    """

    def __init__(self, *extensions: str) -> None:
        names = tuple(dict.fromkeys(name.lower() for name in extensions))
        if not names or not all(map(_extension, names)):
            raise FilterError("lacks extensions, or has one that is none", "name them without dots: 'extensions(-pdf)'")
        unwanted = [name.startswith("-") for name in names]
        if any(unwanted) and not all(unwanted):
            raise FilterError(
                "has extensions with a minus and without", "give those not wanted (-pdf), or those wanted (html)"
            )
        self.extensions = names
        self._unwanted = unwanted[0]
        self._names = frozenset(name.removeprefix("-") for name in names)

    @classmethod
    def parse(cls, arguments: Arguments) -> Extensions:
        only(arguments, "")
        return cls(*arguments.get("", ()))

    def arguments(self) -> Arguments:
        return {"": self.extensions}

    def refuses(self, link: Link) -> str:
        path = target_of(link.normal).partition("?")[0]
        last = path[path.rfind("/") + 1 :]
        if ";" in last:
            last = last.partition(";")[0]
        dot = last.rfind(".")
        if dot < 0:
            return ""
        extension = last[dot + 1 :].lower()
        return extension[:20] or "." if (extension in self._names) is self._unwanted else ""


class Depth(SuiteFilter):
    """`depth(12)`: nothing further from a seed than so many links. Scrapy's DEPTH_LIMIT does it in each agent, too."""

    def __init__(self, most: int) -> None:
        self.most = most

    @classmethod
    def parse(cls, arguments: Arguments) -> Depth:
        only(arguments, "")
        return cls(whole_number(one(arguments, "", ""), 0, 1_000_000))

    def arguments(self) -> Arguments:
        return {"": (str(self.most),)}

    def refuses(self, link: Link) -> str:
        return "deeper" if link.depth > self.most else ""


def _nothing(link: Link) -> bool:
    """What a filter knows that belongs to no crawl."""
    return False


class Visited(SuiteFilter):
    """`visited`, LARM's last filter: no URL that this agent knows to be known. Known URLs are never fetched again, with
    it or without; it says at which place of the chain they are dropped. `is_known` is the crawl's.
    """

    def __init__(self) -> None:
        self.is_known: Callable[[Link], bool] = _nothing

    @classmethod
    def parse(cls, arguments: Arguments) -> Visited:
        only(arguments)
        return cls()

    def refuses(self, link: Link) -> str:
        return "known" if self.is_known(link) else ""
