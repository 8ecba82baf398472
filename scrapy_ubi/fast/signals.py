"""Signals sent in fewer steps (UBI_LEAN): to the same receivers, with the same arguments, results and log lines.

Scrapy sends seven to ten signals a page, and for each looks for receivers in four places, into the code of each for
the arguments that it takes, and starts a task for each where the signal is one that may be awaited. Here what a
receiver takes is remembered, a signal without receivers costs next to nothing, and a task is started only for a
receiver that has something to wait for. Rules of this module:

* PyDispatcher keeps the receivers, as before: connecting and disconnecting is not touched, at any time.
* What is not plain (a receiver connected in two places, one that is no function or method) is sent by Scrapy itself.
* Receivers are those that were connected when the signal was sent. With Scrapy one that an earlier receiver disconnects
  is not called, where the signal is not awaited: to look after each call would cost every page for what no program
  does.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType
from typing import Any

from pydispatch import dispatcher
from scrapy.crawler import Crawler
from scrapy.exceptions import StopDownload
from scrapy.signalmanager import SignalManager
from scrapy.utils.defer import ensure_awaitable
from scrapy.utils.python import global_object_name
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

logger = logging.getLogger("scrapy.utils.signal")  # errors of receivers are logged where Scrapy logs them

_ANY = id(dispatcher.Any)
_HAS_KEYWORDS = 8  # flag of a function's code: it takes all arguments that are named

Receiver = Callable[..., Any]
Results = list[tuple[Receiver, Any]]


class LeanSignals:
    """Sends the signals of one crawl. An extension: made when the crawl's components are."""

    def __init__(self, manager: SignalManager) -> None:
        self._manager = manager
        self._sender = manager.sender
        self._send = manager.send_catch_log
        self._send_async = manager.send_catch_log_async
        # The arguments that a receiver takes (None: all), by its code, of which a program has a bounded number: a
        # function kept here would stay connected when all others have forgotten it.
        self._taken: dict[tuple[CodeType, bool], tuple[str, ...] | None] = {}
        manager.send_catch_log = self.send  # type: ignore[method-assign]
        manager.send_catch_log_async = self.send_async  # type: ignore[method-assign]

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> LeanSignals:
        return cls(crawler.signals)

    def send(self, signal: Any, **named: Any) -> Results:
        """As `SignalManager.send_catch_log`: the results, a Failure for an error."""
        receivers = self._receivers(signal, named)
        if receivers is None:
            return self._send(signal, **named)
        results: Results = []
        for receiver in receivers:
            result, error = self._call(receiver, signal, named)
            if error is not None:
                if not isinstance(error, StopDownload):  # which is an answer
                    self._log(receiver, error, named)
                result = Failure(error)  # type: ignore[no-untyped-call]
            elif isinstance(result, Deferred):
                logger.error(
                    "Cannot return deferreds from signal handler: %(receiver)s",
                    {"receiver": receiver},
                    extra={"spider": named.get("spider")},
                )
            results.append((receiver, result))
        return results

    async def send_async(self, signal: Any, **named: Any) -> Results:
        """As `SignalManager.send_catch_log_async`: the results, an exception for an error."""
        receivers = self._receivers(signal, named)
        if receivers is None:
            return await self._send_async(signal, **named)
        if not receivers:
            return []
        results: list[Any] = []
        for receiver in receivers:
            try:
                result, error = self._call(receiver, signal, named)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as ended:  # noqa: BLE001 - a cancellation that the receiver met, a library's panic
                results.append(ended)  # stands alone, as before
                continue
            if error is None and (isinstance(result, Deferred) or inspect.isawaitable(result)):
                # As with Scrapy those that come after it are called when it waits for the first time.
                later = (self._told(each, signal, named) for each in receivers[len(results) + 1 :])
                waiting = asyncio.gather(self._awaited(receiver, result, named), *later, return_exceptions=True)
                return results + await waiting  # likewise
            if error is not None:
                self._log(receiver, error, named)
            results.append((receiver, result if error is None else error))
        await asyncio.sleep(0)  # who sends in a loop lets the loop turn, as before
        return results

    def _receivers(self, signal: Any, named: dict[str, Any]) -> list[Receiver] | None:
        """Who hears a signal of this crawl, None where that takes a closer look."""
        if "sender" in named or "dont_log" in named:
            return None
        found: list[Any] = []
        for sender in (id(self._sender), _ANY):
            of_sender = dispatcher.connections.get(sender)
            if of_sender:
                for which in (signal, dispatcher.Any):
                    references = of_sender.get(which)
                    if references:
                        if found:
                            return None
                        found = references
        receivers: list[Receiver] = []
        for reference in found:
            receiver = reference() if isinstance(reference, dispatcher.WEAKREF_TYPES) else reference
            if receiver is None:
                continue
            function = receiver.__func__ if type(receiver) is MethodType else receiver
            if type(function) is not FunctionType:
                return None
            receivers.append(receiver)
        return receivers

    def _call(self, receiver: Any, signal: Any, named: dict[str, Any]) -> tuple[Any, Exception | None]:
        """What a receiver returns, or the error it ends with."""
        kind = receiver.__code__, type(receiver) is MethodType  # a method has the attributes of its function
        try:
            taken = self._taken[kind]
        except KeyError:
            taken = self._taken[kind] = _taken(*kind)
        try:
            if taken is None:
                return receiver(signal=signal, sender=self._sender, **named), None
            arguments = {name: named[name] for name in taken if name in named}
            if "signal" in taken:
                arguments["signal"] = signal
            if "sender" in taken:
                arguments["sender"] = self._sender
            return receiver(**arguments), None
        except Exception as error:  # noqa: BLE001 - of whatever a user connected
            return None, error

    async def _told(self, receiver: Receiver, signal: Any, named: dict[str, Any]) -> tuple[Receiver, Any]:
        """A receiver, called now, and its result."""
        result, error = self._call(receiver, signal, named)
        if error is None:
            return await self._awaited(receiver, result, named)
        self._log(receiver, error, named)
        return receiver, error

    async def _awaited(self, receiver: Receiver, result: Any, named: dict[str, Any]) -> tuple[Receiver, Any]:
        try:
            return receiver, await ensure_awaitable(result, _warn=global_object_name(receiver))
        except Exception as error:  # noqa: BLE001 - likewise
            self._log(receiver, error, named)
            return receiver, error

    @staticmethod
    def _log(receiver: Receiver, error: Exception, named: dict[str, Any]) -> None:
        logger.error(
            "Error caught on signal handler: %(receiver)s",
            {"receiver": receiver},
            exc_info=error,
            extra={"spider": named.get("spider")},
        )


def _taken(code: CodeType, bound: bool) -> tuple[str, ...] | None:
    """The names of the arguments that a receiver takes, None for all; as PyDispatcher has it."""
    return None if code.co_flags & _HAS_KEYWORDS else code.co_varnames[bound : code.co_argcount]
