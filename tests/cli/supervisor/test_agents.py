"""The last error in a log, and a process that leaves when its supervisor is gone."""

from __future__ import annotations

import pytest

from scrapy_ubi.cli.supervisor.agents import error_in

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
