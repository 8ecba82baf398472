"""The pages that a newcomer reads first: the index is whole, so are the tables, and settings are named."""

from __future__ import annotations

import re
from pathlib import Path

from scrapy.settings import default_settings

from scrapy_ubi.adapter.process.start_remarks import CLOSING, QUEUES, REDIS_ADDRESS, REDIS_SCHEDULER
from scrapy_ubi.adapter.requests.untravelled import NEEDED
from scrapy_ubi.settings import SETTINGS

DOCS = Path(__file__).parents[2] / "docs"
DIFFERENCES = (DOCS / "reference" / "differences-from-scrapy.md").read_text()
FROM_SCRAPY_REDIS = (DOCS / "how-to" / "from-scrapy-redis.md").read_text()

# Names in capitals that are settings of scrapy-redis alone, or of Scrapy and gone from its defaults.
OF_SCRAPY_REDIS = {
    *REDIS_SCHEDULER,
    *REDIS_ADDRESS,
    "REDIS_PORT",
    "REDIS_DB",
    "REDIS_PARAMS",
    "REDIS_ENCODING",
    "REDIS_DECODE_RESPONSES",
    "REDIS_START_URLS_KEY",
    "REDIS_START_URLS_AS_SET",
    "REDIS_START_URLS_AS_ZSET",
    "MAX_IDLE_TIME_BEFORE_CLOSE",
    "REDIS_ITEMS_KEY",
    "REDIS_ITEMS_SERIALIZER",
    "DUPEFILTER_DEBUG",
    "STATS_KEY",
}


def rows(text: str) -> list[list[str]]:
    """The cells of all tables of a page."""
    return [re.split(r" ?\| ?", line)[1:-1] for line in text.splitlines() if line.startswith("|")]


def settings_named(text: str) -> set[str]:
    """Names of settings in the page; `CLOSESPIDER_*` stands for all that begin so."""
    return set(re.findall(r"`([A-Z]+(?:_[A-Z0-9]+)+)`", text))


def test_every_page_is_in_the_index() -> None:
    index = (DOCS / "README.md").read_text()
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    decisions = {page for page in pages if page.startswith("decisions/")} - {"decisions/README.md"}
    assert pages - decisions - {"README.md"} <= set(re.findall(r"\]\(([^)#]+)\)", index))


def test_the_table_of_differences_is_one_and_whole() -> None:
    table = rows(DIFFERENCES)
    assert len(re.findall(r"^\| --- ", DIFFERENCES, re.MULTILINE)) == 1
    assert len(table) > 50 and {len(row) for row in table} == {4}
    unsaid = [row[0] for row in table if not row[2].strip() and not row[0].startswith("**")]
    assert [name for name in unsaid if name] == []


def test_every_setting_that_is_passed_over_is_among_the_differences() -> None:
    named = settings_named(DIFFERENCES)
    assert {"SCHEDULER_DEBUG", "DUPEFILTER_CLASS", "CONCURRENT_REQUESTS_PER_DOMAIN", "DOWNLOAD_SLOTS", *QUEUES} <= named
    assert all(name.startswith("CLOSESPIDER_") for name in CLOSING) and "`CLOSESPIDER_*`" in DIFFERENCES


def test_no_setting_is_named_that_does_not_exist() -> None:
    known = {row.setting for row in SETTINGS} | vars(default_settings).keys()
    assert settings_named(DIFFERENCES) <= known
    assert settings_named(FROM_SCRAPY_REDIS) <= known | OF_SCRAPY_REDIS


def test_every_setting_of_scrapy_redis_has_a_row() -> None:
    first = " ".join(row[0] for row in rows(FROM_SCRAPY_REDIS))
    assert {name for name in OF_SCRAPY_REDIS if f"`{name}`" not in first} == set()


def test_why_a_page_fails_for_what_cannot_travel_is_a_reason_that_exists() -> None:
    named = set(re.findall(r"`codec/(\w+)`", DIFFERENCES)) - {"proxy"}
    assert named and named <= NEEDED
