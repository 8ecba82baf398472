"""TLS over memory: what it tells the connection above, and what it keeps. Both sides are in the test, without a net."""

from __future__ import annotations

import asyncio
import gc
import ssl
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import DownloadFailedError

from scrapy_ubi.fast.http import pool
from scrapy_ubi.fast.http.tls import MOST_UNREAD, PORTION, RECORD, TlsTransport
from tests.fast.http.raw import ALWAYS, Server, handler, run, tls


class Above(asyncio.Protocol):
    """A connection that notes what it is told."""

    def __init__(self) -> None:
        self.data, self.lost, self.resumed = b"", list[Exception | None](), 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self.data += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.append(exc)

    def resume_writing(self) -> None:
        self.resumed += 1


class Below:
    """The transport of a socket, whose peer is a TLS server in memory."""

    def __init__(self, above: Above, wrapped: Callable[[ssl.SSLObject], Any] = lambda tls: tls) -> None:
        """`wrapped`: what stands for the TLS of our side."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

        def wrap_bio(incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, **how: Any) -> Any:
            self.incoming = incoming  # what waits there
            return wrapped(context.wrap_bio(incoming, outgoing, **how))

        wrapping: Any = SimpleNamespace(wrap_bio=wrap_bio)
        self.ours = TlsTransport(wrapping, "raw", above)
        self.comes, self.goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.server = tls().wrap_bio(self.comes, self.goes, server_side=True)
        self.closing, self.waiting = False, 0
        self.ours.connection_made(self)  # type: ignore[arg-type]
        self.shake_hands()
        self.answer()
        self.shake_hands()
        self.answer()  # tickets

    def shake_hands(self) -> None:
        try:
            self.server.do_handshake()
        except ssl.SSLWantReadError:
            pass

    def answer(self, data: bytes = b"") -> None:
        """The server's bytes, these encrypted among them, come."""
        if data:
            self.server.write(data)
        self.ours.data_received(self.goes.read())

    def came(self) -> bytes:
        """What the server reads."""
        return self.server.read(1 << 20)

    def write(self, data: bytes) -> None:
        self.comes.write(data)

    def is_closing(self) -> bool:
        return self.closing

    def abort(self) -> None:
        self.closing = True

    def get_write_buffer_size(self) -> int:
        return self.waiting


def test_bytes_go_both_ways_and_an_error_is_told_with_the_end() -> None:
    async def main() -> None:
        above = Above()
        below = Below(above)
        above.transport.write(b"question")
        assert below.came() == b"question"
        below.answer(b"answer")
        assert above.data == b"answer"
        below.ours.data_received(b"\x17\x03\x03\x00\x20" + b"no record that can be decrypted.")
        assert below.closing
        below.ours.connection_lost(None)
        assert isinstance(above.lost[0], ssl.SSLError)

    run(main())


def test_tls_is_given_what_comes_in_portions_and_keeps_no_more_memory_than_for_one() -> None:
    pending: list[int] = []
    below: Below | None = None

    class Watched:
        """TLS, with what waits for it at each read."""

        def __init__(self, tls: ssl.SSLObject) -> None:
            self.do_handshake, self.write, self.inner = tls.do_handshake, tls.write, tls

        def read(self, most: int) -> bytes:
            if below is not None:  # the handshake is over
                pending.append(below.incoming.pending)
            return self.inner.read(most)

    async def main() -> None:
        nonlocal below
        above = Above()
        below = Below(above, Watched)
        data = bytes(range(256)) * 1500
        below.answer(data)
        assert above.data == data
        assert max(pending) <= PORTION + RECORD + 300  # a record, and what TLS puts around it

    run(main())


def test_what_cannot_be_written_during_another_handshake_is_written_after_it() -> None:
    class Busy:
        """TLS that has to read first, once."""

        def __init__(self, real: ssl.SSLObject) -> None:
            self.real, self.busy = real, True

        def write(self, data: bytes) -> int:
            if self.busy:
                self.busy = False
                raise ssl.SSLWantReadError
            return self.real.write(data)

        def do_handshake(self) -> None:
            self.real.do_handshake()

        def read(self, size: int) -> bytes:
            return self.real.read(size)

    async def main() -> None:
        above = Above()
        below = Below(above, Busy)
        above.transport.write(memoryview(b"question"))
        assert above.transport.get_write_buffer_size() == 8, "so that no more is given, and the connection not kept"
        below.answer(b"x")
        assert (below.came(), above.resumed, above.transport.get_write_buffer_size()) == (b"question", 1, 0)

    run(main())


def test_who_asks_for_new_keys_and_does_not_read_them_is_left() -> None:
    async def main() -> None:
        below = Below(Above())
        to_send: ssl.MemoryBIO = vars(below.ours)["_out"]
        for below.waiting in (MOST_UNREAD, MOST_UNREAD + 1):
            assert not below.closing
            to_send.write(b"an answer to new keys")
            below.answer(b"x")
        assert below.closing

    run(main())


def test_a_closed_connection_is_gone_without_a_look_for_garbage() -> None:
    async def main() -> None:
        above = Above()
        below = Below(above)
        below.ours.connection_lost(None)
        known = weakref.ref(above)
        gc.disable()
        try:
            del above
            assert known() is None
        finally:
            gc.enable()

    run(main())


@pytest.mark.parametrize("verify", [False, True], ids=["by default", "DOWNLOAD_VERIFY_CERTIFICATES"])
def test_a_certificate_that_no_one_has_signed_is_taken_as_with_scrapy(verify: bool) -> None:
    async def main() -> int:
        settings = {"DOWNLOAD_VERIFY_CERTIFICATES": True} if verify else {}
        async with Server(ALWAYS, tls=tls()) as server, handler(**settings) as ours:
            return (await ours.download_request(Request(server.url))).status

    if not verify:
        assert run(main()) == 200
        return
    with pytest.raises(DownloadFailedError, match="CERTIFICATE_VERIFY_FAILED"):
        run(main())


def test_no_more_idle_connections_than_of_8192_files_however_many_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    for files, wanted in ((1 << 20, 2730), (8192, 2730), (1024, pool.MOST_IDLE)):
        monkeypatch.setattr(pool.open_files, "ask_for", lambda wanted, files=files: files)
        assert pool.most_idle(True) == wanted


def test_by_default_the_process_is_not_changed_and_a_third_of_its_files_are_idle_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool.open_files, "ask_for", pytest.fail)
    for files, wanted in ((1 << 20, 2730), (1024, 341), (256, 85)):
        monkeypatch.setattr(pool.open_files, "may_open", lambda files=files: files)
        assert pool.most_idle(False) == wanted


@pytest.mark.parametrize("given_up", ["before its connection", "after its loss"])
def test_tls_that_is_given_up_without_a_connection_is_closed_and_says_nothing(given_up: str) -> None:
    async def main() -> None:
        above = Above()
        if given_up == "before its connection":
            ours = TlsTransport(ssl.create_default_context(), "raw", above)
        else:
            ours = (below := Below(above)).ours
            below.server.write(b"late")
            ours.connection_lost(None)
            ours.data_received(below.goes.read())
            ours.resume_writing()
        ours.abort()
        assert ours.is_closing()
        assert (above.data, above.resumed, ours.get_write_buffer_size()) == (b"", 0, 0)

    run(main())
