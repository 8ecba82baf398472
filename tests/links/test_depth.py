"""Which pages are left to libxml2, because they may be deep or grow."""

from __future__ import annotations

import pytest

from scrapy_ubi.links.costly import FEW, STEPS, is_costly
from scrapy_ubi.links.depth import DEEP, survey
from scrapy_ubi.links.growth import left_open
from scrapy_ubi.links.page import Page

MANY = int(STEPS**0.5) + 10


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
        '<div "><div a=b"><div ="><div a = \'>\'>',
        "<div></><div>",
        "<div></=><div>",
    ],
)
def test_deep_whatever_it_is_made_to_look_like(unit: str) -> None:
    assert is_costly(unit.encode() * MANY)


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
    assert not is_costly(unit.encode() * MANY)


@pytest.mark.parametrize("unit", ["<g><![CDATA[></g>]]>", "<link>", "<option>", "<tr>", "<p a=b/>"])
def test_deep_within_svg(unit: str) -> None:
    assert survey(b"<svg>" + unit.encode() * (DEEP + 1))[0] > DEEP


def test_not_deep_within_svg() -> None:
    assert survey(b'<svg class="x"><g><path d="M0"/><use href=x /></g></svg><![CDATA[x]]><br>' * DEEP) == (2, 0)


@pytest.mark.parametrize(
    "before", ["<svg></svg>", "</svg>", "<svg/>", "<svg><p>", "<svg><desc>", "<textarea><svg></textarea>"]
)
def test_deep_behind_svg(before: str) -> None:
    assert survey(before.encode() + b"<path/>" * (DEEP + 1))[0] > DEEP


def test_not_very_deep_but_looked_through_by_very_many_tags() -> None:
    assert is_costly(b"<span>" * 4_000 + b"</x>" * 40_000)
    assert not is_costly(b"<span>" * 900 + b"</x>" * 400_000)


def test_end_tags_that_end_nothing_are_not_looked_for_without_end() -> None:
    assert survey(b"<x><div>" + b"<li><p>" * 490 + b"</x>" * 3_000)[0] > DEEP
    assert survey(b"<x><div>" + b"<li><p>" * 490 + b"</x>" * 300)[0] == 982


def test_few_elements_are_not_looked_at() -> None:
    assert not is_costly(b"<div>" * FEW)
    assert not is_costly(b"<div>" * (MANY - 20))


def growing(number: int, tag: str = "<b {}>") -> bytes:
    return ("<p>" + "".join(tag.format(i) for i in range(number)) + "<p>x" * number).encode()


def test_what_is_opened_anew() -> None:
    assert len(Page(growing(100))._tree.css("b")) == 101 * 100, "lexbor may have become wiser: is this still needed?"


@pytest.mark.parametrize(
    "tag",
    [
        "<b {}>", "<FONT\n{}>", "<code class={}><h1></code>", "<tt a='{}></tt>'>", "<s/{}>x<i></s>",
        '<u a="{}>x</u>">', "<em {}><table></em></table>", "<b {}><p></b>", "<svg><i {}/></svg>", "<b {}><!--</b>-->",
    ],
)  # fmt: skip
def test_a_page_that_grows(tag: str) -> None:
    assert is_costly(growing(600, tag))
    assert is_costly(growing(600, tag) + b"</b></i></tt></s></u></em></code>" * 600)
    assert not is_costly(growing(100, tag))


@pytest.mark.parametrize(
    "unit",
    [
        "<p><b>x</b>",
        '<li><code class="x y">a</code> or <code class=z><span class="pre">b</span> c</code></li>',
        "<em\nid='x'>y</em><p>",
    ],
)
def test_formatting_that_is_ended_does_not_grow(unit: str) -> None:
    page = unit.encode() * 1_000
    assert left_open(page, [at for at in range(len(page)) if page.startswith((b"<b", b"<code", b"<em"), at)]) == 0
    assert not is_costly(page * 4)


def test_formatting_around_links_does_not_grow() -> None:
    assert not is_costly(
        b"<p><b><a href=x><i class='y'>z</i></a></b><strong>a<br>b</strong><tt a='x>'></tt><code><hr></code>" * 4_000
    )
