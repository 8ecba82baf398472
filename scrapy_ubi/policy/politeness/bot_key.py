"""The key of the bot (`UBI_BOT_KEY`): an Ed25519 key pair in a file, PEM (PKCS #8) or JWK, made, read and shown.

Rules of this module:

* The private part stays in the file and in the object that signs: no error, log line or `repr` shows it.
* A file that others may read is warned of once, and used.
* The public part is a JWK Set (RFC 7517, 8037) of one key, named by its thumbprint (RFC 7638); always the same bytes,
  for its answer is signed.
"""

from __future__ import annotations

import json
import logging
import os
import stat
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.policy.politeness.message_signatures import Signing

logger = logging.getLogger("scrapy_ubi")

SETTING = "UBI_BOT_KEY"
MAKE = "make one by `scrapy ubi botkey --make FILE`"
LARGEST = 100_000  # bytes of a file
TEST_KEYS = frozenset(("poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U", "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"))
"""Of RFC 9421 (B.1.4) and RFC 8037: everyone has them."""


class BotKey:
    """A key that signs."""

    __slots__ = ("_private", "keyid", "x")

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.x = _base64url(private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))
        self.keyid = thumbprint(self.x)

    @property
    def signing(self) -> Signing:
        """What signs with it."""
        return Signing(self._private.sign, self.keyid)

    @property
    def key_set(self) -> bytes:
        """The public key as a JWK Set, the bytes that are served."""
        key = {"kty": "OKP", "crv": "Ed25519", "kid": self.keyid, "x": self.x, "use": "sig"}
        return json.dumps({"keys": [key]}, separators=(",", ":")).encode("ascii")


def thumbprint(x: str) -> str:
    """The thumbprint of an Ed25519 key (RFC 7638; RFC 8037, A.3) with this public part."""
    text = json.dumps({"crv": "Ed25519", "kty": "OKP", "x": x}, separators=(",", ":"), sort_keys=True)
    return _base64url(sha256(text.encode("ascii")).digest())


def read_key(path: Path, warn: bool = True) -> BotKey:
    """The key in this file. `warn`: of a key that others have, or may have. Raises UbiSettingError."""
    try:
        with path.open("rb") as file:
            mode, raw = os.fstat(file.fileno()).st_mode, file.read(LARGEST)
    except OSError as error:
        raise UbiSettingError(SETTING, f"is {str(path)!r}, which cannot be read ({error.strerror})", MAKE) from None
    key = BotKey(_private(path, raw))
    if not warn:
        return key
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        logger.warning("%s is %s, which others may read or write: chmod 600 it.", SETTING, path)
    if key.keyid in TEST_KEYS:
        logger.warning("%s is the test key of an RFC, which everyone has: servers refuse it; %s.", SETTING, MAKE)
    return key


def make_key(path: Path) -> BotKey:
    """A new key in a new file, which its owner alone may read. Raises UbiSettingError where there is one already."""
    private = Ed25519PrivateKey.generate()
    text = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
    except OSError as error:
        raise UbiSettingError(
            SETTING, f"cannot be made in {str(path)!r} ({error.strerror})", "name a new file"
        ) from None
    return BotKey(private)


def _private(path: Path, raw: bytes) -> Ed25519PrivateKey:
    try:
        key = _of_jwk(raw) if raw.lstrip()[:1] == b"{" else load_pem_private_key(raw, None)
    except (ValueError, TypeError, KeyError, UnsupportedAlgorithm):  # TypeError: it has a password
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise UbiSettingError(
            SETTING, f"is {str(path)!r}, which holds no Ed25519 private key (PEM without a password, or JWK)", MAKE
        )
    return key


def _of_jwk(raw: bytes) -> Ed25519PrivateKey | None:
    """The key of a JWK (RFC 8037), None where it is of another kind, or its parts are of two keys. Raises ValueError,
    TypeError, KeyError."""
    jwk = json.loads(raw)
    if jwk["kty"] != "OKP" or jwk["crv"] != "Ed25519":
        return None
    key = Ed25519PrivateKey.from_private_bytes(urlsafe_b64decode(jwk["d"] + "=="))
    return key if jwk.get("x", BotKey(key).x) == BotKey(key).x else None


def _base64url(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")
