"""The metrics of one agent, told by itself (UBI_METRICS): what its profile says, what its meter has measured, and how
its process is.

Rules of this module:

* It answers from before the agent joins, which may take some seconds, until it has left.
* The profile is the one that was published last, at most some seconds ago: hosts are not counted for who asks.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from contextlib import suppress

from scrapy_ubi.agent import Node
from scrapy_ubi.agent.metrics.endpoint import Endpoint, EndpointPages
from scrapy_ubi.agent.metrics.exposition import Exposition
from scrapy_ubi.agent.metrics.meter import Meter
from scrapy_ubi.agent.metrics.profile_samples import GroupFacts, labels_of, put_group, put_profile, put_state
from scrapy_ubi.agent.profile.profile import Profile, read_profile
from scrapy_ubi.agent.report.readiness import is_complete, why_not_ready
from scrapy_ubi.settings import UbiSettings

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]


class AgentMetrics:
    """What one agent tells of itself. `node` is there once it is made; `address`: where it is told, as others reach it;
    `meter`: what stands around its parts."""

    def __init__(self, settings: UbiSettings) -> None:
        assert settings.metrics is not None and settings.agent_id is not None
        self._crawl = settings.crawl
        self._agent = settings.agent_id
        self._most_lag = settings.stall_timeout
        self.meter = Meter()
        self.node: Node | None = None
        self._endpoint = Endpoint(settings.metrics, EndpointPages(self.text, self.why_not_alive, self.why_not_ready))
        self._looks: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        """Host and port by which others reach it; empty before `open`."""
        return self._endpoint.address

    async def listen(self) -> None:
        """Listen. Raises UbiSettingError."""
        await self._endpoint.listen()
        self._looks = asyncio.ensure_future(self.meter.lag.look())

    async def close(self) -> None:
        """Stop answering."""
        if self._looks is not None:
            self._looks.cancel()
            with suppress(asyncio.CancelledError):
                await self._looks
        await self._endpoint.close()

    def text(self) -> str:
        """Everything, as Prometheus reads it."""
        page, own = Exposition(), labels_of(self._crawl, self._agent)
        if (node := self.node) is not None:
            profile = read_profile(self._agent, node.lifecycle.publisher.shown().encode())
            if isinstance(profile, Profile):
                put_profile(page, own, profile)
            put_state(page, own, node.status.state)
            agent = node.agent
            complete = is_complete(node.status)
            put_group(page, own, GroupFacts(agent.self_status.settled, complete, len(agent.handover.pending)))
        self.meter.put(page, own)
        _put_process(page, own)
        return page.text()

    def why_not_alive(self) -> str:
        """Why the process should be ended by who watches it: its loop has been as late as makes it stop its beats."""
        lag = self.meter.lag.longest()
        return f"the event loop was {lag:.0f} s late in the last minute" if lag > self._most_lag else ""

    def why_not_ready(self) -> str:
        """Why no other agent should be taken away now."""
        if self.node is None:
            return "it is joining the group"
        return why_not_ready(self.node.status, self.meter.redis_up)


def _put_process(page: Exposition, own: str) -> None:
    page.put("process_cpu_seconds_total", time.process_time(), own)
    if hasattr(resource, "getrusage"):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        page.put("process_resident_memory_bytes", _resident(most), own)


def _resident(most: int) -> int:
    """Bytes of memory in use; where the system does not say, the most (its unit differs) that ever was."""
    try:
        with open("/proc/self/statm", "rb") as file:  # memory, not a disk
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return most if sys.platform == "darwin" else most * 1024
