"""The gate: nothing of a request is written once the right to it has ended, on new and on kept connections, with TLS.

A Twisted reactor can be installed only once and the other tests do without one, so each case runs in a process of its
own, with Scrapy's own handler or ours and a server that records what it is sent.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest
from scrapy import Request
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.http import Response

from scrapy_ubi.adapter.scrapy_private import socket_gate
from scrapy_ubi.fast.http.handler import UbiDownloadHandler

pytestmark = pytest.mark.processes

LIMIT = 60

CASE = """
    import asyncio, json, ssl, sys, tempfile
    from scrapy.utils.reactor import install_reactor
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    from twisted.internet import reactor
    from scrapy import Request, Spider
    from scrapy.core.downloader.handlers import DownloadHandlers
    from scrapy.crawler import Crawler
    from scrapy_ubi.adapter.scrapy_private import socket_gate
    from scrapy_ubi.adapter.scrapy_private.engine import EngineHooks

    scheme, case, *ours = sys.argv[1:]
    requests, connections = [], []

    async def serve(reader, writer):
        connections.append(len(requests))
        try:
            while True:
                requests.append((await reader.readuntil(b"\\r\\n\\r\\n")).split()[1].decode())
                writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def tls():
        from datetime import datetime, timedelta, timezone
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
        now = datetime.now(timezone.utc)
        cert = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
            .serial_number(1).not_valid_before(now - timedelta(1)).not_valid_after(now + timedelta(1))
            .sign(key, hashes.SHA256()))
        with tempfile.NamedTemporaryFile() as file:
            pem = serialization.Encoding.PEM
            file.write(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
            file.write(cert.public_bytes(pem))
            file.flush()
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(file.name)
        return context

    async def download(handlers, url, may_write):
        async def task():
            socket_gate.may_write.set(may_write)
            return (await handlers.download_request_async(Request(url))).status
        try:
            return await asyncio.ensure_future(task())
        except Exception as error:
            return type(error).__name__

    async def main():
        crawler = Crawler(Spider, {"DOWNLOAD_HANDLERS": dict.fromkeys(["http", "https"], ours[0])} if ours else {})
        crawler._apply_settings()
        crawler.spider = Spider("s")
        class Engine:
            class _slot: pass
            class downloader: handlers = DownloadHandlers(crawler)
        hooks = EngineHooks(Engine)
        hooks.around_transfers(lambda request, download: download(request))
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls() if scheme == "https" else None)
        root = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        handlers, told = Engine.downloader.handlers, []
        if case == "kept":
            told.append(await download(handlers, root + "/first", lambda: True))
        for name in ("/refused", "/allowed"):
            told.append(await download(handlers, root + name, lambda: name == "/allowed"))
        print(json.dumps({"told": told, "requests": requests, "connections": connections}))
        reactor.stop()

    def failed(task):
        if task.exception():
            print(repr(task.exception()), file=sys.stderr)
            reactor.stop()

    reactor.callWhenRunning(lambda: asyncio.ensure_future(main()).add_done_callback(failed))
    reactor.run()
"""


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("case", ["new", "kept"])
@pytest.mark.parametrize("ours", [[], ["scrapy_ubi.fast.http.handler.UbiDownloadHandler"]], ids=["scrapys", "ours"])
def test_nothing_is_written_without_the_right(scheme: str, case: str, ours: list[str]) -> None:
    command = [sys.executable, "-c", textwrap.dedent(CASE), scheme, case, *ours]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0 and done.stdout, done.stderr
    seen = json.loads(done.stdout)
    assert "/refused" not in seen["requests"], seen
    assert seen["requests"][-1] == "/allowed" and seen["told"][-1] == 200, seen
    assert seen["told"][-2] != 200, "the refused request ends with an error"
    assert case == "kept" or len(seen["connections"]) == 1, "and no connection is made for it"


def test_a_handler_that_is_known_to_ask_for_the_right_is_told_apart() -> None:
    """A class derived from it may write elsewhere: one that has a browser load pages, for example."""

    class Derived(HTTP11DownloadHandler):
        pass

    class DerivedFromOurs(UbiDownloadHandler):
        pass

    async def download(request: Request) -> Response:
        return Response(request.url)

    for kind, asks in (
        (HTTP11DownloadHandler, True),
        (UbiDownloadHandler, True),
        (Derived, False),
        (DerivedFromOurs, False),
    ):
        handler = kind.__new__(kind)
        assert isinstance(socket_gate.asking(handler, download), socket_gate.Asking) is asks, kind
