"""The logs of a RocksDB store, looked at before RocksDB reads them: from one kind of damage it does not come back.

A log (the write-ahead log, the manifest) is made of blocks of 32 KiB, and these of records: a checksum (4 bytes), a
length (2 bytes, little-endian), a kind (1 byte), and the data (RocksDB's wiki, "Write Ahead Log File Format"). Some
kinds are those of logs that are written over older ones, which ours never are. Where RocksDB (rocksdict 0.3.29) meets
one of them behind a record of another kind, it takes it for bad, does not go on behind it, and reads it again, without
end.

Rules of this module:

* Such a kind is overwritten by the usual one. Either the record is whole with it, or its checksum does not hold: then
  RocksDB does what it does about all damage, in the log and in those behind it.
* A log that is whole is only read. What is no record, or torn, is passed over as RocksDB does: up to the next block.
"""

from __future__ import annotations

import struct
from pathlib import Path

BLOCK = 32 * 1024
FULL = 1  # the kind of a record that is whole
ENDLESS = frozenset((5, 6, 7, 8, 11))  # kinds of recycled logs
_HEADER = struct.Struct("<IHB")
_LOGS = ("*.log", "MANIFEST-*")


def mend_logs(directory: Path) -> int:
    """Make the logs of the store in this directory ones that can be read to their ends. How many records were
    overwritten. Raises OSError."""
    return sum(_mend(log) for pattern in _LOGS for log in sorted(directory.glob(pattern)))


def _mend(log: Path) -> int:
    bad: list[int] = []
    with open(log, "rb") as file:
        while block := file.read(BLOCK):
            base = file.tell() - len(block)
            bad += [base + at for at in _endless(block)]
    if bad:
        with open(log, "r+b") as file:
            for at in bad:
                file.seek(at + _HEADER.size - 1)
                file.write(bytes([FULL]))
    return len(bad)


def _endless(block: bytes) -> list[int]:
    """Where in a block the first record of such a kind begins, if there is one: RocksDB reads no further in it."""
    at = 0
    while at + _HEADER.size <= len(block):
        _, length, kind = _HEADER.unpack_from(block, at)
        if kind in ENDLESS:
            return [at]
        if not kind and not length:  # not written, as files are made longer ahead
            break
        at += _HEADER.size + length
    return []
