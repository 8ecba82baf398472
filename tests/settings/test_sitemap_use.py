"""UBI_SITEMAPS: what is written, and what it means."""

from __future__ import annotations

import pytest
from scrapy.settings import Settings

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.settings.values import SitemapUse


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("no", SitemapUse()),
        (0, SitemapUse()),
        ("first", SitemapUse("first")),
        (10, SitemapUse("first", 10)),
        ("10", SitemapUse("first", 10)),
        ("only(10, since=2026-11-01)", SitemapUse("only", 10, "2026-11-01")),
        ("only(since=2026-11-01T01:02:03Z)", SitemapUse("only", 0, "2026-11-01T01:02:03Z")),
    ],
)
def test_what_is_written_is_read_and_written_again(written: object, means: SitemapUse) -> None:
    found = UbiSettings.from_scrapy(Settings({"UBI_SITEMAPS": written})).sitemaps
    assert found == means and bool(found) == (means.mode != "no")
    assert UbiSettings.from_scrapy(Settings({"UBI_SITEMAPS": str(found)})).sitemaps == means


@pytest.mark.parametrize(
    "written",
    [
        "yes", "first(", "first(x)", "first(1, 2)", "no(5)", "first(since=x)", "first(a=b)", "first only", -1, 1.5,
        True, [], "first(9999999999)",
    ],
)  # fmt: skip
def test_all_else_is_refused(written: object) -> None:
    with pytest.raises(UbiSettingError, match="UBI_SITEMAPS"):
        UbiSettings.from_scrapy(Settings({"UBI_SITEMAPS": written}))
