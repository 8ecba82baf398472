"""Live entries: what people have said of a running crawl, as it travels, and how what several have said is merged.

An entry is one field of the control hash, `set:<name>` or `set:<name>:<host>`, with a JSON text:
`{"n": 7, "who": "ann@lab", "when": 1700000000.5, "value": 2.5}`. A value of null takes back what was said before. The
name is that of a live setting, `pause`, or `finish`. Rules of this module:

* The version of an entry is (n, who, when), and the text itself among equals. Of two entries of one field the higher
  one holds, which one was seen first does not matter: merging is commutative, associative and idempotent. So agents may
  hear of entries in any order, from Redis or from their disks, and be told twice.
* Who writes an entry chooses `n`: more than any `n` that is to be seen, and no less than the milliseconds of Redis's
  clock, so that what is said right after Redis has forgotten counts as the newest.
* An agent keeps `MOST` entries, those of the highest versions; beyond that the oldest is forgotten, which is a merge,
  too. The command that writes refuses before a value that holds would be forgotten.
* What comes from outside is refused whole (`LiveTable.refused`), with its reason: it changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice

from scrapy_ubi.ground.untrusted.checks import (
    HOST,
    Malformed,
    fits,
    is_number,
    is_text,
    is_whole,
    json_object,
    strict_json,
)
from scrapy_ubi.settings.live_rows import LIVE

FIELD = "set:"
PAUSE, FINISH = "pause", "finish"
MOST = 256  # entries: a crawl's settings, and some for each of a hundred hosts
MOST_TEXT = 8192  # characters of an entry
MOST_LOOKED = 4 * MOST  # fields looked at: others are garbage that has nothing to do with this crawl
MOST_WHO = 100
MOST_TOLD, LONGEST_WHY = 5, 300  # of what is refused, in a profile
MOST_N = 2**53 - 1
LATEST = 1e12  # unix seconds


@dataclass(frozen=True, slots=True)
class LiveEntry:
    """What was said of `name`, of a host or (empty) of the crawl: `value`, JSON; None takes back what was said before.
    `n`, `who`, `when` (unix seconds) are its version."""

    name: str
    host: str
    value: object
    n: int
    who: str
    when: float

    @property
    def field(self) -> str:
        """Its field of the control hash."""
        return field_of(self.name, self.host)

    @property
    def text(self) -> str:
        """Its text there."""
        said = {"n": self.n, "who": self.who, "when": self.when, "value": self.value}
        return json.dumps(said, separators=(",", ":"), sort_keys=True)

    @property
    def version(self) -> tuple[int, str, float, str]:
        """By which the higher of two is told."""
        return self.n, self.who, self.when, self.text

    @property
    def stands(self) -> bool:
        """Whether it says something, and does not take back."""
        return self.value is not None


def field_of(name: str, host: str = "") -> str:
    """The field of an entry in the control hash."""
    return f"{FIELD}{name}:{host}" if host else f"{FIELD}{name}"


def read_entry(field: str, text: str) -> LiveEntry:
    """The entry in a field of the control hash. Raises Malformed."""
    name, _, host = field.removeprefix(FIELD).partition(":")
    if name not in (PAUSE, FINISH) and name not in LIVE:
        raise Malformed(f"{name[:40]!r} is no live setting")
    if host and not fits(host, HOST):
        raise Malformed("the host is no name")
    if len(text) > MOST_TEXT:
        raise Malformed(f"{len(text)} characters, more than {MOST_TEXT}")
    said = json_object(text, strict_json)
    n, who, when, value = said.get("n"), said.get("who"), said.get("when"), said.get("value")
    if not is_whole(n, 1, MOST_N) or not is_text(who, MOST_WHO) or not is_number(when, LATEST) or when < 0:
        raise Malformed("it has no version")
    if name in (PAUSE, FINISH) and value not in (None, True):
        raise Malformed("it is neither true nor null")
    if name == FINISH and host:
        raise Malformed("a host does not finish by itself")
    return LiveEntry(name, host, value, n, who, float(when))


def read_entries(control: Mapping[str, str]) -> Iterator[LiveEntry]:
    """The entries of a control hash that can be read."""
    for field, text in _fields(control):
        try:
            yield read_entry(field, text)
        except Malformed:
            continue


def _fields(control: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    return islice((pair for pair in control.items() if pair[0].startswith(FIELD)), MOST_LOOKED)


def mark_of(entries: Mapping[str, LiveEntry]) -> str:
    """The version of all entries together: the highest `n`, and a digest, which is the same for the same entries; empty
    where there are none."""
    if not entries:
        return ""
    texts = "\n".join(f"{field} {entries[field].text}" for field in sorted(entries))
    digest = blake2b(texts.encode(errors="backslashreplace"), digest_size=4).hexdigest()
    return f"{max(entry.n for entry in entries.values())}-{digest}"


def merged(*entries: LiveEntry) -> dict[str, LiveEntry]:
    """By field, those of the highest versions, `MOST` at most."""
    highest: dict[str, LiveEntry] = {}
    for entry in entries:
        known = highest.get(entry.field)
        if known is None or entry.version > known.version:
            highest[entry.field] = entry
    kept = sorted(highest.values(), key=lambda entry: (*entry.version, entry.field), reverse=True)[:MOST]
    return {entry.field: entry for entry in kept}


class LiveTable:
    """The entries that one agent knows. `refusal` says why the value of an entry does not hold; empty when it does.

    `refused`: by field, the text that does not hold, and why.
    """

    def __init__(self, refusal: Callable[[LiveEntry], str]) -> None:
        self._refusal = refusal
        self.entries: dict[str, LiveEntry] = {}
        self.refused: dict[str, tuple[str, str]] = {}
        self.mark = ""

    def load(self, kept: object) -> None:
        """Begin with what was `kept` on the disk; what does not hold there is left out."""
        fields = kept if isinstance(kept, Mapping) else {}
        self.entries, self.refused, self.mark = {}, {}, ""
        self.merge({str(field): text for field, text in fields.items() if isinstance(text, str)})

    @property
    def kept(self) -> dict[str, str]:
        """What the disk is to hold."""
        return {field: entry.text for field, entry in self.entries.items()}

    def merge(self, control: Mapping[str, str]) -> bool:
        """Merge what a control hash says; True when that was news."""
        news = [entry for field, text in _fields(control) if (entry := self._judged(field, text)) is not None]
        self.refused = {field: bad for field, bad in self.refused.items() if control.get(field) == bad[0]}
        if not news:
            return False
        before, self.entries = self.mark, merged(*self.entries.values(), *news)
        self.mark = mark_of(self.entries)
        return self.mark != before

    def _judged(self, field: str, text: str) -> LiveEntry | None:
        """The entry, where it is higher than what is known, and holds."""
        known, bad = self.entries.get(field), self.refused.get(field)
        if (bad is not None and bad[0] == text) or (known is not None and known.text == text):
            return None
        try:
            entry = read_entry(field, text)
        except Malformed as reason:
            self._refuse(field, text, str(reason))
            return None
        if known is not None and entry.version <= known.version:
            return None
        if why := self._refusal(entry):
            self._refuse(field, text, why)
            return None
        return entry

    def _refuse(self, field: str, text: str, why: str) -> None:
        if len(self.refused) < MOST or field in self.refused:
            self.refused[field] = text, why

    @property
    def told_refused(self) -> dict[str, str]:
        """Some of what is refused, and why, for people."""
        return {field[:MOST_WHO]: why[:LONGEST_WHY] for field, (_, why) in islice(self.refused.items(), MOST_TOLD)}

    def lacking(self, control: Mapping[str, str]) -> dict[str, tuple[str | None, str]]:
        """What a control hash lacks of it, as one does that has just been emptied: by field without an entry, or with
        one that is older, what is there, and the entry's text."""
        lacks: dict[str, tuple[str | None, str]] = {}
        for field, entry in self.entries.items():
            there = control.get(field)
            if there is None or (there != entry.text and _is_older(field, there, entry)):
                lacks[field] = there, entry.text
        return lacks


def _is_older(field: str, text: str, entry: LiveEntry) -> bool:
    """Whether this text in the control hash is no entry, or one of a lower version."""
    try:
        return read_entry(field, text).version < entry.version
    except Malformed:
        return True
