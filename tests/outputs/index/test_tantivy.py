"""`index(tantivy)`: it finds what the database finds, and is under the same promises."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_ubi.errors import UbiError
from scrapy_ubi.outputs.collector import find_outputs
from scrapy_ubi.outputs.index import tantivy_index
from scrapy_ubi.outputs.index.catch_up import catch_up
from scrapy_ubi.outputs.index.index_record import IndexRecord
from scrapy_ubi.outputs.index.search_database import SearchDatabase
from scrapy_ubi.outputs.index.search_index import SearchIndex
from scrapy_ubi.outputs.index.search_words import UbiBadQuery, query
from scrapy_ubi.outputs.index.tantivy_index import TantivyBusy, TantivyIndex
from tests.outputs.index.kept_pages import BODIES, IndexCommands, KeptPages, pages_of, two_attempts

command = IndexCommands(UBI_STORES=["index(tantivy)"])
names = command.names


def test_the_best_comes_first_of_all_agents(tmp_path: Path) -> None:
    one, two = pages_of(tmp_path / "a", *BODIES[1:]), pages_of(tmp_path / "b", *BODIES[:2], agent="b")
    dirs = ("--dir", str(one), "--dir", str(two))
    assert names("hashing", *dirs) == ["01", "02"]
    assert (one / "out/search.tantivy").is_dir()
    assert names(*dirs, "--", "rings", "-saturn") == ["01"]
    assert names('"rings of"', *dirs) == ["03"] and names("conSIST*", *dirs) == ["01"]
    done = command("search", "hashing", "--limit", "1", *dirs)
    assert (done.document["found"], done.document["pages"], len(done.document["results"])) == (2, 3, 1)
    assert done.lines[:3] == ["1. Hashing", "   http://a.example/01", "   by consistent rings"]


def test_later_pages_are_added_and_what_was_cut_is_not_found(tmp_path: Path) -> None:
    kept = KeptPages(tmp_path / "a")
    place = ("--dir", str(tmp_path / "a"))
    kept.keep("01", "<p>word")
    kept.flush()
    assert names("word", *place) == ["01"]
    kept.keep("02", "<p>word too")
    kept.written()
    assert names("word", *place) == ["01", "02"]
    with TantivyIndex(tmp_path / "a/out/search.tantivy") as index:
        assert catch_up(index, find_outputs([tmp_path / "a"])).read == 0
    KeptPages(tmp_path / "a", kept.rows)
    assert names("word", *place) == ["01"]


def test_the_last_attempt_counts(tmp_path: Path) -> None:
    two_attempts(tmp_path)
    for order in (("a", "b"), ("b", "a")):
        dirs = [part for name in order for part in ("--dir", str(tmp_path / name))]
        assert names("new", *dirs) == ["01"] and names("old", *dirs) == []


def test_one_that_is_damaged_or_of_another_version_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = pages_of(tmp_path / "a", *BODIES)
    where = ("--dir", str(place))
    assert names("saturn", *where) == ["03"]
    (place / "out/search.tantivy/meta.json").write_text("{")
    assert names("saturn", *where) == ["03"]
    monkeypatch.setattr(tantivy_index, "STATE", "state_ubi_0")
    assert names("saturn", *where) == ["03"]


def test_collect_gives_each_page_once(tmp_path: Path) -> None:
    one, two = pages_of(tmp_path / "a", *BODIES[1:]), pages_of(tmp_path / "b", *BODIES[:2], agent="b")
    output = str(tmp_path / "pages.tantivy")
    for _ in range(2):  # the second takes the place of the first
        done = command("collect", "index", "--dir", str(one), "--dir", str(two), "-o", output)
        assert done.document["pages"] == 3
        assert sorted(names("rings", "--index", output)) == ["01", "03"]
    assert {path.name for path in tmp_path.glob("pages*")} == {"pages.tantivy"}


def test_a_directory_that_is_no_index_is_left_alone(tmp_path: Path) -> None:
    place, output = pages_of(tmp_path / "a", *BODIES), tmp_path / "mine.tantivy"
    output.mkdir()
    (output / "letters").write_text("dear")
    with pytest.raises(UbiError, match=r"mine\.tantivy"):
        command("collect", "index", "--dir", str(place), "-o", str(output))
    assert (output / "letters").read_text() == "dear"
    with pytest.raises(UbiError, match=r"mine\.tantivy"):
        command("search", "word", "--index", str(output))


def test_one_that_cannot_be_written_is_made_for_the_search(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    place = pages_of(tmp_path / "a", *BODIES)
    (place / "out").chmod(0o500)
    assert names("saturn", "--dir", str(place)) == ["03"]
    assert "cannot be written" in capsys.readouterr().err


def test_two_searches_do_not_write_one_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tantivy_index, "WAIT", 0.0)
    with TantivyIndex(tmp_path / "index"), pytest.raises(TantivyBusy):
        TantivyIndex(tmp_path / "index")


def test_without_tantivy_a_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tantivy_index, "tantivy", None)
    place = pages_of(tmp_path / "a", *BODIES)
    with pytest.raises(UbiError, match=r"pip install 'scrapy-ubi\[tantivy\]'"):
        command("search", "word", "--dir", str(place))


VOCABULARY = ("ring", "rings", "Häuser", "hauser", "語", "a1", "re-crawl", "AND")
texts = st.lists(st.sampled_from(VOCABULARY), max_size=5).map(" ".join)
terms = st.sampled_from((*VOCABULARY, "ri*", "-ring", "-語", '"ring rings"', '"a1 re"', "ha*", "-re*"))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=6), st.lists(st.lists(terms, min_size=1), min_size=8))
def test_it_finds_what_the_database_finds(pages: list[tuple[str, str]], searches: list[list[str]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        made: tuple[SearchIndex, SearchIndex] = SearchDatabase(place / "db"), TantivyIndex(place / "index")
        with made[0], made[1]:
            for index in made:
                for number, (title, text) in enumerate(pages):
                    url = f"http://a.example/{number}"
                    index.put(IndexRecord(f"{number:02}", url, title, text, "", 200, "", ""), (0, 0, "", number))
                index.commit()
            assert made[0].pages == made[1].pages == len(pages)
            for words in searches:
                try:
                    asked = query(words)
                except UbiBadQuery:
                    continue
                found = [{page.name for page in index.search(asked, 100)} for index in made]
                assert found[0] == found[1], words
                assert [index.count(asked) for index in made] == [len(found[0])] * 2


@pytest.fixture(scope="module")
def one_page(tmp_path_factory: pytest.TempPathFactory) -> TantivyIndex:
    found = TantivyIndex(tmp_path_factory.mktemp("index"))
    found.put(IndexRecord("01", "http://a.example/", "T", "AND NOT NEAR word", "", 200, "", ""), (0, 0, "", 0))
    found.commit()
    return found


@settings(deadline=None)
@given(st.lists(st.text(max_size=30) | st.text('"*-+:^(){}[].? ANDORNEAR\x00\ud800a', max_size=30), max_size=8))
def test_no_words_are_an_error_of_the_index(one_page: TantivyIndex, words: list[str]) -> None:
    try:
        asked = query(words)
    except UbiBadQuery:
        return
    one_page.search(asked, 3)
    one_page.count(asked)
