"""The ledger: rows of what an agent owes, and of the crawl it belongs to
(docs/explanation/protocol.md#flush-and-restart).

| key | value, JSON |
| --- | --- |
| `j` flush part | a part of the block of a flush: entries told to owners, hosts told of, pages done, `visited` |
| `mgroup` | the name of the disk, the last flush begun, what is known of the group |
| `mnumber.` lane | the next number of a lane |
| `mlane.` lane | what became of the letters received on a lane |
| `mcrawl` | the agent, the run, whether it is finished, the settings that may not change, the counters |

`visited`: pages visited again, each with the row that others know.

Whatever is read is validated whole, as mail is; what does not hold raises `StoreDamaged` naming the row.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from scrapy_ubi.frontier.rows import JOURNAL, META, damaged, read_json
from scrapy_ubi.frontier.store import Store, after, every
from scrapy_ubi.ground.untrusted.checks import exactly
from scrapy_ubi.protocol.answer import Outcome
from scrapy_ubi.protocol.host import Entry, VisitRow
from scrapy_ubi.protocol.journal import JournalPart
from scrapy_ubi.protocol.records import Record
from scrapy_ubi.protocol.snapshot import Changes, GroupState, Saved, SavedLane
from scrapy_ubi.protocol.visit_wire import row_in, values_of

Row = tuple[bytes, bytes | None]  # None: to be deleted

GROUP, NUMBER, LANE, CRAWL = META + b"group", META + b"number.", META + b"lane.", META + b"crawl"

_dumps = json.JSONEncoder(separators=(",", ":")).encode


def rows(changes: Changes) -> Iterator[Row]:
    """What a flush writes of an agent."""
    group = changes.group
    yield GROUP, _group_value(group)
    for name, number in changes.numbers.items():
        yield NUMBER + name.encode(), _dumps({"next": number}).encode()
    for name, lane in changes.lanes_in.items():
        yield LANE + name.encode(), _lane_value(lane) if lane is not None else None
    for part in changes.parts:
        yield part_key(part.flush, part.number), _part_value(part)
    for flush, count in changes.settled:
        for number in range(count):
            yield part_key(flush, number), None


def _group_value(group: GroupState) -> bytes:
    return _dumps({**group._asdict(), "peers": dict(sorted(group.peers.items()))}).encode()


def part_key(flush: int, number: int) -> bytes:
    """Where a part of a flush's block stands."""
    return b"%b%b%b" % (JOURNAL, flush.to_bytes(8, "big"), number.to_bytes(4, "big"))


def _part_value(part: JournalPart) -> bytes:
    fields = {
        "discovered": [_entry_out(r.host, r.entry) for r in part.discovered if r.entry is not None],
        "told": part.told,
        "done": [_entry_out(host, entry) for host, entry in part.done],
    }
    if part.visited:
        fields["visited"] = [[_entry_out(host, row.entry), values_of(row)] for host, row in part.visited]
    return _dumps(fields).encode()


def _lane_value(lane: SavedLane) -> bytes:
    outcomes = {str(seq): [outcome.refused, outcome.want] for seq, outcome in lane.outcomes.items()}
    return _dumps({"sender": lane.sender, "floor": lane.floor, "outcomes": outcomes}).encode()


def _entry_out(host: str, entry: Entry) -> list[Any]:
    return [host, f"{entry.key:016x}", entry.url, entry.depth, entry.priority, entry.request]


def load(store: Store) -> Saved | None:
    """What all flushes together have written; None where none was. Raises `StoreDamaged`."""
    value = store.get(GROUP)
    if value is None:
        return None
    return Saved(
        _checked(GROUP, value, _group),
        {_name(NUMBER, key): _checked(key, value, _number) for key, value in _all(store, NUMBER)},
        {_name(LANE, key): _checked(key, value, _lane) for key, value in _all(store, LANE)},
        tuple(_part(key, value) for key, value in _all(store, JOURNAL)),
    )


