"""A Valkey that ends with those who use it: this process starts it, and ends it.

    python valkey_guardian.py PIPE DIRECTORY PROGRAM OPTION...

Rules of this module:

* It imports the standard library only, and nothing of the package: it is run by path, and takes few MB.
* Users hold the other end of the pipe. When all are gone, however they ended, or on SIGTERM, Valkey is killed (it keeps
  nothing on disk) and the directory is deleted.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading


def main(pipe: int, directory: str, command: list[str]) -> int:
    """Run Valkey; its exit status."""
    servers: list[subprocess.Popen[bytes]] = []
    told = threading.Event()

    def end(*_: object) -> None:
        told.set()
        for server in servers:
            server.kill()

    def wait_for_the_last_user() -> None:
        os.read(pipe, 1)
        end()

    signal.signal(signal.SIGTERM, end)
    servers.append(subprocess.Popen(command, stdin=subprocess.DEVNULL))
    if told.is_set():
        end()
    threading.Thread(target=wait_for_the_last_user, daemon=True).start()
    status = servers[0].wait()
    shutil.rmtree(directory, ignore_errors=True)
    return status


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
