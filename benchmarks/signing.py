"""What signatures cost: of a letter between agents (`UBI_SECRET`), of a beat, and of a request (`UBI_BOT_KEY`).

    python benchmarks/signing.py [--rounds 3] [--json FILE]

A figure is processor time, that of the fastest of many short pieces, in microseconds: signing and checking of letters
of a few sizes (1,300 bytes are what a letter has in the middle, docs/explanation/cost.md) and of beats; for a request
its three headers, nonce and key operation included. No Redis and no network are needed.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from rounds import options, save, table

from scrapy_ubi.policy.politeness.bot_key import BotKey
from scrapy_ubi.policy.politeness.message_signatures import request_headers
from scrapy_ubi.transport.replay_window import ReplayWindows
from scrapy_ubi.transport.signer import Signer

SIZES = (100, 1300, 5000, 20_000)  # bytes of a letter's body
TURNS, PIECES = 300, 40  # calls of a piece, pieces of a round: one of them finds a quiet moment of a busy machine
BEAT = "892e1c79.0 18 200 295ba34ef5c07fbb 295ba34ef5c07fbb - 1041 - -"
HEADER = {
    "from": "agent-1", "store": "3b42541d", "lane": "discovery", "seq": "11", "floor": "6", "n": "23",
    "view": "295ba34ef5c07fbb", "enc": "json", "run": "5c1e02b7",
}  # fmt: skip


def least(do: Callable[[], object], rounds: int) -> float:
    """Microseconds of one call."""
    found = []
    for _ in range(rounds * PIECES):
        begun = time.process_time()
        for _ in range(TURNS):
            do()
        found.append((time.process_time() - begun) / TURNS * 1e6)
    return min(found)


def letters(rounds: int) -> dict[str, tuple[float, float]]:
    """What is measured -> microseconds to sign, and to check."""
    signer, windows = Signer(secrets.token_urlsafe(32), "bot:spider"), ReplayWindows()
    found = {}
    for size in SIZES:
        fields = {**HEADER, "body": "x" * size}
        signed = signer.entry("letter", "agent-2", "5f01c2b9.17.892e1c79", fields)
        raw = {name.encode(): value.encode() for name, value in signed.items()}
        numbers = iter(range(1, 10**9))

        def check(raw: dict[bytes, bytes] = raw, numbers: object = numbers) -> None:
            assert signer.bound("letter", "agent-2", raw) is not None
            windows.is_new("agent-1 5f01c2b9", next(numbers))  # type: ignore[call-overload]

        def sign(fields: dict[str, str] = fields) -> None:
            signer.entry("letter", "agent-2", "5f01c2b9.17.892e1c79", fields)

        found[f"letter of {size:,} bytes"] = least(sign, rounds), least(check, rounds)
    beat = signer.text("beat", "agent-1", "agent-1", BEAT)
    found["beat"] = (
        least(lambda: signer.text("beat", "agent-1", "agent-1", BEAT), rounds),
        least(lambda: signer.checked("beat", "agent-1", "agent-1", beat), rounds),
    )
    return found


def request(rounds: int) -> float:
    """Microseconds of the headers of one request."""
    signing = BotKey(Ed25519PrivateKey.generate()).signing
    return least(
        lambda: request_headers(
            signing, "https://bot.example", "site.example", int(time.time()), secrets.token_urlsafe(24)
        ),
        rounds,
    )


def main() -> None:
    args = options(__doc__, rounds=3)
    found = letters(args.rounds)
    signing = request(args.rounds)
    rows = {name: [f"{sign:.1f}", f"{check:.1f}"] for name, (sign, check) in found.items()}
    table("microseconds", ["to sign", "to check"], {**rows, "request, three headers": [f"{signing:.1f}", ""]})
    save(args.json, {"letters": {name: list(both) for name, both in found.items()}, "request": signing})


if __name__ == "__main__":
    main()
