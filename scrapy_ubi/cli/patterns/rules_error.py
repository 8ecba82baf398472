"""What is wrong with rules, and where: the error of those who read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from scrapy_ubi.cli.patterns.toml_lines import Path
from scrapy_ubi.errors import UbiError
from scrapy_ubi.ground.untrusted.meant_names import ask_meant

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
    meant = ask_meant(name, names)
    return f"{meant}?" if meant else f"there are {', '.join(names)}."
