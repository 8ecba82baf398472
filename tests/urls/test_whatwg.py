"""What stands in for can_ada gives the same normal forms, to the byte; without can_ada it is taken by itself."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.urls import whatwg
from tests.urls import test_normal, test_tables
from tests.urls.laws import TOKENS

can_ada = pytest.importorskip("can_ada")
compare_parsers = pytest.importorskip("tests.urls.compare_parsers")


def agree(text: str) -> None:
    assert compare_parsers.by(whatwg.parse, text) == compare_parsers.by(can_ada.parse, text), ascii(text)


def test_some_thousand_made_up_urls_have_the_same_normal_forms() -> None:
    seed = random.randrange(2**32)
    print(f"random.Random({seed})")
    assert [*compare_parsers.differing(random.Random(seed), 5000)] == []


@given(st.lists(st.one_of(st.sampled_from(TOKENS), st.text(max_size=3)), max_size=8).map("".join))
def test_any_text_behind_a_scheme_has_the_same_normal_form(rest: str) -> None:
    if all(ord(character) <= compare_parsers.OLDEST for character in rest):
        agree(f"http://{rest}")
        agree(f"https://h.example/{rest}")


def test_the_vectors_have_the_same_normal_forms() -> None:
    texts = [*_texts(vars(test_normal)), *_texts(vars(test_tables))]
    assert len(texts) > 200
    for text in texts:
        agree(text)


def _texts(found: object) -> set[str]:
    """All texts in there that look like URLs."""
    if isinstance(found, str):
        return {found} if "://" in found else set()
    parts = found.values() if isinstance(found, dict) else found if isinstance(found, list | tuple | set) else ()
    marks = getattr(found, "pytestmark", ())
    inner = [mark.args for mark in marks if mark.name == "parametrize"]
    return {text for part in [*parts, *inner] for text in _texts(part)}


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("HTTP://User:P@H.Example:80/a/./../b?ä#ö", "http://User:P@h.example/b?%C3%A4#%C3%B6"),
        ("https://faß.de:0443", "https://xn--fa-hia.de/"),
        ("http:/\\[1:0:0:2::]\\a", "http://[1:0:0:2::]/a"),
        ("http://0x7f.1", "http://127.0.0.1/"),
    ],
)
def test_urls_are_written_as_the_standard_says(url: str, expected: str) -> None:
    assert whatwg.parse(url) == expected == str(can_ada.parse(url))


@pytest.mark.parametrize(
    "url", ["", "a", "ftp://h/", "http://", "http://h:65536", "http://1.2.3.256", "http://[::g]", "http://\ud800"]
)
def test_what_is_no_url_of_a_host_is_refused(url: str) -> None:
    with pytest.raises(ValueError):
        whatwg.parse(url)


def test_a_long_host_takes_no_time() -> None:
    for host in ("ü" * 200_000, "xn--" + "a" * 200_000, "1" * 200_000, "a." * 100_000 + "ü", "\xad" * 200_000 + "ü"):
        agree(f"http://{host}/")


def test_without_can_ada_it_is_taken_by_itself() -> None:
    script = (
        "import sys; sys.modules['can_ada'] = None\n"
        "from scrapy_ubi.urls import normal_form\n"
        "print(normal_form('HTTP://B\\u00fccher.DE:80/%7ea/../b'))\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert ended.stdout == "http://xn--bcher-kva.de/b\n", ended.stderr
