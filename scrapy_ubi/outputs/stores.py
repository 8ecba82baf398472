"""What a store is: something that keeps of each page what it wants, and the pages' items. UBI_STORES names them.

Rules of this module:

* A store is asked in the loop for what it keeps of a page (`item`, `page`): it touches memory only. What it answers is
  written by the agent's writer in a thread of its own (`write`).
* It is asked once for a page, when the page's callback and pipelines are through; never for a page that is fetched
  once more, unless its callback has yielded items before.
* The text of a store is that of a filter in UBI_FILTERS: `name(value, key=value)`; a store of the user's is named by
  its dotted path. What is malformed is a `UbiSettingError` at the start: it names UBI_STORES, the entry, the remedy.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha1
from pathlib import Path
from typing import Any, ClassVar

from scrapy import Request
from scrapy.http import Response
from scrapy.settings import BaseSettings

from scrapy_ubi.adapter.requests.judged import Judged
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.outputs.documents.text_child import DocumentReader
from scrapy_ubi.outputs.part_writer import Part
from scrapy_ubi.policy.politeness.page_robots import DIRECTIVES, PAGE_ROBOTS
from scrapy_ubi.urls import normal_form
from scrapy_ubi.urls.filters.filter_text import Arguments, Call, FilterError, named_class, parse_calls

logger = logging.getLogger("scrapy_ubi")

SETTING = "UBI_STORES"
ROBOTS = "robots"  # how the names of pages begin that are a robots.txt
SIZE, SECONDS = 1e9, 3600.0  # of a part, unless a store says so
UNREAD = (
    "The store %s keeps %.500s without its title, text and links: it would keep the parser busy for seconds (thousands "
    "of elements in each other, or of attributes of one). Such pages are counted from now on, not told."
)
REFUSED = (
    "The store %s keeps %.500s without its text (%s). Further ones with this reason are counted "
    "(ubi/store/<store>/refused/<reason>), not told."
)
KEPT_FREE = 4 << 20  # bytes
_NOTHING = Response("about:blank", status=0)  # in the place of a response that did not come


@dataclass
class Page:
    """One page that was reached, with all that is known of it when it is done.

    `name` is the same wherever the page is fetched, `key` its first 16 hex digits as a number; `from_url` is the page
    that led here, '' where that is not known. `failed` is the reason of a failure, None where there is none.
    `response` is what the callback got (None: nothing came), `received` what came, before it was decompressed; times
    are unix time: `began` the load, `came` the response, `ended` the page. `links` are the normal forms of what the
    callback has yielded requests and plain links for, also of those that filters refuse, `moved_to` of what it was
    redirected to: both for stores with `wants_links` only. `items` are those of each store together, `numbered` the
    same one by one: ordinal -> store -> what is kept of it.

    `visit` is the number of the visit of a page that is visited again, from 1; `unchanged`: the page was as it was at
    the visit before, at about `last`. Then it is `passed_over`, unless `call` in UBI_RECRAWL says otherwise: its
    callback was not called.
    """

    name: str
    attempt: int
    kind: str
    request: Request
    normal: str = ""
    depth: int = 0
    failed: str | None = None
    response: Response | None = None
    received: Response | None = None
    began: float = 0.0
    came: float = 0.0
    ended: float = 0.0
    items: Mapping[str, bytes] = field(default_factory=dict)
    numbered: Mapping[int, Mapping[str, bytes]] = field(default_factory=dict)
    links: Sequence[str] = ()
    moved_to: Sequence[str] = ()
    judged: Judged | None = None  # with UBI_DUPLICATES: how it was compared with other pages
    visit: int = 1
    unchanged: bool = False
    last: float = 0.0
    passed_over: bool = False

    @property
    def url(self) -> str:
        """The URL as it was asked for."""
        return self.request.url

    @property
    def from_url(self) -> str:
        """The page that led here, where the request says so (Referer)."""
        said = dict.get(self.request.headers, b"Referer")  # as it is kept: `Headers` makes its name a normal form
        return said[-1].decode("utf-8", "replace") if said else ""

    @property
    def redirected_from(self) -> str:
        """The URL whose redirect led here; '' where none did."""
        came_by = self.request.meta.get("redirect_urls")
        return str(came_by[-1]) if isinstance(came_by, list) and came_by else ""

    @property
    def _answer(self) -> Response:
        return self.response if self.response is not None else _NOTHING

    @property
    def status(self) -> int:
        """0 where no response came."""
        return self._answer.status

    @property
    def body(self) -> bytes:
        """As the callback got it."""
        return self._answer.body

    @property
    def address(self) -> str:
        """The IP address that answered, where that is known."""
        found = self._answer.ip_address
        return str(found) if found is not None else ""

    @property
    def truncated(self) -> bool:
        """Whether only the beginning of the body was kept."""
        return "truncated" in self._answer.flags

    @property
    def robots(self) -> tuple[str, ...]:
        """What the page says to crawlers of itself: `noindex`, `nofollow`, `noarchive` (X-Robots-Tag, meta robots)."""
        said = self.request.meta.get(PAGE_ROBOTS)
        return tuple(one for one in DIRECTIVES if one in said) if isinstance(said, list) else ()

    @cached_property
    def digest(self) -> bytes:
        """SHA-1 of the body as it came."""
        came = self.received if self.received is not None else self.response
        return sha1(came.body if came is not None else b"", usedforsecurity=False).digest()


class Store:
    """A store of the crawl: subclass it, and name the class by its dotted path in UBI_STORES.

    Arguments: `size`, bytes after which a part is sealed and another one begun; `seconds`, the same in time. Those of
    its own a subclass takes out of `arguments` before it calls `super().__init__`, and what is left is refused.
    """

    name: ClassVar[str] = ""
    separator: ClassVar[str] = "."
    wants_items: ClassVar[bool] = False
    wants_pages: ClassVar[bool] = False
    wants_links: ClassVar[bool] = False
    wants_unchanged: ClassVar[bool] = False  # visits that found their page as it was
    counts_left_out: ClassVar[bool] = False  # pages of which nothing is kept, in the stats
    obeyed: str = ""  # pages that say this of themselves (`noindex`) are left out; '' leaves out none
    wants_documents: bool = False  # has `documents` read what is no page: PDF, ...
    wants_requisites: bool = False  # what pages need to be shown, as pages of their own
    wants_robots: bool = False  # each robots.txt that is loaded, as a page named "robots.<...>"

    def __init__(self, arguments: dict[str, tuple[str, ...]], settings: BaseSettings) -> None:
        # The normal form of a URL as the frontier has it, under UBI_NORMALISE; for either thread.
        self.normal_form: Callable[[str], str | None] = normal_form
        self.unread = 0  # pages of HTML that were kept without what a parser reads off them
        self.refused: Counter[str] = Counter()  # pages and documents of which nothing could be read, by reason
        self.documents: DocumentReader | None = None  # in the writer's thread
        self.size = number(arguments, "size", SIZE)
        self.seconds = number(arguments, "seconds", SECONDS)
        if arguments:
            key = next(iter(arguments))
            raise FilterError(f"has {f'the argument {key!r}' if key else 'a value without a name'}", "leave it out")
        keep_freed_memory()

    def item(self, item: Any) -> bytes | None:
        """What is kept of an item, in the loop, when all pipelines have passed it; None: nothing."""
        return None

    def page(self, page: Page) -> Any:
        """What is kept of a page, in the loop; None: nothing. Its items are in `page.items[self.name]`."""
        return None

    def keeps_requisites_of(self, request: Request) -> bool:
        """Whether the requisites of a page are kept, of a store that wants some; its response has come."""
        return True

    def write(self, payload: Any, part: Part) -> None:
        """Append what `page` answered to files of the part, in the writer's thread: `part.append(ending, bytes)`."""
        raise NotImplementedError

    def leave_unread(self, url: str) -> None:
        """Count a page that would keep its parser busy for seconds, or take gigabytes: what is read off pages is not
        there of it. In the writer's thread."""
        self.unread += 1
        if self.unread == 1:
            logger.warning(UNREAD, self.name, url)

    def refuse(self, url: str, reason: str) -> None:
        """Count a page or document of which nothing can be read; `reason` is one word. In the writer's thread."""
        self.refused[reason] += 1
        if self.refused[reason] == 1:
            logger.warning(REFUSED, self.name, url, reason)

    def sealed(self, files: Mapping[str, Path]) -> None:
        """A part was sealed, in the writer's thread: its files, by their endings. Their lengths must stay."""


