"""`scrapy ubi botkey`: the key of the bot, made and shown: its public part, as servers are to find it.

Rules of this module:

* The private part is never shown. A key that is there is never written over.
* The document is printed and written as the bytes that were signed: without a line end in the file.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from urllib.parse import urlsplit

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.cli.commands.redis_connection import setting
from scrapy_ubi.cli.monitor.text_table import pairs
from scrapy_ubi.errors import UbiError, UbiSettingError
from scrapy_ubi.ground.untrusted.terminal_text import plain

DAY = 86_400  # s


class UbiNoBotKey(UbiError):
    """There is no key, or its document cannot be written."""


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Make or read the key, and show it. Raises UbiError."""
    from scrapy_ubi.policy.politeness import bot_key, message_signatures

    given = opts.key or setting(settings, "bot_key")
    if given is None:
        raise UbiNoBotKey("No key is named: give its FILE, or set UBI_BOT_KEY.")
    path = Path(given)
    key = bot_key.make_key(path) if opts.make else bot_key.read_key(path)
    agent = str(setting(settings, "bot_agent"))
    host = _host(opts.host or urlsplit(agent).netloc)
    body, headers = key.key_set, {"Content-Type": message_signatures.MEDIA_TYPE}
    if host:
        headers = message_signatures.directory_headers(key.signing, host, body, int(time.time()), opts.days * DAY)
    if opts.output:
        _write(Path(opts.output), body)
    where = (
        agent
        if agent and not message_signatures.is_origin(agent)
        else (f"https://{host or 'HOST'}{message_signatures.WELL_KNOWN}")
    )
    rows = [("key", f"{path}{' (new)' if opts.make else ''}"), ("keyid", key.keyid), ("serve at", where)]
    lines = [*pairs(rows), "", body.decode("ascii"), "", *(f"{name}: {value}" for name, value in headers.items())]
    if not host:
        lines += ["", "It is not signed: give --host, or set UBI_BOT_AGENT, to have the headers of its signature."]
    document = {"file": str(path), "made": opts.make, "keyid": key.keyid, "url": where, "headers": headers}
    return QueryReport(lines, {**document, "directory": json.loads(body)})


def _host(text: str) -> str:
    """An authority as it is signed. Raises UbiSettingError for what is none."""
    host = text.lower().removesuffix(":443")
    if host and (urlsplit(f"//{host}").netloc != host or not host.isascii() or " " in host or "@" in host):
        raise UbiSettingError("--host", f"is '{plain(text, 100)}'", "give a name, and a port where it is not 443")
    return host


def _write(path: Path, body: bytes) -> None:
    try:
        path.write_bytes(body)
    except OSError as error:
        raise UbiNoBotKey(f"{plain(str(path), 200)} cannot be written ({error.strerror}).") from None
