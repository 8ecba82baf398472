"""How many files this process may open: raised as far as the system lets it, and never lowered."""

from __future__ import annotations

import resource

import pytest

from scrapy_ubi.ground import open_files

INFINITE = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "asked", "has"),
    [
        (1024, 4096, 2000, 2000),
        (1024, 4096, 8192, 4096),
        (1024, INFINITE, 8192, 8192),
        (4096, 4096, 2000, 4096),
        (INFINITE, INFINITE, 2000, open_files.UNBOUNDED),
    ],
)
def test_as_many_as_the_system_allows(
    soft: int, hard: int, asked: int, has: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = [(soft, hard)]
    monkeypatch.setattr(resource, "getrlimit", lambda kind: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda kind, both: limits.append(both))
    assert open_files.ask_for(asked) == open_files.may_open() == has


def test_a_system_that_refuses_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(kind: int, both: tuple[int, int]) -> None:
        raise ValueError

    monkeypatch.setattr(resource, "getrlimit", lambda kind: (256, INFINITE))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert open_files.ask_for(8192) == 256
