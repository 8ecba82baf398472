"""Which records of a page count: the same whatever the order in which they are found."""

from __future__ import annotations

from itertools import permutations

import pytest

from scrapy_ubi.outputs.choice import Claim, chosen, claim_of, order

OK, LATER, FAILED = Claim("ok", 0, 1, 5), Claim("ok", 2, 0, 9), Claim("failed", 7, 0, 1)
AGAIN, AGAIN_TOO = Claim("again", 0, 0, 0), Claim("again", 0, 3, 0)


@pytest.mark.parametrize(
    ("claims", "wanted"),
    [
        ([], []),
        ([OK, LATER], [LATER]),
        ([OK, FAILED], [OK]),
        ([FAILED], [FAILED]),
        ([OK, Claim("ok", 0, 0, 7)], [Claim("ok", 0, 0, 7)]),
        ([AGAIN, AGAIN_TOO, LATER], [AGAIN, LATER]),
        ([AGAIN, OK], [OK]),
        ([AGAIN, AGAIN_TOO, Claim("again", 1, 2, 2)], [AGAIN, Claim("again", 1, 2, 2)]),
    ],
)
def test_one_of_each_counts(claims: list[Claim], wanted: list[Claim]) -> None:
    for some in permutations(claims):
        assert chosen(some) == wanted


def test_an_order_is_that_of_one_claim() -> None:
    for claim in (OK, LATER, FAILED, AGAIN):
        assert claim_of(*order(claim)) == claim
