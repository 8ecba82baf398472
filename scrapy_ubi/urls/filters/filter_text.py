"""The text form of filters, stores and scorers: `name(value, value, key=value, value)`.

Rules of this module:

* A value after `key=` and the values behind it, up to the next key, belong to that key; values before any key belong to
  the key `""`. A key given twice goes on with its list. A key without a value does not exist.
* A value is written as it is, or between double quotes, where `""` stands for one `"` and a backslash for itself: so
  regular expressions need no second escaping. Quotes are needed around spaces and any of `, ; ( ) = " '` and around
  nothing at all.
* A key is a name, or, for what takes patterns as keys (`path(/docs/=5)` of UBI_SCORE), any value written as it is.
* `parse_calls(write(call)) == [call]`, whatever the values.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

Arguments = Mapping[str, tuple[str, ...]]
Made = TypeVar("Made")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_KEY = re.compile(r"""([^\s,;()="']+)\s*=\s*""")
_BARE = re.compile(r"""[^\s,;()="']+""")
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_SPACE = re.compile(r"\s*")
_BETWEEN = re.compile(r"[\s,;]*")


class FilterError(ValueError):
    """A filter that cannot be made: what is wrong with it, and what to do."""

    def __init__(self, problem: str, remedy: str) -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{problem}: {remedy}")


class Call(NamedTuple):
    """A filter's name and its arguments, in their order."""

    name: str
    arguments: Arguments


def write(call: Call) -> str:
    """The text of a call; only the name where there are no arguments."""
    parts = [_value(value) for value in call.arguments.get("", ())]
    for key, values in call.arguments.items():
        if key and values:
            first, *others = values
            parts += [f"{key}={_value(first)}", *map(_value, others)]
    return f"{call.name}({', '.join(parts)})" if parts else call.name


def _value(value: str) -> str:
    return value if _BARE.fullmatch(value) else '"' + value.replace('"', '""') + '"'


def parse_calls(text: str) -> list[Call]:
    """The calls in a text, separated by commas, semicolons, spaces or line ends. Raises FilterError."""
    calls = []
    at = _end(_BETWEEN, text, 0)
    while at < len(text):
        call, at = _call(text, at)
        calls.append(call)
        at = _end(_BETWEEN, text, at)
    return calls


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _wrong(text: str, at: int, wanted: str) -> FilterError:
    rest = repr(text[at : at + 20]) if at < len(text) else "its end"
    return FilterError(f"cannot be read at {rest}", f"{wanted} belongs there, as in 'extensions(-pdf, -zip)'")


def _call(text: str, at: int) -> tuple[Call, int]:
    name = _NAME.match(text, at)
    if name is None:
        raise _wrong(text, at, "the name of a filter")
    at = _end(_SPACE, text, name.end())
    if not text.startswith("(", at):
        return Call(name[0], {}), name.end()
    given: list[tuple[str, str]] = []
    at = _end(_SPACE, text, at + 1)
    key = ""
    while not text.startswith(")", at):
        if given:
            if not text.startswith(",", at):
                raise _wrong(text, at, "a comma or ')'")
            at = _end(_SPACE, text, at + 1)
        if named := _KEY.match(text, at):
            key = named[1]
            at = named.end()
        value, at = _read_value(text, at)
        given.append((key, value))
        at = _end(_SPACE, text, at)
    return Call(name[0], gather(given)), at + 1


def _read_value(text: str, at: int) -> tuple[str, int]:
    if quoted := _QUOTED.match(text, at):
        return quoted[1].replace('""', '"'), quoted.end()
    if bare := _BARE.match(text, at):
        return bare[0], bare.end()
    raise _wrong(text, at, "a value (between double quotes if it holds any of , ; ( ) = \" ')")


def calls_of(entry: object, problem: str, remedy: str) -> list[Call]:
    """The calls of an entry of a list of settings: a text, or a tuple of a name and its arguments. Raises FilterError,
    for what is neither, or cannot be read, with this remedy."""
    if isinstance(entry, tuple) and entry and isinstance(entry[0], str):
        return [Call(entry[0], arguments_of(entry[1:], fractions=True))]
    if not isinstance(entry, str):
        raise FilterError(problem, remedy)
    try:
        return parse_calls(entry)
    except FilterError as error:
        raise FilterError(error.problem, remedy) from error


def arguments_of(given: tuple[object, ...], fractions: bool = False) -> Arguments:
    """Those of a tuple: values, and a dict of the ones with a key at the end. `fractions`: numbers need not be whole.
    Raises FilterError."""

    def text(value: object) -> str:
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, str | int) or (fractions and isinstance(value, float)):
            return str(value)
        kind = "numbers" if fractions else "whole numbers"
        raise FilterError(f"has the value {value!r}", f"give texts, {kind}, or lists of them")

    named = given[-1] if given and isinstance(given[-1], Mapping) else {}
    positional = given[:-1] if given and isinstance(given[-1], Mapping) else given
    arguments: dict[str, tuple[str, ...]] = {"": tuple(map(text, positional))} if positional else {}
    for key, value in named.items():
        if not isinstance(key, str) or not _BARE.fullmatch(key):
            raise FilterError(f"has the key {key!r}", "give names of arguments")
        values = value if isinstance(value, list | tuple) else (value,)
        if values:
            arguments[key] = tuple(map(text, values))
    return arguments


def made_with(cls: Callable[..., Made], arguments: Arguments) -> Made:
    """An object of a user's class: positional arguments as texts, those with a key as a text, or as a tuple of them
    where there are several. Raises FilterError."""
    named: dict[str, Any] = {key: values[0] if len(values) == 1 else values for key, values in arguments.items() if key}
    try:
        return cls(*arguments.get("", ()), **named)
    except FilterError:
        raise
    except Exception as error:  # the code of users may raise anything
        raise FilterError(f"cannot be made ({error})", "give it the arguments that it takes") from error


def made_of(call: Call, known: Iterable[str], kind: str) -> Any:
    """What a call by a dotted path makes: an object of a class, or what is none itself, which is given no arguments.
    Raises FilterError."""
    found = named_class(call.name, known, kind)
    if isinstance(found, type):
        return made_with(found, call.arguments)
    if any(call.arguments.values()):
        raise FilterError("gives arguments to what is no class", "name a class, whose __init__ takes them")
    return found


def gather(given: Iterable[tuple[str, str]]) -> Arguments:
    """Arguments out of keys and values."""
    arguments: dict[str, list[str]] = {}
    for key, value in given:
        arguments.setdefault(key, []).append(value)
    return {key: tuple(values) for key, values in arguments.items()}


def named_class(name: str, known: Iterable[str], kind: str) -> object:
    """What a dotted path leads to, in place of one of the `known` names of this `kind`. Raises FilterError."""
    module, _, last = name.rpartition(".")
    if not module:
        raise FilterError(
            f"names the {kind} {name!r}",
            f"the {kind}s are {', '.join(sorted(known))}, and yours by their dotted path (my.module.My{kind.title()})",
        )
    try:
        found: object = getattr(importlib.import_module(module), last)
    except Exception as error:  # importing runs the code of users
        raise FilterError(
            f"names {name!r}, which cannot be loaded ({error})", "give the dotted path of a class that can be imported"
        ) from error
    return found
