"""Runs the functions behind the commands for the server: they wait for Redis and for agents, so they run in threads.

Rules of this module:

* The event loop never waits: a function runs in one of `THREADS` threads, and no more than `MOST_WAITING` wait for one.
* One connection serves all, as a client of Redis may be shared by threads; it is made when it is first needed.
* A crawl that was found by itself, as the only one there is, stays the one that is shown.
"""

from __future__ import annotations

import argparse
import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, TypeVar

from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands.redis_connection import RedisConnection, connect
from scrapy_ubi.cli.commands.stopped_status import read_figures
from scrapy_ubi.cli.monitor.status import CrawlStatus
from scrapy_ubi.errors import UbiError
from scrapy_ubi.web.problem import Problem, problem_of

THREADS = 4
MOST_WAITING = 32
PATIENCE = 5.0  # s for the answers of agents

T = TypeVar("T")

Function = Callable[[BaseSettings, argparse.Namespace], T]


class CrawlReader:
    """One crawl, asked by many. `crawl`: its name, None while it is not known; `agent`: the lone agent that shows
    itself; `directories`: of stopped agents, where these are meant. A `connection` that is given is used, and is not
    closed here."""

    def __init__(
        self,
        settings: BaseSettings,
        crawl: str | None = None,
        redis_url: str | None = None,
        connection: RedisConnection | None = None,
        agent: str | None = None,
        directories: Sequence[str] = (),
    ) -> None:
        self.settings = settings
        self.crawl = crawl
        self.agent = agent
        self._directories = [*directories]
        self._redis_url = redis_url or settings.get("UBI_REDIS_URL")
        self._connection = connection
        self._made = ExitStack()
        self._making = threading.Lock()
        self._threads = ThreadPoolExecutor(THREADS, "ubi-web")
        self._under_way = 0

    @property
    def source(self) -> str:
        """Where the crawl is read from."""
        return "agent" if self.agent is not None else "redis" if self._redis_url else "directories"

    @property
    def shown(self) -> str:
        """Its Redis, without its password; empty before the first look, and without one."""
        return self._connection.at.shown if self._connection is not None and self.source == "redis" else ""

    async def run(self, function: Function[T], **options: Any) -> T:
        """What the function answers, given the settings and these options of its command. Raises Problem."""
        if self._under_way >= THREADS + MOST_WAITING:
            raise Problem(503, "busy", "Too much is asked at once: ask again in a moment.", {"Retry-After": "2"})
        self._under_way += 1
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, self._answer, function, options)
        except (UbiError, UsageError) as error:
            raise problem_of(error) from error
        finally:
            self._under_way -= 1

    async def status(self) -> CrawlStatus:
        """The crawl as Redis shows it, or directories. Raises Problem."""
        return (await self.run(read_figures))[0]

    def _answer(self, function: Function[T], options: dict[str, Any]) -> T:
        usual: dict[str, Any] = {
            "redis_url": self._redis_url,
            "crawl": self.crawl,
            "connection": self._connected(),
            "dir": self._directories,
            "agent": None,
            "timeout": PATIENCE,
            "json": True,
        }
        return function(self.settings, argparse.Namespace(**{**usual, **options}))

    def _connected(self) -> RedisConnection | None:
        if not self._redis_url and self._connection is None:
            return None
        with self._making:
            if self._connection is None:
                opts = argparse.Namespace(redis_url=self._redis_url)
                self._connection = self._made.enter_context(connect(self.settings, opts))
            return self._connection

    def close(self) -> None:
        """Wait for nothing that is under way, and for no thread."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._made.close()
