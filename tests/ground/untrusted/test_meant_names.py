"""Names that were probably meant: by whole words, or none."""

from __future__ import annotations

import pytest

from scrapy_ubi.ground.untrusted.meant_names import ask_meant, find_meant
from scrapy_ubi.settings import SETTINGS


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("UBI_REDIS_ULR", ["UBI_REDIS_URL"]),
        ("UBI_HOST_DELY", ["UBI_HOST_DELAY"]),
        ("UBI_REDISURL", ["UBI_REDIS_URL"]),
        ("UBI_LIMITS", ["UBI_HOST_LIMITS", "UBI_CRAWL_LIMITS"]),
        ("ubi_max_body", ["UBI_MAX_BODY"]),
        ("UBI_DELAY", ["UBI_HOST_DELAY", "UBI_DELAY_FACTOR", "UBI_MAX_DELAY"]),
        ("UBI_FLUX_CAPACITOR", []),
        ("UBI_COLOUR", []),
        ("UBI_", []),
    ],
)
def test_what_is_meant_goes_by_whole_words_or_is_nothing(name: str, meant: list[str]) -> None:
    assert find_meant(name, [row.setting for row in SETTINGS]) == meant


def test_names_of_one_word_are_compared_by_their_letters() -> None:
    assert find_meant("wolk", ["walk", "jump"]) == ["walk"]
    assert find_meant("a11", ["a1", "b7"]) == ["a1"]
    assert find_meant("x", []) == find_meant("", ["a"]) == find_meant("zebra", ["walk"]) == []
    assert ask_meant("wolk", ["walk"]) == "did you mean walk" and ask_meant("zebra", ["walk"]) == ""
