"""A certificate authority of our own, and a Redis with TLS.

Only Debian's redis-server speaks TLS here: the Valkey of the wheel does not.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

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

    def certificate(self, host: str, days: tuple[int, int] = (-1, 1), address: str = "") -> Path:
        """A file with key and certificate for that host, or address, which holds between these days from now."""
        key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
        begin, end = (now + timedelta(day) for day in days)
        names: list[x509.GeneralName] = [x509.DNSName(host)]
        if address:
            names.append(x509.IPAddress(ip_address(address)))
        made = x509.CertificateBuilder(
            self._name, _named(host), key.public_key(), x509.random_serial_number(), begin, end
        ).add_extension(x509.SubjectAlternativeName(names), critical=False)
        secret = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        file = self.place / f"{host}{address}{days[1]}.pem"
        file.write_bytes(secret + made.sign(self._key, hashes.SHA256()).public_bytes(PEM))
        return file


DAY = timedelta(1)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


class TlsSide:
    """How a server speaks TLS only; with `clients`, only to those that show a certificate of the authority."""

    def __init__(
        self,
        authority: Authority,
        host: str = "localhost",
        days: tuple[int, int] = (-1, 1),
        clients: bool = False,
        address: str = "",
    ) -> None:
        self.authority, self.own = authority, authority.certificate("client.example")
        file = authority.certificate(host, days, address)
        self.options = (
            *("--tls-cert-file", str(file), "--tls-key-file", str(file), "--tls-ca-cert-file", str(authority.file)),
            *("--tls-auth-clients", "yes" if clients else "no"),
        )

    def client(self) -> dict[str, Any]:
        """What redis-py is to be given."""
        own = {"ssl_certfile": str(self.own), "ssl_keyfile": str(self.own)}
        return {"ssl": True, "ssl_cert_reqs": "none", "ssl_check_hostname": False, **own}


class TlsServer(Server):
    """A Redis that speaks TLS only."""

    def __init__(
        self, authority: Authority, host: str = "localhost", days: tuple[int, int] = (-1, 1), clients: bool = False
    ) -> None:
        side = TlsSide(authority, host, days, clients)
        super().__init__("redis", tls=side)
        self.authority, self.own = authority, side.own

    @property
    def url(self) -> str:
        return f"rediss://localhost:{self.port}/0?ssl_ca_certs={self.authority.file}"
