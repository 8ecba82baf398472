"""A look at a page or two (`scrapy_private.runs.is_trial`): alone, and without a trace."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from scrapy_ubi.adapter.scheduling.kept_requests import MOST_ALONE, MOST_HOLDERS_ALONE, KeptRequests
from scrapy_ubi.settings import UbiSettings


class WholeCrawl:
    """A run that is no such look: it is as the settings say."""

    is_trial = False

    def settings(self, wanted: UbiSettings) -> UbiSettings:
        """The settings of the run, from those of the project."""
        return wanted

    def kept_requests(self, alone: bool) -> KeptRequests:
        """Requests that are handed out as the objects that they are. `alone`: of a crawl of one agent."""
        return KeptRequests(MOST_ALONE, MOST_HOLDERS_ALONE) if alone else KeptRequests()

    def close(self) -> None:
        """The run is over."""


class Trial(WholeCrawl):
    """The directory of one such run, which goes with it, and its requests, `kept`.

    All of them are handed out as the objects that they are: Scrapy's shell waits for the callback that it sets on a
    request after that has come in.
    """

    is_trial = True

    def __init__(self) -> None:
        self.kept = KeptRequests(most=sys.maxsize)
        self._directory = tempfile.TemporaryDirectory(prefix="ubi-")

    def settings(self, wanted: UbiSettings) -> UbiSettings:
        alone = replace(wanted, redis_url=None, agent_id=None, dir=Path(self._directory.name), dir_given=True)
        alone = replace(alone, rank=None, host_iterate=False)  # a user who looks does not want to wait
        return replace(alone, max_retry_after=0, host_failures=0)

    def kept_requests(self, alone: bool) -> KeptRequests:
        return self.kept

    def close(self) -> None:
        """Leave no trace."""
        self._directory.cleanup()
