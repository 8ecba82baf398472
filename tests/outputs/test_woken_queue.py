"""Work between two threads: taken in its order, and all of it, however many pieces lie together."""
from __future__ import annotations

import threading

import pytest

from scrapy_ubi.outputs.woken_queue import TOGETHER, TOGETHER_BYTES, WokenQueue

LIMIT = 30.0  # seconds


def taken(queue: WokenQueue[int], count: int) -> list[int]:
    """So many pieces, taken by a thread of its own."""
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.extend(queue.take() for _ in range(count)), daemon=True)
    thread.start()
    thread.join(LIMIT)
    assert not thread.is_alive()
    return found


@pytest.mark.parametrize("pieces", [0, 1, TOGETHER - 1, TOGETHER, 3 * TOGETHER + 1])
def test_what_lies_is_taken_before_what_is_waited_for(pieces: int) -> None:
    queue = WokenQueue[int]()
    for number in range(pieces):
        queue.put(number, 1)
    queue.put(pieces)
    assert taken(queue, pieces + 1) == list(range(pieces + 1))


@pytest.mark.parametrize("sizes", [[0] * TOGETHER, [TOGETHER_BYTES], [1, TOGETHER_BYTES - 1]])
def test_many_pieces_and_large_ones_wake_a_thread_that_waits(sizes: list[int]) -> None:
    queue, found = WokenQueue[int](), []
    thread = threading.Thread(target=lambda: found.extend(queue.take() for _ in sizes), daemon=True)
    thread.start()
    for size in sizes:
        queue.put(size, size)
    thread.join(LIMIT)
    assert not thread.is_alive() and found == sizes
