"""Longer turns on a processor that several processes want (UBI_LEAN), on Linux.

A processor with more to do than one process goes from one to the next every few milliseconds. An agent works on
megabytes of objects, which come back from memory, slowly, after each turn of another: four agents on one core spent
a third of their time on that (docs/how-to/fast.md has the figures). So its threads ask for turns of a tenth
of a second. While nobody else wants the processor nothing changes, and who asks for shorter turns, as every other
process does, need not wait for the end of ours.

Their policy stays the usual one. Batch tasks cut nobody short when they wake up: four agents would cost a sixth less
still, but the mail of each would wait for the turns of the others, and a crash would cost twice as many pages twice
(decision 0025).

This is for all threads of the process that are like the one that crawls; what the user has chosen for one (`chrt`)
stays. What is started while crawls run inherits it, as it does `nice`. Needs no privileges; where the system refuses,
all is as it was.

Sources: sched(7), sched_setattr(2). The length of a turn is a request, heard since Linux 6.12 and ignored before.
"""

from __future__ import annotations

import ctypes
import logging
import os
import platform
import struct
import sys
import threading
from contextlib import suppress
from typing import NamedTuple

from scrapy_ubi.lean.processwide import ProcessWide, Undo

logger = logging.getLogger(__name__)

TURN = 100_000_000  # ns, the longest that Linux grants; with 40 ms a third of the gain is left

OTHER = 0  # SCHED_OTHER

# The numbers of sched_setattr and sched_getattr: no C library before glibc 2.41 has functions for them.
_SET_AND_GET = {"x86_64": (314, 315), "aarch64": (274, 275), "riscv64": (274, 275), "loongarch64": (274, 275)}

_LAYOUT = struct.Struct("=IIQiIQQQ")  # struct sched_attr, its first version


class Scheduling(NamedTuple):
    """What the kernel is told of a thread: `struct sched_attr` of sched_setattr(2)."""

    size: int
    policy: int
    flags: int
    nice: int
    priority: int
    runtime: int  # ns: of OTHER the length of a turn
    deadline: int
    period: int


class LongerTurns(ProcessWide):
    """From the opening of the first spider to the end of the last."""

    @classmethod
    def change(cls) -> Undo:
        """See the base class."""
        if sys.platform != "linux" or platform.machine() not in _SET_AND_GET:
            return lambda: None
        try:
            return _lengthen()
        except OSError as error:  # a sandbox that forbids the call
            logger.debug("Turns on a processor stay as they are: %s", error)
            return lambda: None


def _lengthen() -> Undo:
    """Raises OSError."""
    usual = scheduling(threading.get_native_id())
    if usual.policy != OTHER:
        return lambda: None
    longer = usual._replace(runtime=TURN)
    _change_threads(usual, longer)
    return lambda: _change_threads(longer, usual)


def _change_threads(before: Scheduling, after: Scheduling) -> None:
    """Threads that are as `before` says, whatever their nice value, will be as `after` says. Raises OSError."""
    for thread in [thread.native_id for thread in threading.enumerate()]:
        if thread is not None:
            with suppress(ProcessLookupError):  # it has just ended
                now = scheduling(thread)
                if now == before._replace(nice=now.nice):  # `renice` may have been called meanwhile
                    _tell(thread, after._replace(nice=now.nice))


def scheduling(thread: int) -> Scheduling:
    """What the kernel has been told of a thread, by its native id. Raises OSError."""
    room = ctypes.create_string_buffer(_LAYOUT.size)
    _call(1, thread, room, _LAYOUT.size, 0)
    return Scheduling(*_LAYOUT.unpack(room.raw))


def _tell(thread: int, what: Scheduling) -> None:
    """Tell the kernel of a thread. Raises OSError."""
    _call(0, thread, ctypes.create_string_buffer(_LAYOUT.pack(*what)), 0)


def _call(which: int, thread: int, *arguments: object) -> None:
    """Call sched_setattr (0) or sched_getattr (1). Raises OSError."""
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    if syscall(_SET_AND_GET[platform.machine()][which], thread, *arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
