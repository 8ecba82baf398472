"""Limits of hosts as settings of agents that are made by hand."""

from __future__ import annotations

from typing import Any

from scrapy_ubi.settings.host_limits import NAMES, HostLimitsTable, Limits


def limited(**given: Any) -> dict[str, Any]:
    """Fields of `UbiSettings`: limits of all hosts by their names, and others as they are."""
    limits = {name: value for name, value in given.items() if name in NAMES}
    others = {name: value for name, value in given.items() if name not in NAMES}
    return {**others, "host_limits": HostLimitsTable(others=Limits(**limits))} if limits else others
