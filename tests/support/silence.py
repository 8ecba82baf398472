"""No silence: whenever ten seconds of an agent's clock have passed without a fetch, and the crawl is not over, a reason
is given that is known. Watches every agent of this process (`tests/conftest.py`)."""

from __future__ import annotations

import pytest

from scrapy_ubi.agent.profile.idle_reason import UNKNOWN
from scrapy_ubi.agent.report.idle_watch import LOGGED, IdleWatch


class Silence:
    """The silences of agents that nobody can explain, as sentences."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.found: list[str] = []
        self.explained = 0
        original = IdleWatch.check_idle

        def check_idle(watch: IdleWatch, now: float) -> None:
            original(watch, now)
            quiet = watch.quiet(now)
            if quiet < LOGGED:
                return
            if watch.reason is None and not watch.is_over(now):
                self.found.append(f"{watch.me} has fetched nothing for {quiet:.0f} s, and gives no reason")
            elif watch.reason is not None and watch.reason.kind == UNKNOWN:
                self.found.append(f"{watch.me} has fetched nothing for {quiet:.0f} s, and knows no reason")
            else:
                self.explained += 1

        monkeypatch.setattr(IdleWatch, "check_idle", check_idle)
