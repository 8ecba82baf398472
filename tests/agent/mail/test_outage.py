"""Why nothing leaves an agent: when it tries again, and what the log hears of it."""

from __future__ import annotations

import pytest

from scrapy_ubi.agent.mail.outage import AWAY, BETTER, DISK, FIRST_PAUSE, FULL, LONGEST_PAUSE, QUIET, SLOW, Outage


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records]


def test_the_pause_doubles_up_to_a_bound_whatever_it_is_and_begins_anew_afterwards() -> None:
    trouble = Outage()
    pauses = []
    for kind in (AWAY, DISK, FULL) * 4:
        trouble.begin_outage(100.0, kind, kind)
        pauses.append(trouble.retry_at - 100.0)
    assert pauses[:3] == pytest.approx([FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE])
    assert pauses[-1] == pytest.approx(LONGEST_PAUSE)
    trouble.end_outage()
    trouble.begin_outage(200.0, AWAY, "Away.")
    assert trouble.retry_at == pytest.approx(200.0 + FIRST_PAUSE)


def test_the_log_hears_of_its_beginning_and_of_its_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "scrapy_ubi")
    trouble = Outage()
    for now in (1.0, 2.0, 3.0):
        trouble.begin_outage(now, AWAY, "Away.")
    assert trouble.kind == AWAY
    trouble.end_outage()
    trouble.end_outage()
    assert said(caplog) == ["Away.", BETTER[AWAY]] and not trouble.kind


def test_another_trouble_takes_the_place_of_one_that_is_not_over(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "scrapy_ubi")
    trouble = Outage()
    trouble.begin_outage(1.0, AWAY, "Away.")
    trouble.begin_outage(2.0, DISK, "Full.")
    trouble.end_outage()
    assert said(caplog) == ["Away.", "Full.", BETTER[DISK]]


@pytest.mark.parametrize("kind", [FULL, SLOW])
def test_of_a_redis_that_is_full_or_slow_now_and_then_the_log_hears_seldom(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "scrapy_ubi")
    trouble = Outage()
    for now in (1.0, 2.0, 1.0 + QUIET):
        trouble.begin_outage(now, kind, f"Trouble at {now:g}.")
        assert trouble.retry_at > now
        trouble.end_outage()
    assert said(caplog) == ["Trouble at 1.", BETTER[kind], f"Trouble at {1 + QUIET:g}.", BETTER[kind]]


def test_that_it_is_slow_keeps_the_log_from_hearing_neither_that_it_is_full_nor_that_it_is_away(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "scrapy_ubi")
    trouble = Outage()
    for now, kind in ((1.0, SLOW), (2.0, AWAY), (3.0, SLOW), (4.0, FULL)):
        trouble.begin_outage(now, kind, kind)
    trouble.end_outage()
    assert said(caplog) == [SLOW, AWAY, FULL, BETTER[FULL]]


def test_a_redis_that_is_back_and_full_again_soon_is_not_away(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "scrapy_ubi")
    trouble = Outage()
    trouble.begin_outage(1.0, FULL, "Full.")
    trouble.end_outage()
    trouble.begin_outage(2.0, AWAY, "Away.")
    trouble.begin_outage(3.0, FULL, "Full.")
    assert trouble.kind == FULL
    trouble.end_outage()
    assert said(caplog) == ["Full.", BETTER[FULL], "Away.", BETTER[AWAY]]
