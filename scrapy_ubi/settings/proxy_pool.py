"""The pool of proxies of a crawl: the value of UBI_PROXY_POOL.

What is written is a file of proxies, one a line, or the dotted path of a function that returns a list of them; or a
mapping with that as `proxies`, and what counts as a ban: `statuses`, `pattern` (a regular expression, looked for in the
body), and for how many `seconds` a ban holds at least. The command line gives a mapping as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

STATUSES = (403,)
SECONDS, MOST_SECONDS = 300.0, 86_400.0
_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+")
_KEYS = {"proxies", "statuses", "pattern", "seconds"}


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
    """The pool that is written so. Raises ValueError."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = json.loads(value)
    given: Mapping[str, object] = value if isinstance(value, Mapping) else {"proxies": value}
    statuses, pattern, seconds = (
        given.get("statuses", STATUSES),
        given.get("pattern", ""),
        given.get("seconds", SECONDS),
    )
    proxies = given.get("proxies")
    if not set(given) <= _KEYS or not isinstance(proxies, str) or not proxies.strip() or not isinstance(pattern, str):
        raise ValueError(value)
    if not isinstance(statuses, list | tuple) or not all(type(one) is int and 100 <= one < 600 for one in statuses):
        raise ValueError(value)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 1 <= seconds <= MOST_SECONDS:
        raise ValueError(value)
    try:
        re.compile(pattern.encode())
    except re.error as error:
        raise ValueError(value) from error
    return ProxyPool(proxies.strip(), tuple(statuses), pattern, float(seconds))
