"""Which Redis a command means, what it reads of the settings, and sentences about names that are not there.

An option wins over the project's setting. A command reads the project's `settings.py` and `-s` only: add-ons and a
spider's `custom_settings` are not applied to commands.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import redis
from scrapy.settings import BaseSettings
from scrapy.utils.project import inside_project

from scrapy_ubi.cli.monitor.status import AgentStatus, CrawlStatus
from scrapy_ubi.errors import UbiError, UbiSettingError, UbiUnavailable
from scrapy_ubi.ground.untrusted.meant_names import find_meant
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.settings import SETTINGS, read_value
from scrapy_ubi.settings.presets import given
from scrapy_ubi.transport.address import Address, address
from scrapy_ubi.transport.clients import client_of
from scrapy_ubi.transport.contract import TransportError
from scrapy_ubi.transport.credentials import GivenCredentials, named_credentials
from scrapy_ubi.transport.faults import FAULTS, explain

TIMEOUT = 10.0  # seconds a person waits for an answer of Redis
MOST_NAMES = 12  # names listed in a sentence


class UbiNotFound(UbiError):
    """There is no crawl or agent of that name, or several and none was named."""


@dataclass(frozen=True, slots=True)
class RedisConnection:
    """A Redis to ask. `given_by` is the option or setting that named it; errors speak of it by that name."""

    client: redis.Redis
    at: Address
    given_by: str
    secret: str = field(default="", repr=False)
    """The project's UBI_SECRET; see signing.py."""

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn whatever goes wrong with Redis inside into UbiUnavailable, one sentence."""
        try:
            yield
        except FAULTS as error:
            raise UbiUnavailable(_by(self.given_by, explain(error, self.at, TIMEOUT))) from error


def _by(given_by: str, sentence: str) -> str:
    """The transport's sentences name the setting; a person who gave the option looks for that."""
    return sentence.replace("UBI_REDIS_URL", given_by, 1)


@contextmanager
def connect(settings: BaseSettings, opts: argparse.Namespace, is_there: bool = True) -> Iterator[RedisConnection]:
    """The Redis that `--redis-url`, or else the project, names; the connection that `opts` bring, where they bring one
    that is open. Without `is_there` nobody is asked yet whether it answers. Raises UbiSettingError, UbiUnavailable."""
    if (open_one := getattr(opts, "connection", None)) is not None:
        yield open_one
        return
    url, given_by = opts.redis_url, "--redis-url"
    if not url:
        url, given_by = settings.get("UBI_REDIS_URL"), "UBI_REDIS_URL"
    if not url:
        where = "is not set" if inside_project() else "is not known, and there is no Scrapy project here"
        remedy = "set it in settings.py" if inside_project() else "change into the project"
        raise UbiSettingError("UBI_REDIS_URL", where, f"{remedy}, or give --redis-url redis://HOST:PORT/0")
    with ExitStack() as stack:
        try:
            has_login = given_by != "UBI_REDIS_URL" and "@" in str(url)
            at = address(str(url), None if has_login else credentials_of(settings))
            client = stack.enter_context(client_of(at, TIMEOUT))
            if is_there:
                client.ping()
        except TransportError as error:
            raise UbiUnavailable(_by(given_by, str(error))) from error
        except (*FAULTS, ValueError, TypeError) as error:  # the last two: bad ssl_ options
            raise UbiUnavailable(_by(given_by, explain(error, at, TIMEOUT))) from error
        yield RedisConnection(client, at, given_by, str(setting(settings, "secret")))


def credentials_of(settings: BaseSettings) -> GivenCredentials | None:
    """What gives user and password, where the project has a function for that. Raises UbiSettingError."""
    return named_credentials(str(setting(settings, "redis_credentials")))


def setting(settings: Mapping[Any, Any], name: str) -> Any:
    """The checked value of one of the project's settings, by its name in `UbiSettings`. Raises UbiSettingError."""
    row = next(row for row in SETTINGS if row.name == name)
    return read_value(row, given(settings, row.setting))


def need_agent(status: CrawlStatus, name: str) -> AgentStatus:
    """The agent of that name. Raises UbiNotFound when the crawl has none."""
    agent = status.agent(name)
    if agent is None:
        names = [agent.name for agent in status.agents]
        hint = nearest(name, names) if names else "it has no agents."
        raise UbiNotFound(f"There is no agent '{plain(name, 64)}' in crawl {plain(status.crawl, 64)}; {hint}")
    return agent


def nearest(name: str, names: list[str]) -> str:
    """The end of a sentence: the name that was probably meant, or those there are."""
    meant = " or ".join(f"'{plain(one, 64)}'" for one in find_meant(name, names))
    return f"did you mean {meant}?" if meant else f"there are {listed(names)}."


def listed(names: Iterable[str], longest: int = 64) -> str:
    """Names in a sentence, not more than a person reads."""
    shown = [plain(name, longest) for name in names]
    more = len(shown) - MOST_NAMES
    return ", ".join(shown[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