def keep_freed_memory() -> None:
    """Have the C library keep some MB that are freed, for the next page.

    glibc gives the end of its heap back to the system once 128 kB there are free, and asks for it again: parsing a page
    of 10 kB takes 22 page faults then, and half of its time. Freeing a larger block once makes it wait for twice that
    block (mallopt(3), M_MMAP_THRESHOLD). Elsewhere this changes nothing.
    """
    bytearray(KEPT_FREE)


def content_type(response: Response) -> str:
    """The header Content-Type, '' where there is none."""
    values = dict.get(response.headers, b"Content-Type")  # as it is kept
    return values[-1].decode("latin-1") if values else ""


def number(arguments: dict[str, tuple[str, ...]], key: str, default: float) -> float:
    """Take an argument that is a number above 0. Raises FilterError."""
    values = arguments.pop(key, ())
    try:
        found = float(values[-1]) if values else default
    except ValueError:
        found = 0.0
    if not found > 0:
        raise FilterError(f"has {key}={values[-1]!r}", "give a number above 0")
    return found


def choice(arguments: dict[str, tuple[str, ...]], key: str, default: bool) -> bool:
    """Take an argument that is yes or no. Raises FilterError."""
    values = arguments.pop(key, ())
    if values and values[-1] not in ("yes", "no"):
        raise FilterError(f"has {key}={values[-1]!r}", "give yes or no")
    return values[-1] == "yes" if values else default


