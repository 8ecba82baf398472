"""Longer turns: the first crawl of a process asks for them, the last one gives them back, and what was chosen stays.

In a process each: threads of the tests' own stay as they are.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from scrapy_ubi.lean import turns


def knows_the_call() -> bool:
    if sys.platform != "linux" or platform.machine() not in turns._SET_AND_GET:
        return False
    try:
        return turns.scheduling(threading.get_native_id()).policy == turns.OTHER
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not knows_the_call(), reason="no sched_setattr(2) here, or a policy was chosen")

HEAD = """
import os, subprocess, sys, threading
from scrapy import signals
from scrapy_ubi.lean import turns
from scrapy_ubi.lean.turns import TURN, LongerTurns, scheduling
from tests.lean.crawlers import crawler_with, send

def me():
    return scheduling(threading.get_native_id())

one, two = crawler_with(LongerTurns), crawler_with(LongerTurns)
usual = me()
LONG = TURN if tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 12) else usual.runtime
"""


def run(script: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HEAD + script],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_first_asks_the_last_gives_back() -> None:
    run("""
send(one, signals.spider_opened)
assert me() == usual._replace(runtime=LONG), me()
send(two, signals.spider_opened)
send(one, signals.spider_closed)
assert me().runtime == LONG
os.setpriority(os.PRIO_PROCESS, 0, 5)
send(two, signals.spider_closed)
assert me() == usual._replace(nice=5), me()
send(one, signals.spider_opened)
assert me() == usual._replace(runtime=LONG, nice=5), "and again"
send(one, signals.spider_closed)
assert me() == usual._replace(nice=5)
""")


def test_all_threads_that_are_alike_have_them_and_one_with_a_policy_of_its_own_keeps_that() -> None:
    run("""
ended = threading.Event()
threads = [threading.Thread(target=ended.wait, daemon=True) for _ in range(2)]
for thread in threads:
    thread.start()
alike, other = (thread.native_id for thread in threads)
os.sched_setscheduler(other, os.SCHED_IDLE, os.sched_param(0))
send(one, signals.spider_opened)
assert scheduling(alike) == usual._replace(runtime=LONG)
assert scheduling(other).policy == os.SCHED_IDLE
send(one, signals.spider_closed)
assert scheduling(alike) == usual
assert scheduling(other).policy == os.SCHED_IDLE
ended.set()
""")


def test_a_thread_that_is_started_meanwhile_is_given_back_too() -> None:
    run("""
send(one, signals.spider_opened)
ended = threading.Event()
later = threading.Thread(target=ended.wait, daemon=True)
later.start()
send(one, signals.spider_closed)
assert scheduling(later.native_id) == usual
ended.set()
""")


def test_a_policy_that_was_chosen_stays() -> None:
    run("""
os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
chosen = me()
send(one, signals.spider_opened)
assert me() == chosen
send(one, signals.spider_closed)
assert me() == chosen
""")


@pytest.mark.parametrize(
    "why", ["turns._SET_AND_GET = {}", "turns._SET_AND_GET = {m: (-1, -1) for m in turns._SET_AND_GET}"]
)
def test_a_system_that_does_not_know_the_call_is_left_alone(why: str) -> None:
    run(f"""
known = dict(turns._SET_AND_GET)
{why}
send(one, signals.spider_opened)
send(one, signals.spider_closed)
turns._SET_AND_GET = known
assert me() == usual
""")
