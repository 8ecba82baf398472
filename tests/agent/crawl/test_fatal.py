"""What ends an agent by force is told in one sentence, and a damaged file is set aside."""

from __future__ import annotations

import pytest

from scrapy_ubi.agent.crawl.disk import NoDisk
from scrapy_ubi.agent.crawl.fatal import Fatal
from scrapy_ubi.errors import UbiError
from scrapy_ubi.frontier.store import StoreDamaged, StoreError


class Agent:
    """What of an agent can come to a halt."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.condemned: list[StoreDamaged] = []
        self.disk = NoDisk(0.0)
        self.disk.mark_corrupt = self.condemned.append  # type: ignore[method-assign]
        self.halt = Fatal(self.disk, self.told.append)


def test_a_broken_disk_is_told_once() -> None:
    agent = Agent()
    assert not agent.halt.dead
    for _ in range(2):
        agent.disk.trouble(StoreError("It cannot be read."))
    assert agent.halt.dead
    assert agent.told == ["It cannot be read. The agent stops."]
    assert not agent.condemned


def test_a_damaged_file_is_set_aside() -> None:
    agent = Agent()
    damage = StoreDamaged("000009.sst", "block checksum mismatch")
    agent.disk.trouble(damage)
    assert agent.condemned == [damage]
    assert agent.told == ["000009.sst is damaged (block checksum mismatch). The agent stops."]


@pytest.mark.parametrize(
    ("error", "sentence", "logged"),
    [
        (UbiError("There is no room."), "There is no room. The agent stops.", 0),
        (KeyError("x"), "The agent stops, for its protocol cannot go on.", 1),
    ],
)
def test_what_must_not_end_tells_why_it_did(
    error: Exception, sentence: str, logged: int, caplog: pytest.LogCaptureFixture
) -> None:
    agent = Agent()
    agent.halt.failed(error)
    assert agent.halt.dead
    assert agent.told == [sentence]
    assert [record.exc_info is not None for record in caplog.records] == [True] * logged
