"""`scrapy ubi botkey`: a key is made, and its public part shown as it is to be served."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.commands.test_ubi import Shell


def test_a_key_is_made_and_shown_with_the_headers_of_its_document(shell: Shell, tmp_path: Path) -> None:
    assert shell("botkey", "--make", "bot.pem", "-s", "UBI_BOT_AGENT=https://bot.example") == 0, shell.err
    assert "https://bot.example/.well-known/http-message-signatures-directory" in shell.out
    assert 'binding=("@authority";req "content-digest")' in shell.out
    assert "PRIVATE" not in shell.out
    assert shell("botkey", "bot.pem", "--host", "Bot.example:443", "--json", "-o", "directory.json") == 0, shell.err
    answer = json.loads(shell.out)
    assert answer["directory"] == json.loads((tmp_path / "directory.json").read_bytes())
    assert answer["directory"]["keys"][0]["kid"] == answer["keyid"] and "d" not in answer["directory"]["keys"][0]
    assert not (tmp_path / "directory.json").read_bytes().endswith(b"\n")
    assert answer["headers"]["Content-Type"] == "application/http-message-signatures-directory+json"
    assert not answer["made"]


def test_the_projects_key_is_shown(shell: Shell) -> None:
    assert shell("botkey", "--make", "-s", "UBI_BOT_KEY=bot.pem") == 0, shell.err
    assert "It is not signed: give --host" in shell.out
    address = "https://bot.example/keys.json"
    assert shell("botkey", "-s", "UBI_BOT_KEY=bot.pem", "-s", f"UBI_BOT_AGENT={address}") == 0, shell.err
    assert f"serve at  {address}" in " ".join(shell.out.split(" " * 3)) or address in shell.out


def test_what_cannot_be(shell: Shell, tmp_path: Path) -> None:
    assert shell("botkey") == 1 and "No key is named" in shell.err
    assert shell("botkey", "none.pem") == 1 and "cannot be read" in shell.err
    assert shell("botkey", "--make", "bot.pem") == 0
    before = (tmp_path / "bot.pem").read_bytes()
    assert shell("botkey", "--make", "bot.pem") == 1 and "name a new file" in shell.err
    assert (tmp_path / "bot.pem").read_bytes() == before
    for host in ("me@bot.example", "bot.example/x", "b\u00f6t.example", "a b"):
        assert shell("botkey", "bot.pem", "--host", host) == 1 and "--host is" in shell.err
    assert shell("botkey", "bot.pem", "-o", "no/such/file") == 1 and "cannot be written" in shell.err
