"""What the protocol is to know of the settings."""

from __future__ import annotations

from scrapy_ubi.protocol.config import Config
from scrapy_ubi.protocol.lane import Bounds
from scrapy_ubi.settings import UbiSettings

LEAVE_PAUSE = 1.5  # heartbeat intervals, in which all that were stopped at one moment have heard of each other
LETTER_BYTES_A_CHARACTER = 6  # a control character in JSON; so a letter of that many characters is never too large


def protocol_config(settings: UbiSettings) -> Config:
    """The configuration of an agent with these settings."""
    bounds = Bounds(
        window=settings.window,
        records=settings.letter_records,
        size=settings.max_letter_bytes // LETTER_BYTES_A_CHARACTER,
        resend=settings.resend_timeout,
    )
    return Config(
        replication=settings.replication,
        replicas=settings.ring_replicas,
        lease_timeout=settings.lease_timeout,
        failure_timeout=settings.failure_timeout,
        handoff_timeout=settings.handoff_timeout,
        bounds=bounds,
        outbox_records=settings.outbox_records,
        suppressed_keys=settings.suppressed_keys,
        leave_pause=min(LEAVE_PAUSE * settings.heartbeat_interval, settings.leave_timeout / 10),
        start_wait=settings.start_wait,
    )
