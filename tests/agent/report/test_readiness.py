"""When an agent says that another one may be taken away: by state, lease, view, and what is still to be handed over."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from scrapy_ubi.agent.profile.profile import STATES
from scrapy_ubi.agent.report.readiness import READY, is_complete, why_not_ready


def node(
    state: str = "crawling", usurped: bool = False, sure: bool = True, settled: bool = True, same: bool = True
) -> Any:
    """A node in this state; `same`: its last complete view is the present one."""
    view = SimpleNamespace(members={"a": 1, "b": 2})
    agent = SimpleNamespace(
        usurped=usurped,
        group=SimpleNamespace(sure=sure),
        self_status=SimpleNamespace(settled=settled),
        view_history=SimpleNamespace(complete=view if same else SimpleNamespace(members={})),
        view=view,
    )
    return SimpleNamespace(agent=agent, state=state, holds_lease=True)


@pytest.mark.parametrize("state", STATES)
def test_who_joins_leaves_is_cut_off_or_full_is_not_ready(state: str) -> None:
    why = why_not_ready(node(state))
    assert (why == "") == (state in READY)
    assert why not in STATES, "it is said in words"


@pytest.mark.parametrize(
    ("missing", "why"),
    [
        ({"usurped": True}, "another process lives under its name"),
        ({"sure": False}, "it is not sure yet which agents there are"),
        ({"settled": False}, "it has not handed over all copies"),
        ({"same": False}, "not all of the 2 agents have settled in one view"),
    ],
)
def test_everything_has_to_hold(missing: dict[str, bool], why: str) -> None:
    assert why_not_ready(node(**missing)) == why
    assert is_complete(node(**missing)) == missing.get("same", True)


def test_mail_that_does_not_leave_has_no_second_copy() -> None:
    assert why_not_ready(node(), redis_up=False) == "Redis does not answer"
