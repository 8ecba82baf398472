"""Before all others on PYTHONPATH: a Python for which there is no rocksdict, so that SQLite keeps the frontiers."""

from __future__ import annotations

raise ImportError("rocksdict is taken away (make faults ENGINE=sqlite)")
