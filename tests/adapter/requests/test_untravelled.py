"""What of a request cannot travel: what follows of it, and what can be done."""

from __future__ import annotations

import pytest

from scrapy_ubi.adapter.requests.untravelled import HARMLESS, LONGEST_SHOWN, NEEDED, Loss, mark, part_of, sentences


def test_a_text_says_what_its_request_needs_and_lacks_the_callback_before_all() -> None:
    meta, errback, callback = Loss("meta/Selector", "m"), Loss("errback", "e"), Loss("callback", "c")
    assert mark([]) is None
    assert mark([errback, Loss("flags/object", "f"), Loss("dumps_kwargs", "d")]) is None
    assert mark([errback, meta]) == ["meta", "m"]
    assert mark([meta, callback]) == ["callback", "c"]
    assert mark([Loss("meta/x", "\ud800" * 999)]) == ["meta", "?" * LONGEST_SHOWN]


@pytest.mark.parametrize("part", sorted(NEEDED))
def test_what_fails_a_page_says_so_with_its_reason(part: str) -> None:
    sentence = sentences(Loss(part, ""))
    assert f"or after a restart, the page fails with the reason codec/{part}. " in sentence and sentence.endswith(".")


@pytest.mark.parametrize("part", sorted(HARMLESS))
def test_what_does_not_says_why_not(part: str) -> None:
    assert f"another agent fetches the page without it ({HARMLESS[part]})" in sentences(Loss(f"{part}/object", ""))


def test_a_value_that_no_agent_takes_is_to_be_corrected() -> None:
    loss = Loss("meta/proxy", "", refused=True)
    assert (
        part_of(loss) == "meta"
        and "Correct it" in sentences(loss)
        and "Correct it" not in sentences(loss._replace(refused=False))
    )
