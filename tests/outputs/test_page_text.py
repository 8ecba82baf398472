"""What is read off a page, and the record of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scrapy.http import HtmlResponse, Response, TextResponse
from scrapy.settings import Settings

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.outputs import page_text
from scrapy_ubi.outputs.index.index_record import BadIndexRecord, IndexRecord, packed, unpacked
from scrapy_ubi.outputs.index.index_store import IndexStore
from scrapy_ubi.outputs.page_text import clean, content_of, has_text, text_of
from scrapy_ubi.outputs.stores import make
from tests.outputs.index.kept_pages import html, page

RECORD = IndexRecord("0123", "http://a.example/", "T", "some text", "en", 200, "2026-11-27T00:00:00Z", "00")


def test_the_text_is_what_a_reader_sees() -> None:
    found = text_of(
        html(
            "<html lang='de-AT'><head><title> A\n title </title><style>p {}</style></head><body><p>One</p><p>two</p>"
            "<script>var three</script><style>four</style><template>five</template><noscript>six</noscript>"
            "&auml;\x01<b>seven</b></body></html>"
        )
    )
    assert found.title == "A title" and found.language == "de-AT"
    assert found.text == "One two ä seven"


def test_the_encoding_is_that_of_the_page() -> None:
    body = "<meta charset=iso-8859-15><title>5 €</title><p>Größe".encode("iso-8859-15")
    found = text_of(HtmlResponse("http://a.example/", body=body, headers={"Content-Type": "text/html"}))
    assert (found.title, found.text) == ("5 €", "Größe")


def test_plain_text_is_read_as_it_is() -> None:
    response = TextResponse("http://a.example/", body=b"a <b>\n c\x00d", headers={"Content-Type": "Text/Plain; x"})
    assert has_text(response) and text_of(response).text == "a <b> c d"


def test_markdown_is_read_as_it_is_with_its_first_heading() -> None:
    body = b"Before\n\n## Not this\n# The *title*\n# Another\ntext"
    response = TextResponse("http://a.example/", body=body, headers={"Content-Type": "text/markdown"})
    assert has_text(response) and text_of(response)[:2] == ("The *title*", clean(body.decode()))


@pytest.mark.parametrize("kind", ["text/css", "application/json", "image/png", ""])
def test_others_are_not_read(kind: str) -> None:
    for response in (TextResponse, Response):
        assert not has_text(response("http://a.example/", body=b"x", headers={"Content-Type": kind}))


def test_text_is_bounded() -> None:
    found = text_of(html(f"<title>{'t' * 9000}</title><p>{'word ' * 500_000}"))
    assert len(found.text) == page_text.MOST_TEXT and len(found.title) == page_text.MOST_TITLE


def test_a_page_that_costs_a_parser_seconds_has_no_text() -> None:
    assert text_of(html("<div>x" * 20_000)) == ("", "", "", True)
    assert content_of(html("<div>x" * 20_000)) == ("", "", "", True)


@settings(deadline=None, max_examples=50)
@given(st.text() | st.text("<>/abscript \x00&;!-"))
def test_no_page_is_an_error(body: str) -> None:
    response = HtmlResponse("http://a.example/", body=body.encode("utf-8", "replace"), encoding="utf-8")
    title, text, _, _ = text_of(response)
    assert not {"\x00", "\n"} & set(title + text)


def test_what_is_no_page_to_search_is_left_out() -> None:
    store = IndexStore({}, Settings())
    assert store.page(page("1", html("x"))) is not None
    for other in (page("1", html("x", status=404)), page("1", None), page("1", html("x"), kind="again")):
        assert store.page(other) is None


def test_the_form_is_one_that_there_is() -> None:
    (store,) = make(["index(ndjson, size=1e6)"], Settings())
    assert isinstance(store, IndexStore) and (store.form, store.size) == ("ndjson", 1e6)
    with pytest.raises(UbiSettingError, match="has the form 'lucene': give one of fts5, tantivy, ndjson"):
        make(["index(lucene)"], Settings())


@given(st.text(), st.text(), st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=50))
def test_records_come_back(title: str, text: str, name: str) -> None:
    record = RECORD._replace(title=title.encode("utf-8", "replace").decode(), text=text, name=name)
    record = record._replace(text=text.encode("utf-8", "replace").decode())
    assert unpacked(packed(record)) == record


@given(st.integers(0, 300), st.binary(max_size=3))
def test_what_is_no_record_is_refused(at: int, put: bytes) -> None:
    whole = packed(RECORD)
    try:
        unpacked(whole[:at] + put + whole[at + len(put) + 1 :])
    except BadIndexRecord:
        pass


@pytest.mark.parametrize("text", [b"", b"{}\n{}\n", b'{"index":{"_id":"\\ud800"}}\n{}\n', b"[" * 100_000 + b"\n{}\n"])
def test_bad_records(text: bytes) -> None:
    with pytest.raises(BadIndexRecord):
        unpacked(text)
