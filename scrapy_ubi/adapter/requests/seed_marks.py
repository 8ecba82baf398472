"""What a seed brings along: limits of its host, a scope for the links found from it, a label for what comes of it.

Rules of this module:

* All three stand in `meta` of a request: `ubi_limits` of the seed alone; `ubi_scope` and `ubi_label` of all pages that
  it leads to.
* A label is a text; or a mapping of fields to values, which items get that lack them.
* What comes from outside, or with a letter, is read anew wherever it is used; what does not hold counts as not there.
  A seed from outside with a mark that does not hold is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from scrapy_ubi.ground.untrusted.checks import Malformed, is_mapping, is_text
from scrapy_ubi.settings.host_limits import Limits, read_limits
from scrapy_ubi.urls.scope import KINDS

LIMITS, SCOPE, LABEL = "ubi_limits", "ubi_scope", "ubi_label"  # keys of meta
FIELDS = ("limits", "scope", "label")  # of a seed from outside
MARKS = dict(zip(FIELDS, (LIMITS, SCOPE, LABEL), strict=True))
LONGEST_LABEL, MOST_FIELDS = 200, 8

Label = str | dict[str, str]


class SeedMarks(NamedTuple):
    """The marks of one seed; None: it has none. `scope` is a kind."""

    limits: Limits | None = None
    scope: str | None = None
    label: Label | None = None

    @property
    def meta(self) -> dict[str, Any]:
        """What its request has."""
        return {key: value for key, value in ((SCOPE, self.scope), (LABEL, self.label)) if value}


NO_MARKS = SeedMarks()


def read_marks(fields: Mapping[str, object]) -> SeedMarks:
    """The marks in the fields of a seed. Raises Malformed."""
    limits, scope, label = (fields.get(name) for name in FIELDS)
    if scope is not None and scope not in KINDS:
        raise Malformed(f"scope: {str(scope)[:40]!r} is none of {', '.join(KINDS)}")
    read: Label | None = None
    if label is not None and (read := read_label(_value(label))) is None:
        raise Malformed("label: it is neither a short text nor a mapping of a few fields to such")
    try:
        found = read_limits(_value(limits)) if limits is not None else None
    except ValueError as error:
        raise Malformed(f"limits: {error}") from None
    return SeedMarks(found, str(scope) if scope is not None else None, read)


def why_no_marks(meta: Mapping[str, Any]) -> str:
    """Why marks in the `meta` of a seed do not hold, with the key; empty where all do."""
    for field, key in MARKS.items():
        try:
            read_marks({field: meta.get(key)})
        except Malformed as error:
            return f"{key}: {str(error).removeprefix(f'{field}: ')}"
    return ""


def read_label(value: object) -> Label | None:
    """A label; None for what is none."""
    if is_mapping(value, MOST_FIELDS, lambda one: is_text(one, LONGEST_LABEL)):
        return value or None
    return value if is_text(value, LONGEST_LABEL) and value else None


def _value(field: object) -> object:
    """What a field says: JSON, where its text is an object."""
    if isinstance(field, str) and field.startswith("{"):
        try:
            return json.loads(field)
        except (ValueError, RecursionError):
            raise Malformed(f"{field[:40]!r} is no JSON") from None
    return field
