"""The last error in a log, and a process that leaves when its supervisor is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_ubi.cli.supervisor import agents
from scrapy_ubi.cli.supervisor.agents import AgentPlace, AgentProcesses, error_in

LOG = """\
2026-11-26 22:00:00 [scrapy.core.engine] INFO: Spider opened
2026-11-26 22:00:01 [scrapy_ubi] ERROR: This crawl has lost 1 agent (a3).
2026-11-26 22:00:02 [scrapy.core.engine] INFO: Spider closed (finished)
"""
TRACEBACK = """\
Traceback (most recent call last):
  File "x.py", line 1, in <module>
    import nothing_of_this_name
ModuleNotFoundError: No module named 'nothing_of_this_name'
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ""),
        ("\n  \n", ""),
        ("one\ntwo\n", "two"),
        (LOG, "This crawl has lost 1 agent (a3)."),
        (TRACEBACK, "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        (LOG + "scrapy_ubi: UBI_DIR is damaged.\nbye\n", "UBI_DIR is damaged."),
        (
            LOG + "scrapy ubi: Agent a1 failed at its start: SCHEDULER is set:\nremove it.\n",
            "Agent a1 failed at its start: SCHEDULER is set: remove it.",
        ),
        ("x [scrapy] CRITICAL: Unhandled error in Deferred:\nmore", "Unhandled error in Deferred:"),
    ],
)
def test_the_last_error_of_a_log(text: str, found: str) -> None:
    assert error_in(text) == found


def test_what_the_package_has_warned_of_is_found_at_both_ends_of_a_log_from_where_the_supervisor_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HEAD", "TAIL"):
        monkeypatch.setattr(agents, name, 400)
    log = tmp_path / "a.log"
    log.write_text("x [scrapy_ubi] WARNING: of a run before\n")
    processes = AgentProcesses(lambda place, again: ["version"])
    try:
        processes.start_agent(AgentPlace("a", tmp_path, log))
        assert processes.warnings("a") == [] == processes.warnings("never started")
        middle = "x [scrapy_ubi] WARNING: in the middle\n" * 100
        with log.open("a") as file:
            file.write("x [scrapy_ubi] WARNING: first\nx [py.warnings] WARNING: another's\n" + middle)
            file.write("." * 500 + "\nx [scrapy_ubi.scheduler] WARNING: last\nx [scrapy_ubi] INFO: no\n")
        assert processes.warnings("a") == ["first", "in the middle", "last"]
        log.unlink()
        assert processes.warnings("a") == []
    finally:
        processes.close()
