"""A proxy on loopback that can be cut, as a cable can: what goes through it is answered no more, in both directions."""

from __future__ import annotations

import contextlib
import select
import socket
import threading

LOOK = 0.1  # s between two looks at whether it was cut


class CutProxy:
    """Passes everything on to a port of this machine, until it is cut."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._cut = threading.Event()
        self._ended = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def cut(self) -> None:
        """From now on nothing goes through; connections stay open, new ones are taken and get no answer."""
        self._cut.set()

    def close(self) -> None:
        self._ended.set()
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._pass_on, args=(near,), daemon=True).start()

    def _pass_on(self, near: socket.socket) -> None:
        with contextlib.suppress(OSError), near, socket.create_connection(("127.0.0.1", self._target)) as far:
            other = {near: far, far: near}
            while not self._ended.is_set():
                if self._cut.is_set():
                    self._ended.wait(LOOK)
                    continue
                for one in select.select([near, far], [], [], LOOK)[0]:
                    data = one.recv(1 << 16)
                    if not data:
                        return
                    if not self._cut.is_set():
                        other[one].sendall(data)
