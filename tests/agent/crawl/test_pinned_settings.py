"""Settings that may not change while URLs wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_ubi.agent.crawl.pinned_settings import BEFORE, FIXED, check_settings, fixed
from scrapy_ubi.agent.profile import figures
from scrapy_ubi.errors import UbiRefused
from scrapy_ubi.settings import UbiSettings

OWN = dict.fromkeys(FIXED, "own")


def test_settings_that_may_not_change_are_named_with_the_remedy(tmp_path: Path) -> None:
    facts = {"settings": fixed({**OWN, "spider": "s"})}
    check_settings(tmp_path, facts, OWN)
    check_settings(tmp_path, {}, OWN)
    for field, setting in FIXED.items():
        with pytest.raises(UbiRefused) as caught:
            check_settings(tmp_path, facts, {**OWN, field: "other"})
        said = str(caught.value)
        assert "scrapy ubi reset" in said
        assert field == "steps" or f"{setting} = {OWN[field]!r}, now it is 'other'" in said


def test_a_crawl_begun_under_the_default_of_an_earlier_version_is_not_gone_on_with(tmp_path: Path) -> None:
    """Its URLs have other keys: they would be fetched again."""
    own = figures.fixed(UbiSettings(), "a", "s")
    before = {field: value for field, value in fixed(own).items() if field not in BEFORE}
    with pytest.raises(UbiRefused) as caught:
        check_settings(tmp_path, {"settings": {**before, "normaliser": "safe"}}, own)
    assert str(caught.value) == (
        f"The crawl in {tmp_path} was begun with UBI_NORMALISE = 'safe', which was the default of an earlier version, "
        "now it is 'scrapy': set it back to go on with that crawl, or forget the crawl with `scrapy ubi reset`."
    )
    safe = figures.fixed(UbiSettings(normalise="safe"), "a", "s")
    check_settings(tmp_path, {"settings": {**before, "normaliser": "safe"}}, safe)


@pytest.mark.parametrize("normalise", ["safe +session", "learned", "larm +query-order", "scrapy +session"])
def test_a_crawl_begun_by_other_rules_of_the_same_steps_is_not_gone_on_with(tmp_path: Path, normalise: str) -> None:
    own = figures.fixed(UbiSettings(normalise=normalise), "a", "s")
    before = {field: value for field, value in fixed(own).items() if field not in BEFORE}
    with pytest.raises(UbiRefused, match=r"version 1, now 2.*version of scrapy-ubi that began it"):
        check_settings(tmp_path, {"settings": before}, own)
    for same in ("larm", "safe +tracking"):
        assert figures.fixed(UbiSettings(normalise=same), "a", "s")["steps"] == BEFORE["steps"]
