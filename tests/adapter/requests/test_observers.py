"""Observers: who overrides a hook hears of it, in order; nobody else costs anything."""

from __future__ import annotations

from typing import Any

from scrapy import Request
from scrapy.http import Response

from scrapy_ubi.adapter.requests.inflight import Flight, Flights, FoundLinks
from scrapy_ubi.adapter.requests.observers import HOOKS, Observers, PageObserver

URL = "http://h1.example/"


def flight() -> Flight:
    return Flight(Request(URL), "h1.example")


class Hearing(PageObserver):
    """Notes what it hears of."""

    marks = ("mine", "ours")

    def __init__(self, name: str, heard: list[str]) -> None:
        self.name, self.heard = name, heard

    def begun(self, flight: Flight) -> None:
        self.heard.append(f"{self.name} begun")

    def ended(self, flight: Flight) -> None:
        self.heard.append(f"{self.name} ended")


class Links(PageObserver):
    wants_links = True
    marks = ("ours", "theirs")


def test_a_hook_has_the_methods_of_those_alone_that_override_it() -> None:
    observers = Observers(Flights())
    observers.add(Hearing("a", []))
    assert {hook: len(getattr(observers, hook)) for hook in HOOKS if getattr(observers, hook)} == {
        "begun": 1,
        "ended": 1,
    }


def test_every_hook_of_the_contract_has_a_list_and_does_nothing_by_itself() -> None:
    own = {name for name, value in vars(PageObserver).items() if callable(value) and not name.startswith("_")}
    assert own == set(HOOKS)
    idle, page, response = PageObserver(), flight(), Response(URL)
    assert (idle.full(), idle.passes_over(page, response), idle.refuses(page, response, {})) == ("", False, False)
    for hook, *arguments in (
        ("begun",), ("received", response), ("answered", response), ("failed", ValueError()),
        ("yielded", response, {}), ("ended",), ("withdrawn",),
    ):  # fmt: skip
        assert getattr(idle, hook)(page, *arguments) is None


def test_they_hear_in_the_order_in_which_they_were_added() -> None:
    observers, heard = Observers(Flights()), list[str]()
    for name in "ab":
        observers.add(Hearing(name, heard))
    for begun in observers.begun:
        begun(flight())
    assert heard == ["a begun", "b begun"]


def test_one_that_is_there_is_not_added_again() -> None:
    observers = Observers(Flights())
    one = observers.add(Hearing("a", []))
    assert observers.add(one) is one and len(observers.begun) == 1
    assert observers.find_observer(Hearing) is one and observers.find_observer(Links) is None


def test_one_that_is_added_later_is_heard_by_who_took_the_list_before() -> None:
    observers, heard = Observers(Flights()), list[str]()
    begun = observers.begun
    observers.add(Hearing("late", heard))
    for hear in begun:
        hear(flight())
    assert heard == ["late begun"]


def test_marks_are_those_of_all_each_once() -> None:
    observers = Observers(Flights())
    observers.add(Hearing("a", []))
    observers.add(Links())
    assert observers.marks == ["mine", "ours", "theirs"]


def test_links_are_kept_from_the_beginning_where_one_wants_them() -> None:
    flights = Flights()
    observers, page, seen = Observers(flights), flight(), list[Any]()
    observers.add(Hearing("a", [])).begun = lambda flight: seen.append(flight.links)  # type: ignore[method-assign]
    assert not flights.keep_links
    observers.add(Links())
    observers.add(Links())
    assert flights.keep_links and len(observers.begun) == 2
    for begun in observers.begun:
        begun(page)
    assert isinstance(page.links, FoundLinks)


def test_one_that_refuses_is_enough_and_all_are_asked() -> None:
    asked = []

    class Refusing(PageObserver):
        def __init__(self, answer: bool) -> None:
            self.answer = answer

        def refuses(self, flight: Flight, response: Response, found: object) -> bool:
            asked.append(found)
            return self.answer

    observers = Observers(Flights())
    for answer in (True, False):
        observers.add(Refusing(answer))
    assert observers.refuse(flight(), Response(URL), "x") and asked == ["x", "x"]


def test_what_isolates_one_stands_in_place_of_its_methods() -> None:
    observers, hooks = Observers(Flights()), list[str]()

    def isolate(hook: str, method: Any) -> Any:
        hooks.append(hook)
        return lambda *arguments: None

    heard = list[str]()
    observers.add(Hearing("a", heard), isolate)
    for ended in observers.ended:
        ended(flight())
    assert hooks == ["begun", "ended"] and not heard
