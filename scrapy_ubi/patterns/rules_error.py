"""What is wrong with rules, and where: the error of those who read them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable

from scrapy_ubi.errors import UbiError
from scrapy_ubi.patterns.toml_lines import Path

# Where a value was written, for people: `rules.toml:12`, `--follow`.
Where = Callable[[Path], str]


class UbiRulesError(UbiError):
    """The rules of a crawl do not hold; the sentence begins with file and line, or the option."""


def written(path: Path) -> str:
    """A path as people write it: `fields.title.css`, `follow.allow[1]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about a name that is not known."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}."
