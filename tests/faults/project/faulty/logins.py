"""What gives user and password of a Redis whose passwords change: what a file holds now."""

from __future__ import annotations

import os
from pathlib import Path


def redis_login() -> tuple[str, str]:
    return "crawler", Path(os.environ["FAULTY_PASSWORD"]).read_text()
