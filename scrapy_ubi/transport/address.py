"""UBI_REDIS_URL, read strictly before anything connects.

What cannot be parsed is never shown: what looks like a port may be half of a password.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from scrapy_ubi.transport.contract import TransportError

FORM = "redis://[[user]:password@]host[:port][/number], rediss:// for TLS, or unix:///path/to/socket"
SHOWN = 160  # characters of a server's own words
OPTIONS = ("db", "username", "password")  # besides ssl_...; others would change what the transport relies on


@dataclass(frozen=True, slots=True)
class Address:
    """A checked address of a server."""

    url: str
    """As redis-py takes it, with user and password."""
    shown: str
    """Without user, password and options: safe to print."""
    secret: str | None
    """The password, to scrub it from what is printed."""

    def scrub(self, text: str) -> str:
        """`text` as a part of one sentence: on one line, of bounded length, without the password."""
        if self.secret:
            text = text.replace(self.secret, "***")
        return " ".join(text.split()).replace(". ", "; ")[:SHOWN].rstrip(". ")


def address(url: str) -> Address:
    """Check the form of `url`. Raises TransportError, one sentence."""
    url = url.strip()
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _malformed("host or port cannot be read (is each special character of the password %-encoded?)") from None
    if parts.scheme not in ("redis", "rediss", "unix"):
        raise _malformed("it begins with none of redis://, rediss://, unix:// (redis:// serves for Valkey too)")
    if parts.fragment:
        raise _malformed("it holds a # (in a password: %23)")
    if parts.scheme == "unix" and parts.path in ("", "/"):
        raise _malformed("it names no socket")
    if parts.scheme != "unix" and not re.fullmatch(r"(/\d{0,9})?", parts.path):
        raise _malformed("after the port only the number of a database may follow (a / in a password: %2F)")
    secret = unquote(parts.password) if parts.password else None
    options = _options(parts)
    secret = options.get("password", secret)
    database = options.get("db", parts.path.strip("/") or "0")  # the option wins, as in redis-py
    where = f"unix://{parts.path}" if parts.scheme == "unix" else _server(parts, port, database)
    return Address(url, where, secret)


def _server(parts: SplitResult, port: int | None, database: str) -> str:
    host = parts.hostname or "localhost"
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}:{port or 6379}/{database}"


def _options(parts: SplitResult) -> dict[str, str]:
    """The options of the query. Raises TransportError for those that would break what the transport relies on."""
    options = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    for name, value in options.items():
        if name not in OPTIONS and not name.startswith("ssl_"):
            raise _malformed(f"its option {name[:40]!r} is not known (known: {', '.join(OPTIONS)} and ssl_...)")
        if name.startswith("ssl_") and parts.scheme != "rediss":
            raise _malformed(f"its option {name[:40]!r} is of TLS, which only rediss:// speaks")
        if name == "db" and not re.fullmatch(r"\d{1,9}", value):
            raise _malformed("its option 'db' is no number")
    return options


def _malformed(what: str) -> TransportError:
    return TransportError(f"UBI_REDIS_URL is malformed: {what}; write it as {FORM}.")
