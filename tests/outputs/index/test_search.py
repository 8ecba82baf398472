"""`scrapy ubi search` and `scrapy ubi collect index`, in this process: what is found, and each page once."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_ubi.errors import UbiError
from scrapy_ubi.outputs.collector import find_outputs
from scrapy_ubi.outputs.index.catch_up import catch_up
from scrapy_ubi.outputs.index.index_record import IndexRecord
from scrapy_ubi.outputs.index.search_database import SearchDatabase
from scrapy_ubi.outputs.index.search_words import UbiBadQuery, query
from scrapy_ubi.outputs.visit_names import read_visit_name
from tests.outputs.index.kept_pages import BODIES, IndexCommands, KeptPages, pages_of, two_attempts

command = IndexCommands()
names = command.names


def test_the_best_comes_first_of_all_agents(tmp_path: Path) -> None:
    one, two = pages_of(tmp_path / "a", *BODIES[1:]), pages_of(tmp_path / "b", *BODIES[:2], agent="b")
    dirs = ("--dir", str(one), "--dir", str(two))
    assert names("hashing", *dirs) == ["01", "02"]
    assert names(*dirs, "--", "rings", "-saturn") == ["01"]
    assert names('"rings of"', *dirs) == ["03"] and names("conSIST*", *dirs) == ["01"]
    done = command("search", "hashing", "--limit", "1", *dirs)
    assert (done.document["found"], done.document["pages"], len(done.document["results"])) == (2, 3, 1)
    assert done.lines[:3] == ["1. Hashing", "   http://a.example/01", "   by consistent rings"]
    assert done.lines[-1] == "2 of 3 pages have these words."


def test_text_of_pages_is_made_safe(tmp_path: Path) -> None:
    place = pages_of(tmp_path / "a", ("01", "<title>a\u202etitle\x9b2J</title><p>word \u200b\u2066" + "wide語" * 200))
    lines = command("search", "word", "--dir", str(place)).lines
    assert all(line.isprintable() for line in lines) and r"\u202e" in lines[0]
    assert max(map(len, lines)) <= 80


def test_later_pages_are_added(tmp_path: Path) -> None:
    kept = KeptPages(tmp_path / "a")
    place = ("--dir", str(tmp_path / "a"))
    kept.keep("01", "<p>word")
    kept.flush()
    assert names("word", *place) == ["01"]  # its part is open
    kept.keep("02", "<p>word too")
    kept.flush()
    assert names("word", *place) == ["01", "02"]
    kept.close()
    assert names("word", *place) == ["01", "02"]
    with SearchDatabase(tmp_path / "a/out/search.db") as database:
        assert catch_up(database, find_outputs([tmp_path / "a"])).read == 0


def test_what_was_cut_is_not_found(tmp_path: Path) -> None:
    kept = KeptPages(tmp_path / "a")
    place = ("--dir", str(tmp_path / "a"))
    kept.keep("01", "<p>word")
    kept.flush()
    kept.keep("02", "<p>word too")
    kept.written()
    assert names("word", *place) == ["01", "02"]
    KeptPages(tmp_path / "a", kept.rows)
    assert names("word", *place) == ["01"]


def test_a_file_cut_at_every_byte_is_read_as_far_as_it_is_whole(tmp_path: Path) -> None:
    place = pages_of(tmp_path / "a", *BODIES)
    database = SearchDatabase(tmp_path / "scratch.db")
    for ending in ("ndjson", "idx"):
        (path,) = (place / "out/index").glob(f"*.{ending}")
        whole = path.read_bytes()
        for length in range(len(whole)):
            path.write_bytes(whole[:length])
            database.clear()
            done = catch_up(database, find_outputs([place]))
            assert done.refused == 0
            lines = whole[:length].count(b"\n")
            assert done.read == database.pages == (lines // 2 if ending == "ndjson" else lines) < 3
        path.write_bytes(whole)


def test_the_last_attempt_counts(tmp_path: Path) -> None:
    two_attempts(tmp_path)
    for order in (("a", "b"), ("b", "a")):
        dirs = [part for name in order for part in ("--dir", str(tmp_path / name))]
        assert names("new", *dirs) == ["01"] and names("old", *dirs) == []


def test_the_last_visit_of_a_page_that_is_visited_again_counts(tmp_path: Path) -> None:
    for visits in (("01", "01~2", "01~10"), ("01~10", "01", "01~2")):
        place = tmp_path / visits[0]
        kept = KeptPages(place)
        for name in visits:
            kept.keep(name, f"<p>word visit{read_visit_name(name).visit}")
        kept.flush()
        kept.close()
        assert names("word", "--dir", str(place)) == names("visit10", "--dir", str(place)) == ["01"]
        assert names("visit2", "--dir", str(place)) == []


def test_a_damaged_database_is_made_again(tmp_path: Path) -> None:
    place = pages_of(tmp_path / "a", *BODIES)
    (place / "out/search.db").write_bytes(b"no database" * 1000)
    assert names("saturn", "--dir", str(place)) == ["03"]


def test_collect_gives_each_page_once(tmp_path: Path) -> None:
    one, two = pages_of(tmp_path / "a", *BODIES[1:]), pages_of(tmp_path / "b", *BODIES[:2], agent="b")
    dirs = ("--dir", str(one), "--dir", str(two))
    output, database = tmp_path / "pages.ndjson", str(tmp_path / "pages.db")
    done = command("collect", "index", *dirs, "-o", str(output))
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert [line["index"]["_id"] for line in lines[::2]] == ["01", "02", "03"]
    assert lines[1]["title"] == "Hashing" and done.document["doubles"] == 1
    command("collect", "index", *dirs, "-o", database)
    assert names("rings", "--index", database) == ["03", "01"]
    assert {path.name for path in tmp_path.glob("pages*")} == {"pages.ndjson", "pages.db"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-word"], "no word that a page could have"),
        (["!!!"], "no word that a page could have"),
        (['"half'], "quotation mark without another one"),
        (["a "] * 65, "more than 64 words"),
        (["a" * 20_000], "more than 10000 characters"),
    ],
)
def test_what_says_nothing_is_a_sentence(words: list[str], sentence: str) -> None:
    with pytest.raises(UbiBadQuery, match=sentence):
        query(words)


def test_no_index_is_a_sentence(tmp_path: Path) -> None:
    kept = KeptPages(tmp_path / "a")
    kept.page("01", "an item")
    kept.flush()
    kept.close()
    with pytest.raises(UbiError, match="No text was kept"):
        command("search", "word", "--dir", str(tmp_path / "a"))
    (tmp_path / "odd.db").write_text("no database, but long enough to be looked at" * 100)
    for name in ("odd.db", "none.db"):
        with pytest.raises(UbiError, match=name):
            command("search", "word", "--index", str(tmp_path / name))


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> SearchDatabase:
    found = SearchDatabase(tmp_path_factory.mktemp("db") / "search.db")
    found.put(IndexRecord("01", "http://a.example/", "T", "AND NOT NEAR word", "", 200, "", ""), (0, 0, "", 0))
    return found


@settings(deadline=None)
@given(st.lists(st.text(max_size=30) | st.text('"*-+:^(){} ANDORNEAR\x00\ud800a', max_size=30), max_size=8))
def test_no_words_are_an_error_of_the_database(database: SearchDatabase, words: list[str]) -> None:
    try:
        asked = query(words)
    except UbiBadQuery:
        return
    try:
        database.search(asked, 3)
        database.count(asked)
    except sqlite3.Error as error:  # pragma: no cover
        raise AssertionError(f"{words!r} is {asked!r}: {error}") from error


def test_words_of_the_query_language_are_words(database: SearchDatabase) -> None:
    for words in (["AND"], ["NEAR"], ["NOT", "AND"], ["text:word"], ["NEAR(word)"]):
        asked = query(words)
        assert len(database.search(asked, 3)) == (0 if ":" in words[0] else 1), words
