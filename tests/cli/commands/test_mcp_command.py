"""`scrapy ubi mcp` where it does not begin: one sentence, exit status 1."""

from __future__ import annotations

import pytest

from scrapy_ubi.cli.commands import server_options
from tests.cli.commands.test_ubi import Shell


@pytest.mark.parametrize("lacking", ["mcp", "mcp_types"])
def test_without_the_sdk_one_sentence_names_the_extra(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, lacking: str
) -> None:
    monkeypatch.setattr(server_options, "find_spec", lambda name: None if name == lacking else name)
    assert shell("mcp") == 1
    assert shell.err == f"scrapy ubi: {server_options.WITHOUT_SDK}\n" and shell.out == ""
