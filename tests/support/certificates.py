"""A certificate authority of our own, and a Redis with TLS.

Only Debian's redis-server speaks TLS here: the Valkey of the wheel does not.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import redis
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.support.server import Server

PEM = serialization.Encoding.PEM


class Authority:
    """Signs certificates, into files of a directory."""

    def __init__(self, place: Path, name: str = "authority") -> None:
        self.place = place
        self._key, self._name = ec.generate_private_key(ec.SECP256R1()), _named(name)
        self.file = place / f"{name}.pem"
        now = datetime.now(UTC)
        made = x509.CertificateBuilder(self._name, self._name, self._key.public_key(), 1, now - DAY, now + DAY)
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.file.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(PEM))

    def certificate(self, host: str, days: tuple[int, int] = (-1, 1)) -> Path:
        """A file with key and certificate for that host, which holds between these days from now."""
        key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
        begin, end = (now + timedelta(day) for day in days)
        made = x509.CertificateBuilder(
            self._name, _named(host), key.public_key(), x509.random_serial_number(), begin, end
        ).add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        secret = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        file = self.place / f"{host}{days[1]}.pem"
        file.write_bytes(secret + made.sign(self._key, hashes.SHA256()).public_bytes(PEM))
        return file


DAY = timedelta(1)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


class TlsServer(Server):
    """A Redis that speaks TLS only; with `clients`, only to those that show a certificate of the authority."""

    def __init__(
        self, authority: Authority, host: str = "localhost", days: tuple[int, int] = (-1, 1), clients: bool = False
    ) -> None:
        file = authority.certificate(host, days)
        self.authority, self.own = authority, authority.certificate("client.example")
        options = ("--tls-cert-file", str(file), "--tls-key-file", str(file), "--tls-ca-cert-file", str(authority.file))
        super().__init__("redis", None, (*options, "--tls-auth-clients", "yes" if clients else "no"))

    def arguments(self, place: Path) -> list[str]:
        plain = super().arguments(place)
        return ["--tls-port", str(self.port), "--port", "0", *plain[2:]]

    @property
    def url(self) -> str:
        return f"rediss://localhost:{self.port}/0?ssl_ca_certs={self.authority.file}"

    def client(self) -> redis.Redis:
        own = str(self.own)
        return redis.Redis(
            host="127.0.0.1",
            port=self.port,
            protocol=2,
            socket_timeout=10,
            retry=Retry(NoBackoff(), 0),
            ssl=True,
            ssl_cert_reqs="none",
            ssl_check_hostname=False,
            ssl_certfile=own,
            ssl_keyfile=own,
        )
