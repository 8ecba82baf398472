"""What an agent was started from: the class of its spider and the spider's arguments, and whether agents of two origins
may crawl together.

Rules of this module:

* They may not where the arguments differ (each would drop what the other finds), or where spiders of one name are of
  two classes (two projects of one name): a link of one goes to the callbacks of the other. Spiders of two names were
  put together on purpose, and are warned of elsewhere.
* `UBI_MIXED_AGENTS` lets them.
* Other code of one class may: machines are updated one after the other. The log says so (`other_layouts`).
* A class is compared by its dotted path, which is the same on all machines, wherever the project lies there. That of a
  script (`__main__`) tells nothing.
* What an older version has published or kept says nothing of either, and is not compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scrapy_ubi.ground.untrusted.terminal_text import plain

_SCRIPT = "__main__."
LONGEST = 300  # characters of a set of arguments in a sentence


@dataclass(frozen=True, slots=True)
class Origin:
    """`spider_class`: its dotted path; `mark`: which set of arguments (empty: none); `shown`: name -> value, fit to be
    seen by people; `code`: a digest of its sources, "" where there is none."""

    spider_class: str = ""
    mark: str = ""
    shown: Mapping[str, str] = field(default_factory=dict)
    code: str = ""

    def published(self) -> dict[str, Any]:
        """The fields of it, as an agent publishes them and keeps them on its disk."""
        return {
            "spider_class": self.spider_class,
            "arguments_mark": self.mark,
            "arguments": dict(self.shown),
            "code": self.code,
        }


UNKNOWN = Origin()
FIELDS = tuple(UNKNOWN.published())


def other_arguments(theirs: Mapping[str, Any], own: Mapping[str, Any]) -> tuple[str, str] | None:
    """Both sets of arguments in words, theirs first, where they differ; None where they do not."""
    mark = theirs.get("arguments_mark")
    if not isinstance(mark, str) or mark == own["arguments_mark"]:
        return None
    said, ours = _words(theirs.get("arguments")), _words(own["arguments"])
    return (said, ours) if said != ours else (said, f"{ours} with other values")


def other_class(theirs: Mapping[str, Any], own: Mapping[str, Any]) -> tuple[str, str] | None:
    """Both classes of spiders of one name, theirs first, where they differ; None where they do not."""
    name, ours = theirs.get("spider_class"), own["spider_class"]
    if not isinstance(name, str) or not name or not ours or name == ours or theirs.get("spider") != own["spider"]:
        return None
    return None if name.startswith(_SCRIPT) or ours.startswith(_SCRIPT) else (plain(name, LONGEST), ours)


def other_code(theirs: Mapping[str, Any], own: Mapping[str, Any]) -> tuple[str, str] | None:
    """Both digests of the code of one spider, theirs first, where they differ; None where they do not."""
    there, here, same = theirs.get("code"), own.get("code"), theirs.get("spider_class") == own.get("spider_class")
    if not isinstance(there, str) or not there or not here or there == here or not same:
        return None
    return plain(there, 16), str(here)


def _words(arguments: object) -> str:
    """A set of arguments in a sentence."""
    if not isinstance(arguments, Mapping) or not arguments:
        return "no arguments"
    return f"the arguments {plain(', '.join(f'{name}={value}' for name, value in arguments.items()), LONGEST)}"
