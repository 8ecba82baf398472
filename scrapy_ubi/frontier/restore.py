"""How a frontier on disk is opened: what a former process left, checked, without reading the URLs.

Rules of this module:

* The store is the truth. It says how many flushes it holds; a seen table that has been told of more says that the last
  ones are lost: a machine went down with its log half written, or the log is damaged. What the store holds is whole, as
  a flush is there wholly or not at all, and is gone on with; where it holds none it is damaged, and nothing is started.
* After such a loss, and whenever the table cannot tell whether there is one, the disk has another name: under the old
  one numbers of letters would be given again that others have answered already (`ledger.rename`).
* A seen table that is behind is told the last flushes again, from the store. Then its totals must be those of all host
  records together. Where they are not, or where there is no table or a damaged one, it is made again from the store,
  which takes some seconds a million URLs, and is reported.
* Host records are read, all of them; of the queues and of what is done nothing is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from scrapy_ubi.frontier import ledger, queue_rows, rows
from scrapy_ubi.frontier.disk_frontier import DiskFrontier
from scrapy_ubi.frontier.engines import Engine, check_address_space, open_store
from scrapy_ubi.frontier.flushes import GONE
from scrapy_ubi.frontier.host_totals import TotalsLog
from scrapy_ubi.frontier.seen import Seen, SeenDamaged, SeenTable, Totals
from scrapy_ubi.frontier.store import Store, StoreDamaged, every

MIB = 1 << 20
ROW_BYTES = 128  # of a row in a head, with all that is around it
MANY_GONE = 100_000  # keys of hosts dropped, before a table is made again without them
_PIECE = 10_000  # rows read at once when much is read

_LOST = (
    "The store beside {path} has lost what was written last, {lost} flushes after the first {flush}: its log is torn "
    "or damaged, as after a crash of the machine. What was written before is kept. Pages done since are fetched again, "
    "and what other agents had told this one since comes back from those that hold copies (UBI_REPLICATION)."
)

Report = Callable[[str], None]


class SeenKind(Protocol):
    """A kind of seen table: `seen.SeenTable` or `bloom.SeenBloom`."""

    def open(self, path: Path) -> Seen:
        """The table in this file. Raises `SeenDamaged`, `FileNotFoundError`."""
        ...

    def create(self, path: Path) -> Seen:
        """An empty one."""
        ...


def _silent(sentence: str) -> None:
    """No report."""


def open_frontier(
    directory: Path,
    *,
    delay: float = 0.0,
    memory: int = 256 * MIB,
    offset: float = 0.0,
    earliest: float = 0.0,
    kind: SeenKind = SeenTable,
    engine: Engine = "auto",
    report: Report = _silent,
    made: type[DiskFrontier] = DiskFrontier,
) -> DiskFrontier:
    """The frontier in an agent's directory (`store/`, `seen`), empty where there is none.

    `delay` is the politeness delay (s). `memory` bounds all caches together (bytes): an eighth holds the heads of
    queues, a quarter is the store's (`engine`: engines.py), and the rest is for the hosts themselves, 800 bytes each.
    `offset` is unix time less the agent's clock; before `earliest` (unix time) no host is fetched, for it is not known
    what was under way when a process was killed. `report` gets a sentence for people when something takes long or was
    not as it should be.
    Blocks for a second or so with 10 M URLs of 100,000 hosts.

    Raises `StoreDamaged`, `StoreFull`, `StoreError`.
    """
    check_address_space(memory, directory / "seen")
    store = open_store(directory / "store", memory // 4, engine)
    try:
        most = memory // 8 // ROW_BYTES
        return restore(
            store,
            directory / "seen",
            delay=delay,
            most=most,
            offset=offset,
            earliest=earliest,
            kind=kind,
            report=report,
            made=made,
        )
    except BaseException:
        store.close()
        raise


def restore(
    store: Store,
    path: Path,
    *,
    delay: float = 0.0,
    most: int = 1 << 18,
    offset: float = 0.0,
    earliest: float = 0.0,
    kind: SeenKind = SeenTable,
    report: Report = _silent,
    made: type[DiskFrontier] = DiskFrontier,
) -> DiskFrontier:
    """The frontier that this store holds, with its seen table in the file `path`; `most` rows in heads."""
    row = store.get(rows.FRONTIER)
    saved = rows.read_frontier(row) if row is not None else {}
    if row is None and store.scan(rows.HOST, rows.HOST + b"\xff" * 8, 1):
        raise rows.damaged(rows.FRONTIER, ValueError("it is missing"))
    flush = saved.get("flush", 0)
    seen, whole, lost = _opened(store, path, flush, kind, report)
    try:
        frontier = made(store, seen, saved, delay=delay, offset=offset, most=most)
        frontier.lost = lost or 0
        sums = _hosts(store, frontier, saved, earliest)
        frontier.visits.restore(frontier.states())
        why = _wrong(seen, sums, saved) if whole else ""
        if why:
            report(f"The index of known URLs {path} {why}: it is made again.")
        if flush and (why or lost != 0):
            ledger.rename(store)  # before the table is made again, which no longer says that something is lost
        if why or not whole:
            seen.rebuild(_changes(store, report), flush)
            frontier.forget_gone()
    except BaseException:
        seen.close()
        raise
    return frontier


def _wrong(seen: Seen, sums: Totals, saved: Mapping[str, int]) -> str:
    """Why the table cannot be used further; "" when it can."""
    found = seen.totals()
    if found is not None and found != sums:
        return "does not hold what the store does"
    gone = saved.get(GONE[0], 0)
    if gone >= MANY_GONE and gone * 2 > sums.known:
        return "holds mostly those of hosts that are not held any more"
    return ""


def _opened(store: Store, path: Path, flush: int, kind: SeenKind, report: Report) -> tuple[Seen, bool, int | None]:
    """The seen table, whether it holds all flushes of the store, as far as can be told from their numbers, and how many
    flushes the store has lost; None where the table cannot tell."""
    try:
        seen = kind.open(path)
    except FileNotFoundError:
        if flush:
            report(f"The index of known URLs {path} is missing: it is made again.")
        return kind.create(path), not flush, None
    except SeenDamaged as error:
        report(f"{error} This is done now.")
        return kind.create(path), False, None
    if (told := max(seen.flush, seen.written)) > flush:
        if flush:
            report(_LOST.format(path=path, flush=flush, lost=told - flush))
            return seen, False, told - flush
        seen.close()
        raise StoreDamaged(
            f"The store beside {path}", f"it holds {flush} flushes, and had {told} of them when it was last used"
        )
    whole = _caught_up(store, seen, flush)
    if not whole:
        report(f"The index of known URLs {path} is of long ago: it is made again.")
    return seen, whole, 0


def _caught_up(store: Store, seen: Seen, flush: int) -> bool:
    """Tell the table of the flushes it has missed; False when the store does not have them at hand any more."""
    for number in range(seen.flush + 1, flush + 1):
        key = rows.recent_key(number)
        value = store.get(key)
        found, changes = rows.read_recent(key, value) if value is not None else (-1, {})
        if found != number:
            return False
        seen.apply(changes)
        seen.flush = number
    return True


def _hosts(store: Store, frontier: DiskFrontier, saved: Mapping[str, int], earliest: float) -> Totals:
    """Read the host records, and the log of their sums; what the seen table must hold in all."""
    known, known_xor, done, done_xor = (saved.get(name, 0) for name in GONE)
    log, given = TotalsLog(store), saved.get("next", 1)
    log.check(given)
    for key, value in every(store, rows.HOST, rows.HOST + b"\xff" * 8, _PIECE):
        record = rows.read_host(key, value)
        hid = int.from_bytes(key[1:], "big")
        if frontier.find(record.host) is not None or hid >= given:
            raise rows.damaged(key, ValueError(f"{record.host} has two numbers, or one never given"))
        record = log.latest(key[1:], record)
        if record.next_at < earliest:
            record = record._replace(next_at=earliest)
        state = frontier.restore(hid, record)
        (more_known, known_bits), (more_done, done_bits) = state.salted()
        log.held(state)
        known, known_xor = known + more_known, known_xor ^ known_bits
        done, done_xor = done + more_done, done_xor ^ done_bits
    log.into(frontier.log)
    return Totals(known, known_xor, done, done_xor)


def _changes(store: Store, report: Report) -> Iterator[tuple[int, int]]:
    """Every salted key of the store with 1 (known) or 2 (done): all queues, then all that is done."""
    count = 0
    for kind, status in ((rows.QUEUE, 1), (rows.DONE, 2)):
        hid, salt = b"", 0
        for key, value in every(store, kind, kind + b"\xff" * 24, _PIECE):
            if key[1:5] != hid:
                hid = key[1:5]
                salt = rows.salt(hid)
            number = queue_rows.queued_key(key + value) if status == 1 else rows.done_key(key)
            yield number ^ salt, status
            count += 1
            if count % 1_000_000 == 0:
                report(f"Index of known URLs: {count // 1_000_000} million rows of the store read.")
