"""The documentation as a site: what is staged, what its pages load; without building it (make docs does, strict).

Rules of this module:

* Pages are staged as `docs/site/make.py` does it, which needs no MkDocs; `make docs` builds them.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import scrapy_ubi

ROOT = Path(__file__).parents[2]
MAKE = ROOT / "docs" / "site" / "make.py"


@pytest.fixture(scope="module")
def site() -> ModuleType:
    """make.py, as a module."""
    spec = importlib.util.spec_from_file_location("docs_site_make", MAKE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def staged(site: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("staged")
    site.stage(to)
    return to


def test_lists_and_tables_get_the_empty_line_that_python_markdown_wants(site: ModuleType) -> None:
    given = ["Text:", "- a", "  - b", "- c", "", "Text", "| a |", "| --- |", "```", "x", "- y", "| z |", "```"]
    made = [*site.for_python_markdown(given)]
    assert made[:6] == ["Text:", "", "- a", "    - b", "- c", ""]
    assert made[6:] == ["Text", "", "| a |", "| --- |", "```", "x", "- y", "| z |", "```"]


def test_what_belongs_to_an_item_is_indented_by_four(site: ModuleType) -> None:
    given = ["1. a", "   more", "", "   ```python", "   x:", "       y", "", "   ```", "2. b", "", "Text", "   - c"]
    made = [*site.for_python_markdown(given)]
    assert made == ["1. a", "    more", "", "    ```python", "    x:", "        y", "", "    ```", "2. b", *given[9:]]


def test_every_link_of_a_staged_page_leads_to_a_staged_file(staged: Path) -> None:
    dead = []
    for page in staged.rglob("*.md"):
        text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        targets = [target for target in re.findall(r"\]\(([^)\s#]+)", text) if "://" not in target]
        dead += [f"{page.relative_to(staged)}: {target}" for target in targets if not (page.parent / target).is_file()]
    assert len(list(staged.rglob("*.md"))) > 100 and dead == []
    assert (staged / "repository" / "README.md").is_file()
    assert (staged / "repository" / "tests" / "simulation" / "golden" / "zombie.txt").is_file()


def test_the_navigation_has_every_page_once(site: ModuleType, staged: Path) -> None:
    def pages(nav: object) -> list[str]:
        if isinstance(nav, str):
            return [nav]
        parts = nav if isinstance(nav, list) else [*nav.values()]  # type: ignore[attr-defined]
        return [page for part in parts for page in pages(part)]

    found = pages(site.navigation())
    there = {str(page.relative_to(staged)) for page in staged.rglob("*.md")}
    assert len(found) == len(set(found)) and set(found) == there


def test_models_get_a_list_of_the_pages_and_their_text(site: ModuleType, tmp_path: Path) -> None:
    site.write_for_models(tmp_path)
    listed, text = ((tmp_path / name).read_text() for name in ("llms.txt", "llms-full.txt"))
    assert listed.startswith("# scrapy-ubi\n\n> scrapy-ubi turns a Scrapy project into a distributed crawler")
    places = re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", listed, re.MULTILINE)
    docs = [page for page in (ROOT / "docs").rglob("*.md") if not {"decisions", "site"} & set(page.parts)]
    assert len(places) == len(set(places)) == len(docs)
    for page in docs:
        assert f"<!-- {page.relative_to(ROOT)} -->" in text and page.read_text().strip() in text


def test_nothing_is_loaded_from_elsewhere() -> None:
    # What the theme would load if it were asked to, and what pages would: pictures, scripts.
    text = (MAKE.parent / "mkdocs.yml").read_text()
    assert "font: false" in text and "\n  - offline" not in text and "analytics" not in text.replace("no analytics", "")
    assert "http" not in text and "http" not in (MAKE.parent / "assets" / "site.css").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        shown = re.sub(r"`[^`\n]+`", "", page.read_text())
        assert not re.search(r"!\[[^\]]*\]\(https?:|<(?:img|script|iframe)|^```mermaid", shown, re.MULTILINE), page


def test_what_a_built_page_would_load_from_elsewhere_is_found(site: ModuleType, tmp_path: Path) -> None:
    own = '<link rel="stylesheet" href="a.css"><a href="https://a.example/">x</a><script src="b.js"></script>'
    (tmp_path / "own.html").write_text(own)
    (tmp_path / "a.css").write_text("a { background: url(data:image/png;base64,x) }")
    assert site.loads_from_elsewhere(tmp_path) == []
    foreign = '<link href="https://f.example/css" rel=stylesheet><img alt="" src="//i.example/x.png">'
    (tmp_path / "foreign.html").write_text(foreign)
    (tmp_path / "b.css").write_text("@import 'https://c.example/x.css'; a { background: url( \"http://d.example/y\") }")
    assert site.loads_from_elsewhere(tmp_path) == [
        "b.css: http://d.example/y",
        "b.css: https://c.example/x.css",
        "foreign.html: //i.example/x.png",
        "foreign.html: https://f.example/css",
    ]


def test_the_public_names_are_on_their_page() -> None:
    page = (ROOT / "docs" / "reference" / "api.md").read_text()
    named = set(re.findall(r"^::: (\S+)$", page, re.MULTILINE))
    assert {f"scrapy_ubi.{name}" for name in scrapy_ubi.__all__ if name != "__version__"} <= named
    for name in named:
        module, _, last = name.rpartition(".")
        assert hasattr(importlib.import_module(module), last), name
