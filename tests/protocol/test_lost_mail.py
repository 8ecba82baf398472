"""Agents tell each other that mail to them was lost, and say it again."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.protocol.lost_mail import LANE, LostMail


class Ear:
    """One agent's side."""

    def __init__(self, me: str, *members: str) -> None:
        self.repeated: list[str] = []
        self.forgotten: list[str] = []
        self.life = f"{me}1"
        self.mail = LostMail(me, lambda: self.life, lambda: members, self.repeat, self.forgotten.append)

    def repeat(self, of: Collection[str]) -> None:
        self.repeated += of


def test_another_memory_of_the_own_slot_is_told_to_all_others_once() -> None:
    a, b = Ear("a", "a", "b", "c"), Ear("b", "a", "b", "c")
    assert not a.mail.note_memory("one")
    assert not a.mail.messages(0.0)
    assert a.mail.note_memory("two")
    told = a.mail.messages(0.0)
    assert {receiver for receiver, _ in told} == {"b", "c"}
    assert not a.mail.messages(0.0)
    for _ in range(2):  # a text is read again until it is forgotten
        assert b.mail.hear(LANE + "a", told["b", LANE + "a"], 0.0)
    assert b.repeated == ["a"]
    assert b.forgotten == [LANE + "a"] * 2
    assert a.mail.note_memory("three")
    assert b.mail.hear(LANE + "a", a.mail.messages(0.0)["b", LANE + "a"], 0.0)
    assert b.repeated == ["a", "a"]


def test_a_slot_of_which_nothing_is_known_for_a_while_has_lost_nothing() -> None:
    a = Ear("a", "a", "b")
    assert [a.mail.note_memory(memory) for memory in ("", "one", "", "one", "")] == [False] * 5
    assert a.mail.note_memory("two")


def test_texts_of_another_kind_are_left_to_others() -> None:
    assert not Ear("a").mail.hear("rates b", "{}", 0.0)


@given(st.text())
@pytest.mark.parametrize("form", ["{}", '{{"from":{},"number":1}}', '{{"from":"x","number":{}}}'])
def test_what_does_not_hold_says_nothing(form: str, text: str) -> None:
    a = Ear("a")
    assert a.mail.hear(LANE + "b", form.format(text), 0.0)
    assert not a.repeated or text.strip().removeprefix("-").isdigit() or text.strip()[:1] == '"'
