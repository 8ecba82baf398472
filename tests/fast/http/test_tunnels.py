"""TLS and proxies: tunnels, handshakes that fail, hosts that are none."""

from __future__ import annotations

import asyncio

import pytest
from scrapy import Request
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadFailedError,
    DownloadTimeoutError,
)
from twisted.internet.ssl import Certificate

from scrapy_ubi.adapter.scrapy_private import socket_gate
from scrapy_ubi.adapter.scrapy_private.socket_gate import NoRight
from tests.fast.http.raw import (
    ALWAYS,
    Server,
    handler,
    run,
    then,
    tls,
    until_closed,
)


@pytest.mark.parametrize("tunnel", [False, True])
def test_a_server_that_closes_in_the_handshake_is_an_error_with_a_text(tunnel: bool) -> None:
    """As those do that know older versions of TLS only."""

    async def main() -> None:
        async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if tunnel:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            await reader.read(1)
            writer.write_eof()
            await reader.read()
            writer.close()

        async with await asyncio.start_server(close, "127.0.0.1") as server, handler() as ours:
            address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            meta = {"proxy": f"http://{address}"} if tunnel else {}
            with pytest.raises(DownloadFailedError, match="closed during the TLS handshake"):
                await ours.download_request(Request(f"https://{address}/", meta=meta))

    run(main())


def test_tls_through_a_tunnel() -> None:
    async def main() -> None:
        asked: list[bytes] = []

        async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.append(await reader.readuntil(b"\r\n\r\n"))
            there, back = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n")

            async def pipe(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
                while data := await source.read(65536):
                    to.write(data)
                to.close()

            await asyncio.gather(pipe(reader, back), pipe(there, writer), return_exceptions=True)

        proxy = await asyncio.start_server(tunnel, "127.0.0.1", 0)
        meta = {"proxy": f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"}
        async with Server(ALWAYS, tls=tls()) as server, handler() as ours:
            url = f"https://h.example:{server.port}/x"
            headers = {"Proxy-Authorization": "Basic eA=="}
            for _ in range(2):
                response = await ours.download_request(Request(url, meta=dict(meta), headers=headers))
                assert response.body == b"ok" and isinstance(response.certificate, Certificate)
            host = b"h.example:%d" % server.port
            wanted = [b"CONNECT " + host + b" HTTP/1.1", b"Host: " + host, b"Proxy-Authorization: Basic eA==", b"", b""]
            assert [head.split(b"\r\n") for head in asked] == [wanted], "one tunnel for both"
            assert all(head == b"GET /x HTTP/1.1\r\nHost: " + host for head in server.heads)
        proxy.close()

    run(main())


@pytest.mark.parametrize("said", [b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", b"no HTTP\r\n\r\n", b""])
def test_a_proxy_that_opens_no_tunnel(said: bytes) -> None:
    async def main() -> None:
        async with Server([said]) as server, handler() as ours:
            with pytest.raises(Exception) as raised:
                await ours.download_request(Request("https://h.example/", meta={"proxy": server.url}))
            assert type(raised.value).__name__ == ("TunnelError" if said else "DownloadFailedError")

    run(main())


@pytest.mark.parametrize("host", ["a..b", f"{'x' * 70}.example", "."])
def test_no_tunnel_to_what_is_no_host(host: str) -> None:
    async def main() -> None:
        async with Server([then(b"HTTP/1.1 200 OK\r\n\r\n", until_closed)]) as server, handler() as ours:
            with pytest.raises(CannotResolveHostError):
                await ours.download_request(Request(f"https://{host}/", meta={"proxy": server.url}))
            assert not server.requests

    run(main())


@pytest.mark.parametrize("tunnel", [False, True])
def test_a_handshake_may_take_as_long_as_the_request(tunnel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asyncio.constants, "SSL_HANDSHAKE_TIMEOUT", 0.05)

    async def main() -> None:
        mute = then(b"HTTP/1.1 200 OK\r\n\r\n", until_closed) if tunnel else until_closed
        async with Server([mute]) as server, handler() as ours:
            meta = {"download_timeout": 0.3} | ({"proxy": server.url} if tunnel else {})
            with pytest.raises(DownloadTimeoutError):
                await ours.download_request(Request(server.url.replace("http:", "https:"), meta=meta))
            await server.closed(0)

    run(main())


def test_no_tunnel_without_the_right() -> None:
    async def main() -> None:
        socket_gate.may_write.set(lambda: False)
        async with Server(ALWAYS) as server, handler() as ours:
            with pytest.raises(NoRight):
                await ours.download_request(Request("https://h.example/", meta={"proxy": server.url}))
            assert not server.requests

    run(main())
