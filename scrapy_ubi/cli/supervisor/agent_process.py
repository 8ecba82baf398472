"""`scrapy crawl` as a process of a supervisor: the same, and it leaves when the supervisor is gone.

    python -m scrapy_ubi.cli.supervisor.agent_process crawl SPIDER ...

Rules of this module: the supervisor holds the other end of a pipe and never writes into it. However the supervisor
ends, the kernel closes that end, and this process gets a SIGTERM, as by Ctrl-C: it hands over and leaves.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

LIFE = "SCRAPY_UBI_SUPERVISOR"  # environment: the file descriptors of the pipes, as `read,held`


def main() -> None:
    """Scrapy's command line, watched."""
    life, held = map(int, os.environ.pop(LIFE).split(","))
    for number in (life, held):
        os.set_inheritable(number, False)
    threading.Thread(target=_leave_at_the_end_of, args=(life,), name="supervisor", daemon=True).start()
    from scrapy.cmdline import execute

    execute(["scrapy", *sys.argv[1:]])


def _leave_at_the_end_of(pipe: int) -> None:
    os.read(pipe, 1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
