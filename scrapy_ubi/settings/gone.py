"""Settings that are none any more: what is to be done instead. A start with one of them is refused with that."""

from __future__ import annotations

from collections.abc import Mapping

_TIMES = "remove it, it follows from UBI_FAILURE_TIMEOUT"
_MEMORY = "remove it, it follows from UBI_MEMORY_MB"
_FLUSHES = "remove it, it follows from UBI_HEARTBEAT_INTERVAL"
_FIXED = "remove it, it is the same for all crawls"

GONE: Mapping[str, str] = {
    "UBI_DUPLICATES_ACTION": "write it into UBI_DUPLICATES, for example 'near(3, skip)'",
    "UBI_ERROR_BURST_SECONDS": "remove it, UBI_ERROR_BURST counts the errors of a minute",
    "UBI_ERROR_LOG": "remove it, the file is errors.log in UBI_DIR",
    "UBI_FLUSH_INTERVAL": _FLUSHES,
    "UBI_FLUSH_RECORDS": _MEMORY,
    "UBI_HANDOFF_TIMEOUT": _TIMES,
    "UBI_HOST_COOKIES": "remove it, cookies always go with their host; COOKIES_ENABLED = False keeps none",
    "UBI_LETTER_RECORDS": _FIXED,
    "UBI_MAX_BODY_TYPES": "write UBI_MAX_BODY = 'all(1000000)' to cut everything, and a number to cut HTML",
    "UBI_MAX_CRAWL_DELAY": "use UBI_MAX_DELAY, which holds for every delay that is found out",
    "UBI_OUTBOX_RECORDS": _MEMORY,
    "UBI_REPLICAS": "remove it, and use UBI_AGENT_CAPACITY to give an agent more hosts or less",
    "UBI_RESEND_TIMEOUT": _FLUSHES,
    "UBI_RETRY_AFTER_TIMES": "use UBI_HOST_TRIES, which counts both",
    "UBI_SHIP_SECONDS": "give the store its seconds, for example UBI_STORES = ['items(seconds=60)']",
    "UBI_SHIP_TIMEOUT": "remove it, it is ten times UBI_LEAVE_TIMEOUT",
    "UBI_STALL_TIMEOUT": _TIMES,
    "UBI_STORE_MB": _MEMORY,
    "UBI_SUPPRESSED_KEYS": _MEMORY,
    "UBI_WINDOW": _FIXED,
}
