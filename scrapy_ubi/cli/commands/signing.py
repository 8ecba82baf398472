"""What commands write to Redis for agents, signed where the crawl is (`UBI_SECRET`).

Rules of this module:

* A command that would write what the agents refuse says so before it writes: with another secret, with none where they
  sign, or with one where they do not. Which secret they have is seen from the signature of their run.
* The secret is read from the project's settings, as agents read it; no option takes it, which others might see.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping

from scrapy_ubi.cli.commands.redis_connection import RedisConnection
from scrapy_ubi.cli.monitor.status import CrawlStatus
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.transport.signer import Signer, bare

Fields = dict[str, str]
AS_THEY = "set it in settings.py as the agents have it"


def signer(to: RedisConnection, status: CrawlStatus) -> Signer | None:
    """What signs for the agents of this crawl; None where they do not. Raises UbiSettingError."""
    crawl = plain(status.crawl, 64)
    if not to.secret:
        if status.signed_run:
            raise UbiSettingError("UBI_SECRET", f"is not set, and crawl {crawl} takes signed entries only", AS_THEY)
        return None
    own = Signer(to.secret, status.crawl)
    if status.run and own.checked("control", "", "run", status.signed_run or status.run) is None:
        if status.signed_run:
            raise UbiSettingError("UBI_SECRET", f"is another one than that of the agents of crawl {crawl}", AS_THEY)
        raise UbiSettingError(
            "UBI_SECRET", f"is set, and the agents of crawl {crawl} do not sign", "set it for them, too, or for none"
        )
    return own


def control_fields(to: RedisConnection, status: CrawlStatus, fields: Fields) -> Fields:
    """Fields for the control hash, as the agents take them. Raises UbiSettingError."""
    signs = signer(to, status)
    return fields if signs is None else signs.control(status.run, fields)


def seeds(to: RedisConnection, status: CrawlStatus) -> Callable[[Fields], Fields]:
    """What makes the fields of a seed as the agents take them. Raises UbiSettingError."""
    signs = signer(to, status)
    if signs is None:
        return lambda fields: fields
    return lambda fields: signs.entry("seed", "", secrets.token_hex(8), fields)


def holding(to: RedisConnection, status: CrawlStatus, control: Mapping[str, str]) -> Fields:
    """The fields of a control hash without their signatures; where the secret is known, those only that hold."""
    if not to.secret or not status.signed_run:
        return {name: bare(text) for name, text in control.items()}
    signs = Signer(to.secret, status.crawl)
    checked = {name: signs.checked("control", status.run, name, text) for name, text in control.items()}
    return {name: text for name, text in checked.items() if text is not None}
