"""The record of one page in the files of the store `index`: two lines, as the bulk interface of OpenSearch takes them.

Rules of this module:

* The first line says under which identity the page is indexed (`_id`: its name), the second is the page. A page that
  was fetched again replaces itself.
* What comes from a disk is read whole, or refused (`BadIndexRecord`).
"""

from __future__ import annotations

import json
import time
from typing import Any, NamedTuple

from scrapy_ubi.adapter.requests.scalars import is_encodable

LONGEST = 1000  # characters of a name
_TEXTS = ("url", "title", "text", "language", "time", "digest")


class BadIndexRecord(ValueError):
    """These bytes are no record of a page."""


class IndexRecord(NamedTuple):
    """A page as it is indexed. `time` is UTC, as ISO 8601 has it; `digest` is the SHA-1 of the body, in hex digits."""

    name: str
    url: str
    title: str
    text: str
    language: str
    status: int
    time: str
    digest: str


def packed(record: IndexRecord) -> bytes:
    """Two lines."""
    fields = record._asdict()
    head = {"index": {"_id": fields.pop("name")}}
    lines = (json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in (head, fields))
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


def unpacked(data: bytes) -> IndexRecord:
    """Raises BadIndexRecord."""
    try:
        head, body, rest = data.decode().split("\n")
        name, fields = json.loads(head)["index"]["_id"], json.loads(body)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadIndexRecord("it is not two lines of JSON") from error
    if rest or not isinstance(name, str) or not 0 < len(name) <= LONGEST or not isinstance(fields, dict):
        raise BadIndexRecord("it is not the name of a page and the page")
    return _checked(name, fields)


def _checked(name: str, fields: dict[str, Any]) -> IndexRecord:
    texts = {key: fields.get(key) for key in _TEXTS}
    if not all(isinstance(text, str) and is_encodable(text) for text in texts.values()) or not is_encodable(name):
        raise BadIndexRecord("it has fields that are no texts")
    status = fields.get("status")
    if type(status) is not int or not 0 <= status <= 999:
        raise BadIndexRecord("its status is none")
    return IndexRecord(name=name, status=status, **{key: str(text) for key, text in texts.items()})


def told_time(seconds: float) -> str:
    """Unix time as ISO 8601 in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
