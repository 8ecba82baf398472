"""The tests' own server helper: what it promises about life, death and loss."""

from __future__ import annotations

import pytest
import redis

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
