"""Modules that take long to import, and that many crawls never use: each is imported when it is first used.

Rules of this module:

* `if TYPE_CHECKING: import numpy as np`, `else: np = Later("numpy")`: the code is as with an import at its beginning.
* Where the thread may not wait for an import, it asks `is_loaded` first, and goes a way without the module until it is:
  a thread of its own loads it meanwhile.
"""

from __future__ import annotations

import threading
from importlib import import_module
from typing import Any

_loaded: set[str] = set()
_begun: set[str] = set()


class Later:
    """Stands for a module, which is imported when one of its names is used."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._module), name)
        setattr(self, name, value)  # the next use finds it without this call
        return value


def is_loaded(module: str) -> bool:
    """Whether a module is there; where it is not, begin to load it in another thread."""
    if module in _loaded:
        return True
    if module not in _begun:
        _begun.add(module)
        # No daemon: a process that ends waits for it, as a thread that is broken off within C code may take it along.
        threading.Thread(target=load, args=(module,), name=f"ubi-import-{module}").start()
    return False


def load(module: str) -> None:
    """Load a module, and return when it is there."""
    import_module(module)
    _loaded.add(module)
