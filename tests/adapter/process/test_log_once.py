"""Warnings that are said once."""

from __future__ import annotations

import pytest

from scrapy_ubi.adapter.process.log_once import MOST, Notices


def test_each_kind_is_said_once_and_kinds_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    notices = Notices()
    for number in range(2 * MOST):
        notices.once(f"kind {number}", f"Trouble {number}.")
        notices.once(f"kind {number}", "Again.")
    assert len(caplog.records) == MOST and "Again" not in caplog.text
