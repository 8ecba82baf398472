"""What a request says, in its query or in the JSON object of its body; taken whole or not at all.

Rules of this module: a name that is not known is refused, one given twice too. Nothing is guessed, and nothing that is
given becomes an option of a command by its name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from scrapy_ubi.ground.untrusted.checks import Malformed, json_object, strict_json
from scrapy_ubi.web.problem import Problem, bad

MOST_BODY = 1_000_000  # bytes
MOST_URL = 65_536  # characters of a URL or another text
MOST_NAMES = 200  # of settings
MOST_URLS = 1_000  # seeds given at once
SHOWN = 80  # characters of what is refused

Read = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Field:
    """What one parameter may be. `read` gives its value, or raises ValueError with the reason."""

    read: Read
    default: Any = None
    needed: bool = False


Fields = Mapping[str, Field]


def of_query(fields: Fields, given: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The values of a query. Raises Problem."""
    texts: dict[str, str] = {}
    for name, text in given:
        if name in texts:
            raise bad(f"{name[:SHOWN]} is given twice.")
        texts[name] = text
    return values_of(fields, texts)


def of_body(fields: Fields, body: bytes) -> dict[str, Any]:
    """The values of a body. Raises Problem."""
    if len(body) > MOST_BODY:
        raise Problem(413, "too_large", f"The body is longer than {MOST_BODY:,} bytes.")
    try:
        said = json_object(body.decode("utf-8") or "{}", strict_json)
    except (Malformed, UnicodeDecodeError, ValueError) as error:
        raise bad(f"The body is no JSON object: {str(error)[:SHOWN]}.") from None
    return values_of(fields, said)


def values_of(fields: Fields, given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of what is given by name. Raises Problem."""
    for name in given:
        if name not in fields:
            raise bad(f"{name[:SHOWN]!r} is not known here; there are {', '.join(fields) or 'none'}.")
    values = {}
    for name, field in fields.items():
        if name not in given:
            if field.needed:
                raise bad(f"{name} is missing.")
            values[name] = field.default
            continue
        try:
            values[name] = field.read(given[name])
        except ValueError as error:
            raise bad(f"{name} may not be {_shown(given[name])}: {error}.") from None
    return values


def _shown(value: object) -> str:
    text = repr(value) if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


# -- values


def text(most: int = MOST_URL) -> Read:
    """A text that is not empty, of so many characters at most."""

    def read(value: Any) -> str:
        if not isinstance(value, str) or not 0 < len(value) <= most:
            raise ValueError(f"a text of 1 to {most} characters is wanted")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("it is no Unicode text") from None
        if "\0" in value:
            raise ValueError("it has a character that ends texts")
        return value

    return read


def choice(*words: str) -> Read:
    """One of these."""

    def read(value: Any) -> str:
        if value not in words or not isinstance(value, str):
            raise ValueError(f"there are {', '.join(words)}")
        return value

    return read


def number(least: int, most: int) -> Read:
    """A whole number within these bounds; of a query in digits."""

    def read(value: Any) -> int:
        if isinstance(value, str):
            digits = value.removeprefix("-")
            value = int(value) if digits.isascii() and digits.isdigit() and len(digits) < 10 else None
        if type(value) is not int or not least <= value <= most:
            raise ValueError(f"a whole number from {least} to {most} is wanted")
        return value

    return read


def flag(value: Any) -> bool:
    """True or false; of a query 1 or 0."""
    if isinstance(value, bool):
        return value
    if value in ("0", "1"):
        return bool(value == "1")
    raise ValueError("true or false is wanted (1 or 0 in a query)")


def texts(most: int, empty: bool = False) -> Read:
    """A list of 1 to so many texts; `empty`: some of them may be, as lines are."""
    one = text()

    def read(value: Any) -> list[str]:
        if not isinstance(value, list) or not 0 < len(value) <= most:
            raise ValueError(f"a list of 1 to {most} texts is wanted")
        return ["" if empty and each == "" else one(each) for each in value]

    return read


def settings(value: Any) -> list[str]:
    """An object of settings, as `NAME=VALUE` for `scrapy ubi set`."""
    if not isinstance(value, dict) or not 0 < len(value) <= MOST_NAMES:
        raise ValueError(f"an object of 1 to {MOST_NAMES} settings is wanted")
    return [f"{_name(name)}={_setting(one)}" for name, one in value.items()]


def _name(name: str) -> str:
    if "=" in name or not 0 < len(name) <= 100:
        raise ValueError("a name of a setting has 1 to 100 characters, and no equals sign")
    return name


def _setting(value: Any) -> str:
    if isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return json.dumps(value)
    if isinstance(value, str):
        return value
    raise ValueError("a value is a text, a number, true, false or a list of texts")
