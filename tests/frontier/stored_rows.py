"""Rows in a store on disk, and a disk that is full: what the accidents of both engines are made of."""

from __future__ import annotations

import random
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from scrapy_ubi.frontier.store import Store, every


class _Closing(Protocol):
    def close(self) -> None: ...


Made = TypeVar("Made", bound=_Closing)


def opening(make: Callable[[], Made]) -> Iterator[Callable[[], Made]]:
    """For a fixture: what opens stores, which are closed in the end."""
    made: list[Made] = []

    def opened() -> Made:
        made.append(make())
        return made[-1]

    yield opened
    for store in made:
        store.close()


def write(store: Store, first: int, count: int, size: int = 100) -> None:
    """Write rows with these numbers, in one batch; their values do not compress."""
    batch = store.batch()
    for number in range(first, first + count):
        batch.put(number.to_bytes(8, "big"), random.Random(number).randbytes(size))
    store.write(batch)


def numbers(store: Store) -> list[int]:
    return [int.from_bytes(key, "big") for key, _ in every(store, b"", b"\xff" * 9)]


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """The kernel refuses to make any file of this process larger (EFBIG), as it would on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
