"""What a user of a Redis with ACLs must be allowed: asked for at the start, and what lacks is named.

Rules of this module:

* Nothing is changed by asking. Servers before Redis 7 do not tell: there only the trials of `exchange_commands` do.
* The commands are those that the transport sends, or that its scripts call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from redis.exceptions import NoPermissionError

from scrapy_ubi.transport.address import Kind
from scrapy_ubi.transport.faults import RightsLacking
from scrapy_ubi.transport.redis_keys import RedisKeys
from scrapy_ubi.transport.round_trips import RedisCommand

ASK = """
-- ARGV: commands, each in one text with a space between the words. Returns those this user may not send.
if not redis.acl_check_cmd then return {} end
local lacking = {}
for i = 1, #ARGV do
  local words = {}
  for word in string.gmatch(ARGV[i], '[^ ]+') do words[#words + 1] = word end
  local told, may = pcall(redis.acl_check_cmd, unpack(words))
  if told and not may then lacking[#lacking + 1] = ARGV[i] end
end
return lacking
"""
_KEYS = ("TYPE {}", "RENAME {} {}:aside", "DEL {}", "EXPIRE {} 1")
_HASH = (
    *("HSET {} a b", "HSETNX {} a b", "HGET {} a", "HDEL {} a", "HGETALL {}", "HMGET {} a", "HLEN {}", "HKEYS {}"),
    *_KEYS,
)
_PULSES = ("SETRANGE {} 0 a", "GETRANGE {} 0 1", *_KEYS)
_MEMORY = ("GET {}", "SET {} a NX")
_STREAM = ("XADD {} * a b", "XLEN {}", "XRANGE {} - +", "XDEL {} 0-1", *_KEYS)
_TWO_WORDS = ("XGROUP", "XINFO", "CLUSTER")
_SEEDS = (
    *_STREAM,
    "EXISTS {}",
    "XREADGROUP GROUP g a STREAMS {} >",
    "XACK {} g 0-1",
    "XCLAIM {} g a 0 0-1",
    "XAUTOCLAIM {} g a 0 0-0",
    "XGROUP CREATE {} g 0",
    "XGROUP DELCONSUMER {} g a",
    "XINFO CONSUMERS {} g",
    "XINFO STREAM {}",
)
_SERVER: dict[Kind, tuple[str, ...]] = {
    "single": ("TIME", "SCAN 0"),
    "cluster": ("TIME", "SCAN 0", "WAIT 0 0", "CLUSTER SLOTS"),
    "sentinel": ("TIME", "SCAN 0", "WAIT 0 0", "ROLE"),
}


def needed_commands(kind: Kind) -> list[str]:
    """The names of the commands without which no agent works with a server of that kind."""
    return sorted({text.split()[0] for text in (*_SERVER[kind], *_HASH, *_PULSES, *_STREAM, "EVAL")})


def seed_commands() -> list[str]:
    """The names of those without which no URLs come from outside."""
    return sorted({text.split()[0] for text in _SEEDS})


def ask_known(names: Iterable[str]) -> RedisCommand:
    """Asks which of these commands the server knows: the answer has nothing (None) in the place of one that it does
    not know."""
    return RedisCommand(("COMMAND INFO", *names))


def ask_rights(keys: RedisKeys, agent: str, kind: Kind) -> RedisCommand:
    """Asks what of all that may be sent to a server of that kind is not allowed, but for seeds."""
    commands = [
        *_SERVER[kind],
        *(command.format(keys.beats, keys.beats) for command in _HASH),
        *(command.format(keys.pulses, keys.pulses) for command in _PULSES),
        *(command.format(keys.inbox(agent), keys.inbox(agent)) for command in _STREAM),
    ]
    if keys.mail_slots > 1:
        memory = keys.memory(agent)
        commands += [command.format(memory, memory) for command in (*_MEMORY, *_KEYS)]
    return RedisCommand(("EVAL", ASK, 1, keys.beats, *commands))


def ask_seed_rights(keys: RedisKeys) -> RedisCommand:
    """Asks what is not allowed of what seeds need."""
    return RedisCommand(("EVAL", ASK, 1, keys.seeds, *(command.format(keys.seeds, keys.seeds) for command in _SEEDS)))


def lacking(answers: Iterable[object], results: Iterable[object]) -> RightsLacking | None:
    """What lacks, by the answers to `ask_rights` and `ask_seed_rights`, and by what was refused; None where nothing
    does."""
    lists = [answer for answer in answers if isinstance(answer, list)]
    said = [one.decode(errors="replace") for answer in lists for one in answer if isinstance(one, bytes)]
    names = [" ".join(text.split()[:2] if text.startswith(_TWO_WORDS) else text.split()[:1]) for text in said]
    refused = [error for error in results if isinstance(error, NoPermissionError)]
    names += [found[1].upper() for found in map(_named, refused) if found is not None]
    if not names and not refused:
        return None
    some = ", ".join(sorted(set(names))) or str(refused[0])
    return RightsLacking(f"not allowed: {some}")


def _named(error: NoPermissionError) -> re.Match[str] | None:
    return re.search(r"'([\w|]+)' command", str(error))
