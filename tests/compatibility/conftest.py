"""These tests run where they are asked for by their mark: `make compatibility`, or `pytest -m compatibility`."""

from __future__ import annotations

import pytest

MARK = "compatibility"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave them out of every other run."""
    if MARK in str(config.option.markexpr):
        return
    ours = [item for item in items if item.get_closest_marker(MARK) is not None]
    if ours:
        config.hook.pytest_deselected(items=ours)
        items[:] = [item for item in items if item not in ours]
