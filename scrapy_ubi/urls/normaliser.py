"""Which steps make the normal form: presets, the setting's text, and the function that they come to.

A *composition* is a set of steps; their order is ours. It is written as a preset with steps added and taken away
(`larm -index`, `safe +slashes`), or as the list of its steps (`fragment, escapes`). `name_of` writes it in one way
only: agents compare these names, since agents whose compositions differ would take different URLs for one.

The preset `scrapy`, the default, is `safe` and the steps of `urls.canonical`.

Steps that a host's owner *tries* (`urls.learned`) belong to a composition as well, but not to the normal form: in the
set they are written `?index`. The preset `learned` is `safe` and all that can be tried.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from scrapy_ubi.ground.untrusted.meant_names import ask_meant
from scrapy_ubi.urls.canonical import CANONICAL, canonical, canonical_form
from scrapy_ubi.urls.host_rules import HostRules
from scrapy_ubi.urls.normal import SAFE, by_steps, is_usual, normal_form, with_host
from scrapy_ubi.urls.steps import LOSSY, OF_ARGUMENTS, unchanged

STEPS = (*SAFE, *CANONICAL, *LOSSY)  # in the order in which they are taken
TRIED = ("www", "path-case", "session", "tracking", "slashes", "index", "query-order")  # what can be learned of a host
PRESETS = {
    "safe": frozenset(SAFE),
    "scrapy": frozenset((*SAFE, *CANONICAL)),
    # LARM's description lowers the path; its code the query, too.
    "larm": frozenset((*SAFE, "plus", "characters", "path-case", "slashes", "index")),
    "learned": frozenset((*SAFE, *(f"?{step}" for step in TRIED))),
}

VERSIONS = {"session": 2, "query-order": 2}  # of steps whose rules have changed; 2: `(S(...))`, `_sid`, empty arguments

_separators = re.compile(r"[\s,]+").split


def parse_steps(text: str | Iterable[object]) -> frozenset[str]:
    """The steps that a text, or a list of words, stands for. Raises ValueError with what is wrong."""
    words = _separators(text) if isinstance(text, str) else [str(word).strip() for word in text]
    words = [word for word in words if word]
    if not words:
        raise ValueError("it names no step")
    if words[0] not in PRESETS:
        return frozenset(_step(word) for word in words)
    steps = set(PRESETS[words[0]])
    for word in words[1:]:
        sign = word[:1]
        step = word[1:]
        if sign == "-" and f"?{step}" in PRESETS[words[0]]:
            steps -= {step, f"?{step}"}
        elif sign == "+":
            steps = (steps | {_step(step)}) - {f"?{step}"}
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
    meant = ask_meant(word, map(repr, STEPS))
    raise ValueError(f"{word!r} is no step" + (f", {meant}" if meant else ""))


def name_of(steps: frozenset[str]) -> str:
    """The one name of a composition, which `parse_steps` reads: the nearest preset, and how it differs."""
    presets = ["learned"] if tried(steps) else ["safe", "larm", "scrapy"]
    preset = min(presets, key=lambda name: len(PRESETS[name] ^ steps))
    of_preset = PRESETS[preset]
    changes = [
        "-+"[step in steps] + step
        for step in dict.fromkeys((*STEPS, *TRIED))
        if (step in steps, f"?{step}" in steps) != (step in of_preset, f"?{step}" in of_preset)
    ]
    return " ".join([preset, *changes])


def tried(steps: frozenset[str]) -> tuple[str, ...]:
    """The steps of a composition that are tried at each host."""
    return tuple(step for step in TRIED if f"?{step}" in steps)


def version_of(steps: frozenset[str]) -> int:
    """Of the rules of these steps: agents of one composition and of other rules do not take the same URLs for one."""
    return max(VERSIONS.get(step.removeprefix("?"), 1) for step in steps | {""})


def is_composition(text: str) -> bool:
    """Whether `parse_steps` can read it."""
    try:
        parse_steps(text)
    except ValueError:
        return False
    return True


class Form(NamedTuple):
    """A URL's normal form by those of the steps that are not lossy, by all, and the lossy ones that have changed it."""

    safe: str
    normal: str
    steps: tuple[str, ...]


class Normaliser:
    """The normal form by some steps: callable, never raises, idempotent, None for what is no URL of a host.

    Lossy steps come between those of `urls.canonical`, where these are on: they find arguments in one spelling, and
    what they leave in another one, or order, is put right.

    `changed` counts, by lossy step, the URLs that it has changed. With `rules`, synonyms of hosts are one host.
    """

    def __init__(self, steps: frozenset[str] = PRESETS["scrapy"], rules: HostRules | None = None) -> None:
        self.name = name_of(steps)
        self.changed = {name: 0 for name in LOSSY if name in steps}
        self._safe = steps & PRESETS["scrapy"]
        self._form = _FORMS.get(self._safe, self._form_by_steps)
        self._of_path, self._of_query = (step in steps for step in CANONICAL)
        self._lossy = [(name, step) for name, step in LOSSY.items() if name in steps]
        self._of_arguments = not OF_ARGUMENTS.isdisjoint(steps)
        self._same = rules.same if rules is not None and rules.has_synonyms else None

    @property
    def function(self) -> Callable[[str], str | None]:
        """What calling this comes to, without the detour where there is nothing to choose."""
        return self if self._lossy or self._same is not None else self._form

    def __call__(self, url: str) -> str | None:
        """The normal form of an absolute http or https URL, None for anything else."""
        form = self._safe_form(url)
        return self._by_lossy_steps(form)[0] if form is not None and self._lossy else form

    def _safe_form(self, url: str) -> str | None:
        form = self._form(url)
        return form if form is None or self._same is None else with_host(form, self._same)

    def _form_by_steps(self, url: str) -> str | None:
        form = url if is_usual(url) else by_steps(url, self._safe)
        return form if form is None else self._canonical(form)

    def _canonical(self, form: str) -> str:
        of_path = self._of_path
        of_query = self._of_query
        return canonical(form, of_path, of_query) if of_path or of_query else form

    def judged(self, url: str) -> Form | None:
        """The normal form with how the lossy steps came to it; None for what has none."""
        form = self._safe_form(url)
        return None if form is None else Form(form, *(self._by_lossy_steps(form) if self._lossy else (form, ())))

    def _by_lossy_steps(self, form: str) -> tuple[str, tuple[str, ...]]:
        """The form that they make of this one, and those that have changed it."""
        cut = form.index("/", len("https://"))
        if unchanged(form, cut) and not (self._of_arguments and ("?" in form or ";" in form)):
            return form, ()
        rest, hash_sign, fragment = form[cut:].partition("#")
        path, question, query = rest.partition("?")
        had_query = bool(query)
        steps = []
        for name, step in self._lossy:
            before = path, query
            path, query = after = step(path, query)
            if after != before:
                steps.append(name)
        if had_query and not query:
            question = ""
        # What the lossy steps escape, order or leave at the end of a path is as in all canonical forms in the end.
        now = self._canonical("".join([form[:cut], path, question, query, hash_sign, fragment]))
        if now == form:
            return form, ()
        for name in steps:
            self.changed[name] += 1
        return now, tuple(steps)


_FORMS: dict[frozenset[str], Callable[[str], str | None]] = {
    PRESETS["safe"]: normal_form,
    PRESETS["scrapy"]: canonical_form,
}
