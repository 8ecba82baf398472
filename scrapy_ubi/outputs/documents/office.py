"""The text of docx, xlsx and pptx as Markdown, by the standard library.

Rules of this module:

* It runs in the child (`text_worker`), which bounds time and memory, and it imports the standard library only.
* What is unpacked of a file is bounded before it is read: a few kB may be gigabytes.
* Kept are headings, lists, tables, links and the names of sheets; order is that of the document.
* What is malformed raises; the worker answers with a reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import islice
from typing import NamedTuple
from xml.etree import ElementTree
from zipfile import ZipFile

MOST_MEMBER = 50_000_000  # bytes of one file in it, unpacked
MOST_TEXT = 1_000_000  # characters
MOST_COLUMNS = 100
MOST_SLIDES = 2_000
MOST_SHEETS = 200
MOST_SHARED = 500_000  # texts of a workbook

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_REL = "{http://schemas.openxmlformats.org/package/2006/relationships}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_TERMS = "{http://purl.org/dc/terms/}"
_marks = re.compile(r"(#{1,6}(?=\s)|[-+*](?=\s)|>|`{3,}|~{3,}|\d+(?=[.)]\s)|\|)")
_heading = re.compile(r"heading\s*(\d)", re.IGNORECASE)


class TooLarge(Exception):
    """A part of the file is too large."""


class DocumentText(NamedTuple):
    """What is read of a document. `text` is Markdown; `cut`: there is more."""

    title: str = ""
    language: str = ""
    date: str = ""
    text: str = ""
    cut: bool = False


def read_office(kind: str, data: bytes) -> DocumentText:
    """The text of a document; `kind`: docx, xlsx or pptx. Raises what the standard library does, and TooLarge."""
    with ZipFile(BytesIO(data)) as file:
        parts = {"docx": _word, "xlsx": _sheets, "pptx": _slides}[kind](file)
        text, cut = gathered(parts)
        return _facts(file)._replace(text=text, cut=cut)


def gathered(blocks: Iterable[str]) -> tuple[str, bool]:
    """The blocks of a text, and whether there are more than fit."""
    found: list[str] = []
    size = 0
    for block in blocks:
        if block.strip():
            found.append(block)
            size += len(block) + 2
            if size > MOST_TEXT:
                return "\n\n".join(found)[:MOST_TEXT], True
    return "\n\n".join(found), False


def plain(text: str) -> str:
    """A line of text that means nothing else in Markdown."""
    line = " ".join(text.split())
    return _marks.sub(r"\\\1", line, count=1) if _marks.match(line) else line


def table(rows: Iterable[list[str]]) -> Iterator[str]:
    """The lines of a table; its first row is the head."""
    width = 0
    for row in rows:
        cells = [" ".join(cell.split()).replace("|", "\\|") for cell in row[:MOST_COLUMNS]]
        if not width:
            width = len(cells)
            yield _row(cells)
            yield _row(["---"] * width)
        else:
            yield _row((cells + [""] * width)[: max(width, len(cells))])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _bytes(file: ZipFile, name: str) -> bytes:
    with file.open(name) as member:
        data = member.read(MOST_MEMBER + 1)
    if len(data) > MOST_MEMBER:
        raise TooLarge
    return data


def _tree(file: ZipFile, name: str) -> ElementTree.Element:
    return ElementTree.fromstring(_bytes(file, name))


def _optional(file: ZipFile, name: str) -> ElementTree.Element | None:
    return _tree(file, name) if name in file.NameToInfo else None


def _facts(file: ZipFile) -> DocumentText:
    core = _optional(file, "docProps/core.xml")
    if core is None:
        return DocumentText()
    names = (f"{_DC}title", f"{_DC}language", f"{_TERMS}modified")
    title, language, date = (" ".join((core.findtext(name) or "").split())[:1000] for name in names)
    return DocumentText(title, language, date)


def _links(file: ZipFile, name: str) -> dict[str, str]:
    root = _optional(file, name)
    found = (
        {} if root is None else {one.get("Id", ""): one.get("Target", "") for one in root.iter(f"{_REL}Relationship")}
    )
    return {key: value for key, value in found.items() if len(value) < 8192}


def _members(
    file: ZipFile, folder: str, document: str, tag: str, most: int
) -> Iterator[tuple[ElementTree.Element, str]]:
    """The elements of a document that name other files, at most so many, with the paths of those that are there."""
    targets = _links(file, f"{folder}/_rels/{document}.rels")
    for one in islice(_tree(file, f"{folder}/{document}").iter(tag), most):
        target = targets.get(one.get(f"{_R}id", ""), "")
        path = target.lstrip("/") if target.startswith("/") else f"{folder}/{target}"
        if path in file.NameToInfo:
            yield one, path


# -- docx


def _word(file: ZipFile) -> Iterator[str]:
    levels: dict[str, int] = {}
    styles = _optional(file, "word/styles.xml")
    for style in styles.iter(f"{_W}style") if styles is not None else ():
        name = style.find(f"{_W}name")
        if name is not None and (found := _heading.fullmatch(name.get(f"{_W}val", "").strip())):
            levels[style.get(f"{_W}styleId", "")] = int(found[1])
        elif name is not None and name.get(f"{_W}val", "").lower() == "title":
            levels[style.get(f"{_W}styleId", "")] = 1
    links = _links(file, "word/_rels/document.xml.rels")
    body = _tree(file, "word/document.xml").find(f"{_W}body")
    items: list[str] = []
    for block in body if body is not None else ():
        if block.tag == f"{_W}p":
            text, item = _paragraph(block, levels, links)
            if item:
                items.append(text)
                continue
        elif block.tag == f"{_W}tbl":
            text = "\n".join(table(_word_rows(block, links)))
        else:
            continue
        if items:
            yield "\n".join(items)
            items = []
        yield text
    if items:
        yield "\n".join(items)


def _paragraph(block: ElementTree.Element, levels: dict[str, int], links: dict[str, str]) -> tuple[str, bool]:
    """A paragraph, and whether it is an item of a list."""
    text = _runs(block, links)
    facts = block.find(f"{_W}pPr")
    if facts is None or not text.strip():
        return plain(text), False
    style = facts.find(f"{_W}pStyle")
    name = style.get(f"{_W}val", "") if style is not None else ""
    if level := min(levels.get(name, 0), 6):
        return f"{'#' * level} {' '.join(text.split())}", False
    numbers = facts.find(f"{_W}numPr")
    if numbers is not None:
        depth = numbers.find(f"{_W}ilvl")
        deep = int(depth.get(f"{_W}val", "0")) if depth is not None else 0
        return f"{'  ' * min(deep, 8)}- {plain(text)}", True
    return plain(text), False


def _runs(block: ElementTree.Element, links: dict[str, str]) -> str:
    found: list[str] = []
    for part in block:
        if part.tag == f"{_W}hyperlink":
            text, url = _words(part), links.get(part.get(f"{_R}id", ""), "")
            is_url = url.startswith(("http://", "https://", "mailto:"))
            found.append(f"[{text}](<{url}>)" if is_url and text.strip() and ">" not in url else text)
        else:
            found.append(_words(part))
    return "".join(found)


def _words(part: ElementTree.Element) -> str:
    found: list[str] = []
    for one in part.iter():
        if one.tag == f"{_W}t":
            found.append(one.text or "")
        elif one.tag in (f"{_W}tab", f"{_W}br", f"{_W}cr"):
            found.append(" ")
    return "".join(found)


def _word_rows(block: ElementTree.Element, links: dict[str, str]) -> Iterator[list[str]]:
    for row in block.iter(f"{_W}tr"):
        yield [" ".join(_runs(line, links) for line in cell.iter(f"{_W}p")) for cell in row.findall(f"{_W}tc")]


# -- xlsx


def _sheets(file: ZipFile) -> Iterator[str]:
    shared: list[str] = []
    if "xl/sharedStrings.xml" in file.NameToInfo:
        for _, one in ElementTree.iterparse(BytesIO(_bytes(file, "xl/sharedStrings.xml"))):
            if one.tag == f"{_S}si":
                if len(shared) >= MOST_SHARED:
                    raise TooLarge
                shared.append("".join(text.text or "" for text in one.iter(f"{_S}t")))
                one.clear()
    for sheet, path in _members(file, "xl", "workbook.xml", f"{_S}sheet", MOST_SHEETS):
        yield f"## {' '.join(sheet.get('name', '').split())}"
        yield from _sheet(file, path, shared)


def _sheet(file: ZipFile, path: str, shared: list[str]) -> Iterator[str]:
    lines = list(_bounded(table(_cells(file, path, shared))))
    if lines:
        yield "\n".join(lines)


def _bounded(lines: Iterable[str]) -> Iterator[str]:
    size = 0
    for line in lines:
        yield line
        size += len(line) + 1
        if size > MOST_TEXT:
            return


def _cells(file: ZipFile, path: str, shared: list[str]) -> Iterator[list[str]]:
    for _, row in ElementTree.iterparse(BytesIO(_bytes(file, path))):
        if row.tag != f"{_S}row":
            continue
        cells: list[str] = []
        for cell in row.findall(f"{_S}c"):
            column = _column(cell.get("r", "")) if cell.get("r") else len(cells)
            if column < MOST_COLUMNS:
                cells += [""] * (column + 1 - len(cells))
                cells[column] = _value(cell, shared)
        row.clear()
        if any(cells):
            yield cells


def _column(place: str) -> int:
    """The number of the column of a cell such as `AB12`, from 0."""
    number = 0
    for letter in place[:4]:
        if not "A" <= letter <= "Z":
            break
        number = number * 26 + ord(letter) - 64
    return max(0, number - 1)


def _value(cell: ElementTree.Element, shared: list[str]) -> str:
    kind = cell.get("t", "")
    if kind == "inlineStr":
        return "".join(text.text or "" for text in cell.iter(f"{_S}t"))
    value = cell.findtext(f"{_S}v") or ""
    if kind == "s":
        return shared[int(value)] if value.isdigit() and int(value) < len(shared) else ""
    return value


# -- pptx


def _slides(file: ZipFile) -> Iterator[str]:
    for _, path in _members(file, "ppt", "presentation.xml", f"{_P}sldId", MOST_SLIDES):
        yield from _slide(_tree(file, path))


def _slide(root: ElementTree.Element) -> Iterator[str]:
    for shape in root.iter():
        if shape.tag == f"{_P}sp":
            place = shape.find(f".//{_P}ph")
            title = place is not None and place.get("type", "") in ("title", "ctrTitle")
            lines = [_slide_words(one) for one in shape.iter(f"{_A}p")]
            lines = [line for line in lines if line]
            if title and lines:
                yield f"## {' '.join(lines)}"
            elif lines:
                yield plain(lines[0]) if len(lines) == 1 else "\n".join(f"- {plain(line)}" for line in lines)
        elif shape.tag == f"{_A}tbl":
            yield "\n".join(table(_slide_rows(shape)))


def _slide_rows(root: ElementTree.Element) -> Iterator[list[str]]:
    for row in root.iter(f"{_A}tr"):
        yield [" ".join(map(_slide_words, cell.iter(f"{_A}p"))) for cell in row.findall(f"{_A}tc")]


def _slide_words(part: ElementTree.Element) -> str:
    return " ".join("".join(text.text or "" for text in part.iter(f"{_A}t")).split())
