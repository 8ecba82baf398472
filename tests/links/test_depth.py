"""Which pages are left to libxml2 because they may be deep."""

from __future__ import annotations

import pytest

from scrapy_ubi.links.depth import FEW, may_be_deep

MANY = FEW + 10


@pytest.mark.parametrize(
    "unit",
    [
        "<div>",
        "<DIV >",
        "<ul><li>",
        "<div></x>",
        "<div></p>",
        "<div a='</div>'>",
        '<div a="></div>">',
        "<div><!--</div>-->",
        "<!--><div>",
        "<div><?</div>",
        "<div></ </div>",
        "<div><object></div>",
        "<table><tr><td></div>",
    ],
)
def test_deep_whatever_it_is_made_to_look_like(unit: str) -> None:
    assert may_be_deep(unit.encode() * MANY)


@pytest.mark.parametrize(
    "unit",
    [
        "<div><a href=x>y</a></div>",
        "<p>x",
        "<p>x</p>",
        "<br>",
        "<img src=x>",
        "<ul><li>x<li>y</ul>",
        "<dl><dt>x<dd>y</dl>",
        "<table><tr><td>x<td>y<tr><td>z</table>",
        "<select><option>x<option>y</select>",
        "<!-- <div> -->",
        "a < b <= c",
    ],
)
def test_not_deep_however_long(unit: str) -> None:
    assert not may_be_deep(unit.encode() * MANY)


def test_few_elements_are_not_looked_at() -> None:
    assert not may_be_deep(b"<div>" * (FEW - 1))
