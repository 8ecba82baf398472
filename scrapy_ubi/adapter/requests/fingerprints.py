"""Keys by a fingerprinter of the user's: REQUEST_FINGERPRINTER_CLASS decides which requests are the same one.

Rules of this module:

* With Scrapy's own class the keys are those of `identity`, which take for one whatever it takes for one, and cost a
  twentieth. Any other class (scrapy-poet's, scrapy-zyte-api's, one of the project's) is asked for each request.
* The key is 64 bits of the fingerprint and of the nonce. Where the request belongs is decided by its URL, as always.
* A request that was taken in again (`agent.keys.again_nonce`) has the key that its URL and its nonce make: another
  agent or a command that takes it in has no fingerprinter.
* All agents must ask the same class, so its name is among the settings that agents compare; and it must give the same
  bytes in every process.
* One that raises, or gives no bytes, loses no request: its URL decides then, which is counted, and said once.
* The normal form joins nothing, so nothing of it is counted as joined, and nothing is learned of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from scrapy import Request
from scrapy.utils.request import RequestFingerprinterProtocol

from scrapy_ubi.adapter.requests.check import NONCE
from scrapy_ubi.adapter.requests.identity import Place, RequestKeys
from scrapy_ubi.agent.keys import AGAIN
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.urls import url_key
from scrapy_ubi.urls.key import SEED, seed_key

logger = logging.getLogger("scrapy_ubi")

ERRORS = "ubi/fingerprint_errors"  # stat


class FingerprintKeys(RequestKeys):
    """Keys by `fingerprinter`. `count` adds one to the stat of a name."""

    def __init__(
        self,
        settings: UbiSettings,
        fingerprinter: RequestFingerprinterProtocol,
        count: Callable[[str], object],
        unfiltered: bool = False,
    ) -> None:
        super().__init__(settings, unfiltered)
        self._fingerprinter = fingerprinter
        self._count = count
        self.lossy = False
        self._said = False

    @property
    def changed(self) -> Mapping[str, int]:
        return {}

    @property
    def plain(self) -> bool:
        return False

    def key(self, request: Request, place: Place) -> int:
        nonce = str(request.meta.get(NONCE, ""))
        if nonce.startswith(AGAIN):
            return super().key(request, place)
        print_ = self._fingerprint(request)
        if print_ is None:
            return super().key(request, place)
        if request.dont_filter and self._is_back(request, print_):
            nonce = f"{nonce}/{request.meta.get('redirect_times', 0)}"
        if nonce and nonce.startswith(SEED):
            return seed_key(url_key("", "", print_), nonce)
        return url_key("", "", print_, nonce)

    def _fingerprint(self, request: Request) -> bytes | None:
        """The fingerprint; None where there is none."""
        try:
            found = self._fingerprinter.fingerprint(request)
            if isinstance(found, bytes | bytearray):
                return bytes(found)
            raise TypeError(f"the fingerprint is a {type(found).__name__}: bytes are wanted")
        except Exception as error:
            self._count(ERRORS)
            if not self._said:
                self._said = True
                sentence = (
                    "REQUEST_FINGERPRINTER_CLASS gives no fingerprint of %.300s: such requests are told apart by "
                    "method, URL and body. (Shown once; %s counts.)"
                )
                logger.error(sentence, request, ERRORS, exc_info=error)
            return None

    def _is_back(self, request: Request, print_: bytes) -> bool:
        """Whether this redirect leads back to a request of its own chain, which is a step on and no duplicate."""
        urls = request.meta.get("redirect_urls")
        return isinstance(urls, list) and any(self._was(request, url) == print_ for url in urls)

    def _was(self, request: Request, url: object) -> bytes | None:
        try:
            return self._fingerprint(request.replace(url=str(url)))
        except ValueError:  # what it came by, as another agent says, is no URL
            return None
