"""Documents of Office made by code, as small as they may be."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

_NS = "http://schemas.openxmlformats.org"
REL = f'xmlns:r="{_NS}/officeDocument/2006/relationships"'
W = f'xmlns:w="{_NS}/wordprocessingml/2006/main" {REL}'
S = f'xmlns="{_NS}/spreadsheetml/2006/main" {REL}'
P = f'xmlns:p="{_NS}/presentationml/2006/main" xmlns:a="{_NS}/drawingml/2006/main" {REL}'
CORE = (
    '<cp:coreProperties xmlns:cp="x" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:t="http://purl.org/dc/terms/">'
    "<dc:title>The title</dc:title><dc:language>en</dc:language><t:modified>2026-01-02T03:04:05Z</t:modified>"
    "</cp:coreProperties>"
)
TYPES = {
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}


def packed(files: Mapping[str, str | bytes]) -> bytes:
    """A zip of these files."""
    out = BytesIO()
    with ZipFile(out, "w", ZIP_DEFLATED) as file:
        for name, text in {"docProps/core.xml": CORE, **files}.items():
            file.writestr(name, text)
    return out.getvalue()


def links(**targets: str) -> str:
    """A file of relationships."""
    each = "".join(f'<Relationship Id="{key}" Target="{target}"/>' for key, target in targets.items())
    return f'<Relationships xmlns="{_NS}/package/2006/relationships">{each}</Relationships>'


def docx(body: str) -> bytes:
    """A document of Word. The style `H2` is a heading of the second level, `x1` leads to http://a.example/."""
    styles = f'<w:styles {W}><w:style w:styleId="H2"><w:name w:val="heading 2"/></w:style></w:styles>'
    return packed(
        {
            "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
            "word/styles.xml": styles,
            "word/_rels/document.xml.rels": links(x1="http://a.example/", x2="javascript:x()"),
        }
    )


def paragraph(text: str, facts: str = "") -> str:
    """Of Word."""
    return f"<w:p><w:pPr>{facts}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def xlsx(rows: str, shared: str = "") -> bytes:
    """A workbook with one sheet, `Sheet | one`."""
    return packed(
        {
            "xl/workbook.xml": f'<workbook {S}><sheets><sheet name="Sheet one" r:id="s1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": links(s1="worksheets/sheet1.xml"),
            "xl/worksheets/sheet1.xml": f"<worksheet {S}><sheetData>{rows}</sheetData></worksheet>",
            "xl/sharedStrings.xml": f"<sst {S}>{shared}</sst>",
        }
    )


def pptx(shapes: str) -> bytes:
    """A presentation of one slide."""
    return packed(
        {
            "ppt/presentation.xml": f'<p:x {P}><p:sldIdLst><p:sldId r:id="s1"/></p:sldIdLst></p:x>',
            "ppt/_rels/presentation.xml.rels": links(s1="slides/slide1.xml"),
            "ppt/slides/slide1.xml": f"<p:sld {P}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>",
        }
    )
