"""Passwords of Redis that change while agents crawl (UBI_REDIS_CREDENTIALS): the new one counts at the next login."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.conftest import FOUR, MakeGroup
from tests.support.group import Group

pytestmark = [pytest.mark.processes, pytest.mark.faults]

RIGHTS = "-@all +@hash +@string +@stream +@connection +eval".split()
RIGHTS += "+scan +type +exists +del +rename +expire +time +info".split()


def rotate(group: Group, file: Path, old: str, new: str) -> None:
    """As a token service does: a new password counts beside the old one; then that one ends, with its connections."""
    with group.server.client() as client:
        client.execute_command("ACL", "SETUSER", "crawler", "on", f">{new}", "~ubi:{faulty}:*", *RIGHTS)
        file.write_text(new)
        if old:
            client.execute_command("ACL", "SETUSER", "crawler", f"<{old}")
            client.execute_command("CLIENT", "KILL", "USER", "crawler")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What holds the password that agents are given."""
    monkeypatch.setenv("FAULTY_PASSWORD", str(tmp_path / "password"))
    return tmp_path / "password"


@pytest.fixture
def group(make_group: MakeGroup, file: Path) -> Group:
    """Four agents with the first password."""
    group = make_group(latency=0.05)
    rotate(group, file, "", "first-password")
    group.start(*FOUR, UBI_REDIS_CREDENTIALS="faulty.logins.redis_login")
    return group


def none_was_declared_dead(group: Group) -> None:
    assert {name: counters["rejoins"] for name, counters in group.counters().items()} == dict.fromkeys(FOUR, 0)


def test_passwords_that_change_under_way_cost_nothing(group: Group, file: Path) -> None:
    passwords = ["first-password", "second-password", "third-password", "fourth-password"]
    for share, old, new in zip((0.2, 0.4, 0.6), passwords, passwords[1:], strict=False):
        group.until_served(share)
        rotate(group, file, old, new)
    verdict = group.end().judge()
    none_was_declared_dead(group)
    said = "".join(verdict.logs.values())
    assert not any(password in said for password in passwords)


def test_a_password_that_ends_before_the_new_one_is_known_stops_the_crawl_until_then(group: Group, file: Path) -> None:
    group.until_served(0.3)
    rotate(group, file, "first-password", "second-password")
    file.write_text("first-password")
    with group.server.client() as client:
        client.execute_command("CLIENT", "KILL", "USER", "crawler")
    group.until(lambda: all(group.said(name, "UBI_REDIS_CREDENTIALS") for name in FOUR), "each says what is refused")
    file.write_text("second-password")
    group.end().judge()
    none_was_declared_dead(group)
