"""The pages about rules say what is so: their examples hold, and every key is in the reference."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from scrapy_ubi.cli.patterns import rules_reader
from scrapy_ubi.cli.patterns.page_rules import FACTS
from scrapy_ubi.cli.patterns.rules_source import read_file

ROOT = Path(__file__).parents[3]
REFERENCE = (ROOT / "docs" / "reference" / "rules.md").read_text()
HOW_TO = (ROOT / "docs" / "how-to" / "crawl-without-a-project.md").read_text()
EXAMPLES = re.findall(r"^```toml\n(.*?)^```$", HOW_TO + REFERENCE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", EXAMPLES)
def test_examples_hold(tmp_path: Path, text: str) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(text)
    read_file(str(file)).rules()


def test_every_key_and_every_fact_of_a_page_is_in_the_reference() -> None:
    tree = ast.parse(Path(rules_reader.__file__).read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    read = [node for node in calls if node.func.attr in ("each", "whole", "number", "flag", "text", "table")]
    keys = {node.args[0].value for node in read if isinstance(node.args[0], ast.Constant)}
    assert {"start", "max_depth", "allow", "many", "words", "fields"} <= keys
    missing = {key for key in keys if f"`{key}`" not in REFERENCE and f"[{key}" not in REFERENCE}
    assert not missing and all(f"| `{fact}` |" in REFERENCE for fact in FACTS)
