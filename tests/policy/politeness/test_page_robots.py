"""What a page says to crawlers of itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.policy.politeness.page_robots import DIRECTIVES, in_order, read_fields, read_meta

NOW = 1795824000.0  # 2026-11-28


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (["noindex"], "noindex"),
        (["NoIndex , NOFOLLOW"], "noindex nofollow"),
        (["none"], "noindex nofollow"),
        (["noarchive", "nofollow"], "nofollow noarchive"),
        (["nocache"], "noarchive"),
        (["all", "index, follow", "nosnippet", "noimageindex", ""], ""),
        (["max-snippet: 20, noindex"], "noindex"),
        (["max-image-preview:large, max-video-preview:-1"], ""),
        (["mybot: noindex, nofollow"], "noindex nofollow"),
        (["MyBot:noindex"], "noindex"),
        (["otherbot: noindex, nofollow"], ""),
        (["otherbot: noindex, mybot: nofollow, noarchive"], "nofollow noarchive"),
        (["nofollow, otherbot: noindex, noarchive"], "nofollow"),
        (["otherbot: noindex", "nofollow"], "nofollow"),
        (["mybot: all", "noindex"], "noindex"),
        (["otherbot: max-snippet: 3, noindex"], ""),
        (["unavailable_after: 25 Jun 2010 15:00:00 PST"], "noindex"),
        (["unavailable_after: Friday, 25-Jun-10 15:00:00 GMT, nofollow"], "noindex nofollow"),
        (["unavailable_after: 2026-11-27"], "noindex"),
        (["unavailable_after: 2026-11-29T00:00:00Z"], ""),
        (["unavailable_after: 25 Jun 2110 15:00:00 PST"], ""),
        (["unavailable_after: soon, noarchive"], "noarchive"),
        (["mybot: unavailable_after: 2026-01-01"], "noindex"),
        (["noindexed, no index, no-follow"], ""),
    ],
)
def test_headers(fields: list[str], said: str) -> None:
    assert in_order(read_fields(fields, "mybot", NOW)) == said.split()


def test_metas() -> None:
    assert read_meta(" noindex,NoFollow ", NOW) == {"noindex", "nofollow"}
    assert read_meta("none", NOW) == {"noindex", "nofollow"}
    assert read_meta("unavailable_after: 2026-01-01, noarchive", NOW) == {"noindex", "noarchive"}
    assert read_meta("index, follow, max-snippet:-1", NOW) == set()


words = st.sampled_from("noindex|nofollow|none|noarchive|all|max-snippet: 3|unavailable_after: 2026-01-01".split("|"))


@given(st.lists(st.lists(words, min_size=1, max_size=4), max_size=4))
def test_fields_add_up_and_those_of_others_say_nothing(statements: list[list[str]]) -> None:
    fields = [", ".join(statement) for statement in statements]
    alone = set[str]().union(*(read_fields([field], "mybot", NOW) for field in fields)) if fields else set()
    assert read_fields(fields, "mybot", NOW) == alone == read_fields([", ".join(fields)], "mybot", NOW)
    assert read_fields([f"mybot: {field}" for field in fields], "mybot", NOW) == alone
    assert read_fields([f"otherbot: {field}" for field in fields], "mybot", NOW) == set()


@given(st.lists(st.text(max_size=60)), st.text(max_size=10))
def test_whatever_is_said_nothing_is_raised(fields: list[str], bot: str) -> None:
    assert read_fields(fields, bot, NOW) <= set(DIRECTIVES)
    assert all(read_meta(field, NOW) <= set(DIRECTIVES) for field in fields)
