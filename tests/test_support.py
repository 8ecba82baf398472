"""The tests' own helpers: what the server promises about life, death and loss, and a process that is forked."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
import redis

from tests.support import preloaded
from tests.support.server import Server, ServerError, binary


def test_server_starts_empty_and_answers(server: Server) -> None:
    with server.client() as client:
        assert client.ping()
        assert client.dbsize() == 0
        client.set("left", "over")  # the next test of this kind finds it gone


def test_server_restart_empty_keeps_the_port_and_loses_the_data(server: Server) -> None:
    port = server.port
    with server.client() as client:
        client.set("a", "1")
    server.restart_empty()
    assert server.port == port
    with server.client() as client:
        assert client.get("a") is None


def test_server_killed_refuses_connections_until_started(server: Server) -> None:
    server.kill()
    assert not server.running
    with server.client() as client, pytest.raises(redis.ConnectionError):
        client.ping()
    server.start()
    with server.client() as client:
        assert client.ping()


def test_server_with_password_counts_as_started(one_server: Server) -> None:
    locked = Server(one_server.kind, options=("--requirepass", "secret"))
    with locked, locked.client() as client, pytest.raises(redis.AuthenticationError):
        client.ping()


def test_server_that_cannot_start_says_why(one_server: Server) -> None:
    with pytest.raises(ServerError, match="did not start"):
        Server(one_server.kind, options=("--no-such-option", "1")).start()


def test_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="valkey or redis"):
        binary("memcached")


# What a process is to its settings: all that a test may give it.
ASKS = """
import os, signal, sys
print(sys.argv[1:], os.getcwd(), sys.path[0], os.environ["WORD"], "HOME" in os.environ, __name__)
print(os.getsid(0) == os.getpid(), signal.getsignal(signal.SIGINT), "twisted.internet.reactor" in sys.modules)
print(sys.stdin.read(), sys.stdout.isatty(), sys.stdout.line_buffering)
print("an error", file=sys.stderr)
while "wait" in sys.argv:
    signal.pause()
"""


@pytest.fixture
def asking(tmp_path: Path) -> Path:
    """A project whose settings tell all that."""
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = told\n")
    (tmp_path / "told.py").write_text(ASKS)
    return tmp_path


@pytest.mark.processes
@pytest.mark.parametrize("session", [False, True])
def test_a_forked_process_is_told_the_same_as_a_fresh_one(asking: Path, session: bool) -> None:
    said = []
    for fresh in (True, False):
        command, env = ("version", "-v" if session else "--help"), {"WORD": "here", "PATH": os.environ["PATH"]}
        with preloaded.start(command, cwd=asking, env=env, start_new_session=session, fresh=fresh) as process:
            said.append(process.communicate(60)[0])
        assert process.returncode == 0
    assert said[0] == said[1]
    assert f"{session} <built-in" in said[0] or f"{session} <function" in said[0]


def test_a_forked_process_ends_as_others_do(asking: Path) -> None:
    env = {"WORD": "here"}
    ended = preloaded.run(["nonsense"], cwd=asking, env=env, timeout=60)
    assert (ended.returncode, ended.stderr) == (2, "an error\n") and "Unknown command: nonsense" in ended.stdout
    for number in (signal.SIGKILL, signal.SIGTERM):
        with preloaded.start(["version", "wait"], cwd=asking, env=env) as process:
            assert process.stdout is not None and process.stdout.readline()
            assert process.poll() is None
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0)
            process.send_signal(number)
            assert process.wait(60) == process.poll() == -number
            process.kill()
