"""Which steps make the normal form: presets, the setting's text, and the function that they come to.

A *composition* is a set of steps; their order is ours. It is written as a preset with steps added and taken away
(`larm -index`, `safe +slashes`), or as the list of its steps (`fragment, escapes`). `name_of` writes it in one way
only: agents compare these names, since agents whose compositions differ would take different URLs for one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable

from scrapy_ubi.urls.hosts import HostRules
from scrapy_ubi.urls.normal import SAFE, by_steps, is_usual, normal_form, with_host
from scrapy_ubi.urls.steps import LOSSY, unchanged

STEPS = (*SAFE, *LOSSY)  # in the order in which they are taken
PRESETS = {
    "safe": frozenset(SAFE),
    "larm": frozenset(STEPS) - {"query-case"},  # LARM's description has the path; its code does it to the query, too
}

_separators = re.compile(r"[\s,]+").split


def parse(text: str | Iterable[object]) -> frozenset[str]:
    """The steps that a text, or a list of words, stands for. Raises ValueError with what is wrong."""
    words = _separators(text) if isinstance(text, str) else [str(word).strip() for word in text]
    words = [word for word in words if word]
    if not words:
        raise ValueError("it names no step")
    if words[0] not in PRESETS:
        return frozenset(_step(word) for word in words)
    steps = set(PRESETS[words[0]])
    for word in words[1:]:
        sign, step = word[:1], word[1:]
        if sign == "+":
            steps.add(_step(step))
        elif sign == "-":
            steps.discard(_step(step))
        else:
            raise ValueError(f"after {words[0]!r}, {word!r} must be written +{word} or -{word}")
    return frozenset(steps)


def _step(word: str) -> str:
    if word in STEPS:
        return word
    if word in PRESETS:
        raise ValueError(f"the preset {word!r} must come first")
    near = difflib.get_close_matches(word, STEPS, n=1)
    raise ValueError(f"{word!r} is no step" + (f", did you mean {near[0]!r}" if near else ""))


def name_of(steps: frozenset[str]) -> str:
    """The one name of a composition, which `parse` reads: the nearest preset, and how it differs."""
    preset = min(PRESETS, key=lambda name: len(PRESETS[name] ^ steps))
    of_preset = PRESETS[preset]
    changes = ["-+"[step in steps] + step for step in STEPS if (step in steps) != (step in of_preset)]
    return " ".join([preset, *changes])


def is_composition(text: str) -> bool:
    """Whether `parse` can read it."""
    try:
        parse(text)
    except ValueError:
        return False
    return True


class Normaliser:
    """The normal form by some steps: callable, never raises, idempotent, None for what is no URL of a host.

    `changed` counts, by lossy step, the URLs that it has changed. With `rules`, synonyms of hosts are one host.
    """

    def __init__(self, steps: frozenset[str] = PRESETS["safe"], rules: HostRules | None = None) -> None:
        self.name = name_of(steps)
        self.changed = {name: 0 for name in LOSSY if name in steps}
        self._safe = steps & PRESETS["safe"]
        self._all_safe = self._safe == PRESETS["safe"]
        self._lossy = [(name, step) for name, step in LOSSY.items() if name in steps]
        self._same = rules.same if rules is not None and rules.has_synonyms else None

    @property
    def function(self) -> Callable[[str], str | None]:
        """What calling this comes to, without the detour where there is nothing to choose."""
        return normal_form if self._all_safe and not self._lossy and self._same is None else self

    def __call__(self, url: str) -> str | None:
        """The normal form of an absolute http or https URL, None for anything else."""
        form = normal_form(url) if self._all_safe else url if is_usual(url) else by_steps(url, self._safe)
        if form is None:
            return None
        if self._same is not None:
            form = with_host(form, self._same)
        if not self._lossy:
            return form
        cut = form.index("/", len("https://"))
        return form if unchanged(form, cut) else self._by_lossy_steps(form, cut)

    def _by_lossy_steps(self, form: str, cut: int) -> str:
        rest, hash_sign, fragment = form[cut:].partition("#")
        path, question, query = rest.partition("?")
        for name, step in self._lossy:
            before = path, query
            path, query = after = step(path, query)
            if after != before:
                self.changed[name] += 1
        return "".join([form[:cut], path, question, query, hash_sign, fragment])
