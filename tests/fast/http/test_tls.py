"""TLS over memory: what it tells the connection above, and what it keeps. Both sides are in the test, without a net."""

from __future__ import annotations

import asyncio
import gc
import ssl
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from OpenSSL import SSL
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import DownloadFailedError

from scrapy_ubi.fast.http import pool
from scrapy_ubi.fast.http.scrapys import TlsMaker
from scrapy_ubi.fast.http.tls import MOST_UNREAD, PORTION, TlsClient
from tests.fast.http.raw import ALWAYS, Answer, Server, answer, handler, run, tls


def tls_client(**settings: Any) -> TlsClient:
    return TlsClient(TlsMaker(Crawler(Spider, settings)), Counter())


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

    def __init__(
        self, above: Above, wrapped: Callable[[SSL.Connection], Any] = lambda tls: tls, client: TlsClient | None = None,
        server: ssl.SSLContext | None = None,
    ) -> None:  # fmt: skip
        """`wrapped`: what stands for the TLS of our side."""
        client = client or tls_client()
        self.ours = client.transport("raw", 443, above)
        vars(self.ours)["_tls"] = wrapped(vars(self.ours)["_tls"])
        self.comes, self.goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.server = (server or tls()).wrap_bio(self.comes, self.goes, server_side=True)
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
        assert isinstance(above.lost[0], SSL.Error)

    run(main())


def test_tls_is_given_what_comes_in_portions_and_keeps_no_more_memory_than_for_one() -> None:
    pending: list[int] = []

    class Watched:
        """TLS, with what it is given before each read."""

        def __init__(self, tls: SSL.Connection) -> None:
            self.inner = tls

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def bio_write(self, data: bytes) -> int:
            pending.append(len(data))
            return self.inner.bio_write(data)

    async def main() -> None:
        above = Above()
        below = Below(above, Watched)
        data = bytes(range(256)) * 1500
        below.answer(data)
        assert above.data == data
        assert max(pending) == PORTION

    run(main())


def test_what_cannot_be_written_during_another_handshake_is_written_after_it() -> None:
    class Busy:
        """TLS that has to read first, once."""

        def __init__(self, real: SSL.Connection) -> None:
            self.real, self.busy = real, True

        def __getattr__(self, name: str) -> Any:
            return getattr(self.real, name)

        def send(self, data: bytes) -> int:
            if self.busy:
                self.busy = False
                raise SSL.WantReadError
            return self.real.send(data)

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
        class Asking:
            """TLS that has something to send after each read."""

            def __init__(self, real: SSL.Connection) -> None:
                self.real, self.waiting = real, False

            def __getattr__(self, name: str) -> Any:
                return getattr(self.real, name)

            def bio_read(self, size: int) -> bytes:
                if self.waiting:
                    self.waiting = False
                    return b"an answer to new keys"
                return self.real.bio_read(size)

        below = Below(Above(), Asking)
        asking: Any = vars(below.ours)["_tls"]
        for below.waiting in (MOST_UNREAD, MOST_UNREAD + 1):
            assert not below.closing
            asking.waiting = True
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
    with pytest.raises(DownloadFailedError, match="certificate verify failed"):
        run(main())


def test_a_trusted_certificate_that_names_no_host_is_left_to_scrapys_handler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with Server(ALWAYS, tls=tls()) as server:
            async with handler() as ours:
                seen = (await ours.download_request(Request(server.url))).certificate
            (tmp_path / "trusted.pem").write_bytes(seen.dumpPEM())
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "trusted.pem"))
            async with handler(DOWNLOAD_VERIFY_CERTIFICATES=True) as ours:
                with pytest.raises(DownloadFailedError, match="certificate cannot be verified"):
                    await ours.download_request(Request(server.url))
                theirs = SimpleNamespace(download_request=AsyncMock(return_value="theirs"), close=AsyncMock())
                ours.scrapys = theirs  # type: ignore[assignment]
                assert await ours.download_request(Request(server.url)) == "theirs"
            assert len(server.requests) == 1, "we write nothing to it"

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
            ours = tls_client().transport("raw", 443, above)
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


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_the_session_of_a_host_is_resumed_however_its_last_connection_ended(version: ssl.TLSVersion) -> None:
    async def main() -> None:
        server = tls()
        server.maximum_version = version
        client = tls_client()
        servers = []  # one that is freed without a goodbye gives its session up
        for number in range(3):
            above = Above()
            below = Below(above, client=client, server=server)
            below.answer(b"answer")
            assert above.data == b"answer" and below.server.session_reused == (number > 0)
            servers.append(below.server)
            below.ours.abort()
            below.ours.connection_lost(None)
            del below, above
            gc.collect()  # OpenSSL looks at a session when its connection is freed
        assert vars(client)["_counts"] == {"handshakes_full": 1, "handshakes_resumed": 2}

    run(main())


