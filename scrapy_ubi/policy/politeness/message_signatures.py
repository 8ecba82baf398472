"""HTTP message signatures (RFC 9421) as Web Bot Auth has them: the text that is signed, and the headers that say so.

Rules of this module:

* Pure: key, time and nonce are given. What is signed are lines of ASCII, put together here and nowhere else.
* A request's signature covers the authority that it is sent to: it holds at no other host. It expires.
* An agent that is an origin (`https://bot.example`) is named as verifiers want it today: by a string, from which they
  ask `/.well-known/http-message-signatures-directory`. One that is a longer address is named as the working group's
  draft has it: by a dictionary whose one member is the address of the key set itself.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import urlsplit

WELL_KNOWN = "/.well-known/http-message-signatures-directory"
MEDIA_TYPE = "application/http-message-signatures-directory+json"
LABEL = "sig1"
LIFE = 300  # s that a request's signature holds: time to be sent, and clocks that are a little out
DEFAULT_PORTS = {"http": ":80", "https": ":443"}

Sign = Callable[[bytes], bytes]
Headers = dict[str, str]


@dataclass(frozen=True, slots=True)
class Signing:
    """What signs (Ed25519), and the thumbprint of its public key (RFC 7638)."""

    sign: Sign
    keyid: str


def base(covered: Iterable[tuple[str, str]], parameters: str) -> bytes:
    """The signature base (RFC 9421, 2.5): a line for each covered component, with its identifier as it is written in
    the list of the `parameters`, and one for these."""
    lines = [f"{identifier}: {value}" for identifier, value in covered]
    return "\n".join([*lines, f'"@signature-params": {parameters}']).encode("ascii")


def signed(signing: Signing, covered: list[tuple[str, str]], parameters: str, label: str) -> Headers:
    """The two headers of a signature over these components. `parameters` begin with a semicolon."""
    listed = f"({' '.join(identifier for identifier, _ in covered)}){parameters}"
    signature = b64encode(signing.sign(base(covered, listed))).decode("ascii")
    return {"Signature-Input": f"{label}={listed}", "Signature": f"{label}=:{signature}:"}


def request_headers(signing: Signing, agent: str, authority: str, now: int, nonce: str) -> Headers:
    """What a request to this authority has besides (Web Bot Auth). `agent`: where the public key is; empty: nowhere."""
    covered, headers = [('"@authority"', authority)], Headers()
    if agent:
        if is_origin(agent):
            identifier, headers["Signature-Agent"] = '"signature-agent"', f'"{agent}"'
        else:
            identifier, headers["Signature-Agent"] = f'"signature-agent";key="{LABEL}"', f'{LABEL}="{agent}"'
        covered.append((identifier, f'"{agent}"'))
    parameters = (
        f';created={now};keyid="{signing.keyid}";alg="ed25519";expires={now + LIFE};nonce="{nonce}";tag="web-bot-auth"'
    )
    return headers | signed(signing, covered, parameters, LABEL)


def directory_headers(signing: Signing, authority: str, body: bytes, now: int, life: int) -> Headers:
    """What the answer with the key set, these bytes, has besides, at this authority: the proof that the key is there by
    its owner's will. It holds for so many seconds."""
    digest = f"sha-256=:{b64encode(sha256(body).digest()).decode('ascii')}:"
    covered = [('"@authority";req', authority), ('"content-digest"', digest)]
    parameters = f';created={now};expires={now + life};keyid="{signing.keyid}";tag="http-message-signatures-directory"'
    return {"Content-Type": MEDIA_TYPE, "Content-Digest": digest, **signed(signing, covered, parameters, "binding")}


def is_origin(agent: str) -> bool:
    """Whether the agent is named by nothing but a host."""
    return urlsplit(agent).path in ("", "/")


def authority_of(scheme: str, netloc: str) -> str:
    """The authority as it is signed (RFC 9421, 2.2.3): small letters, no user, no port that is the scheme's own."""
    return netloc.rpartition("@")[2].lower().removesuffix(DEFAULT_PORTS.get(scheme, ":"))
