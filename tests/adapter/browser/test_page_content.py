"""Which pages are made by scripts, by the page as it was sent and as a browser shows it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.adapter.browser.shown_pages import has_scripts, is_made_by_scripts, read_content

TEXT = " ".join(f"word{number}" for number in range(100))
LINKS = "".join(f"<a href='/{number}'>{number}</a>" for number in range(20))
SHELL = f"<html><body><div id=app></div><script>var text = '{TEXT}'</script><noscript>Turn on scripts</noscript>"


@pytest.mark.parametrize(
    ("sent", "shown", "made"),
    [
        (SHELL, f"<body><div id=app><h1>News</h1><p>{TEXT}</p></div>", True),
        (f"<p>{TEXT}</p>", f"<p>{TEXT}</p>", False),
        (f"<p>{TEXT}</p>", f"<p>{TEXT}</p><div>We use cookies, do you agree?</div>", False),
        (f"<p>{TEXT}</p>", f"<p>{TEXT}</p><ul>{LINKS}</ul>", True),
        (f"<p>{TEXT}</p>{LINKS}", f"<p>{TEXT}</p>{LINKS}<a href='/more'>more</a>", False),
        (SHELL, "<body><div id=app>Error 500</div>", False),
        (f"<p>{TEXT}</p>", "", False),
        ("", "", False),
    ],
)
def test_scripts_have_made_a_page_where_a_good_part_of_what_is_shown_was_not_sent(
    sent: str, shown: str, made: bool
) -> None:
    assert is_made_by_scripts(read_content(sent), read_content(shown)) is made


def test_what_nobody_sees_is_no_content() -> None:
    assert read_content(SHELL).words == {} and read_content(SHELL).is_shell
    assert not read_content(f"<p>{TEXT}").is_shell


@given(st.text(max_size=300))
def test_any_text_is_read_and_is_not_made_by_scripts_where_it_is_as_it_was(html: str) -> None:
    content = read_content(html)
    assert not is_made_by_scripts(content, content)


def test_a_page_without_a_script_is_what_it_is() -> None:
    assert has_scripts(b"<p><script src=x>") and has_scripts(b"<SCRIPT>") and not has_scripts(b"<p>script</p>")