def test_connections_at_once_share_the_session_of_their_host_and_of_no_other() -> None:
    async def main() -> None:
        server, client = tls(), tls_client()
        Below(Above(), client=client, server=server).answer(b"x")
        several = [Below(Above(), client=client, server=server) for _ in range(3)]
        assert all(below.server.session_reused for below in several)
        assert client.transport("other", 443, Above()) and len(vars(client)["_sessions"]) == 1

    run(main())


def test_a_session_with_which_something_went_wrong_is_not_tried_again() -> None:
    async def main() -> None:
        server, client = tls(), tls_client()
        below = Below(Above(), client=client, server=server)
        below.answer(b"x")
        second = client.transport("raw", 443, Above())
        second.connection_made(below)  # type: ignore[arg-type]
        second.connection_lost(None)
        assert not Below(Above(), client=client, server=server).server.session_reused

    run(main())


@pytest.mark.parametrize("tunnel", [False, True], ids=["directly", "by a tunnel"])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_host_that_closes_when_a_session_is_offered_is_asked_without(version: ssl.TLSVersion, tunnel: bool) -> None:
    async def main() -> None:
        hellos: list[int] = []
        came = bytearray()  # from the host

        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if tunnel:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            hello = await reader.read(16_384)
            hellos.append(len(hello))
            if len(hello) > hellos[0] + 50 or hello[44:76] in came:  # it has a ticket, or the number of a session
                writer.close()
                return
            onward, away = await asyncio.open_connection("127.0.0.1", server.port)
            away.write(hello)
            await asyncio.gather(_pump(reader, away, bytearray()), _pump(onward, writer, came))

        context = tls()
        context.minimum_version = context.maximum_version = version
        closing: list[Answer] = [answer(b"ok", b"Connection: close")]
        async with Server(closing, tls=context) as server, handler(DOWNLOAD_TIMEOUT=5) as ours:
            before = await asyncio.start_server(relay, "127.0.0.1", 0)
            port = before.sockets[0].getsockname()[1]
            for _ in range(3):
                asked = f"https://127.0.0.1:{server.port if tunnel else port}/"
                meta = {"proxy": f"http://127.0.0.1:{port}"} if tunnel else {}
                assert (await ours.download_request(Request(asked, meta=meta))).body == b"ok"
            assert ours.pool.counts["sessions_refused"] == 2 and len(hellos) == 5, hellos
            before.close()

    run(main())


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, came: bytearray) -> None:
    try:
        while data := await reader.read(16_384):
            came += data
            writer.write(data)
    except ConnectionError:
        pass
    writer.close()


def test_a_session_after_which_nothing_came_is_not_offered_again() -> None:
    async def main() -> None:
        server, client = tls(), tls_client()
        below = Below(Above(), client=client, server=server)
        below.answer(b"x")
        second = Below(Above(), client=client, server=server)
        assert second.server.session_reused
        second.ours.connection_lost(None)
        assert not Below(Above(), client=client, server=server).server.session_reused

    run(main())


def test_sessions_are_kept_of_so_many_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_ubi.fast.http.tls.MOST_SESSIONS", 2)
    client = tls_client()
    for number in (1, 2, 1, 3):
        client.keep(("h", number), object())  # type: ignore[arg-type]
    assert list(vars(client)["_sessions"]) == [("h", 1), ("h", 3)]