def rename(store: Store) -> None:
    """Give the disk another name, durably, and start its lanes again: numbers that were given since its last flush are
    not known, and others may have answered them. Raises `StoreFull`, `StoreDamaged`."""
    value = store.get(GROUP)
    if value is None:
        return
    group = _checked(GROUP, value, _group)._replace(store=secrets.token_hex(4))
    batch = store.batch()
    batch.put(GROUP, _group_value(group))
    for key, _ in _all(store, NUMBER):
        batch.delete(key)
    store.write(batch)


def crawl_row(facts: Mapping[str, Any]) -> Row:
    """The row about the crawl."""
    return CRAWL, _dumps(facts).encode()


def load_crawl(store: Store) -> dict[str, Any]:
    """What is known of the crawl; empty where nothing is. Raises `StoreDamaged`."""
    value = store.get(CRAWL)
    return read_json(CRAWL, value) if value is not None else {}


def _all(store: Store, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    return every(store, prefix, after(prefix))


def _name(prefix: bytes, key: bytes) -> str:
    try:
        return key[len(prefix) :].decode()
    except ValueError as error:
        raise damaged(key, error) from error


def _checked(key: bytes, value: bytes, read: Any) -> Any:
    row = read_json(key, value)
    try:
        return read(row)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise damaged(key, error) from error


def _group(row: dict[str, Any]) -> GroupState:
    peers = row["peers"]
    if isinstance(peers, list):  # before layout 3 names stood there alone
        peers = dict.fromkeys(peers, "")
    return GroupState(
        exactly(row["store"], str),
        exactly(row["flush"], int),
        exactly(row["lossy"], bool),
        _names(peers),
        exactly(row.get("view", ""), str),
        exactly(row.get("era", 0), int),
        _names(row.get("lost", {})),
        tuple(_texts(row.get("views", []))),
    )


def _names(value: dict[str, str]) -> dict[str, str]:
    return dict(zip(_texts(value), _texts(value.values()), strict=True))


def _number(row: dict[str, Any]) -> int:
    return exactly(row["next"], int)


def _lane(row: dict[str, Any]) -> SavedLane:
    outcomes = {
        int(seq): Outcome(dict(zip(_texts(refused), _texts(refused.values()), strict=True)), tuple(_texts(want)))
        for seq, (refused, want) in row["outcomes"].items()
    }
    return SavedLane(exactly(row["sender"], str), exactly(row["floor"], int), outcomes)


def _part(key: bytes, value: bytes) -> JournalPart:
    flush, number = int.from_bytes(key[1:9], "big"), int.from_bytes(key[9:], "big")
    if len(key) != 13:
        raise damaged(key, ValueError(f"{len(key)} bytes"))

    def read(row: dict[str, Any]) -> JournalPart:
        discovered = tuple(Record(host, flush, entry=entry) for host, entry in map(_entry_in, row["discovered"]))
        done, visited = tuple(map(_entry_in, row["done"])), tuple(map(_visit_in, row.get("visited", ())))
        return JournalPart(flush, number, discovered, tuple(_texts(row["told"])), done, visited)

    return _checked(key, value, read)  # type: ignore[no-any-return]


def _entry_in(row: Any) -> tuple[str, Entry]:
    host, key, url, depth, priority, request = row
    number = int(exactly(key, str), 16)
    if not 0 <= number < 1 << 64:
        raise ValueError("a key is not 64 bits")
    texts = (exactly(host, str), exactly(url, str), exactly(request, str))
    return texts[0], Entry(number, texts[1], exactly(depth, int), exactly(priority, int), texts[2])


def _visit_in(row: Any) -> tuple[str, VisitRow]:
    entry, values = row
    host, read = _entry_in(entry)
    return host, row_in(read, exactly(values, list))


def _texts(values: Iterable[Any]) -> list[str]:
    return [exactly(value, str) for value in values]
