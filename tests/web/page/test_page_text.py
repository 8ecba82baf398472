"""What holds of the page's text, without a browser."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from scrapy_ubi.web.page import MOST_BYTES, SCRIPTS, pack_script, write_page

HOUSE = files("scrapy_ubi.web.page")
LONGEST = 350  # lines of a file


def test_it_is_small() -> None:
    assert len(write_page("x" * 24).encode()) < MOST_BYTES


def test_it_carries_the_nonce_twice_and_nothing_else_to_fill_in() -> None:
    assert re.findall(r'nonce="([^"]*)"', write_page("r4nd0m+/=")) == ["r4nd0m+/=", "r4nd0m+/="]
    assert not re.search(r"\{(nonce|style|script)\}", write_page("abc"))


@pytest.mark.parametrize("nonce", ["", '"><script>', "a b", "x" * 1000, "é", "=="])
def test_a_nonce_that_could_be_markup_is_refused(nonce: str) -> None:
    with pytest.raises(ValueError, match="nonce"):
        write_page(nonce)


def test_it_names_no_other_origin() -> None:
    found = set(re.findall(r"https?://[^\s'\"`)<]*", write_page("abc")))
    assert {one for one in found if ".example" not in one} <= {
        "http://www.w3.org/2000/svg",
        "http://${typed}/",
        "http://…",
    }


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_makes_markup_or_code_of_text(name: str) -> None:
    text = HOUSE.joinpath(name).read_text("utf-8")
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|srcdoc"
        r"|\beval\b|new Function|setTimeout\(\s*[\"'`]",
        text,
    )
    assert not re.search(r"localStorage|indexedDB|document\.cookie|XMLHttpRequest|WebSocket|import\(", text)
    assert text.startswith("//"), "a script opens with what lives there"
    assert "Rules" in text[:600]
    assert len(text.splitlines()) <= LONGEST


@pytest.mark.parametrize("name", SCRIPTS)
def test_requests_are_made_in_one_place(name: str) -> None:
    text = HOUSE.joinpath(name).read_text("utf-8")
    assert ("fetch(" in text) == (name == "server.js")


def test_every_file_of_the_page_is_in_the_package() -> None:
    there = {one.name for one in HOUSE.iterdir() if one.name.endswith(".js")}
    assert there == set(SCRIPTS)


def test_the_markup_has_no_inline_handler_and_no_style_attribute() -> None:
    markup = HOUSE.joinpath("page.html").read_text("utf-8")
    assert not re.search(r"\son\w+=|\sstyle=", markup)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("const a = (b, c) => { return b + c; };", "const a=(b,c)=>{return b + c;};"),
        ('  f("a  ,  b");\n// a comment\n\n  g();', 'f("a  ,  b");\ng();'),
        ("`a , ${b ? `c : ${ {d: 1} } , e` : \"f , g\"} , h`", "`a , ${b?`c : ${{d:1}} , e`:\"f , g\"} , h`"),
        ("a = b - -c;", "a=b - -c;"),
    ],
)  # fmt: skip
def test_packing_leaves_texts_and_templates_alone(text: str, kept: str) -> None:
    assert pack_script(text) == kept


def test_packing_refuses_what_has_no_end() -> None:
    with pytest.raises(ValueError, match="no end"):
        pack_script("a = `b ${c}")
