"""The child that reads the text of documents: PDF by pypdf, docx, xlsx and pptx by the standard library.

    python -P text_worker.py

It is run by path, and imports the standard library and pypdf only. A frame is a letter for the kind of the document and
the document; the answer is JSON: `title`, `language`, `date`, `text` (Markdown), `cut`, `refused` (a reason or null).
Frames, time and memory are those of the child that reads links (`urls/links/handlers/pdf_worker.py`).
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

SECONDS = 8.0  # for a document
MEMORY = 800_000_000  # bytes of address space
MOST_PAGES = 5_000
KINDS = {b"p": "pdf", b"d": "docx", b"x": "xlsx", b"s": "pptx"}
_pdf_date = re.compile(r"(?:D:)?(\d{4})(\d\d)(\d\d)")
_broken = re.compile(r"(?<=[^\W\d_])-\n(?=[a-z])")  # a word that goes on in the next line


def _beside(name: str, *above: str) -> ModuleType:
    """A module of the package that is loaded by its path: the package itself is not imported here."""
    path = Path(__file__).resolve().parent.joinpath(*above, f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"ubi_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


office = _beside("office")
worker = _beside("pdf_worker", "..", "..", "urls", "links", "handlers")


def read(frame: bytes, seconds: float = SECONDS) -> dict[str, Any]:
    """The answer for one document. Whatever its bytes, nothing is raised; needs the main thread."""
    answer: dict[str, Any] = {"title": "", "language": "", "date": "", "text": "", "cut": None, "refused": None}
    pages: list[str] = []
    try:
        with worker.timer(seconds):
            kind, data = KINDS[frame[:1]], frame[1:]
            found = _pdf(data, pages) if kind == "pdf" else office.read_office(kind, data)
        answer |= found._asdict() | {"cut": "text" if found.cut else None}
    except worker.Late:
        answer |= _ended("time", pages)
    except MemoryError:
        answer |= _ended("memory", pages)
    except office.TooLarge:
        answer["refused"] = "bytes"
    except Exception as error:  # noqa: BLE001 - of pypdf and of the standard library, about bytes of the web
        names = ("FileNotDecryptedError", "WrongPasswordError", "DependencyError")
        encrypted = type(error).__name__ in names or (isinstance(error, RuntimeError) and "password" in str(error))
        answer |= _ended("encrypted" if encrypted else "malformed", pages)
    return {key: _utf8(value) for key, value in answer.items()}


def _utf8(value: object) -> object:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _ended(reason: str, pages: list[str]) -> dict[str, Any]:
    """What found something was cut, what found nothing was refused."""
    text, _ = office.gathered(pages)
    return {"text": text, "cut": reason} if text else {"refused": reason}


def _pdf(data: bytes, pages: list[str]) -> Any:
    """The text of a PDF, page by page; `pages` has what was read when this ends early."""
    from pypdf import PdfReader

    reader = PdfReader(BytesIO(data), strict=False)
    if reader.is_encrypted:
        reader.decrypt("")
    facts = _pdf_facts(reader)
    size = 0
    for number, page in enumerate(reader.pages):
        if number >= MOST_PAGES or size > office.MOST_TEXT:
            break
        try:
            text = "\n\n".join(_paragraphs(page.extract_text()))
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - one page is broken, and the others may hold
            continue
        pages.append(text)
        size += len(text)
    text, cut = office.gathered(pages)
    return facts._replace(text=text, cut=cut or len(reader.pages) > MOST_PAGES)


def _pdf_facts(reader: Any) -> Any:
    facts = office.DocumentText()
    try:
        said = reader.metadata or {}
        found = _pdf_date.match(str(said.get("/CreationDate") or said.get("/ModDate") or ""))
        facts = facts._replace(
            title=" ".join(str(said.get("/Title") or "").split())[:1000],
            date=f"{found[1]}-{found[2]}-{found[3]}" if found else "",
        )
        facts = facts._replace(language=str(reader.root_object.get("/Lang") or "")[:35])
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a document may have text, whatever its facts are
        pass
    return facts


def _paragraphs(text: str) -> Iterator[str]:
    """Lines of a page, with empty lines between paragraphs where the PDF has them; no line is a mark of Markdown."""
    for block in re.split(r"\n\s*\n", _broken.sub("", text)):
        lines = [office.plain(line) for line in block.splitlines() if line.strip()]
        if lines:
            yield "\n".join(lines)


def main() -> None:
    """Answer until the input ends."""
    try:
        import pypdf  # noqa: F401 - before the limit: what it loads is not what a document asks for
    except ImportError:  # documents of Office are read without it
        pass
    worker.serve(read, MEMORY)


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(1)
