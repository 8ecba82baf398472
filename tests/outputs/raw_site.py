"""A web that sends bytes as they are told: heads that no server library would write. A forward proxy on loopback."""

from __future__ import annotations

import socketserver
import threading
from types import TracebackType


class RawSite:
    """`pages`: URL -> the bytes that are sent, head and body; the connection ends with them."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        site = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                url = self.rfile.readline().split(b" ")[1].decode("latin-1")
                length = 0
                while field := self.rfile.readline().strip():
                    name, _, value = field.partition(b":")
                    length = int(value) if name.lower() == b"content-length" else length
                self.rfile.read(length)  # what is left unread resets the connection
                self.wfile.write(site.pages.get(url, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"))

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def proxy(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> RawSite:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
