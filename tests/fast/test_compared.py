"""The functions that the lean way stands for: as they were when it was compared with them."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

import pytest
from scrapy.core.engine import ExecutionEngine
from scrapy.crawler import Crawler
from scrapy.spiders import Spider

from scrapy_ubi.fast.compared import STOOD_FOR, changed, digest

FUNCTIONS = {
    f"{cls.__name__}.{name}": (getattr(cls, name), known)
    for cls, names in STOOD_FOR.items()
    for name, known in names.items()
}

DOWNLOAD = "_download"  # one of the functions of Scrapy that are compared


@pytest.mark.parametrize(("function", "known"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_it_is_as_it_was(function: Callable[..., Any], known: str) -> None:
    """When one changes, compare leanpath and leanoutput with it before you change its digest."""
    assert digest(function) == known


@pytest.mark.parametrize("function", [function for function, _ in FUNCTIONS.values()], ids=FUNCTIONS)
def test_its_text_is_what_python_takes_for_it(function: Callable[..., Any]) -> None:
    text = inspect.getsource(function)
    assert digest(function) == hashlib.sha256(text.encode()).hexdigest()[:12]


def engine() -> ExecutionEngine:
    """One that was never started: its class and its own attributes are what is looked at."""
    made = object.__new__(ExecutionEngine)
    made.crawler = Crawler(Spider)
    return made


def test_nothing_is_changed_in_what_was_compared() -> None:
    assert changed(engine()) == ""


def other(*args: Any) -> None:
    """Not Scrapy's."""


@pytest.mark.parametrize("function", [other, len, None], ids=["another text", "no text", "gone"])
def test_a_function_of_the_class_that_reads_otherwise(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ExecutionEngine, DOWNLOAD, function)
    assert changed(engine()) == f"ExecutionEngine.{DOWNLOAD}"


class Proxy:
    """As wrapt makes them for tracers: it looks like what it wraps."""

    def __init__(self, wrapped: Any) -> None:
        self.__wrapped__ = wrapped

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)


@pytest.mark.parametrize("proxy", [False, True])
@pytest.mark.parametrize("name", [DOWNLOAD, "_remove_request"])
def test_a_function_that_somebody_has_wrapped(name: str, proxy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text is Scrapy's, as Python has it, but it is not all that is done."""
    bare = getattr(ExecutionEngine, name)
    monkeypatch.setattr(ExecutionEngine, name, Proxy(bare) if proxy else functools.wraps(bare)(lambda *args: other()))
    assert changed(engine()) == f"ExecutionEngine.{name}"


def test_a_function_wrapped_by_one_that_no_module_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """As libraries make wrappers of text, with `exec`, to keep a signature."""
    wrapper = functools.wraps(getattr(ExecutionEngine, DOWNLOAD))(FunctionType(other.__code__, {}))
    monkeypatch.setattr(ExecutionEngine, DOWNLOAD, wrapper)
    assert changed(engine()) == f"ExecutionEngine.{DOWNLOAD}"


def test_a_function_that_was_replaced_on_the_part_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    part = engine()
    monkeypatch.setattr(part, DOWNLOAD, other)
    assert changed(part) == f"ExecutionEngine.{DOWNLOAD}"
