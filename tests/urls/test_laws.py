"""The laws of normal forms on text that hypothesis draws: URL-like, any text, bytes read as text, lone surrogates."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tests.urls.laws import TOKENS, check

anything = st.text(st.characters(min_codepoint=0, max_codepoint=0x10FFFF, categories=None))
like_urls = st.lists(st.sampled_from(TOKENS) | anything, max_size=10).map("".join)
of_bytes = st.builds(lambda start, rest, codec: start + rest.decode(codec, "surrogateescape"),
    st.sampled_from(["", "http://", "http://h/", "https://h/?", "http://u@h:8/#"]),
    st.binary(max_size=40),
    st.sampled_from(["utf-8", "latin-1", "ascii"]),
)  # fmt: skip


@given(like_urls.map("http://h.example/{}".format) | like_urls.map("http://{}".format) | like_urls | anything)
@example("http://h/%%34%31")
@example("http://h/?'#")
@example("http://h/\udfff")
@example("http://h/%2e%2E;sid=1")  # found by atheris
@example("http://\ud800/")
def test_every_text_keeps_the_laws(text: str) -> None:
    check(text)


@given(of_bytes)
def test_every_run_of_bytes_keeps_the_laws(text: str) -> None:
    check(text)
