"""Settings that may not change while URLs wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_ubi.errors import UbiRefused
from scrapy_ubi.node.fixed import FIXED, check_settings, fixed

OWN = dict.fromkeys(FIXED, "own")


def test_settings_that_may_not_change_are_named_with_the_remedy(tmp_path: Path) -> None:
    facts = {"settings": fixed({**OWN, "spider": "s"})}
    check_settings(tmp_path, facts, OWN)
    check_settings(tmp_path, {}, OWN)
    for field, setting in FIXED.items():
        with pytest.raises(UbiRefused) as caught:
            check_settings(tmp_path, facts, {**OWN, field: "other"})
        said = str(caught.value)
        assert f"{setting} = {OWN[field]!r}, now it is 'other'" in said and "scrapy ubi reset" in said
