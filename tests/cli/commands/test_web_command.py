"""`scrapy ubi web` where it does not begin: one sentence, exit status 1."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from scrapy_ubi.cli.commands import server_options
from tests.cli.commands.test_ubi import Shell


def test_off_loopback_it_wants_a_token(shell: Shell) -> None:
    assert shell("web", "--host", "0.0.0.0") == 1
    assert shell.err.startswith("scrapy ubi: 0.0.0.0 can be reached from other machines, and there is no token")
    assert shell.out == ""


def test_a_token_file_that_holds_none(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("short")
    assert shell("web", "--token-file", "token") == 1
    assert "has to hold 16 to 1000 characters" in shell.err


def test_a_port_that_is_taken(shell: Shell) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert shell("web", "--port", str(port)) == 1
    assert f"cannot be served at 127.0.0.1:{port} (another process listens there)" in shell.err


def test_without_aiohttp_the_remedy_is_said(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_options, "find_spec", lambda name: None)
    assert shell("web") == 1
    assert shell.err == f"scrapy ubi: {server_options.WITHOUT_AIOHTTP}\n"


@pytest.mark.parametrize("port", ["-1", "65536", "x"])
def test_what_is_no_port(shell: Shell, port: str) -> None:
    assert shell("web", "--port", port) == 2
