"""UBI_REDIS_URL, read strictly before anything connects: one server, the servers of a cluster, or Sentinels.

Rules of this module:

* What cannot be parsed is never shown: what looks like a port may be half of a password.
* Options are those that are known: others would change what the transport relies on.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlencode, urlsplit

from scrapy_ubi.transport.contract import TransportError

if TYPE_CHECKING:
    from redis.credentials import CredentialProvider

Kind = Literal["single", "cluster", "sentinel"]
Node = tuple[str, int]

FORM = (
    "redis://[[user]:password@]host[:port][/number], unix:///path/to/socket, redis+cluster://host:port,host:port or "
    "redis+sentinel://host:port,host:port/master, with rediss for TLS"
)
SHOWN = 160  # characters of a server's own words
SCHEMES: Mapping[str, tuple[Kind, str]] = {
    "redis": ("single", "redis"),
    "rediss": ("single", "rediss"),
    "unix": ("single", "unix"),
    "redis+cluster": ("cluster", "redis"),
    "rediss+cluster": ("cluster", "rediss"),
    "redis+sentinel": ("sentinel", "redis"),
    "rediss+sentinel": ("sentinel", "rediss"),
}
OPTIONS = ("db", "username", "password", "wait_replicas")
SENTINEL_OPTIONS = ("sentinel_username", "sentinel_password")
TLS_OPTIONS = (
    "ssl_ca_certs",
    "ssl_ca_path",
    "ssl_ca_data",
    "ssl_certfile",
    "ssl_keyfile",
    "ssl_password",
    "ssl_check_hostname",
    "ssl_cert_reqs",
    "ssl_min_version",
    "ssl_ciphers",
)
MIN_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
PORTS: Mapping[Kind, int] = {"single": 6379, "cluster": 6379, "sentinel": 26379}
MOST_NODES = 64
MOST_REPLICAS = 5  # more are not waited for within a beat


@dataclass(frozen=True, slots=True)
class Address:
    """A checked address."""

    url: str = field(repr=False)
    """As redis-py takes it, with user and password; of the first server where there are several."""
    shown: str
    """Without user, password and options: safe to print."""
    secret: str | None = field(default=None, repr=False)
    """The password, to scrub it from what is printed."""
    kind: Kind = "single"
    nodes: tuple[Node, ...] = ()
    """Servers of the cluster, or Sentinels."""
    master: str = ""
    """What Sentinels call the servers."""
    wait_replicas: int | None = None
    """How many replicas must have a beat; None: one, where a cluster or Sentinels know of any."""
    least_tls: ssl.TLSVersion | None = None
    credentials: CredentialProvider | None = field(default=None, repr=False)
    """Gives user and password for each connection, where the address has none."""
    for_sentinels: Mapping[str, str] = field(default_factory=dict, repr=False)
    """User and password of the Sentinels themselves."""

    def arguments(self) -> dict[str, Any]:
        """What `from_url` of redis-py takes."""
        given: dict[str, Any] = {"url": self.url}
        if self.least_tls is not None:
            given["ssl_min_version"] = self.least_tls
        if self.credentials is not None:
            given["credential_provider"] = self.credentials
        return given

    def server(self, node: Node) -> Address:
        """One server of these, with the user, the password and the options of all."""
        parts = urlsplit(self.url)
        user, at, _ = parts.netloc.rpartition("@")
        where = parts._replace(netloc=f"{user}{at}{_text(node)}")
        shown = f"{parts.scheme}://{_text(node)} (of {self.shown})"
        return replace(self, url=where.geturl(), shown=shown, nodes=())

    def sentinel(self, node: Node) -> Address:
        """One of the Sentinels."""
        parts = urlsplit(self.url)
        query = {name: values[0] for name, values in parse_qs(parts.query).items() if name in TLS_OPTIONS}
        query |= self.for_sentinels
        shown = f"{parts.scheme}://{_text(node)} (of {self.shown})"
        where = f"{parts.scheme}://{_text(node)}" + (f"?{urlencode(query, quote_via=quote)}" if query else "")
        return replace(self, url=where, shown=shown, nodes=(), credentials=None)

    def scrub(self, text: str) -> str:
        """`text` as a part of one sentence: on one line, of bounded length, without the password."""
        for secret in (self.secret, self.for_sentinels.get("password")):
            if secret:
                text = text.replace(secret, "***")
        return " ".join(text.split()).replace(". ", "; ")[:SHOWN].rstrip(". ")


def address(url: str, credentials: CredentialProvider | None = None) -> Address:
    """Check the form of `url`. Raises TransportError, one sentence."""
    url = url.strip()
    try:
        parts = urlsplit(url)
    except ValueError:
        raise _unread() from None
    if parts.scheme not in SCHEMES:
        known = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise _malformed(f"it begins with none of {known} (redis:// serves for Valkey too)")
    kind, scheme = SCHEMES[parts.scheme]
    if kind == "single":
        _port(parts)
    if parts.fragment:
        raise _malformed("it holds a # (in a password: %23)")
    options = _options(parts, kind, scheme)
    if credentials is not None and (parts.password or parts.username or {"username", "password"} & set(options)):
        raise TransportError(
            "UBI_REDIS_URL names a user or a password, and UBI_REDIS_CREDENTIALS is set; take one of them out."
        )
    at = _single(url, parts, options) if kind == "single" else _several(parts, kind, scheme, options)
    least = MIN_VERSIONS[options["ssl_min_version"]] if "ssl_min_version" in options else None
    wait = int(options["wait_replicas"]) if "wait_replicas" in options else None
    return replace(at, least_tls=least, wait_replicas=wait, credentials=credentials)


def _single(url: str, parts: SplitResult, options: Mapping[str, str]) -> Address:
    port = _port(parts)
    if parts.scheme == "unix" and parts.path in ("", "/"):
        raise _malformed("it names no socket")
    if parts.scheme != "unix" and not re.fullmatch(r"(/\d{0,9})?", parts.path):
        raise _malformed("after the port only the number of a database may follow (a / in a password: %2F)")
    database = options.get("db", parts.path.strip("/") or "0")  # the option wins, as in redis-py
    where = f"unix://{parts.path}" if parts.scheme == "unix" else _server(parts, port, database)
    if {"wait_replicas", "ssl_min_version"} & set(options):  # not redis-py's, or not so
        url = parts._replace(query=_query(options)).geturl()
    return Address(url, where, _secret(parts, options))


def _port(parts: SplitResult) -> int | None:
    try:
        return parts.port
    except ValueError:
        raise _unread() from None


def _several(parts: SplitResult, kind: Kind, scheme: str, options: Mapping[str, str]) -> Address:
    """Servers of a cluster, or Sentinels with the name of the master after them."""
    user, at, hosts = parts.netloc.rpartition("@")
    nodes = tuple(_node(one, kind) for one in hosts.split(","))
    if len(nodes) > MOST_NODES:
        raise _malformed(f"it names more than {MOST_NODES} servers")
    name, database = _named(parts.path, kind, options)
    query = _query(options)
    url = f"{scheme}://{user}{at}{_text(nodes[0])}/{database}" + (f"?{query}" if query else "")
    shown = f"{parts.scheme}://{','.join(map(_text, nodes))}" + (f"/{name}/{database}" if name else "")
    sentinels = {option.removeprefix("sentinel_"): options[option] for option in SENTINEL_OPTIONS if option in options}
    return Address(url, shown, _secret(parts, options), kind, nodes, name, for_sentinels=sentinels)


def _named(path: str, kind: Kind, options: Mapping[str, str]) -> tuple[str, str]:
    """What Sentinels call the master ("" in a cluster), and the number of the database."""
    if kind == "cluster":
        if path.strip("/") not in ("", "0") or options.get("db", "0") != "0":
            raise _malformed("after the servers of a cluster only options may follow (a cluster has one database, 0)")
        return "", "0"
    form = re.fullmatch(r"/([A-Za-z0-9_.:-]{1,255})(?:/(\d{0,9}))?", path)
    if form is None:
        raise _malformed("after the Sentinels the name of the master must follow, and a number of a database may")
    return form[1], options.get("db") or form[2] or "0"


def _node(text: str, kind: Kind) -> Node:
    try:
        one = urlsplit(f"//{text}")
        host, port = one.hostname, one.port
    except ValueError:
        raise _unread() from None
    if not host or not re.fullmatch(r"[A-Za-z0-9_.:%-]+", host):
        raise _unread()
    return host, port or PORTS[kind]


def _text(node: Node) -> str:
    host, port = node
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _server(parts: SplitResult, port: int | None, database: str) -> str:
    return f"{parts.scheme}://{_text((parts.hostname or 'localhost', port or 6379))}/{database}"


def _secret(parts: SplitResult, options: Mapping[str, str]) -> str | None:
    return options.get("password", unquote(parts.password) if parts.password else None)


def _query(options: Mapping[str, str]) -> str:
    """The options that redis-py is to read in an address."""
    ours = ("wait_replicas", "ssl_min_version", *SENTINEL_OPTIONS)
    return urlencode({name: value for name, value in options.items() if name not in ours}, quote_via=quote)


def _options(parts: SplitResult, kind: Kind, scheme: str) -> dict[str, str]:
    """The options of the query. Raises TransportError for those that would break what the transport relies on."""
    options = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    known = (*OPTIONS, *(SENTINEL_OPTIONS if kind == "sentinel" else ()), *TLS_OPTIONS)
    for name, value in options.items():
        if name.startswith("ssl_") and scheme != "rediss":
            raise _malformed(f"its option {name[:40]!r} is of TLS, which only rediss:// speaks")
        if name not in known:
            raise _malformed(f"its option {name[:40]!r} is not known (known: {', '.join(known)})")
        fits, otherwise = _VALUES.get(name, _ANY)
        if not fits(value):
            raise _malformed(f"its option {name!r} {otherwise}")
    return options


def _is_number(value: str) -> bool:
    return re.fullmatch(r"\d{1,9}", value) is not None


def _is_truth(value: str) -> bool:
    return value.lower() in ("true", "false")


_REQUIREMENTS = ("none", "optional", "required")
_REPLICAS = tuple(map(str, range(MOST_REPLICAS + 1)))
_ANY: tuple[Callable[[str], bool], str] = (lambda _: True, "")
# Which values an option may have, and what is said of others.
_VALUES: Mapping[str, tuple[Callable[[str], bool], str]] = {
    "db": (_is_number, "is no number"),
    "wait_replicas": (_REPLICAS.__contains__, f"is no number from 0 to {MOST_REPLICAS}"),
    "ssl_min_version": (MIN_VERSIONS.__contains__, f"is none of {', '.join(MIN_VERSIONS)}"),
    "ssl_check_hostname": (_is_truth, "is neither true nor false"),
    "ssl_cert_reqs": (_REQUIREMENTS.__contains__, f"is none of {', '.join(_REQUIREMENTS)}"),
}


def _unread() -> TransportError:
    return _malformed("host or port cannot be read (is each special character of the password %-encoded?)")


def _malformed(what: str) -> TransportError:
    return TransportError(f"UBI_REDIS_URL is malformed: {what}; write it as {FORM}.")
