"""A chain of certificates of the usual length: root and intermediate (RSA, 2048 bits), leaf (P-256, for all hosts).

As Let's Encrypt's and most others' chains are today. Made anew for each run, valid for a day, worth nothing.
"""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

ROOT, CHAIN, KEY = "root.pem", "chain.pem", "key.pem"


def write(directory: Path, zone: str) -> None:
    """The chain of a leaf for all names of `zone`, and its root, as files in `directory`."""
    root_key = rsa.generate_private_key(65537, 2048)
    middle_key = rsa.generate_private_key(65537, 2048)
    leaf_key = ec.generate_private_key(ec.SECP256R1())
    root = _certificate("Testbed Root X1", root_key, "Testbed Root X1", root_key, authority=True)
    middle = _certificate("Testbed R10", middle_key, "Testbed Root X1", root_key, authority=True)
    leaf = _certificate(f"*.{zone}", leaf_key, "Testbed R10", middle_key, names=[f"*.{zone}"])
    (directory / ROOT).write_bytes(_pem(root))
    (directory / CHAIN).write_bytes(_pem(leaf) + _pem(middle))
    (directory / KEY).write_bytes(
        leaf_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )


def server_context(directory: Path) -> ssl.SSLContext:
    """TLS 1.3 only. Tickets for resumption are those of this context, and of all processes that are forked with it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(directory / CHAIN, directory / KEY)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _certificate(
    subject: str, key: Any, issuer: str, issuer_key: Any, authority: bool = False, names: list[str] | None = None
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if names:
        alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
        builder = builder.add_extension(alternatives, critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _name(common: str) -> x509.Name:
    return x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Testbed"), x509.NameAttribute(NameOID.COMMON_NAME, common)]
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
