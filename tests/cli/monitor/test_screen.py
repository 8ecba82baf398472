"""Pictures of a crawl: redrawn on a terminal, printed at times elsewhere."""

from __future__ import annotations

from io import StringIO

import pytest

from scrapy_ubi.cli.monitor.screen import EVERY, UP_AND_CLEAR, Screen


def test_terminal_picture_is_overwritten_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("LINES", "10")
    out = StringIO()
    screen = Screen(out, terminal=True)
    screen.show(["a", "b"], 0.0)
    screen.show(["c", "x" * 50], 0.1, last=True)
    screen.show(["d"], 0.2)
    assert out.getvalue() == f"a\nb\n{UP_AND_CLEAR.format(2)}c\n{'x' * 19}\n\nd\n"


def test_picture_taller_than_the_terminal_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("LINES", "3")
    out = StringIO()
    Screen(out, terminal=True).show(["a", "b", "c", "d"], 0.0)
    assert out.getvalue() == "a\nb\n"


def test_file_gets_a_picture_now_and_then_and_the_last() -> None:
    out = StringIO()
    screen = Screen(out)
    for second in (0.0, EVERY / 2, EVERY, EVERY + 0.1):
        screen.show([f"at {second}"], second)
    screen.show(["last"], EVERY + 0.2, last=True)
    assert out.getvalue() == f"at 0.0\n\nat {EVERY}\n\nlast\n\n"
    assert "\x1b" not in out.getvalue()


def test_what_is_said_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    out = StringIO()
    screen = Screen(out, terminal=True)
    screen.show(["picture"], 0.0)
    screen.say("words")
    screen.show(["next"], 1.0)
    assert out.getvalue() == "picture\nwords\nnext\n"


def test_an_event_stays_above_the_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("LINES", "10")
    out = StringIO()
    screen = Screen(out, terminal=True)
    screen.tell("first")
    screen.show(["a", "b"], 0.0)
    screen.tell("killed")
    screen.show(["c"], 0.1)
    assert out.getvalue() == f"first\na\nb\n{UP_AND_CLEAR.format(2)}killed\nc\n"
    out = StringIO()
    Screen(out).tell("killed")
    assert out.getvalue() == "killed\n"
