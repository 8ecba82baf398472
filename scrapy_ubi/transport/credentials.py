"""User and password that change: a function of the project's gives them for each new connection.

Rules of this module:

* The function may ask a service and take its time: from the event loop it runs in another thread.
* What it gives is checked, and neither kept nor shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

from redis.credentials import CredentialProvider
from redis.exceptions import RedisError

from scrapy_ubi.errors import UbiSettingError

Given = tuple[str] | tuple[str, str]


class RedisLogin(NamedTuple):
    """An address, and what gives user and password for each connection where the address holds none."""

    url: str
    credentials: CredentialProvider | None = None


class CredentialsFailed(RedisError):
    """The function raised, or gave something else than user and password."""


def named_credentials(path: str) -> GivenCredentials | None:
    """What the function at that dotted path gives; None for "". Raises UbiSettingError."""
    if not path:
        return None
    module, _, name = path.rpartition(".")
    try:
        give = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UbiSettingError(
            "UBI_REDIS_CREDENTIALS",
            f"is {path!r}, which cannot be imported ({error})",
            "name a function of the project",
        ) from error
    if not callable(give):
        raise UbiSettingError("UBI_REDIS_CREDENTIALS", f"is {path!r}, which is no function", "name one")
    return GivenCredentials(give)


class GivenCredentials(CredentialProvider):
    """What redis-py asks at each connection. `give` returns user and password, a password alone, or a
    CredentialProvider, which is asked then."""

    def __init__(self, give: Callable[[], object]) -> None:
        self._give = give

    def get_credentials(self) -> Given:
        """User and password. Raises CredentialsFailed."""
        try:
            given = self._give()
            if isinstance(given, CredentialProvider):
                given = given.get_credentials()
        except Exception as error:
            raise CredentialsFailed(f"{type(error).__name__}: {error}") from error
        parts = (given,) if isinstance(given, str) else given
        if not isinstance(parts, tuple | list) or not all(isinstance(one, str) for one in parts):
            raise CredentialsFailed(f"it gave a {type(given).__name__}, not user and password")
        if len(parts) == 1:
            return (parts[0],)
        if len(parts) == 2:
            return parts[0], parts[1]
        raise CredentialsFailed(f"it gave {len(parts)} texts, not user and password")

    async def get_credentials_async(self) -> Given:
        """User and password, got in another thread. Raises CredentialsFailed."""
        return await asyncio.to_thread(self.get_credentials)
