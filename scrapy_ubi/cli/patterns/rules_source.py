"""Where rules come from: a TOML file, and options that take the place of its keys.

Rules of this module:

* A document is plain data (texts, numbers, truth values, lists, tables), so it is written as JSON for the agents, and
  they read it by the same reader as the command does.
* Where a value stands is known as `rules.toml:12`; of one that an option gave, it is the option.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path as FilePath
from typing import Any

from scrapy_ubi.cli.patterns.page_rules import PageRules
from scrapy_ubi.cli.patterns.rules_error import UbiRulesError
from scrapy_ubi.cli.patterns.rules_reader import read_rules
from scrapy_ubi.cli.patterns.toml_lines import Path, lines_of

MOST_BYTES = 1 << 20  # of a file of rules

# What may be changed between two starts of one crawl: these do not say which pages and items it has.
_CHANGEABLE = frozenset(("max_pages", "delay", "obey_robots", "contact"))
_POSITION = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


@dataclass(slots=True)
class RulesSource:
    """A document, and where each of its values stands."""

    document: dict[str, Any] = field(default_factory=dict)
    file: str = ""
    lines: Mapping[Path, int] = field(default_factory=dict)
    options: dict[Path, str] = field(default_factory=dict)

    def put(self, table: str, key: str, value: Any, option: str) -> None:
        """Let an option take the place of a key."""
        held = self.document.setdefault(table, {})
        if isinstance(held, dict):  # else the reader says that it is no table
            held[key] = value
            self.options[(table, key)] = option

    def where(self, path: Path) -> str:
        """For people, where the value at this path stands, or what is around it."""
        while path:
            if path in self.options:
                return self.options[path]
            if path in self.lines:
                return f"{self.file}:{self.lines[path]}"
            path = path[:-1]
        return self.file or "scrapy ubi crawl"

    def rules(self) -> PageRules:
        """The rules. Raises UbiRulesError."""
        return read_rules(self.document, self.where)

    @property
    def mark(self) -> str:
        """16 hex digits that tell these rules from others: of all but what may be changed between two starts."""
        crawl = {key: value for key, value in self.document.get("crawl", {}).items() if key not in _CHANGEABLE}
        text = json.dumps({**self.document, "crawl": crawl}, sort_keys=True)
        return blake2b(text.encode(), digest_size=8).hexdigest()

    def as_json(self) -> str:
        """The document, for the agents."""
        return json.dumps(self.document, ensure_ascii=False, indent=1)


def read_file(name: str) -> RulesSource:
    """The document of a TOML file. Raises UbiRulesError."""
    try:
        with FilePath(name).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UbiRulesError(f"{name} cannot be read ({error.strerror or error}).") from None
    if len(data) > MOST_BYTES:
        raise UbiRulesError(f"{name} has more than {MOST_BYTES} bytes.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UbiRulesError(f"{name}:{line}: this is no UTF-8 text.") from None
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        reason = str(error)
        found = _POSITION.search(reason)
        at = found[1] if found and found[1] else str(len(text.splitlines()))
        raise UbiRulesError(f"{name}:{at}: this is not TOML: {_POSITION.sub('', reason)}.") from None
    except RecursionError:
        raise UbiRulesError(f"{name}: is nested too deeply.") from None
    return RulesSource(document, name, lines_of(text))


def read_json(path: FilePath) -> PageRules:
    """The rules that the command has written for its agents. Raises UbiRulesError."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UbiRulesError(f"{path} cannot be read ({error}): start the crawl again.") from None
    return read_rules(document, lambda _: str(path))
