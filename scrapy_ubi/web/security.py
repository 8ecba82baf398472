"""Who may ask what: judged of each request before anything is read or done.

Rules of this module:

* No I/O but `read_token`. It judges headers, as they came; what is not allowed by name is refused.
* A page of another site cannot read (`Host` is an address or a name that is ours, so its own name, pointed at this
  address, is refused) nor change (a change needs a header that only our page sends, and no answer allows another
  origin to send it).
* A change needs the token. Without a token there is no change.
* Off loopback reading needs the token, too; only the page, which says nothing of the crawl, does not.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import secrets
import socket
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from scrapy_ubi.errors import UbiError
from scrapy_ubi.web.problem import Problem

LEAST_TOKEN, MOST_TOKEN = 16, 1000  # characters
TOKEN_BYTES = 32  # of one that is made here
NONCE_BYTES = 16

EVERYWHERE: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Server": "scrapy-ubi",
}
NOTHING = "default-src 'none'; frame-ancestors 'none'"  # policy of what is no page


class UbiUnsafe(UbiError):
    """The server would be open to others, or its token cannot be used."""


@dataclass(frozen=True, slots=True)
class Access:
    """How this server is reached. `host` is the address it is bound to, `names` are names beside its own, `token` is
    empty where nothing can be changed."""

    host: str
    token: str = ""
    names: frozenset[str] = frozenset()

    @property
    def loopback(self) -> bool:
        """Whether only this machine reaches it."""
        return is_loopback(self.host)

    @property
    def token_to_read(self) -> bool:
        """Whether reading needs the token, too."""
        return not self.loopback


def is_loopback(host: str) -> bool:
    """Whether this address is one of the machine itself. Only `localhost` among names is."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def check_bound(access: Access) -> None:
    """Raises UbiUnsafe where others than this machine would be let in without a token."""
    if not access.loopback and not access.token:
        raise UbiUnsafe(
            f"{access.host} can be reached from other machines, and there is no token: give one with --token-file "
            "(UBI_WEB_TOKEN_FILE in an agent), or listen on 127.0.0.1."
        )


def read_token(path: str) -> tuple[str, bool]:
    """The token in this file, and whether it was made just now: where there is no such file, one is made, for its owner
    alone. Raises UbiUnsafe."""
    file = Path(path)
    try:
        made = _make(file)
        text = file.read_text(encoding="ascii").strip()
        open_to = stat.S_IMODE(file.stat().st_mode) & 0o022
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not ASCII"
        raise UbiUnsafe(f"The token file {path} cannot be used ({why}).") from None
    if not LEAST_TOKEN <= len(text) <= MOST_TOKEN or not text.isprintable() or " " in text:
        raise UbiUnsafe(
            f"The token file {path} has to hold {LEAST_TOKEN} to {MOST_TOKEN} characters without spaces: delete it to "
            "have one made."
        )
    if open_to:
        raise UbiUnsafe(f"Others can write the token file {path}: chmod 600 {path}.")
    return text, made


def _make(file: Path) -> bool:
    try:
        with open(file, "x", encoding="ascii", opener=_private) as new:
            new.write(secrets.token_urlsafe(TOKEN_BYTES) + "\n")
    except FileExistsError:
        return False
    return True


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


# -- of each request


def check_host(access: Access, headers: Mapping[str, str]) -> None:
    """Raises Problem for a Host that is not ours."""
    name = host_name(headers.get("Host", ""))
    if not name or not _ours(access, name):
        raise Problem(403, "host", "The Host header names another server: see --name of `scrapy ubi web`.")


def host_name(header: str) -> str:
    """The name or address in a Host header, in small letters, without its port; empty where it is none."""
    text = header.strip().lower()
    if text.startswith("["):
        name, end, rest = text[1:].partition("]")
        return name if end and (not rest or _is_port(rest)) else ""
    name, colon, port = text.partition(":")
    return name if not colon or _is_port(colon + port) else ""


def _is_port(text: str) -> bool:
    digits = text[1:]
    return text.startswith(":") and digits.isascii() and digits.isdigit() and len(digits) <= 5


def _ours(access: Access, name: str) -> bool:
    if name in access.names or is_loopback(name):
        return True
    if access.loopback:
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        own = socket.gethostname().lower()
        return name == access.host.lower() or name in (own, own.partition(".")[0])
    return True  # an address has no owner who could point it elsewhere


def check_token(access: Access, headers: Mapping[str, str]) -> None:
    """Raises Problem where the token is not there, or is another one."""
    scheme, _, given = headers.get("Authorization", "").partition(" ")
    right = hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), access.token.encode())
    if scheme.lower() != "bearer" or not access.token or not right:
        remedy = {"WWW-Authenticate": 'Bearer realm="scrapy-ubi"'}
        raise Problem(401, "token", "This needs the token, in the header Authorization: Bearer TOKEN.", remedy)


def check_change(access: Access, headers: Mapping[str, str], scheme: str = "http") -> None:
    """Raises Problem for a change that does not come from our page, or from a program with the token."""
    check_origin(headers, scheme)
    if not access.token:
        raise Problem(403, "read_only", "This server changes nothing: it was started without a token (--token-file).")
    check_token(access, headers)
    check_json(headers)


def check_json(headers: Mapping[str, str]) -> None:
    """Raises Problem for a body that is not said to be JSON, as that of a form."""
    kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem(415, "content_type", "The body has to be application/json.")


def check_origin(headers: Mapping[str, str], scheme: str) -> None:
    """Raises Problem for a request that a browser sends on behalf of another site."""
    origin, host = headers.get("Origin"), headers.get("Host", "")
    from_here = origin is None or origin.lower() in {f"{one}://{host.strip().lower()}" for one in (scheme, "https")}
    if not from_here or headers.get("Sec-Fetch-Site", "none").lower() not in ("same-origin", "none"):
        raise Problem(403, "origin", "This comes from a page of another site.")


def page_policy(nonce: str) -> str:
    """The Content-Security-Policy of the page."""
    return (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
