"""Where UBI_METRICS is set: the agent's metrics, and its parts with a meter around them.

Rules of this module:

* Without the setting each function gives what it was given, and no module of `metrics` is loaded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.http import Response

from scrapy_ubi.agent.crawl.disk import AgentDisk
from scrapy_ubi.agent.profile.figures import Traffic
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport import Transport

if TYPE_CHECKING:
    from scrapy.statscollectors import StatsCollector

    from scrapy_ubi.adapter.components.outputs_contract import AgentOutputs
    from scrapy_ubi.agent.metrics.agent_metrics import AgentMetrics

Download = Callable[[Request], Awaitable[Response]]
Carry = Callable[[Request, Download], Awaitable[Response]]

BYTES = "downloader/response_bytes"  # stats of Scrapy's
STATUS = "downloader/response_status_count/"


async def open_metrics(settings: UbiSettings, disk: AgentDisk, stores: AgentOutputs | None) -> AgentMetrics | None:
    """The metrics of the agent, told from now on; None where that is not wanted. Raises UbiSettingError."""
    if settings.metrics is None:
        return None
    if find_spec("aiohttp") is None:
        raise UbiSettingError(
            "UBI_METRICS", "is set and aiohttp is not installed", 'run pip install "scrapy-ubi[metrics]"'
        )
    from scrapy_ubi.agent.metrics.agent_metrics import AgentMetrics

    metrics = AgentMetrics(settings)
    await metrics.listen()
    disk.write = metrics.meter.flush(disk.write, lambda: disk.due)  # type: ignore[method-assign]
    if stores is not None:
        stores.measure(metrics.meter.store)
    return metrics


def transport_of(transport: Transport, metrics: AgentMetrics | None) -> Transport:
    """The way to the other agents, with each exchange measured."""
    if metrics is not None:
        transport.exchange = metrics.meter.exchange(transport.exchange)  # type: ignore[method-assign,assignment]
    return transport


def carry_of(carry: Carry, metrics: AgentMetrics | None) -> Carry:
    """What makes a transfer, with each measured."""
    return metrics.meter.load(carry) if metrics is not None else carry


def traffic(stats: StatsCollector | None) -> Traffic:
    """What Scrapy has counted of responses so far."""
    told = stats.get_stats() if stats is not None else {}
    classes: dict[str, int] = {}
    for name, count in told.items():
        if name.startswith(STATUS) and isinstance(count, int):
            one = f"{name[len(STATUS) :][:1]}xx"
            classes[one] = classes.get(one, 0) + count
    received = told.get(BYTES, 0)
    return Traffic(received if isinstance(received, int) else 0, classes)
