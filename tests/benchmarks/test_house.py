"""The measures of the house, on small trees."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(FOLDER))  # the benchmarks are scripts, which find each other beside themselves

import house  # noqa: E402

TREE = {
    "scrapy_ubi/__init__.py": "",
    "scrapy_ubi/addon.py": '''"""One line."""
# a comment

from scrapy.core import _secret
from scrapy_ubi.node.mail.link import Link
from scrapy_ubi.node.work import visits


class Addon:
    """Two
    lines."""

    def __init__(self, a):
        self._engine = a
        self.other = None

    def look(self, crawler):
        from scrapy_ubi.fast import mail
        if self.other is not None and self._engine is None:
            return crawler.engine._slot or self._engine
''',
    "scrapy_ubi/node/__init__.py": "",
    "scrapy_ubi/node/mail/__init__.py": "",
    "scrapy_ubi/node/work/__init__.py": "",
    "scrapy_ubi/node/mail/link.py": "from scrapy_ubi.node.work.visits import look\nclass Link: pass\n",
    "scrapy_ubi/node/work/visits.py": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from scrapy_ubi.node.mail.link import Link\n"
        "import scrapy_ubi.node.mail.sent\ndef look(): pass\n"
    ),
    "scrapy_ubi/node/mail/sent.py": "",
    "scrapy_ubi/fast/__init__.py": "import scrapy._private\n",
    "scrapy_ubi/fast/mail.py": "from scrapy_ubi import addon\n",
    "tests/test_addon.py": """from scrapy_ubi.addon import Addon


def test_it():
    addon = Addon(1)
    assert addon._engine == getattr(addon, "_engine")
    assert addon._unknown
""",
    "docs/reference/settings.md": "# Settings\n\n## UBI_A\n\nDefault: 1\n\n```\nnot counted\n```\n\n## UBI_B\n",
    "docs/decisions/README.md": "not counted",
    "README.md": "three words here",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The little repository."""
    for name, text in TREE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.fixture
def code(tree: Path) -> list[house.Source]:
    return house.sources(tree / "scrapy_ubi")


def test_names_at_the_top_are_modules_and_packages(code: list[house.Source]) -> None:
    assert set(house.top_names(code)) == {"addon", "node", "fast"}


def test_imports_for_types_and_in_functions_make_no_circle_at_the_top(code: list[house.Source]) -> None:
    assert house.circles(house.imports(code, at_the_top=True)) == {}
    assert house.circles(house.imports(code, at_the_top=False)) == {
        "node.mail.link, node.work.visits": 2, "addon, fast.mail": 2,
    }  # fmt: skip


def test_a_circle_over_several_modules_is_one() -> None:
    assert house.circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}) == {"a, b, c": 3}


def test_sub_rooms_of_one_room_that_import_each_other_are_mutual(code: list[house.Source]) -> None:
    assert house.mutual_rooms(house.imports(code, at_the_top=True)) == {"node.mail and node.work": 1}


def test_modules_are_counted_by_who_imports_them(code: list[house.Source]) -> None:
    graph = house.imports(code, at_the_top=False)
    assert set(house.imported_once(graph)) == {"addon", "fast.mail", "node.mail.sent"}
    assert house.fan_out(graph, above=2) == {"addon": 3}


def test_what_objects_hold_and_may_lack(code: list[house.Source]) -> None:
    assert house.attributes(code) == {"addon.Addon": 2}
    assert house.missing_features(code) == {"addon": 2}
    assert house.ambiguous_names(code, above=1) == {"look": 2}


def test_code_is_what_is_no_comment_no_docstring_and_not_blank(code: list[house.Source]) -> None:
    assert house.lines_of_code(code)["addon"] == 11


def test_settings_and_words_are_those_of_the_docs(tree: Path) -> None:
    assert set(house.settings(TREE["docs/reference/settings.md"])) == {"UBI_A", "UBI_B"}
    assert house.words(tree) == {".": 3, "docs/reference": 8}


def test_private_names_of_others_and_ours_in_tests(tree: Path, code: list[house.Source]) -> None:
    assert house.strays(code) == {"addon": 2}
    assert house.uses_by_tests(house.sources(tree / "tests"), code) == {"test_addon": 2}


def test_the_table_has_every_measure_and_judges_nothing(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = house.measures(tree)
    house.show(found, details=True)
    out = capsys.readouterr().out
    assert all(f"| {measure.name}" in out for measure in found)
    assert "node.mail and node.work" in out


def test_no_modules_of_ours_import_each_other() -> None:
    assert house.circles(house.imports(house.sources(house.TOP / "scrapy_ubi"), at_the_top=True)) == {}
