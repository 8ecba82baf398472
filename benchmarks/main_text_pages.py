"""A hundred pages of ten kinds with the text that is their content, made by code: ten of each kind, in ten layouts.

Rules of this module:

* Nothing is copied from anywhere: sentences are made of lists of words, by a seed. Letters of Chinese, Japanese, Arabic
  and Hebrew are in no order that means something.
* A page has what pages have around their content: menus, trails, asides, related stories, notices, comments, footers.
  Layouts differ in how much they say of it: by elements of HTML, by names, or not at all (divs, tables).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from html import escape
from typing import NamedTuple

_LATIN = (
    "harbour council morning river engine paper window market letter number machine garden winter station valley "
    "bridge teacher answer silver copper yellow narrow distant careful simple ordinary several between against towards "
    "without carries measures replaces follows answers remembers returns because although whether before quietly slowly"
).split()
_LETTERS = {
    "cjk": "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主"
    "发年动同工也能下过子说产种面而方后多定行学法所",
    "kana": "のにはをたがでてとしれさあいるもなうきよこんらりくまけやすわみめ日本語町道山川海空",
}
_RTL = {"ar": "كتاب مدينة طريق قديم جديد بيت نهر جبل يوم ليلة كبير صغير بين على من الى كان".split(),
        "he": "ספר עיר דרך ישן חדש בית נהר הר יום לילה גדול קטן בין על מן אל היה".split()}  # fmt: skip


class MadePage(NamedTuple):
    """`text`: the words of its content, without the words of what stands around it."""

    kind: str
    name: str
    url: str
    html: str
    text: str


class _Writer:
    """Makes text of one script, and keeps what belongs to the content."""

    def __init__(self, seed: int, script: str = "") -> None:
        self._random = random.Random(seed)
        self._script = script
        self.kept: list[str] = []

    def words(self, least: int, most: int) -> str:
        number = self._random.randint(least, most)
        if self._script in _LETTERS:
            return "".join(self._random.choices(_LETTERS[self._script], k=2 * number))
        return " ".join(self._random.choices(_RTL.get(self._script, _LATIN), k=number))

    def sentence(self) -> str:
        text = self.words(7, 18)
        return f"{text}。" if self._script in _LETTERS else f"{text[:1].upper()}{text[1:]}."

    def sentences(self, number: int) -> str:
        return "".join(f"{self.sentence()}{'' if self._script in _LETTERS else ' '}" for _ in range(number)).strip()

    def keep(self, text: str) -> str:
        """Of the content, as it stands in HTML."""
        self.kept.append(text)
        return escape(text)

    def p(self, number: int = 0) -> str:
        return f"<p>{self.keep(self.sentences(number or self._random.randint(2, 5)))}</p>"

    def number(self, least: int, most: int) -> int:
        return self._random.randint(least, most)


def _news(w: _Writer) -> str:
    return "".join(w.p() for _ in range(w.number(5, 9))) + f"<h2>{w.keep(w.words(3, 6))}</h2>" + w.p() + w.p()


def _docs(w: _Writer) -> str:
    parts = [w.p()]
    for _ in range(4):
        parts.append(f"<section><h2>{w.keep(w.words(2, 4))}</h2>{w.p()}")
        parts.append(f"<pre>{w.keep(_code(w))}</pre>{w.p()}")
        terms = "".join(f"<dt>{w.keep(w.words(1, 2))}</dt><dd>{w.keep(w.sentence())}</dd>" for _ in range(3))
        parts.append(f"<dl>{terms}</dl></section>")
    return "".join(parts)


def _shop(w: _Writer) -> str:
    items = "".join(f"<li>{w.keep(w.words(3, 9))}</li>" for _ in range(7))
    rows = "".join(f"<tr><th>{w.keep(w.words(1, 2))}</th><td>{w.keep(w.words(1, 4))}</td></tr>" for _ in range(8))
    return f"<p>{w.keep(f'EUR {w.number(10, 900)}')}</p>{w.p()}<ul>{items}</ul><table>{rows}</table>{w.p()}"


def _forum(w: _Writer) -> str:
    posts = range(w.number(4, 8))
    return "".join(f"<div class=post><div class=post-body>{w.p()}{w.p()}</div></div>" for _ in posts)


def _tables(w: _Writer) -> str:
    width = w.number(3, 6)
    head = "".join(f"<th>{w.keep(w.words(1, 2))}</th>" for _ in range(width))
    rows = "".join(
        "<tr>" + "".join(f"<td>{w.keep(w.words(1, 3))}</td>" for _ in range(width)) + "</tr>" for _ in range(25)
    )
    return f"{w.p(2)}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{w.p(1)}"


def _code(w: _Writer) -> str:
    names = [name.lower() for name in w.words(6, 6).split()] or ["value"]
    return "\n".join(f"    {names[n % len(names)]} = {names[-1]}({n}, '{names[0]}')" for n in range(w.number(3, 9)))


def _codes(w: _Writer) -> str:
    return "".join(
        f"{w.p(2)}<div class=highlight-python><pre><code class=language-python>{w.keep(_code(w))}</code></pre></div>"
        for _ in range(6)
    )


def _list(w: _Writer) -> str:
    items = "".join(f"<li><b>{w.keep(w.words(1, 3))}</b> {w.keep(w.sentence())}</li>" for _ in range(14))
    return f"{w.p(1)}<ol>{items}</ol>{w.p(1)}"


def _wiki(w: _Writer) -> str:
    def linked() -> str:
        link = f"<a href=/wiki/{w.number(1, 99)}>{w.keep(w.words(1, 2))}</a>"
        return f"<p>{link} {w.keep(w.sentence())}</p>"

    return "".join(f"<h2>{w.keep(w.words(1, 3))}</h2>{linked()}{linked()}{w.p()}" for _ in range(4))


KINDS: dict[str, tuple[Callable[[_Writer], str], tuple[str, ...]]] = {
    "news": (_news, ("",)),
    "docs": (_docs, ("",)),
    "shop": (_shop, ("",)),
    "forum": (_forum, ("",)),
    "tables": (_tables, ("",)),
    "code": (_codes, ("",)),
    "list": (_list, ("",)),
    "wiki": (_wiki, ("",)),
    "cjk": (_news, ("cjk", "kana")),
    "rtl": (_news, ("ar", "he")),
}


def _around(w: _Writer) -> dict[str, str]:
    """What stands around the content."""
    links = [f"<a href=/{n}>{escape(w.words(1, 3))}</a>" for n in range(8)]
    teaser = "".join(
        f"<div><a href=/t{n}><h3>{escape(w.words(4, 8))}</h3></a><span>{w.number(1, 28)} May</span></div>"
        for n in range(5)
    )
    return {
        "menu": "<ul>" + "".join(f"<li>{link}</li>" for link in links) + "</ul>",
        "trail": " / ".join(links[:3]),
        "teaser": teaser,
        "comments": "".join(
            f"<div><b>{escape(w.words(1, 1))}</b><p>{escape(w.sentences(1))}</p></div>" for _ in range(3)
        ),
        "notice": escape(w.words(12, 20)),
        "foot": " | ".join(links[3:]) + f" <p>{escape(w.words(6, 9))}</p>",
        "share": "".join(f"<a href=//s.example/{n}>{escape(w.words(1, 1))}</a> " for n in range(4)),
    }


def _layouts() -> list[Callable[[str, str, dict[str, str]], str]]:
    """Ten ways to write a page of its heading, its content and what is around it."""
    return [
        lambda h, c, a: f"<header><nav>{a['menu']}</nav></header><main><article><h1>{h}</h1>{c}</article></main>"
        f"<aside>{a['teaser']}</aside><footer>{a['foot']}</footer>",
        lambda h, c, a: f"<nav>{a['menu']}</nav><main><div class=breadcrumbs>{a['trail']}</div><h1>{h}</h1>{c}"
        f"<div class=share>{a['share']}</div></main><footer>{a['foot']}</footer>",
        lambda h, c, a: f"<div id=header>{a['menu']}</div><div id=wrap><div id=content-body><h1>{h}</h1>{c}</div>"
        f"<div id=sidebar>{a['teaser']}</div></div><div id=footer>{a['foot']}</div>",
        lambda h, c, a: f"<div>{a['menu']}</div><div><div><h1>{h}</h1>{c}</div><div>{a['teaser']}</div></div>"
        f"<div>{a['foot']}</div>",
        lambda h, c, a: f"<table><tr><td colspan=2>{a['menu']}</td></tr><tr><td>{a['teaser']}</td><td><h1>{h}</h1>{c}"
        f"</td></tr><tr><td colspan=2>{a['foot']}</td></tr></table>",
        lambda h, c, a: f"<div role=navigation>{a['menu']}</div><div role=main><h1>{h}</h1>{c}</div>"
        f"<div role=contentinfo>{a['foot']}</div>",
        lambda h, c, a: f"<div class=topnav>{a['menu']}</div><article class=post><h1>{h}</h1>"
        f"<div class=entry-content>{c}</div><section id=comments><h2>3 comments</h2>{a['comments']}</section></article>"
        f"<div class=related><h2>Related</h2>{a['teaser']}</div>",
        lambda h, c, a: f"<div class=cookie-banner><p>{a['notice']}</p></div><div class=menu>{a['menu']}</div>"
        f"<div class=page><h1>{h}</h1>{c}<div class=newsletter-signup>{a['notice']}</div></div><div>{a['foot']}</div>",
        lambda h, c, a: f"<form action=/>{a['menu']}<div class=a1><h1>{h}</h1>{c}</div>"
        f"<div class=a2>{a['teaser']}</div><div class=a3>{a['foot']}</div></form>",
        lambda h, c, a: f"<div id=app><div class=css-1><div class=css-2>{a['menu']}</div><div class=css-3>"
        f"<div class=css-4><h1>{h}</h1>{c}</div><div class=css-5>{a['share']}</div></div></div>"
        f"<div class=css-6>{a['foot']}</div></div>",
    ]  # fmt: skip


def made_pages(seed: int = 1) -> Iterator[MadePage]:
    """All of them; another seed makes others of the same kinds."""
    for place, (kind, (make, scripts)) in enumerate(KINDS.items()):
        for number, layout in enumerate(_layouts()):
            script = scripts[number % len(scripts)]
            w = _Writer(seed * 10_000 + place * 100 + number, script)
            heading = w.keep(w.words(3, 7))
            content, around = make(w), _around(w)
            direction = " dir=rtl" if script in _RTL else ""
            html = (
                f"<!doctype html><html lang={script if script in _RTL else 'en'}{direction}><head><meta charset=utf-8>"
                f"<title>{heading} - site.example</title></head><body>{layout(heading, content, around)}</body></html>"
            )
            yield MadePage(
                kind, f"{kind}-{number}", f"http://site.example/{kind}/{number}.html", html, "\n".join(w.kept)
            )
