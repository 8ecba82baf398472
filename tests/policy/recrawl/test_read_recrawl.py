"""UBI_RECRAWL as text: every rule reads back, what does not hold is one sentence with the remedy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.settings import Settings

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.policy.recrawl import durations, read_recrawl
from scrapy_ubi.settings import UbiSettings

HOLDS = {
    "every(1d)": "every(1d)",
    "every(36h)": "every(36h)",
    "adaptive": "adaptive(1d, 1h, 30d)",
    "adaptive(1d, 1h, 30d)": "adaptive(1d, 1h, 30d)",
    "adaptive(2h)": "adaptive(2h, 1h, 30d)",
    "adaptive(1d, 1h, 30d, unchanged=2, changed=0.25, shift=0.1, failed=2h)": (
        "adaptive(1d, 1h, 30d, unchanged=2, changed=0.25, shift=0.1, failed=2h)"
    ),
    "nutch": "adaptive(30d, 1m, 365d, unchanged=1.4, changed=0.8, shift=0.3)",
    "stormcrawler": "adaptive(1d, 1h, 2w, failed=2h)",
    "budget(1000/h)": "budget(1000/h, 1h, 30d)",
    "budget(5/s, 30s, 90m)": "budget(5/s, 30s, 90m)",
    "sitemap": "sitemap(1d, 1h, 30d)",
    "new": "new(1d)",
    "new(2w)": "new(2w)",
}
REFUSED = {
    "every": "write times as",
    "every(1)": "write times as",
    "every(0s)": "write times as",
    "every(1d, 2d)": "give one",
    "every(1d) new": "2 rules where one is meant",
    "every(1d": "cannot be read",
    "adaptive(1h, 1d)": "the first interval, the least and the most",
    "adaptive(1d, 1h, 30d, 60d)": "give 3 at most",
    "adaptive(changed=2)": "give a number from 0.01 to 1",
    "adaptive(changed=nan)": "give a number from 0.01 to 1",
    "adaptive(grown=2)": "grown=",
    "nutch(1d)": "it takes none with a key",
    "budget": "write rates as",
    "budget(1000)": "write rates as",
    "budget(0/h)": "write rates as",
    "budget(1/s, 1d, 1h)": "the least interval and the most",
    "weekly": "the rules are adaptive, budget, every, new, nutch, sitemap, stormcrawler",
}


@pytest.mark.parametrize(("text", "one"), HOLDS.items())
def test_each_rule_has_one_text_that_reads_back(text: str, one: str) -> None:
    rule = read_recrawl(text)
    assert str(rule) == one and read_recrawl(one) == rule
    assert UbiSettings.from_scrapy(Settings({"UBI_RECRAWL": text, "UBI_SITEMAPS": 10})).recrawl.rule == one


@pytest.mark.parametrize(("text", "said"), REFUSED.items())
def test_what_does_not_hold_is_one_sentence(text: str, said: str) -> None:
    with pytest.raises(UbiSettingError) as caught:
        read_recrawl(text)
    assert caught.value.setting == "UBI_RECRAWL" and said in str(caught.value) and "\n" not in str(caught.value)


def test_no_rule_and_one_as_a_tuple() -> None:
    assert read_recrawl(None) is read_recrawl("") is read_recrawl(" ") is None
    assert str(read_recrawl(("adaptive", "2h", {"shift": 0.5}))) == "adaptive(2h, 1h, 30d, shift=0.5)"
    with pytest.raises(UbiSettingError, match="is no rule"):
        read_recrawl(5)


@pytest.mark.parametrize("rule", ["every(1d)", "nutch", "budget(1000/h)", "new(1d)", "adaptive(1d, shift=0.5)"])
def test_any_rule_may_say_its_rounds_and_when_callbacks_are_called(rule: str) -> None:
    more = "rounds=3, call=always"
    text = f"{rule[:-1]}, {more})" if rule.endswith(")") else f"{rule}({more})"
    plain = UbiSettings.from_scrapy(Settings({"UBI_RECRAWL": rule})).recrawl
    assert UbiSettings.from_scrapy(Settings({"UBI_RECRAWL": text})).recrawl == (plain.rule, 3, True)
    assert plain[1:] == (None, False)
    as_a_tuple = UbiSettings.from_scrapy(Settings({"UBI_RECRAWL": ("every", "1d", {"rounds": 3})}))
    assert as_a_tuple.recrawl == ("every(1d)", 3, False)


@pytest.mark.parametrize(
    "more", ["rounds=0", "rounds=x", "rounds=1, 2", "rounds=1000001", "call=no", "call=always, changed"]
)
def test_rounds_and_calls_are_checked(more: str) -> None:
    with pytest.raises(UbiSettingError, match=f"which has {more}"):
        UbiSettings.from_scrapy(Settings({"UBI_RECRAWL": f"every(1d, {more})"}))


def test_sitemaps_have_to_be_read() -> None:
    with pytest.raises(UbiSettingError, match=r"UBI_RECRAWL is 'sitemap\(1d, 1h, 30d\)', and UBI_SITEMAPS is 'no'"):
        UbiSettings.from_scrapy(Settings({"UBI_RECRAWL": "sitemap"}))


@given(st.integers(1, 3650 * 86_400))
def test_times_read_back(seconds: int) -> None:
    assert durations.read(durations.write(float(seconds))) == seconds


@given(st.integers(1, 10**9), st.sampled_from("smhdw"))
def test_rates_read_back(number: int, unit: str) -> None:
    each = number / durations.UNITS[unit]
    if each <= durations.HIGHEST_RATE:
        assert durations.read_rate(durations.write_rate(each)) == pytest.approx(each, rel=1e-9)
