"""Each kind of trouble is said once."""

from __future__ import annotations

import logging

import pytest

from scrapy_ubi.adapter.process.log_once import Notices


def test_a_kind_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    notices = Notices()
    for number in range(3):
        notices.once("a", f"trouble {number}: 100 %s")
    notices.once("b", "other", logging.ERROR)
    assert [record.getMessage() for record in caplog.records] == [
        "trouble 0: 100 %s (Shown once.)",
        "other (Shown once.)",
    ]
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR"]
