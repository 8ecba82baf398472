"""The store `webhook`: items posted to a URL, before their pages are done.

Rules of this module:

* A request is JSON, `{"crawl", "agent", "run", "items": [{"id", "item"}, ...]}`, and has the three headers of Standard
  Webhooks (standardwebhooks.com): `webhook-id`, `webhook-timestamp`, and with a key `webhook-signature`. The same items
  have the same `webhook-id`.
* Taken is what was answered with 2xx. Whatever else comes, or nothing within `TIMEOUT`, the batch is posted again,
  after a pause; `Retry-After` is obeyed. At 413 a batch of half the size is tried. Redirects are not followed.
* One request of an agent is under way at a time: so its items come in their order.
* It is posted from the writer's thread, by one connection that is kept.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import http.client
import json
import time
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

from scrapy.settings import BaseSettings

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.outputs.delivery.delivering import DeliveringStore, Entry, NotTaken, Place
from scrapy_ubi.outputs.stores import number
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.urls.filters.filter_text import FilterError

BATCH, MOST_BATCH = 100, 10_000  # items of a request
MOST_SECONDS = 10.0  # between two requests, as long as done marks may wait
TIMEOUT = 10.0  # s
MOST_ANSWER = 65_536  # bytes that are read of one
KEY_PREFIX = "whsec_"


class WebhookStore(DeliveringStore):
    """`webhook(URL, batch=100, seconds=0, key=FILE)`: at most so many items in a request, at least so many seconds
    between two rounds of requests, signed by the key in that file."""

    name: ClassVar[str] = "webhook"
    longest_pause = 30.0

    def __init__(self, arguments: dict[str, tuple[str, ...]], settings: BaseSettings) -> None:
        urls = arguments.pop("", ())
        parts = urlsplit(urls[0]) if len(urls) == 1 else urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise FilterError(
                f"has the URL {', '.join(urls)!r:.100}",
                "give one of http or https, between quotes where it has one of ( ) = , ; as in 'webhook(\"http://...\")'",
            )
        self.batch = int(min(MOST_BATCH, max(1.0, number(arguments, "batch", BATCH))))
        self._seconds = number(arguments, "seconds", 1e-9)
        if self._seconds > MOST_SECONDS:
            raise FilterError(f"has seconds={self._seconds:g}", f"give at most {MOST_SECONDS:g}: pages wait so long")
        keys = arguments.pop("key", ())
        super().__init__(arguments, settings)
        self._url = parts
        self._shown = f"{parts.scheme}://{parts.netloc}{parts.path}"
        self._key_file = Path(keys[-1]) if keys else None
        self._key = b""
        made = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = made(parts.hostname or "", parts.port, timeout=TIMEOUT)  # opens itself when it is used
        self._size = self.batch  # that the receiver takes
        self._next = 0.0  # when the next round may begin

    def connect(self, settings: UbiSettings) -> None:
        """Read the key. Raises UbiSettingError."""
        self._who = {"crawl": settings.crawl, "agent": settings.agent_id}
        if self._key_file is not None:
            try:
                self._key = read_key(self._key_file.read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                raise UbiSettingError(
                    "UBI_STORES",
                    f"names a key for 'webhook' that cannot be read ({self._key_file}: {error})",
                    "write a long random text into that file",
                ) from error

    def send(self, entries: Sequence[Entry], run: str, after: Place) -> bool:
        """Post a batch. Raises NotTaken."""
        time.sleep(max(0.0, self._next - time.monotonic()))
        for start in range(0, len(entries), self._size):
            self._post(entries[start : start + self._size], run)
        self._next = time.monotonic() + self._seconds
        self.low[after.part] = after.offset
        return True

    def _post(self, entries: Sequence[Entry], run: str) -> None:
        items = b",".join(b'{"id":%s,"item":%s}' % (json.dumps(one.id).encode(), one.item) for one in entries)
        body = b'%s,"items":[%s]}' % (json.dumps({**self._who, "run": run}).encode()[:-1], items)
        try:
            status, retry_after = self._request(body, self._headers(entries, run, body))
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise NotTaken(self._sentence(f"does not answer ({str(error) or type(error).__name__})")) from error
        if 200 <= status < 300:
            return
        if status == 413 and len(entries) > 1:
            self._size = max(1, len(entries) // 2)
        raise NotTaken(self._sentence(f"answers with {status}"), retry_after)

    def _sentence(self, what: str) -> str:
        return (
            f"The webhook {self._shown} {what}: pages whose items it has not taken stay undone, and it is asked again."
        )

    def _headers(self, entries: Sequence[Entry], run: str, body: bytes) -> dict[str, str]:
        digest = blake2b(f"{run} {' '.join(entry.id for entry in entries)}".encode(), digest_size=16)
        name, now = f"msg_{digest.hexdigest()}", str(int(time.time()))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "scrapy-ubi",
            "webhook-id": name,
            "webhook-timestamp": now,
        }
        if self._key:
            headers["webhook-signature"] = sign(self._key, name, now, body)
        return headers

    def _request(self, body: bytes, headers: dict[str, str]) -> tuple[int, float]:
        """The status of the answer, and for how long (s) it asks not to be asked again."""
        kept = self._connection.sock is not None
        try:
            answer = self._ask(body, headers)
        except (ConnectionError, http.client.HTTPException):
            if not kept:
                raise
            self._connection.close()  # it had been closed at the other end, as nothing came for long
            answer = self._ask(body, headers)
        answer.read(MOST_ANSWER)
        if not answer.isclosed():
            self._connection.close()
        pause = 0.0
        with suppress(ValueError):
            pause = max(0.0, float(answer.headers.get("Retry-After", "")))
        return answer.status, pause

    def _ask(self, body: bytes, headers: dict[str, str]) -> http.client.HTTPResponse:
        target = (self._url.path or "/") + (f"?{self._url.query}" if self._url.query else "")
        self._connection.request("POST", target, body, headers)
        return self._connection.getresponse()

    def close(self) -> None:
        """Close the connection that is kept."""
        self._connection.close()


def read_key(text: str) -> bytes:
    """The bytes of a key: `whsec_` and base64, or a text as it is. Raises ValueError where there is none."""
    text = text.strip()
    if not text:
        raise ValueError("it is empty")
    if not text.startswith(KEY_PREFIX):
        return text.encode()
    try:
        return base64.b64decode(text.removeprefix(KEY_PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError(f"what follows {KEY_PREFIX} is no base64") from error


def sign(key: bytes, name: str, when: str, body: bytes) -> str:
    """The header `webhook-signature` for a request of this name, at this time (unix seconds)."""
    digest = hmac.digest(key, b"%s.%s.%s" % (name.encode(), when.encode(), body), "sha256")
    return f"v1,{base64.b64encode(digest).decode()}"
