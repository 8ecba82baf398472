"""What a word is: the same in what is indexed and in what is asked, and for both engines."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_ubi.outputs.index.index_record import IndexRecord
from scrapy_ubi.outputs.index.search_database import SearchDatabase
from scrapy_ubi.outputs.index.search_index import SNIPPET, SearchIndex, snippet
from scrapy_ubi.outputs.index.search_words import UbiBadQuery, query
from scrapy_ubi.outputs.index.tantivy_index import TantivyIndex
from scrapy_ubi.outputs.index.words import LONGEST, folded
from scrapy_ubi.outputs.page_text import text_of
from tests.outputs.index.kept_pages import html


def texts() -> st.SearchStrategy[str]:
    some = "aZ9_ -'ßıİéeß\u0301ﬁＡσςΣ東京都にカｶﾞภาไทยखिך\u05b0م\u064f\u00ad\u200b\u200d½łŁ𠮷한\u1112\U0001f600*\""
    return st.text(st.sampled_from(some) | st.characters(exclude_categories=("Cs",)), max_size=40)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Straße STRASSE", "strasse strasse"),
        ("İstanbul ısı", "istanbul isi"),
        ("café cafe\u0301 Łódź", "cafe cafe lodz"),
        ("ＡＢＣ ﬁne x²", "abc fine x2"),
        ("Ὀδυσσεύς ΟΔΥΣΣΕΥΣ", "οδυσσευσ οδυσσευσ"),
        ("שָׁלוֹם مُحَمَّد", "שלום محمد"),
        ("so\u00adft zero\u200dwidth a\u200bb", "soft zerowidth a b"),
        ("don't re-crawl a_b", "don t re crawl a b"),
        ("私はiPhone12を", "私 は iphone12 を"),
        ("ｶﾞｷﾞ ガギ", "ガ ギ ガ ギ"),
        ("한국어 서울", "한국어 서울"),
        ("हिन्दी", "हिन्दी"),
        ("x" * 200, "x" * LONGEST),
        ("", ""),
        ("!?", ""),
    ],
)
def test_words(text: str, words: str) -> None:
    assert folded(text) == words


@given(texts())
def test_words_are_made_of_words_unchanged(text: str) -> None:
    assert folded(folded(text)) == folded(text)


def both(place: Path, pages: list[str]) -> tuple[SearchIndex, SearchIndex]:
    made: tuple[SearchIndex, SearchIndex] = SearchDatabase(place / "db"), TantivyIndex(place / "index")
    for index in made:
        for number, text in enumerate(pages):
            record = IndexRecord(f"{number:02}", "http://a.example/", "T", text, "", 200, "", "")
            index.put(record, (0, 0, "", number))
        index.commit()
    return made


def found_by_both(made: tuple[SearchIndex, SearchIndex], *words: str) -> set[str]:
    asked = query(words)
    one, two = ({page.name for page in index.search(asked, 100)} for index in made)
    assert one == two, words
    assert [index.count(asked) for index in made] == [len(one)] * 2
    return one


def test_words_within_a_run_are_found(tmp_path: Path) -> None:
    made = both(tmp_path, ["私は東京都に住む", "京都の東", "ภาษาไทยง่าย", "カタカナのＵＲＬ", "東\u3000京"])
    with made[0], made[1]:
        assert found_by_both(made, "東京") == {"00", "04"}
        assert found_by_both(made, "京都") == {"00", "01"}
        assert found_by_both(made, "都") == {"00", "01"}
        assert found_by_both(made, "東京*") == {"00", "04"} and found_by_both(made, "東", "-東京") == {"01"}
        assert found_by_both(made, "ไทย") == {"02"} and found_by_both(made, "ｶﾀｶﾅ", "url") == {"03"}


@settings(max_examples=30, deadline=None)
@given(st.lists(texts(), min_size=1, max_size=5), st.lists(texts(), max_size=5), st.data())
def test_each_word_of_a_text_is_found_by_both_and_nothing_else_by_one(
    pages: list[str], asked: list[str], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as name:
        made = both(Path(name), pages)
        with made[0], made[1]:
            for number, text in enumerate(pages):
                for word in text.replace('"', " ").split():
                    if folded(word) and not word.startswith("-"):
                        assert f"{number:02}" in found_by_both(made, word)
                words = folded(text).split()
                if words:
                    start = data.draw(st.integers(0, len(words) - 1))
                    row = words[start : start + 3]
                    assert f"{number:02}" in found_by_both(made, f'"{" ".join(row)}"')
                    assert f"{number:02}" in found_by_both(made, f"{words[start][:2]}*")
            for words in asked:
                try:
                    found_by_both(made, words)
                except UbiBadQuery:
                    continue


def test_a_page_that_is_put_again_is_found_by_its_new_words_only(tmp_path: Path) -> None:
    made = both(tmp_path, ["Größe alt"])
    with made[0], made[1]:
        for index in made:
            index.put(IndexRecord("00", "http://a.example/", "T", "Größe neu", "", 200, "", ""), (-1, 0, "", 0))
            index.commit()
        assert found_by_both(made, "grosse") == {"00"} == found_by_both(made, "neu")
        assert found_by_both(made, "alt") == set()
        for index in made:
            index.clear()
        assert found_by_both(made, "neu") == set()


def test_what_is_shown_is_the_text_as_it_is() -> None:
    text = "a " * 500 + "Die Größe der Straße, ＡＢＣ. " + "z " * 500
    part = snippet(text, query(["strasse"]).wanted)
    assert "Größe der Straße, ＡＢＣ." in part and part.startswith("…") and part.endswith("…")
    assert len(part) <= SNIPPET + 2
    assert "東京都" in snippet("私は" * 300 + "東京都に" + "住む" * 300, query(["東京"]).wanted)
    assert snippet("so\u00adft", query(["soft"]).wanted) == "soft"
    assert snippet("short", query(["none"]).wanted) == "short"


def test_markup_within_words_does_not_part_them() -> None:
    page = (
        "<p><b>foo</b>bar f<i>oo</i>b<span class=x>a</span>r foo<wbr>bar so&shy;ft<p>a<br>b<div>c</div>d"
        "<table><tr><td>e<td>f</table>g<li>h<img src=x>i<button>j</button><button>k</button><my-tag>l</my-tag>"
    )
    assert folded(text_of(html(page)).text) == "foobar foobar foobar soft a b c d e f g h i j k l"
