"""The pool of proxies of a crawl: the value of UBI_PROXY_POOL.

What is written is a file of proxies, one a line, or the dotted path of a function that returns a list of them; or a
mapping with that as `proxies`, and what counts as a ban: `statuses`, `pattern` (a regular expression, looked for in the
body), and for how many `seconds` a ban holds at least. The command line gives a mapping as JSON.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from scrapy_ubi.settings.host_limits import read_object

STATUSES = (403,)
SECONDS, MOST_SECONDS = 300.0, 86_400.0
_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+")
_KEYS = ("proxies", "statuses", "pattern", "seconds")


class ProxyPool(NamedTuple):
    """Where the proxies stand, empty for no pool; which responses say that a host has banned a proxy, and for how long
    (s) that is believed at least."""

    proxies: str = ""
    statuses: tuple[int, ...] = STATUSES
    pattern: str = ""
    seconds: float = SECONDS

    def __str__(self) -> str:
        return self.proxies

    @property
    def may_be_function(self) -> bool:
        """Whether the text may name a function."""
        return _DOTTED.fullmatch(self.proxies) is not None


NO_POOL = ProxyPool()


def read_pool(value: object) -> ProxyPool:
    """The pool that is written so. Raises ValueError, which shows no address of a proxy: it may have a password."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = read_object(value)
    given: Mapping[Any, object] = value if isinstance(value, Mapping) else {"proxies": value}
    if unknown := [str(name) for name in given if name not in _KEYS]:
        raise ValueError(f"{unknown[0]!r:.40} is none of {', '.join(_KEYS)}")
    proxies, pattern = given.get("proxies"), given.get("pattern", "")
    statuses, seconds = given.get("statuses", STATUSES), given.get("seconds", SECONDS)
    if isinstance(proxies, list | tuple) or (isinstance(proxies, str) and "://" in proxies):
        raise ValueError("it has the proxies themselves: write them into a file, one a line, and name that")
    if not isinstance(proxies, str) or not proxies.strip():
        raise ValueError("it names neither a file of proxies nor a function")
    if not isinstance(statuses, list | tuple) or not all(type(one) is int and 100 <= one < 600 for one in statuses):
        raise ValueError(f"statuses is {statuses!r:.60}, and no list of 100 to 599")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 1 <= seconds <= MOST_SECONDS:
        raise ValueError(f"seconds is {seconds!r:.40}, and no number of 1 to {MOST_SECONDS:,.0f}")
    if not isinstance(pattern, str):
        raise ValueError(f"pattern is {pattern!r:.60}, and no text")
    try:
        re.compile(pattern.encode())
    except re.error as error:
        raise ValueError(f"pattern is {pattern!r:.60}, and no regular expression ({error})") from None
    return ProxyPool(proxies.strip(), tuple(statuses), pattern, float(seconds))
