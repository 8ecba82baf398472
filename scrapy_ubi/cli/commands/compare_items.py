"""Are the items of agents those of plain Scrapy? Two crawls of plain Scrapy say what varies by itself.

Rules of this module:

* Items are compared as JSON, as often as they come, whatever their order.
* A field that differs between two crawls of plain Scrapy for what is else the same item (a time, a number drawn, the
  page by which the item happened to be found first) says nothing of agents: it is left out, and named.
* But where such a field has the same values in both crawls, each once, though at other items (a number that a process
  counts), agents must not have others, nor one of them twice.
* What plain Scrapy has in one of its two crawls only is neither missing nor too many with agents.
* An item of the agents that equals a missing one but for a few fields is one that differs, not one missing and one too
  many. Pairs are sought among the first `MOST_PAIRED`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Item = Mapping[str, Any]

MOST_PAIRED = 500  # of each side
LEAST_COUNTED = 3  # different values of a field that counts; fewer may be the same by chance
LEAST_EQUAL = 0.5  # of the fields of two items that are taken for one


@dataclass(frozen=True, slots=True)
class Pair:
    """One item, as plain Scrapy and as agents have it, and the fields by which it differs."""

    plain: Item
    agents: Item
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ItemComparison:
    """`equal`: how many items are the same; `varying`: fields left out; `counted`: those of them that have the same
    values in both crawls of plain Scrapy, and others with agents; `unsteady`: items that plain Scrapy has in one of its
    crawls only."""

    equal: int
    missing: tuple[Item, ...]
    too_many: tuple[Item, ...]
    differing: tuple[Pair, ...]
    varying: tuple[str, ...]
    counted: tuple[str, ...]
    unsteady: int

    @property
    def same(self) -> bool:
        """Whether agents have given the items of plain Scrapy."""
        return not (self.missing or self.too_many or self.differing or self.counted)


def compare_items(
    first: Iterable[Item],
    second: Iterable[Item],
    agents: Iterable[Item],
    needed_first: Iterable[Item] | None = None,
    needed_second: Iterable[Item] | None = None,
) -> ItemComparison:
    """Compare the items of `agents` with those of two crawls of plain Scrapy. The other two are those of each crawl of
    plain Scrapy that agents must have, where they need not have all."""
    first, second, agents = list(first), list(second), list(agents)
    varying = _varying(first, second)
    one, two, ours = (_counted(items, varying) for items in (first, second, agents))
    always = _counted(first if needed_first is None else needed_first, varying)
    always &= _counted(second if needed_second is None else needed_second, varying)
    ever = one | two
    missing = list((always - ours).elements())
    too_many = list((ours - ever).elements())
    pairs, missing, too_many = _paired(missing, too_many)
    return ItemComparison(
        equal=(ours & ever).total(),
        missing=tuple(map(json.loads, missing)),
        too_many=tuple(map(json.loads, too_many)),
        differing=tuple(pairs),
        varying=varying,
        counted=tuple(name for name in varying if _is_counted_anew(name, first, second, agents)),
        unsteady=(ever - (one & two)).total(),
    )


def _text(item: Item) -> str:
    return json.dumps(item, sort_keys=True, ensure_ascii=False)


def _counted(items: Iterable[Item], without: Iterable[str] = ()) -> Counter[str]:
    left_out = frozenset(without)
    return Counter(_text({name: value for name, value in item.items() if name not in left_out}) for item in items)


def _varying(first: list[Item], second: list[Item]) -> tuple[str, ...]:
    """The fields by which items of two crawls differ that are else the same. A field that tells most items from each
    other is none of them: what differs then is which items there are."""
    one, two = _counted(first), _counted(second)
    pairs, _, _ = _paired(list((one - two).elements()), list((two - one).elements()))
    found: list[str] = []
    for field, _ in Counter(field for pair in pairs for field in pair.fields).most_common():
        if len(_counted(first, [*found, field])) * 2 > len(one):
            found.append(field)
    return tuple(sorted(found))


def _is_counted_anew(field: str, first: list[Item], second: list[Item], agents: list[Item]) -> bool:
    """Whether the values of this field are the same in both crawls of plain Scrapy, each once, and others here."""
    one, two, ours = (
        Counter(_text({"": item[field]}) for item in items if field in item) for items in (first, second, agents)
    )
    return one == two and len(one) == one.total() >= LEAST_COUNTED and bool(ours - one)


def _paired(left: list[str], right: list[str]) -> tuple[list[Pair], list[str], list[str]]:
    """Pairs of items that are alike in most of their fields; and what is left of both sides."""
    theirs = [json.loads(text) for text in left[:MOST_PAIRED]]
    ours = [json.loads(text) for text in right[:MOST_PAIRED]]
    alike = []
    for i, plain in enumerate(theirs):
        for j, other in enumerate(ours):
            fields = _differing(plain, other)
            many = len(plain.keys() | other.keys())
            if many and len(fields) <= many * (1 - LEAST_EQUAL) and len(fields) < many:
                alike.append((len(fields) / many, i, j, fields))
    pairs, used_left, used_right = [], set(), set()
    for _, i, j, fields in sorted(alike):
        if i not in used_left and j not in used_right:
            used_left.add(i)
            used_right.add(j)
            pairs.append(Pair(theirs[i], ours[j], fields))
    rest_left = [text for i, text in enumerate(left) if i not in used_left]
    rest_right = [text for j, text in enumerate(right) if j not in used_right]
    return pairs, rest_left, rest_right


def _differing(one: Item, other: Item) -> tuple[str, ...]:
    absent = object()
    names = sorted(one.keys() | other.keys())
    return tuple(name for name in names if one.get(name, absent) != other.get(name, absent))
