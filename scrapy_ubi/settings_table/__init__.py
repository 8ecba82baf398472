"""The one table of all UBI_* settings: a row is a setting's name, kind, default, bounds and one sentence.

`settings.py` reads and checks by it, and the reference in the docs is checked against it. Its rows stand in the modules
of this package, a section of the table in each. Rules:

* the setting of a row is `UBI_` and its name in capitals (but `UBI_AGENT_CAPACITY` for `capacity`);
* `bounds` says to people what the check compares with: `low` and `high` inclusive, `above` exclusive;
* a row whose default is not a constant has None, and says in `default_text` what it is.
"""

from __future__ import annotations

from scrapy_ubi.settings_table import cluster, delivery, host_load, limits, pages, recrawl_rows
from scrapy_ubi.settings_table.row import PREFIX, Kind, Setting

SETTINGS: tuple[Setting, ...] = (
    *cluster.ROWS,
    *host_load.ROWS,
    *delivery.ROWS,
    *limits.ROWS,
    *recrawl_rows.ROWS,
    *pages.ROWS,
)

__all__ = ["PREFIX", "SETTINGS", "Kind", "Setting"]
