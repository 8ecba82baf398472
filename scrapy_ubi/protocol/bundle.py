"""Letters of several lanes to one receiver that leave together are one stream entry: half the commands for the mail.

Rules of this module:

* The first letter's fields stand as they are. Of the second one those that differ from them follow, named with `.2`
  (`lane.2`, `seq.2`, `body.2`), of the third one `.3`, up to `MOST`: readable with redis-cli as before.
* Letters to one receiver stay in their order. An entry is no larger than a letter may be.
* Nothing that arrives is trusted: `opened` only takes letters apart, each of which is then judged by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

MOST = 9  # letters in an entry: one digit names them

Letters = tuple[tuple[str, dict[str, str]], ...]


def gathered(letters: Iterable[tuple[str, dict[str, str]]], most: int) -> Letters:
    """(receiver, fields) of letters -> (receiver, fields) of entries, of at most so many characters each unless one
    letter has more."""
    entries: list[tuple[str, dict[str, str]]] = []
    last: dict[str, _Entry] = {}  # the last entry for each receiver
    for receiver, fields in letters:
        size = sum(map(len, fields.values()))
        entry = last.get(receiver)
        if entry is None or entry.size + size > most or not entry.add(fields, size):
            entry = last[receiver] = _Entry(fields, size)
            entries.append((receiver, entry.fields))
    return tuple(entries)


class _Entry:
    """An entry that grows."""

    def __init__(self, first: dict[str, str], size: int) -> None:
        self._first, self.fields, self.size, self._count = first, dict(first), size, 1

    def add(self, fields: dict[str, str], size: int) -> bool:
        """Add a letter; False where it does not fit."""
        own = {name: value for name, value in fields.items() if value != self._first.get(name)}
        if not own or self._count == MOST or fields.keys() != self._first.keys():
            return False
        self._count += 1
        self.size += size
        self.fields |= {f"{name}.{self._count}": value for name, value in own.items()}
        return True


def opened(entry: Mapping[bytes, bytes]) -> list[Mapping[bytes, bytes]]:
    """The letters of an entry, in their order; whatever it holds, it gives at most `MOST`."""
    further: dict[bytes, dict[bytes, bytes]] = {}
    for name in entry:
        if name[-2:-1] == b"." and b"2" <= name[-1:] <= b"9":
            further.setdefault(name[-1:], {})[name[:-2]] = entry[name]
    if not further:
        return [entry]
    first = {name: value for name, value in entry.items() if name[-2:-1] != b"." or not b"2" <= name[-1:] <= b"9"}
    return [first, *({**first, **further[number]} for number in sorted(further))]
