"""How agents write down and send what they found."""

from __future__ import annotations

from scrapy_ubi.settings_table.row import Setting

ROWS: tuple[Setting, ...] = (
    Setting(
        "flush_interval",
        "seconds",
        0.2,
        "Time between two flushes: what was found is written down and sent, mail is read.",
        low=0.01,  # an agent does its part of the crawl between two
        high=60,
    ),
    Setting(
        "flush_records",
        "int",
        1000,
        "Records that make a flush come before its time.",
        low=1,
        high=1_000_000,
    ),
    Setting(
        "handoff_timeout",
        "seconds",
        60.0,
        "How long a new owner waits for the former one to hand a host over, before it fetches at the risk of "
        "duplicates.",
        above=0,
        high=86_400,
    ),
    Setting(
        "leave_timeout",
        "seconds",
        60.0,
        "How long an agent that leaves tries to hand on all it holds; what is left stays on its disk.",
        low=0,
        high=86_400,
    ),
    Setting(
        "resend_timeout",
        "seconds",
        5.0,
        "A letter that is not acknowledged after so long is sent again.",
        above=0,
        high=3600,
    ),
    Setting(
        "window",
        "int",
        8,
        "Letters in a lane that may wait for their acknowledgement at once; bounds the mail that Redis holds.",
        low=1,
        high=1000,
    ),
    Setting(
        "letter_records",
        "int",
        500,
        "Records in one letter, at most.",
        low=1,
        high=100_000,
    ),
    Setting(
        "outbox_records",
        "int",
        200_000,
        "Records that wait in the outbox before the agent stops fetching until some are acknowledged.",
        low=1,
        high=100_000_000,
    ),
    Setting(
        "suppressed_keys",
        "int",
        1_000_000,
        "Keys of foreign URLs remembered as known to their owners, so that they are not sent again.",
        low=0,
        high=100_000_000,
    ),
    Setting(
        "max_letter_bytes",
        "int",
        1_000_000,
        "The longest letter that is sent or accepted; a request that would not fit cannot leave the agent.",
        low=16_384,
        high=256_000_000,
    ),
    Setting(
        "max_url_length",
        "int",
        4096,
        "The longest URL that is kept, in characters; longer ones are dropped and counted.",
        low=64,
        high=65_536,
    ),
)
