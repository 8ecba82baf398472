"""Signatures of requests against the vectors of RFC 9421 and of the drafts of Web Bot Auth."""

from __future__ import annotations

import json
import logging
from base64 import b64decode, b64encode, urlsafe_b64encode
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.policy.politeness.bot_key import BotKey, make_key, read_key, thumbprint
from scrapy_ubi.policy.politeness.message_signatures import (
    LABEL,
    LIFE,
    authority_of,
    base,
    directory_headers,
    request_headers,
    signed,
)

# RFC 9421, B.1.4
PEM = """-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF
-----END PRIVATE KEY-----
"""
KEYID = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"
X = "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"
AGENT = "https://signature-agent.test"


def the_test_key() -> BotKey:
    private = load_pem_private_key(PEM.encode(), None)
    assert isinstance(private, Ed25519PrivateKey)
    return BotKey(private)


KEY = the_test_key()


def signature(covered: list[tuple[str, str]], parameters: str) -> str:
    return b64encode(KEY.signing.sign(base(covered, parameters))).decode()


def test_the_vector_of_rfc_9421_b_2_6() -> None:
    covered = [
        ('"date"', "Tue, 20 Apr 2021 02:07:55 GMT"),
        ('"@method"', "POST"),
        ('"@path"', "/foo"),
        ('"@authority"', "example.com"),
        ('"content-type"', "application/json"),
        ('"content-length"', "18"),
    ]
    made = signed(KEY.signing, covered, ';created=1618884473;keyid="test-key-ed25519"', "sig-b26")
    assert made == {
        "Signature-Input": 'sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length")'
        ';created=1618884473;keyid="test-key-ed25519"',
        "Signature": "sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw=="
        ":",
    }


@pytest.mark.parametrize(
    ("component", "expires", "nonce", "wanted"),
    [
        (
            '"signature-agent";key="agent2"',
            4889289600,
            "n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==",
            "RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg==",
        ),
        (
            '"signature-agent"',
            1735693200,
            "e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1qg==",
            "jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDsi6nJKuHxUi/5Syp3rLWBA==",
        ),
    ],
    ids=["dictionary", "string"],
)
def test_the_vectors_of_web_bot_auth(component: str, expires: int, nonce: str, wanted: str) -> None:
    covered = [('"@authority"', "example.com"), (component, f'"{AGENT}"')]
    parameters = (
        f'("@authority" {component});created=1735689600;keyid="{KEYID}";alg="ed25519";expires={expires}'
        f';nonce="{nonce}";tag="web-bot-auth"'
    )
    assert signature(covered, parameters) == wanted


def test_what_is_sent_is_built_as_these_vectors_are() -> None:
    made = request_headers(KEY.signing, AGENT, "example.com", 1735689600, "n")
    assert made["Signature-Agent"] == f'"{AGENT}"'
    listed = (
        f'("@authority" "signature-agent");created=1735689600;keyid="{KEYID}";alg="ed25519"'
        f';expires={1735689600 + LIFE};nonce="n";tag="web-bot-auth"'
    )
    assert made["Signature-Input"] == f"{LABEL}={listed}"
    covered = [('"@authority"', "example.com"), ('"signature-agent"', f'"{AGENT}"')]
    assert made["Signature"] == f"{LABEL}=:{signature(covered, listed)}:"


def test_a_whole_address_is_a_dictionary_and_none_is_left_out() -> None:
    address = f"{AGENT}/.well-known/http-message-signatures-directory"
    made = request_headers(KEY.signing, address, "example.com", 1, "n")
    assert made["Signature-Agent"] == f'{LABEL}="{address}"'
    assert made["Signature-Input"].startswith(f'{LABEL}=("@authority" "signature-agent";key="{LABEL}");created=1;')
    made = request_headers(KEY.signing, "", "example.com", 1, "n")
    assert made.keys() == {"Signature-Input", "Signature"}
    assert made["Signature-Input"].startswith(f'{LABEL}=("@authority");created=1;')


