"""When pages are visited again, how often, and what is done with them then."""

from __future__ import annotations

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.settings_table.row import Setting

ROWS: tuple[Setting, ...] = (
    Setting(
        "recrawl",
        "recrawl",
        "",
        "By which rule pages are visited again; none: each is visited once.",
    ),
    Setting(
        "recrawl_rounds",
        "int",
        None,
        "How often each page is visited again at most, before the crawl ends; None: there is no end.",
        default_text="None",
        low=1,
        high=1_000_000,
    ),
    Setting(
        "recrawl_call",
        "choice",
        "changed",
        "Whether the callback is called for a page that is as it was when it was visited last.",
        choices=("changed", "always"),
    ),
)


def check_recrawl(recrawl: str, rounds: int | None, *, iterate: bool, sitemaps: int) -> None:
    """Raise UbiSettingError where rounds are counted and no page is visited again, and where the rule cannot be kept
    with other settings."""
    if recrawl.startswith("sitemap") and not sitemaps:
        raise UbiSettingError(
            "UBI_RECRAWL",
            f"is {recrawl!r}, and UBI_SITEMAPS is 0",
            "say in UBI_SITEMAPS how many URLs may be taken of the sitemaps that a robots.txt names",
        )
    if recrawl and iterate:
        raise UbiSettingError(
            "UBI_RECRAWL", "is set, and so is UBI_HOST_ITERATE", "remove one of them: iterations are for pages found"
        )
    if rounds is not None and not recrawl:
        raise UbiSettingError(
            "UBI_RECRAWL_ROUNDS",
            f"is {rounds} and UBI_RECRAWL is not set",
            "name a rule in UBI_RECRAWL, such as 'adaptive(1d, 1h, 30d)'",
        )
