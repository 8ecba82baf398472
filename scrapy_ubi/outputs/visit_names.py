"""What the outputs of a page's visits are called: by the page, and from its second visit on by the visit's number.

A page that is visited again (UBI_RECRAWL) leaves outputs of each visit that found a change. Visits are numbered from 1,
also those that leave nothing. The first one is called by the page alone, as that of a page that is visited once.
"""

from __future__ import annotations

from typing import NamedTuple

BEHIND = "~"  # between the name of a page and the number of a visit: no page has it in its name
MOST_VISIT = (1 << 32) - 1


class VisitName(NamedTuple):
    """A page, and which visit of it."""

    page: str
    visit: int = 1

    def __str__(self) -> str:
        return f"{self.page}{BEHIND}{self.visit}" if self.visit > 1 else self.page


def read_visit_name(name: str) -> VisitName:
    """The page and the visit of a name; a name that has no number is that of a first visit."""
    page, behind, number = name.rpartition(BEHIND)
    if behind and len(number) < 11 and number.isascii() and number.isdigit() and 1 < int(number) <= MOST_VISIT:
        return VisitName(page, int(number))
    return VisitName(name)
