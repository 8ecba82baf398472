"""The host resolver: which host names are names of one host, by LARM's rules (Marschner, 2003), from settings or files.

    startsWith(www.) =
    endsWith(.mirror.example) = .example
    synonym(h1.example) = h2.example
    synonym(www.*) = *

Rules of this module:

* One *pass* over a host: the first `startsWith` that fits replaces the beginning, then the first `endsWith` that fits
  the end, then a `synonym` of the outcome the whole. A
  synonym with a star, at the end or at the beginning of both names, is one for all hosts that it fits: the first does,
  where no synonym names the host itself. What the two make is without dots around it; where it is no host
  name, they leave the host alone.
* `resolve` repeats the pass until nothing changes (`www.www.h` is `h`); a host that has not settled after `PASSES`
  stays as it was. So it is idempotent, whatever the rules. It gives the host's partition key: all names that resolve to
  one host have one owner, one request at a time, one delay.
* `same` gives the host of the normal form: there only synonyms count (docs/decisions/0011-host-rules.md says why;
  LARM's patterns act there as synonyms with a star), and only where
  `resolve` thinks so too. So equal normal forms have equal partition keys.
* No server is asked: names are text, and need not exist.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from hashlib import sha256

from scrapy_ubi.urls.normal import host_and_port, is_host, normal_form

PASSES = 16
KEPT = 1 << 16  # hosts whose outcome is remembered: about 15 MB
NONE = "none"  # the name of no rules

STAR = "*"  # in a synonym: what two names have in common

GRAMMAR = (
    "startsWith(part) = part, endsWith(part) = part, synonym(host) = host, or synonym(part*) = part* "
    "(the star at the end, or at the beginning, of both)"
)

_rule = re.compile(r"(startsWith|endsWith|synonym)\(([^()]*)\)\s*[=:]?\s*(\S*)").fullmatch
_is_part = re.compile(r"[a-z0-9._-]*").fullmatch

Parts = tuple[tuple[str, str], ...]


class HostRules:
    """Rules that have been read. `name` is what agents compare: how many they are, and a digest of them."""

    __slots__ = ("_alike", "_ends", "_starts", "_synonyms", "name", "resolve", "same")

    def __init__(
        self,
        starts: Iterable[tuple[str, str]],
        ends: Iterable[tuple[str, str]],
        same: dict[str, str],
        alike: Iterable[tuple[str, str]] = (),
    ) -> None:
        """`same`: host by its synonym; `alike`: those with a star. Raises ValueError for synonyms that go round in a
        circle."""
        self._starts: Parts = tuple(starts)
        self._ends: Parts = tuple(ends)
        self._synonyms = {host: _last(same, host) for host in same if same[host] != host}
        self._alike: Parts = tuple(alike)
        told = [*self._starts, (), *self._ends, (), *sorted(self._synonyms.items())]
        self.name = _name([*told, (), *self._alike] if self._alike else told)
        self.resolve = lru_cache(KEPT)(self._resolve)
        """The host that a host's partition key is made of."""
        self.same = lru_cache(KEPT)(self._same) if self._alike else self._same
        """The host that stands for a host in normal forms."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostRules) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"HostRules({self.name})"

    @property
    def has_synonyms(self) -> bool:
        """Whether `same` changes any host at all."""
        return bool(self._synonyms or self._alike)

    def _same(self, host: str) -> str:
        other = self._settled(host, self._synonym)
        return host if other == host or self.resolve(other) != self.resolve(host) else other

    def _synonym(self, host: str) -> str:
        """What a synonym makes of a host."""
        if (named := self._synonyms.get(host)) is not None:
            return named
        if host.startswith("["):
            return host
        for this, that in self._alike:
            if (other := _starred(this, that, host)) is not None:
                return other if is_host(other) and "." in other else host
        return host

    def once(self, host: str) -> str:
        """One pass, as LARM takes it."""
        changed = host
        if not host.startswith("["):
            for start, instead in self._starts:
                if changed.startswith(start):
                    changed = instead + changed[len(start) :]
                    break
            for end, instead in self._ends:
                if changed.endswith(end):
                    changed = changed[: len(changed) - len(end)] + instead
                    break
            changed = changed.strip(".")
        if not is_host(changed):
            changed = host
        return self._synonym(changed)

    def _resolve(self, host: str) -> str:
        return self._settled(host, self.once)

    @staticmethod
    def _settled(host: str, change: Callable[[str], str]) -> str:
        """What comes of a host that is changed until nothing changes; the host itself where it never settles."""
        now = host
        for _ in range(PASSES):
            before = now
            now = change(now)
            if now == before:
                return now
        return host


def _starred(this: str, that: str, host: str) -> str | None:
    """The host with `that` in place of `this`, each with a star; None where it does not fit, or nothing is left."""
    if this.endswith(STAR):
        begin = this[:-1]
        return that.rstrip(STAR) + host[len(begin) :] if host.startswith(begin) and len(host) > len(begin) else None
    end = this[1:]
    return host[: len(host) - len(end)] + that.lstrip(STAR) if host.endswith(end) and len(host) > len(end) else None


def read_rules(rules: Iterable[str]) -> HostRules | None:
    """The rules written one in each text; None when there are none. Raises ValueError with what is wrong where."""
    return _read((f"rule {number}", rule.strip()) for number, rule in enumerate(rules, 1))


def read_properties(text: str) -> HostRules | None:
    """The rules of a file as LARM reads it, in the format of Java's properties: comments begin with `#` or `!`, a line
    that ends in a backslash goes on in the next. Raises ValueError with what is wrong where."""
    return _read((f"line {number}", line) for number, line in _lines(text))


def name_of(rules: HostRules | None) -> str:
    """What agents compare."""
    return NONE if rules is None else rules.name


def _lines(text: str) -> Iterator[tuple[int, str]]:
    begun = ""
    first = 0
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not begun and line[:1] in ("", "#", "!"):
            continue
        first = first if begun else number
        if line.endswith("\\"):
            begun += line[:-1]
            continue
        yield first, begun + line
        begun = ""
    if begun:
        yield first, begun


def _read(rules: Iterable[tuple[str, str]]) -> HostRules | None:
    parts: dict[str, dict[str, str]] = {"startsWith": {}, "endsWith": {}, "synonym": {}, "alike": {}}
    for where, rule in rules:
        match = _rule(rule)
        if match is None:
            raise ValueError(f"{where}, {rule[:100]!r}, is no rule")
        kind = match[1]
        this = match[2].replace(",", ".")
        that = match[3].replace(",", ".")
        if kind == "synonym" and STAR in this + that:
            kind = "alike"
        read = _host if kind == "synonym" else _star if kind == "alike" else _part
        this = read(this, where)
        that = read(that, where)
        if kind == "startsWith":
            that = that.lstrip(".")  # as of the outcome: LARM's own example has a dot for nothing
        if not this or this == STAR:
            raise ValueError(f"{where}, {rule[:100]!r}, fits every host")
        if kind == "alike" and this.startswith(STAR) != that.startswith(STAR) and STAR not in (this, that):
            raise ValueError(f"{where}, {rule[:100]!r}, has its stars at different ends")
        if parts[kind].setdefault(this, that) != that:
            raise ValueError(f"{where}, {rule[:100]!r}, contradicts an earlier rule")
    if not any(parts.values()):
        return None
    return HostRules(parts["startsWith"].items(), parts["endsWith"].items(), parts["synonym"], parts["alike"].items())


def _host(name: str, where: str) -> str:
    normal = normal_form(f"http://{name}/") if name[:1] == "[" or not set(name) & set(":/?#@") else None
    host, port = host_and_port(normal) if normal is not None else ("", "")
    if normal != f"http://{host}/" or port:
        raise ValueError(f"{where}: {name[:100]!r} is no host name")
    return host


def _star(name: str, where: str) -> str:
    """A name with one star, at its beginning or its end."""
    part = name.replace(STAR, "", 1)
    if name.count(STAR) != 1 or STAR not in (name[:1], name[-1:]):
        raise ValueError(f"{where}: {name[:100]!r} has no star at its beginning or end, or more than one")
    _part(part, where)
    return name.lower()


def _part(part: str, where: str) -> str:
    part = part.lower()
    if not _is_part(part):
        raise ValueError(f"{where}: {part[:100]!r} is no part of a host name (international ones are written xn--)")
    return part


def _last(same: dict[str, str], host: str) -> str:
    """The end of a chain of synonyms."""
    seen = {host}
    while (following := same.get(host, host)) != host:
        if following in seen:
            raise ValueError(f"the synonyms of {following!r} go round in a circle")
        seen.add(host := following)
    return host


def _name(rules: list[tuple[str, ...]]) -> str:
    number = sum(map(bool, rules))
    digest = sha256("\n".join(" ".join(rule) for rule in rules).encode()).hexdigest()[:16]
    return f"{number} rule{'' if number == 1 else 's'}, {digest}"
