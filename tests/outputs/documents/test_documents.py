"""The text of PDF and of documents of Office, as the child reads it; and what hostile ones may cost."""

from __future__ import annotations

import sys

import pytest
from scrapy.http import Response

from scrapy_ubi.outputs.documents import office
from scrapy_ubi.outputs.documents.text_child import (
    MOST_TEXT,
    DocumentMarkdown,
    DocumentReader,
    TextChild,
    document_kind,
)
from scrapy_ubi.urls.links.handlers.pdf_child import MOST_BYTES
from tests.support import office_files, pdfs

READY = "import sys, os, time\nout = lambda data: os.write(1, len(data).to_bytes(4, 'big') + data)\nout(b'{}')\n"


def text_of(kind: str, data: bytes) -> str:
    found = office.read_office(kind, data)
    assert (found.title, found.language, found.date) == ("The title", "en", "2026-01-02T03:04:05Z")
    return found.text


def test_a_document_of_word() -> None:
    item = '<w:numPr><w:ilvl w:val="1"/></w:numPr>'
    body = (
        office_files.paragraph("Wheels", '<w:pStyle w:val="H2"/>')
        + office_files.paragraph("# turn")
        + office_files.paragraph("one", "<w:numPr/>")
        + office_files.paragraph("two", item)
        + '<w:p><w:r><w:t>See </w:t></w:r><w:hyperlink r:id="x1"><w:r><w:t>this</w:t></w:r></w:hyperlink>'
        + '<w:hyperlink r:id="x2"><w:r><w:t> that</w:t></w:r></w:hyperlink></w:p>'
        + "<w:tbl>"
        + "".join(
            f"<w:tr><w:tc>{office_files.paragraph(a)}</w:tc><w:tc>{office_files.paragraph(b)}</w:tc></w:tr>"
            for a, b in (("a", "b"), ("1|2", "3"))
        )
        + "</w:tbl>"
    )
    assert text_of("docx", office_files.docx(body)).split("\n\n") == [
        "## Wheels",
        "\\# turn",
        "- one\n  - two",
        "See [this](<http://a.example/>) that",
        "| a | b |\n| --- | --- |\n| 1\\|2 | 3 |",
    ]


def test_a_workbook() -> None:
    rows = (
        '<row><c r="A1" t="s"><v>0</v></c><c r="C1" t="inlineStr"><is><t>c</t></is></c></row><row/>'
        '<row><c r="B3"><v>2.5</v></c><c r="ZZZ3"><v>9</v></c><c r="A9" t="s"><v>7</v></c></row>'
    )
    text = text_of("xlsx", office_files.xlsx(rows, "<si><t>a</t></si>"))
    assert text == "## Sheet one\n\n| a |  | c |\n| --- | --- | --- |\n|  | 2.5 |  |"


def test_a_presentation() -> None:
    words = "<p:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p><a:p><a:r><a:t>{}</a:t></a:r></a:p></p:txBody>"
    title = '<p:sp><p:nvPr><p:ph type="title"/></p:nvPr>' + words.format("Slide", "one") + "</p:sp>"
    text = text_of("pptx", office_files.pptx(title + f"<p:sp>{words.format('first', 'second')}</p:sp>"))
    assert text == "## Slide one\n\n- first\n- second"


@pytest.fixture(scope="module")
def child() -> TextChild:
    return TextChild(seconds=60)


def test_the_child_reads_one_after_the_other(child: TextChild) -> None:
    pytest.importorskip("pypdf")
    try:
        made = pdfs.plain([], "# The text of a PDF")
        assert child.read("pdf", made).text == "\\# The text of a PDF"
        assert child.read("docx", office_files.docx(office_files.paragraph("of Word"))).text == "of Word"
        assert child.read("docx", b"PK\x03\x04").refused == "malformed"
        assert child.read("pdf", b"%PDF-").refused == "malformed"
        bomb = office_files.packed({"word/document.xml": bytes(office.MOST_MEMBER + 1)})
        assert child.read("docx", bomb).refused == "bytes"
        laughs = '<!DOCTYPE x [<!ENTITY a "ha">' + "".join(
            f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(12)
        )
        evil = office_files.packed({"word/document.xml": f"{laughs}]><x>&m;</x>"})
        assert child.read("docx", evil).refused in ("malformed", "memory", "time")
        assert child.read("pdf", bytes(MOST_BYTES + 1)).refused == "bytes"
        assert child.read("pdf", made).text
    finally:
        child.close()
        child.end()


@pytest.mark.slow
def test_no_hostile_pdf_is_more_than_a_word() -> None:
    pytest.importorskip("pypdf")
    child = TextChild()
    try:
        for name, data in pdfs.hostile(8):
            found = child.read("pdf", data)
            assert len(found.text) <= MOST_TEXT, name
        assert child.read("pdf", pdfs.plain([], "still here")).text == "still here"
    finally:
        child.close()
        child.end()


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("time.sleep(99)", "time"),
        ("os._exit(1)", "died"),
        ("out(b'x')", "died"),
        ("out(b'{}')", "died"),
        ('out(b\'{"title":"","language":"","date":"","text":"","refused":"evil"}\')', "died"),
        ('out(b\'{"title":1,"language":"","date":"","text":""}\')', "died"),
    ],
)
def test_what_a_child_says_is_checked(script: str, reason: str) -> None:
    child = TextChild((sys.executable, "-S", "-c", f"{READY}os.read(0, 99)\n{script}"), 1.0)
    try:
        assert child.read("pdf", b"x") == DocumentMarkdown(refused=reason)
    finally:
        child.end()


@pytest.mark.parametrize(
    ("url", "mime", "body", "kind"),
    [
        ("http://a/x", "application/pdf", b"%PDF-1.7", "pdf"),
        ("http://a/x", "Application/PDF; a=b", b"\n%PDF-1.7", "pdf"),
        ("http://a/x.PDF?a", "application/octet-stream", b"%PDF-1.7", "pdf"),
        ("http://a/x.pdf", "image/png", b"%PDF-1.7", ""),
        ("http://a/x.pdf", "application/pdf", b"<html>", ""),
        ("http://a/x", office_files.TYPES["docx"], b"PK\x03\x04", "docx"),
        ("http://a/x.pptx", "", b"PK\x03\x04", "pptx"),
        ("http://a/x.zip", "", b"PK\x03\x04", ""),
    ],
)
def test_what_a_response_is(url: str, mime: str, body: bytes, kind: str) -> None:
    headers = {"Content-Type": mime} if mime else {}
    assert document_kind(Response(url, body=body, headers=headers)) == kind


def test_a_document_is_read_once_for_all_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, asked = DocumentReader(), []

    def read(self: TextChild, kind: str, body: bytes) -> DocumentMarkdown:
        asked.append(kind)
        return DocumentMarkdown(text=body.decode())

    monkeypatch.setattr(TextChild, "read", read)
    first, second = (Response("http://a/x", body=body) for body in (b"1", b"2"))
    assert [reader.read(one, "pdf").text for one in (first, first, second, first)] == ["1", "1", "2", "1"]
    assert len(asked) == 3
    reader.close()
