"""The search index of tantivy, a directory: for more pages than SQLite searches quickly (`scrapy-ubi[tantivy]`).

Rules of this module:

* It finds what the database finds: the same words, phrases and beginnings, as both are given words that are folded
  already (`words`). Scores differ a little: BM25 is added up field by field here.
* How far a part was read is a document of its own, so that one commit holds it and the pages.
* Memory is bounded: the writer holds `HEAP` bytes before it writes them, and what was put since the last commit is
  remembered by name only.
* Whatever tantivy raises is `TantivyError`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from scrapy_ubi.outputs.index.index_record import IndexRecord
from scrapy_ubi.outputs.index.search_index import BOOSTS, WAIT, FoundPage, Rank, SearchIndex, UbiNoIndex, snippet
from scrapy_ubi.outputs.index.search_words import Query
from scrapy_ubi.outputs.index.words import Row, folded

try:
    tantivy: Any = import_module("tantivy")
except ImportError:
    tantivy = None

VERSION = "ubi-2"  # in the name of a field, so that an index of another version cannot be taken for one of this
HEAP = 64 << 20  # bytes
MOST_PARTS = 1_000_000  # of which an index knows how far they were read
PAUSE = 0.2  # s between two tries to get the index that another search writes
_WORDS = "ubi_words"  # the name of the tokenizer, which parts words at spaces
STATE = f"state_{VERSION.replace('-', '_')}"


class TantivyError(Exception):
    """The index cannot be used: it is damaged, of another version, or cannot be written."""


class TantivyBusy(TantivyError):
    """Another search writes the index, and has not ended within `WAIT` seconds."""


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except (ValueError, OSError, KeyError, TypeError) as error:
        raise TantivyError(str(error)[:300]) from error


class TantivyIndex(SearchIndex):
    """The index in that directory. Raises UbiNoIndex where tantivy is not installed, TantivyError in all else."""

    def __init__(self, path: Path, read_only: bool = False) -> None:
        if tantivy is None:
            raise UbiNoIndex(
                f"{path} is an index of tantivy, which is not installed: pip install 'scrapy-ubi[tantivy]'."
            )
        with _told():
            if not read_only:
                path.mkdir(parents=True, exist_ok=True)
            self._schema = _schema()
            exists = tantivy.Index.exists(str(path))
            if read_only and not exists:
                raise ValueError("it is no index of tantivy")
            self._index = tantivy.Index(self._schema, path=str(path), reuse=True)
            analyzer = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
            self._index.register_tokenizer(_WORDS, analyzer)
        self._writer: Any = None if read_only else self._locked()
        self._new: dict[str, Rank] = {}  # what was put since the last commit
        self._parts: dict[str, tuple[int, int]] = {}
        self._searcher = self._index.searcher()

    def _locked(self) -> Any:
        """The writer, when no other search has it."""
        end = time.monotonic() + WAIT
        while True:
            try:
                return self._index.writer(HEAP, 1)
            except ValueError as error:
                if "LockBusy" not in str(error):
                    raise TantivyError(str(error)[:300]) from error
                if time.monotonic() > end:
                    raise TantivyBusy("another search writes it") from error
            time.sleep(PAUSE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is None:
            return
        writer, self._writer = self._writer, None
        with _told():
            if kind is None:
                self._write_parts(writer)
                writer.commit()
            else:
                writer.rollback()
            writer.wait_merging_threads()

    def commit(self) -> None:
        """What was put so far stays, and is found."""
        with _told():
            self._write_parts(self._writer)
            self._writer.commit()
            self._index.reload()
            self._searcher = self._index.searcher()
        self._new.clear()

    def _write_parts(self, writer: Any) -> None:
        for part, read in self._parts.items():
            writer.delete_documents_by_term("part", part)
            writer.add_document(tantivy.Document(part=part, **{STATE: json.dumps(read).encode()}))
        self._parts.clear()

    def clear(self) -> None:
        """Forget all."""
        with _told():
            self._writer.delete_all_documents()
        self._parts.clear()
        self.commit()

    def read(self) -> Mapping[str, tuple[int, int]]:
        """How far each part was read: bytes of its index, and lines."""
        found = {}
        with _told():
            every = tantivy.Query.regex_query(self._schema, "part", ".+")
            for _, address in self._searcher.search(every, MOST_PARTS).hits:
                document = self._searcher.doc(address)
                end, lines = json.loads(document.get_first(STATE))
                found[str(document.get_first("part"))] = (int(end), int(lines))
        return found

    def has_read(self, part: str, end: int, lines: int) -> None:
        """A part was read as far as this."""
        self._parts[part] = (end, lines)

    def put(self, record: IndexRecord, rank: Rank) -> None:
        """Take in a page; one that is there stays if its record comes before this one."""
        with _told():
            there = self._new.get(record.name) or self._rank(record.name)
            if there is not None:
                if there <= rank:
                    return
                self._writer.delete_documents_by_term("name", record.name)
            facts = [rank, record.status, record.time, record.language, record.digest]
            shown = {"title": record.title, "url": record.url, "text": record.text}
            words = {field: folded(text) for field, text in shown.items()}
            state = json.dumps([*facts, *shown.values()]).encode()
            self._writer.add_document(tantivy.Document(name=record.name, **words, **{STATE: state}))
        self._new[record.name] = rank

    def _rank(self, name: str) -> Rank | None:
        hits = self._searcher.search(tantivy.Query.term_query(self._schema, "name", name), 1, count=False).hits
        if not hits:
            return None
        kind, newest, part, place = json.loads(self._searcher.doc(hits[0][1]).get_first(STATE))[0]
        return kind, newest, part, place

    @property
    def pages(self) -> int:
        """How many there are."""
        with _told():
            parts = self._searcher.search(tantivy.Query.regex_query(self._schema, "part", ".+"), 1).count
            return int(self._searcher.num_docs - parts)

    def search(self, query: Query, limit: int) -> list[FoundPage]:
        """The best pages, the best first."""
        with _told():
            asked = self._asked(query)
            hits = self._searcher.search(asked, limit, count=False).hits
            found = [self._found(score, self._searcher.doc(address), query) for score, address in hits]
        return sorted(found, key=lambda page: (-page.score, page.name))

    @staticmethod
    def _found(score: float, document: Any, query: Query) -> FoundPage:
        _, status, when, language, digest, title, url, text = json.loads(document.get_first(STATE))
        part, name = snippet(text, query.wanted), str(document.get_first("name"))
        return FoundPage(title, url, part, float(score), int(status), when, language, digest, name)

    def count(self, query: Query) -> int:
        """How many pages are found."""
        with _told():
            return int(self._searcher.search(self._asked(query), 1).count)

    def _asked(self, query: Query) -> Any:
        must = [(tantivy.Occur.Must, self._one(row)) for row in query.wanted]
        return tantivy.Query.boolean_query(must + [(tantivy.Occur.MustNot, self._one(row)) for row in query.unwanted])

    def _one(self, row: Row) -> Any:
        """The query of one word or phrase, in each field."""
        fields = [
            (tantivy.Occur.Should, tantivy.Query.boost_query(self._in_field(field, row), boost))
            for field, boost in BOOSTS.items()
        ]
        return tantivy.Query.boolean_query(fields)

    def _in_field(self, field: str, row: Row) -> Any:
        *first, last = row.words
        if row.begins and first:  # of letters and digits only, so each is no regular expression but itself
            return tantivy.Query.regex_phrase_query(self._schema, field, [*first, f"{last}.*"])
        if row.begins:
            return tantivy.Query.regex_query(self._schema, field, f"{last}.*")
        if first:
            return tantivy.Query.phrase_query(self._schema, field, list(row.words))
        return tantivy.Query.term_query(self._schema, field, last)


def _schema() -> Any:
    builder = tantivy.SchemaBuilder()
    for name in ("name", "part"):
        builder.add_text_field(name, stored=True, tokenizer_name="raw", index_option="basic")
    for name in BOOSTS:
        builder.add_text_field(name, tokenizer_name=_WORDS)
    builder.add_bytes_field(STATE, stored=True)
    return builder.build()
