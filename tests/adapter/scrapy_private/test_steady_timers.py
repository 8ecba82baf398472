"""What is relied on where Twisted's timers count by the monotonic clock."""

from __future__ import annotations

import inspect
import subprocess
import sys

from twisted.internet.asyncioreactor import AsyncioSelectorReactor
from twisted.internet.base import DelayedCall, ReactorBase


def test_the_reactor_asks_itself_for_the_time_wherever_timers_are_set_or_due() -> None:
    assert "self.seconds() + delay" in inspect.getsource(ReactorBase.callLater)
    assert "seconds=self.seconds" in inspect.getsource(ReactorBase.callLater)
    assert "self.seconds()" in inspect.getsource(ReactorBase.timeout)
    assert "now = self.seconds()" in inspect.getsource(ReactorBase.runUntilCurrent)
    assert "self.seconds()" in inspect.getsource(DelayedCall.reset)
    assert "seconds" not in vars(AsyncioSelectorReactor)


PROCESS = """
import time
real, ahead = time.time, [0.0]
time.time = lambda: real() + ahead[0]
from twisted.internet import asyncioreactor
asyncioreactor.install()
from twisted.internet import reactor
from scrapy_ubi.adapter.scrapy_private import steady_timers as module
from scrapy_ubi.adapter.scrapy_private.steady_timers import steady_timers

fired = []
reactor.callLater(3600, fired.append, "set before")
steady_timers()
assert "seconds" not in vars(reactor), "the process is not Scrapy's"
module.is_scrapys_process = lambda: True
steady_timers()
clock = reactor.seconds
steady_timers()
assert reactor.seconds is clock and abs(clock() - real()) < 5
reactor.callLater(3600, fired.append, "set after")

def jump():
    ahead[0] = 7200.0
    reactor.callLater(0, reactor.callLater, 0, reactor.stop)

reactor.callWhenRunning(jump)
reactor.run()
assert not fired, fired
"""


def test_timers_set_before_and_after_are_not_due_when_the_wall_clock_jumps() -> None:
    done = subprocess.run([sys.executable, "-c", PROCESS], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_without_a_reactor_nothing_is_done() -> None:
    code = (
        "import sys; from scrapy_ubi.adapter.scrapy_private.steady_timers import steady_timers; steady_timers(); "
        "assert 'twisted.internet.reactor' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
