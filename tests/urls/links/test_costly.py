"""Which pages are left to libxml2, because they may be deep or grow."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser, LexborNode

from scrapy_ubi.ground import later
from scrapy_ubi.urls.links import costly
from scrapy_ubi.urls.links.costly import ENDLESS, FEW, MOST, STEPS, is_costly, survey
from scrapy_ubi.urls.links.growth import left_open
from scrapy_ubi.urls.links.page import MANY_OPTIONS, Page, eased
from tests.urls.links.shapes import HOSTILE, ORDINARY

MANY = 2 * int(STEPS**0.5) + 10


@pytest.fixture(autouse=True, params=[True, False], ids=["numpy", "numpy_not_loaded_yet"])
def _numpy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers are the same while numpy is not loaded."""
    later.load("numpy")
    monkeypatch.setattr(costly, "is_loaded", lambda _: request.param)


@pytest.mark.parametrize("shape", HOSTILE)
def test_hostile_whatever_it_is_made_to_look_like(shape: str) -> None:
    assert is_costly(HOSTILE[shape](MANY))


@pytest.mark.parametrize("shape", ORDINARY)
def test_ordinary_however_long(shape: str) -> None:
    page = ORDINARY[shape](MANY if len(ORDINARY[shape](1)) < 200 else MANY // 10)
    found = survey(eased(page))
    assert not is_costly(page), found
    assert found.steps < STEPS // 2 and found.again < MOST // 2, "it comes near the bound"


@pytest.mark.parametrize("shape", ["long paragraphs", "prose before blocks", "blanks before blocks", "data in scripts"])
def test_long_text_is_not_taken_for_attributes(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To look at such pages tag by tag takes ten times as long as to parse them."""
    monkeypatch.setattr(costly, "is_loaded", lambda _: True)
    monkeypatch.setattr(costly, "survey", lambda *_: pytest.fail("looked at tag by tag"))
    assert not is_costly(ORDINARY[shape](100))


def elements_of(page: bytes) -> tuple[int, int]:
    """What lexbor makes of a page: the depth of its elements (without html and body), and how many formatting ones."""
    deepest = count = 0
    root = LexborHTMLParser(page).root
    waiting: list[tuple[LexborNode, int]] = [(root, -1)] if root is not None else []
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        count += node.tag in ("b", "i", "font")
        child = node.first_child
        while child is not None:
            if child.tag and not child.tag.startswith("-"):
                waiting.append((child, depth + 1))
            child = child.next
    return deepest, count


TAGS = (
    "div p ul li dl dd dt span b i a font nobr table tr td th tbody caption colgroup col select option optgroup button "
    "form input h1 h2 hr br pre section center main search dialog ruby rt svg g title desc foreignObject math mi mtext "
    "annotation-xml img image textarea script style object template noscript body html x"
).split()
FORMS = ("<{}>", "<{}>", "<{}>", "</{}>", "</{}>", "</{}>", "<{}/>", "<{} a>", "x")


@settings(deadline=None, max_examples=300)
@given(
    names=st.lists(st.sampled_from(TAGS), min_size=2, max_size=8, unique=True),
    draw=st.data(),
    doctype=st.sampled_from(["", "<!doctype html>", '<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01//EN">']),
)
def test_no_page_is_deeper_or_grows_more_than_is_told(names: list[str], draw: st.DataObject, doctype: str) -> None:
    tags = st.builds(str.format, st.sampled_from(FORMS), st.sampled_from(names))
    unit = "".join(draw.draw(st.lists(tags, min_size=3, max_size=14)))
    page = (doctype + unit * 40).encode()
    found = survey(page)
    if found.steps >= ENDLESS:
        return  # it is not read
    depth, formatting = elements_of(page)
    assert depth <= 2 * found.depth + 3, unit  # the parser brings along what tables lack
    begun = sum(unit.lower().count(f"<{name}") for name in ("b", "i", "font")) * 40
    assert formatting <= 4 * (begun + found.again) + 3, unit


@pytest.mark.parametrize("unit", ["<g><![CDATA[></g>]]>", "<link>", "<option>", "<tr>", "<x a=b/>"])
def test_deep_within_svg(unit: str) -> None:
    assert survey(b"<svg>" + unit.encode() * 1_000).depth > 1_000


def test_not_deep_within_svg() -> None:
    page = b'<svg class="x"><g><path d="M0"/><use href=x /></g></svg><![CDATA[x]]><br>' * 1_000
    assert survey(page).depth == 2


@pytest.mark.parametrize("before", ["<svg></svg>", "</svg>", "<svg/>", "<svg><p>", "<svg><desc>"])
def test_deep_behind_svg(before: str) -> None:
    assert survey(before.encode() + b"<path/>" * 1_000).depth >= 1_000


def test_what_is_text_or_not_by_what_is_open_is_not_sure() -> None:
    assert survey(b"<svg><desc><div><p></desc><textarea><b></textarea>").steps < ENDLESS
    assert survey(b"<math><annotation-xml><textarea><b></textarea>").steps >= ENDLESS


def test_elements_are_looked_through_at_some_tags_only() -> None:
    assert survey(b"<span>" * 1_000).steps == 1_000
    assert survey(b"<div>" * 1_000).steps == 500_500
    assert survey(b"<div>" * 1_000 + b"<img>" * 1_000).steps == 501_500


def test_few_elements_are_not_looked_at() -> None:
    assert not is_costly(b"<div>" * FEW)
    assert not is_costly(b"<div>" * 10_000)


def test_the_options_of_a_page_with_many_are_not_compared() -> None:
    page = b"<select name=a><option>x</select>" + b"<OPTION>" * MANY_OPTIONS + b"<SELECT\n><selected>"
    assert eased(page).startswith(b"<select multiple name=a><option>")
    assert eased(page).endswith(b"<SELECT multiple\n><selected>")
    assert eased(page[:-60]) == page[:-60]
    names = [node.text() for node in Page(b"<select>" + b"<option>x" * 2_000 + b"</select><p>y").tags("option")]
    assert names == ["x"] * 2_000


def growing(number: int, tag: str = "<b {}>") -> bytes:
    return ("<p>" + "".join(tag.format(i) for i in range(number)) + "<p>x" * number).encode()


def test_what_is_opened_anew() -> None:
    assert len(Page(growing(100)).tree.css("b")) == 101 * 100, "lexbor may have become wiser: is this still needed?"
    assert survey(growing(100)).again == 100 * 100


@pytest.mark.parametrize(
    "tag",
    ["<b {}>", "<FONT\n{}>", "<tt a='{}></tt>'>", "<s/{}>x", '<u a="{}>x</u>">', "<b {}><!--</b>-->"],
)
def test_a_page_that_grows(tag: str) -> None:
    assert is_costly(growing(800, tag))
    assert is_costly(growing(800, tag) + b"</b></i></tt></s></u></em></code>" * 800)
    assert not is_costly(growing(100, tag))


@pytest.mark.parametrize(
    "unit",
    [
        "<h1></h1></h1><h1><b {}>",
        "<h1></h2>x</h1><h1><td><h1/>x<i {}>",
        "<div></h2><h2/><i {}><h2></h2></h2>",
        "</form>x<h2><form/><p/><td a></h2></h2></form><h2><font {}>",
    ],
)
def test_what_may_have_been_ended_may_be_opened_again(unit: str) -> None:
    """Each took the parser gigabytes: 4,000 times the first one is 100 kB, and 8 million elements."""
    assert is_costly("".join(unit.format(i) for i in range(1_200)).encode())


def test_a_heading_in_which_an_anchor_is_open_again_is_not_ended_by_the_next() -> None:
    page = b"</form>x<h1><form/><p/><a></p><p><form a><p>" * 40
    assert 40 < elements_of(page)[0] <= 2 * survey(page).depth + 3


def test_formatting_with_equal_tags_is_opened_three_times_at_most() -> None:
    page = b"<p>" + b"<b>" * 1_000 + b"<p>x" * 1_000
    assert survey(page).again == 3 * 1_000
    assert len(Page(page).tree.css("b")) == 1_000 + 3 * 1_000


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
    assert survey(page).again == 0
    assert not is_costly(page * 4)


def test_formatting_around_links_does_not_grow() -> None:
    assert not is_costly(
        b"<p><b><a href=x><i class='y'>z</i></a></b><strong>a<br>b</strong><tt a='x>'></tt><code><hr></code>" * 4_000
    )
