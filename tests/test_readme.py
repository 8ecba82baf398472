"""What the front page promises to be there, is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import scrapy_ubi

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "example_project").rglob("README.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)", page.read_text())
    dead = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert dead == []


def test_version_is_the_same_everywhere() -> None:
    assert f'version = "{scrapy_ubi.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"## {scrapy_ubi.__version__} " in (ROOT / "CHANGELOG.md").read_text()


def test_make_targets_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE):
        assert f"\n{target}:" in makefile
