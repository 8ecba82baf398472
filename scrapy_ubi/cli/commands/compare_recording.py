"""What a site has answered in the first crawl of a comparison, kept on disk, and given again in the later ones.

Rules of this module:

* The world is closed after the first crawl: a request that it did not make has no answer, in plain Scrapy as with
  agents, so the site is asked once, and a bounded first crawl bounds the others.
* The same request asked again gets the next answer that was recorded for it; after the last one the last again. Each
  process counts for itself.
* Of several answers those count that were given to the request most alike in `meta` and `cb_kwargs`: two accounts ask
  for one form of login, each with a cookie jar of its own, and must get back the token that they were given. (Requests
  come in another order in each crawl.)
* Cookies are part of a request as far as their values were recorded. Where they were not (sites give each visitor
  values of its own, and the order of pages differs), the answer to the same cookie *names* counts, else one to fewer
  names, else any; the last is said (`FEWER`), as a login may have been lost on the way.
* What is read was written by this program a moment before; still nothing of it is unpickled. A download that failed
  fails again, with an exception of the same class, which must be one of Scrapy's, Twisted's or Python's.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from scrapy import Request
from scrapy.http import Headers, HtmlResponse, JsonResponse, Response, TextResponse, XmlResponse
from scrapy.responsetypes import responsetypes
from scrapy.utils.misc import load_object

# How a request is answered; FAILED: as the recorded download failed.
EXACT, OTHER_COOKIES, FEWER, FAILED, NONE = "recorded", "other cookies", "fewer cookies", "failed", "not recorded"
CLASSES = {one.__name__: one for one in (Response, TextResponse, HtmlResponse, XmlResponse, JsonResponse)}
FAILURES = ("scrapy.", "twisted.", "builtins.")

_TABLE = """
CREATE TABLE answers (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL, names TEXT NOT NULL, credentials TEXT NOT NULL,
    marks TEXT NOT NULL, what TEXT NOT NULL, body BLOB NOT NULL
)
"""


class Asked(NamedTuple):
    """A request, as answers are looked up by it. `names`: of its cookies, sorted; `marks`: a digest of each thing that
    the spider gave it to carry."""

    key: str
    names: tuple[str, ...]
    credentials: str
    marks: frozenset[str]

    @classmethod
    def from_request(cls, request: Request) -> Asked:
        """Read it of a request as it would leave."""
        url = request.url.partition("#")[0]
        key = f"{request.method} {url}"
        if request.body:
            key += f" {sha256(request.body).hexdigest()[:16]}"
        cookies = b"; ".join(request.headers.getlist("Cookie"))
        names = sorted({part.partition(b"=")[0].strip().decode("latin-1") for part in cookies.split(b";")} - {""})
        secret = b"\0".join([*sorted(cookies.split(b"; ")), *request.headers.getlist("Authorization")])
        return cls(key, tuple(names), sha256(secret).hexdigest()[:16], frozenset(_marks(request)))


@dataclass(frozen=True, slots=True)
class Failed:
    """A download that ended without a response: the class of its exception, and its text."""

    name: str
    text: str

    def exception(self) -> Exception:
        """The exception once more; an OSError where its class cannot be had."""
        if self.name.startswith(FAILURES):
            try:
                found = load_object(self.name)
                if isinstance(found, type) and issubclass(found, Exception):
                    return found(self.text)
            except Exception:  # noqa: BLE001 - a class may want other arguments
                pass
        return OSError(f"{self.name}: {self.text}")


class Recording:
    """The answers of one site, in a file; one process writes it, and others read it later."""

    def __init__(self, path: Path) -> None:
        self._known = path.exists()
        self._base = sqlite3.connect(path, isolation_level=None)
        if not self._known:
            self._base.execute("PRAGMA synchronous = OFF")
            self._base.execute("PRAGMA journal_mode = OFF")
            self._base.execute(_TABLE)
            self._base.execute("CREATE INDEX by_key ON answers (key)")
        self._given: Counter[tuple[str, str, tuple[int, ...]]] = Counter()

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def add(self, request: Request, outcome: Response | Exception) -> None:
        """Keep what came of a request."""
        asked = Asked.from_request(request)
        if isinstance(outcome, Response):
            headers = [
                [name.decode("latin-1"), value.decode("latin-1")]
                for name, values in outcome.headers.items()
                for value in values
            ]
            what = {
                "status": outcome.status,
                "url": outcome.url,
                "headers": headers,
                "flags": list(outcome.flags),
                "class": type(outcome).__name__,
                "protocol": outcome.protocol,
                "latency": request.meta.get("download_latency", 0.0),
            }
            body = outcome.body
        else:
            what = {"failed": f"{type(outcome).__module__}.{type(outcome).__qualname__}", "text": str(outcome)}
            body = b""
        self._base.execute(
            "INSERT INTO answers (key, names, credentials, marks, what, body) VALUES (?, ?, ?, ?, ?, ?)",
            (asked.key, "\n".join(asked.names), asked.credentials, " ".join(asked.marks), json.dumps(what), body),
        )

    def find(self, request: Request) -> tuple[str, Response | Failed | None]:
        """How the request was found, and what came of it; None where the first crawl did not make it."""
        asked = Asked.from_request(request)
        rows = self._base.execute(
            "SELECT id, names, credentials, marks FROM answers WHERE key = ? ORDER BY id", (asked.key,)
        ).fetchall()
        how, fitting = _choose(asked, [row[:3] for row in rows])
        if not fitting:
            return NONE, None
        chosen = _most_alike(asked, {row[0]: row[3] for row in rows}, fitting)
        place = (asked.key, asked.credentials, chosen)
        turn = self._given[place]
        self._given[place] += 1
        number = chosen[min(turn, len(chosen) - 1)]
        what, body = self._base.execute("SELECT what, body FROM answers WHERE id = ?", (number,)).fetchone()
        outcome = _outcome(request, json.loads(what), body)
        return (FAILED if isinstance(outcome, Failed) else how), outcome

    def count(self) -> int:
        """How many answers there are."""
        (number,) = self._base.execute("SELECT count(*) FROM answers").fetchone()
        return int(number)


def _marks(request: Request) -> Iterator[str]:
    """A digest of each thing in `meta` and `cb_kwargs` that is plain data."""
    for held in (request.meta, request.cb_kwargs):
        for name, value in held.items():
            with suppress(TypeError, ValueError, RecursionError):
                text = json.dumps([name, value], sort_keys=True)
                yield sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _choose(asked: Asked, rows: list[tuple[int, str, str]]) -> tuple[str, list[int]]:
    """The answers that fit best, in their order."""
    exact = [number for number, _, credentials in rows if credentials == asked.credentials]
    if exact:
        return EXACT, exact
    mine = set(asked.names)
    named = [(number, {name for name in names.split("\n") if name}) for number, names, _ in rows]
    if alike := [number for number, names in named if names == mine]:
        return OTHER_COOKIES, alike
    if below := [(len(names), number) for number, names in named if names < mine]:
        most = max(many for many, _ in below)
        return OTHER_COOKIES, [number for many, number in below if many == most]
    return FEWER, [number for number, _ in named]


def _most_alike(asked: Asked, marks: Mapping[int, str], fitting: list[int]) -> tuple[int, ...]:
    """Those of these answers whose requests have most of this one's marks. (A request that is made again has these, and
    one of a retry besides: both answers are as fit for it, and come in their order.)"""
    common = {number: len(asked.marks.intersection(marks[number].split())) for number in fitting}
    most = max(common.values())
    return tuple(number for number in fitting if common[number] == most)


def _outcome(request: Request, what: dict[str, Any], body: bytes) -> Response | Failed:
    if "failed" in what:
        return Failed(what["failed"], what["text"])
    headers = Headers()
    for name, value in what["headers"]:
        headers.appendlist(name.encode("latin-1"), value.encode("latin-1"))
    url = what["url"]
    cls = CLASSES.get(what["class"]) or responsetypes.from_args(headers=headers, url=url, body=body)
    request.meta["download_latency"] = what["latency"]
    return cls(
        url=url,
        status=what["status"],
        headers=headers,
        body=body,
        flags=what["flags"],
        protocol=what["protocol"],
    )
