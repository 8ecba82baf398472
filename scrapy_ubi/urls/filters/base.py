"""What a filter is, and what it judges.

Rules of this module:

* A filter is a value: its text form, `str(f)`, parses back to an equal one, and equal filters have equal texts.
* `refuses` answers "" for a link that passes, else one word or a few that say why. It never raises, whatever the link:
  links come from the web. What is wrong with its arguments it says when it is made, by `FilterError`.
* A filter decides by the link alone: it may keep what it has worked out, but not what it has let through. Every agent
  of the crawl asks it about what that agent's pages link to, and gets the answer that the others would. `traps` alone
  counts what it lets through; what has passed once passes again.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from scrapy_ubi.urls.filters.filter_text import Arguments, Call, FilterError, made_with, write


class Link(NamedTuple):
    """A URL found on a page. `url` is as found, and fetched; `normal` its normal form, "" where it is no http or https
    URL with a host; `depth` its distance from a seed, in links; `page` the URL that it was found on, "" where that is
    not known.
    """

    url: str
    normal: str
    depth: int = 0
    page: str = ""


_IN_HOST = len("https://")  # a position in the host or behind "http://" and a character of the host


def host_of(normal: str) -> str:
    """The host of a normal form, without user name and port; "" for ""."""
    if not normal:
        return ""
    host = normal[normal.index("/") + 2 : normal.index("/", _IN_HOST)]
    if "@" in host:
        host = host.rpartition("@")[2]
    if ":" in host:
        host = host[: host.index("]") + 1] if host.startswith("[") else host.partition(":")[0]
    return host


def target_of(normal: str) -> str:
    """Path and query of a normal form, beginning with a slash; "" for ""."""
    return normal[normal.index("/", _IN_HOST) :] if normal else ""


class UrlFilter:
    """Base of all filters; your own is a subclass at the top of a module, named in UBI_FILTERS by its dotted path.

    The texts between the parentheses are the arguments of your `__init__`: positional ones as `str`, those with a key
    as `str`, or as a tuple of them where there are several. If it takes any, `arguments` must give them back.
    """

    name: ClassVar[str] = ""  # as in stats and logs; the class's own name in small letters where none is given
    hostless: ClassVar[bool] = False  # whether it judges what is no http or https URL, too
    redirects: bool = False  # whether it judges the targets of redirects, too

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__.lower()

    def refuses(self, link: Link) -> str:
        """Why the link is refused, "" when it passes."""
        raise NotImplementedError

    def seed(self, link: Link) -> None:
        """A seed was met. Seeds are not judged."""

    def arguments(self) -> Arguments:
        """What `parse` would make an equal filter of."""
        return {}

    @classmethod
    def parse(cls, arguments: Arguments) -> UrlFilter:
        """The filter with these arguments. Raises FilterError."""
        return made_with(cls, arguments)

    @classmethod
    def title(cls) -> str:
        """The name it has in UBI_FILTERS."""
        return f"{cls.__module__}.{cls.__qualname__}"

    def __str__(self) -> str:
        return write(Call(self.title(), self.arguments()))

    def __repr__(self) -> str:
        return f"<{self}>"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class SuiteFilter(UrlFilter):
    """Base of the filters that come with the package: they have short names."""

    @classmethod
    def title(cls) -> str:
        return cls.name if cls.__module__.startswith(f"{__package__}.") else super().title()


def only(arguments: Arguments, *known: str) -> None:
    """Refuse keys other than `known`; "" stands for values without a key."""
    for key in arguments:
        if key not in known:
            shown = f"the argument {key}=" if key else "an argument without a key"
            keys = ", ".join(f"{name}=" for name in known if name)
            raise FilterError(f"has {shown}", f"its arguments are {keys}" if keys else "it takes none with a key")


def whole_number(value: str, low: int, high: int) -> int:
    """A whole number within bounds. Raises FilterError."""
    if not (value.isascii() and value.isdigit() and len(value) <= 9 and low <= int(value) <= high):
        raise FilterError(f"has the argument {value!r}", f"give a whole number from {low} to {high}")
    return int(value)


def one(arguments: Arguments, key: str, default: str) -> str:
    """The only value of a key. Raises FilterError."""
    values = arguments.get(key, (default,))
    if len(values) != 1:
        raise FilterError(f"has {len(values)} values for {key or 'its argument'}", "give one")
    return values[0]