def test_the_vector_of_a_directory() -> None:
    assert KEY.key_set.decode() == (
        f'{{"keys":[{{"kty":"OKP","crv":"Ed25519","kid":"{KEYID}","x":"{X}","use":"sig"}}]}}'
    )
    made = directory_headers(KEY.signing, "signature-agent.test", KEY.key_set, 1735689600, 4889289600 - 1735689600)
    assert made["Content-Digest"] == "sha-256=:CADMT2aBdV/rqQr/NIru64ERQkCobVvllA4V0fLFDu0=:"
    assert made["Signature-Input"] == (
        'binding=("@authority";req "content-digest");created=1735689600;expires=4889289600'
        f';keyid="{KEYID}";tag="http-message-signatures-directory"'
    )
    assert made["Signature"] == (
        "binding=:l6P8R67tm3kujAxbHWio7ll01qrEZ0dKD/WWlGhNYEmTnFZM8Wt0VQ9zqGfvo7T/UMkBxsigzChM1Gpz7gOVBg==:"
    )


@pytest.mark.parametrize(
    ("scheme", "netloc", "authority"),
    [
        ("https", "Example.COM", "example.com"),
        ("https", "example.com:443", "example.com"),
        ("http", "example.com:443", "example.com:443"),
        ("http", "me:secret@example.com:80", "example.com"),
        ("https", "[::1]:8443", "[::1]:8443"),
    ],
)
def test_authorities(scheme: str, netloc: str, authority: str) -> None:
    assert authority_of(scheme, netloc) == authority


# -- the file ----------------------------------------------------------------------------------------------------------


def test_thumbprints_of_rfc_8037_and_rfc_9421() -> None:
    assert thumbprint("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo") == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
    assert (KEY.x, KEY.keyid) == (X, KEYID)


def test_a_key_is_made_once_and_is_its_owners(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "bot.pem"
    made = make_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_key(path).keyid == made.keyid and not caplog.records
    with pytest.raises(UbiSettingError, match="UBI_BOT_KEY cannot be made in"):
        make_key(path)
    path.chmod(0o640)
    read_key(path)
    assert "chmod 600" in caplog.text
    caplog.clear()
    read_key(path, warn=False)
    assert not caplog.records, "who has said it needs not say it again"


def test_a_jwk_is_read_and_a_test_key_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (path := tmp_path / "bot.jwk").touch(0o600)
    raw = load_pem_private_key(PEM.encode(), None).private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())  # type: ignore[call-arg]
    d = urlsafe_b64encode(raw).rstrip(b"=").decode()
    path.write_text(json.dumps({"kty": "OKP", "crv": "Ed25519", "x": X, "d": d}))
    with caplog.at_level(logging.WARNING):
        assert read_key(path).keyid == KEYID
    assert "test key of an RFC" in caplog.text
    path.write_text(json.dumps({"kty": "OKP", "crv": "Ed25519", "x": "A" + X[1:], "d": d}))
    with pytest.raises(UbiSettingError, match="no Ed25519 private key") as caught:
        read_key(path)
    assert d not in str(caught.value)


@pytest.mark.parametrize("kind", ["nothing", "text", "elliptic", "password", "json", "short"])
def test_what_is_no_key_is_refused_in_one_sentence(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "bot.pem"
    elliptic = generate_private_key(SECP256R1())
    private = Ed25519PrivateKey.generate()
    texts = {
        "text": b"a key",
        "elliptic": elliptic.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        "password": private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x")),
        "json": b'{"kty": "RSA"}',
        "short": b'{"kty": "OKP", "crv": "Ed25519", "d": "AAAA"}',
    }
    if kind != "nothing":
        path.write_bytes(texts[kind])
    with pytest.raises(UbiSettingError, match=r"UBI_BOT_KEY is .*: make one by `scrapy ubi botkey --make FILE`"):
        read_key(path)


def test_a_key_does_not_show_its_private_part() -> None:
    assert not hasattr(KEY, "__dict__") and "MC4CAQ" not in repr(KEY)
    assert b64decode("n4Ni+HpISpVObnQMW0wOhCKROaIKqKtW/2ZYb2p9KcU=").hex() not in repr(KEY.signing)