def obeys(arguments: dict[str, tuple[str, ...]], directive: str) -> str:
    """Take the argument that says what is done with pages that have this directive: `noindex=keep` keeps them (''); by
    default they are left out (the directive). Raises FilterError."""
    values = arguments.pop(directive, ("obey",))
    if values[-1] not in ("obey", "keep"):
        raise FilterError(f"has {directive}={values[-1]!r}", "give obey or keep")
    return directive if values[-1] == "obey" else ""


def make(entries: Sequence[object], settings: BaseSettings) -> list[Store]:
    """The stores of UBI_STORES. Raises UbiSettingError."""
    stores: list[Store] = []
    for entry in entries:
        try:
            if not isinstance(entry, str):
                raise FilterError("is no store", "give texts such as 'items' or 'larm(pages=no)'")
            for call in _calls(entry):
                store = _class(call.name)(dict(call.arguments), settings)
                if any(other.name == store.name for other in stores):
                    raise FilterError(f"names the store {store.name!r} again", "name each once")
                stores.append(store)
        except FilterError as error:
            raise UbiSettingError(SETTING, f"has {entry!r:.200}, which {error.problem}", error.remedy) from error
    return stores


def _calls(entry: str) -> list[Call]:
    try:
        return parse_calls(entry)
    except FilterError as error:
        raise FilterError(error.problem, "give a store such as 'items' or 'items(size=1e8)'") from error


def suite() -> Mapping[str, Callable[[dict[str, tuple[str, ...]], BaseSettings], Store]]:
    """The stores of this package, by name."""
    from scrapy_ubi.outputs.delivery.stream_store import StreamStore  # they are made of what is here
    from scrapy_ubi.outputs.delivery.webhook_store import WebhookStore
    from scrapy_ubi.outputs.duplicates.duplicates_store import DuplicatesStore
    from scrapy_ubi.outputs.graph.graph_store import GraphStore
    from scrapy_ubi.outputs.index.index_store import IndexStore
    from scrapy_ubi.outputs.items import ItemsStore
    from scrapy_ubi.outputs.larm import LarmStore
    from scrapy_ubi.outputs.markdown.markdown_store import MarkdownStore
    from scrapy_ubi.outputs.warc.warc_store import WarcStore

    kept = (ItemsStore, LarmStore, GraphStore, WarcStore, IndexStore, DuplicatesStore, MarkdownStore)
    return {store.name: store for store in (*kept, StreamStore, WebhookStore)}


def _class(name: str) -> Callable[[dict[str, tuple[str, ...]], BaseSettings], Store]:
    known = suite()
    if name in known:
        return known[name]
    found = named_class(name, known, "store")
    if not (isinstance(found, type) and issubclass(found, Store) and found.name and "/" not in found.name):
        raise FilterError(
            f"names {name!r}, which is no store", "give a subclass of scrapy_ubi.outputs.stores.Store with a name"
        )
    return found


def of_items(stores: Iterable[Store]) -> list[Store]:
    """Those that keep items."""
    return [store for store in stores if store.wants_items]


__all__ = [
    "Arguments", "Page", "Part", "Store", "choice", "content_type", "make", "number", "obeys", "of_items", "suite",
]  # fmt: skip
