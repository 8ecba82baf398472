"""What the control hash says of the end of a crawl."""

from __future__ import annotations

import math

import pytest

from scrapy_ubi.node.mail.finish import CLOCKS, ended_ago, is_finished, is_lossy, said


@pytest.mark.parametrize(
    ("control", "over"),
    [
        ({}, False),
        ({"run": "r1"}, False),
        ({"run": "r1", "finished": ""}, False),
        ({"run": "r1", "finished": "r1 a"}, True),
        ({"run": "r1", "finished": "r1 a lossy"}, True),
        ({"run": "r1", "finished": "r0 a"}, False),
        ({"run": "", "finished": " a"}, False),
        ({"finished": "r1 a"}, False),
    ],
)
def test_finished_is_said_of_the_present_run(control: dict[str, str], over: bool) -> None:
    assert is_finished(control) == over


@pytest.mark.parametrize("lossy", [False, True])
def test_what_is_said_is_understood(lossy: bool) -> None:
    control = {"run": "r1", **said("r1", "a", lossy, 1000.0)}
    assert is_finished(control)
    assert is_lossy(control) == lossy
    assert ended_ago(control, 1002.5) == 2.5


def test_clocks_may_differ_a_little_and_an_end_to_come_is_none() -> None:
    control = said("r1", "a", False, 1000.0)
    assert -CLOCKS < ended_ago(control, 1000.0 - CLOCKS / 2) < 0
    assert ended_ago(control, 1000.0 - 2 * CLOCKS) == math.inf


@pytest.mark.parametrize("when", [None, "", "inf", "-inf", "nan", "soon", "1e999", "0x1", "9" * 5000])
def test_an_end_at_no_time_was_long_ago(when: str | None) -> None:
    assert ended_ago({} if when is None else {"finished_at": when}, 1000.0) == math.inf
