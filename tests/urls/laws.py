"""The laws of normal forms, for any text whatever: hypothesis and atheris (`fuzz.py`) draw the texts."""

from __future__ import annotations

from scrapy_ubi.urls import Normaliser, learned, normal, normal_form, partition_key, url_key
from scrapy_ubi.urls.normaliser import PRESETS, STEPS, TRIED

PRESET = {name: Normaliser(steps) for name, steps in PRESETS.items()}
ALONE = {step: Normaliser(frozenset({step})) for step in STEPS}
WITH = {step: Normaliser(PRESETS["safe"] | {step}) for step in STEPS}

# What a text of a URL may hold that somebody has to think of.
TOKENS = r"""
http:// https:// HTTP:// http: //// / // /./ /../ ./ ..%2f . .. %2e %2E%2e % %% %%34%31 %7e %7E %2f
%c3%BC %E2%82 %00 %zz %u0041 %25 %252e ? ?? ?& # ## #! & && = a=1&b=2 b=2&a=1 ; ;jsessionid=1 : :80 :443
:0 :65536 @ u:p@ @@ \ \\ | ^ ` { } [ ] [::1] [::ffff:1.2.3.4] ' " < > ü ß ı İ K ﬀ 日本 ａ ％ ﹪ 。 ． ١ ℀ + * $
! ( ) , ~ _ - h h1.example H.Example. a.b..c xn-- xn--a xn--tda ab--c 0x7f 0300 1.2 256.1.1.1
999999999999 index.html INDEX. default.asp /index.php www. WWW2. sid= PHPSESSID=a utm_source=x
""".split()
TOKENS += [" ", "\t", "\r\n", "\0", "\x7f", "\xa0", "\xad", "\u200b", "\u200d", "\u2028", "\ufeff", "\ufffd", "\ud800"]


def check(text: str) -> None:
    """Assert every law for this text. Nothing may be raised but AssertionError."""
    form = normal_form(text)
    assert form == normal.by_steps(text, look=False), "the short cut says something else"
    for name, normalise in [*PRESET.items(), *ALONE.items(), *WITH.items()]:
        once = normalise(text)
        assert (once is None) == (form is None), name
        if once is None:
            continue
        assert once.isascii() and once.isprintable() and " " not in once, name
        assert normalise(once) == once, name
        assert 0 <= url_key("GET", once) < 1 << 64
    if form is not None:
        everything = dict.fromkeys(TRIED, learned.ON)
        sites = {learned.site_of(form): everything, learned.www_site(learned.site_of(form)): everything}
        of_class, steps = learned.class_of(dict(sites), form)
        assert normal_form(of_class) == of_class and learned.class_of(dict(sites), of_class)[0] == of_class
        assert bool(steps) == (of_class != form)
    for by in ("host", "domain"):
        key = partition_key(text, by)
        assert (key is None) == (form is None)
        for normalise in PRESET.values():
            assert key is None or partition_key(str(normalise(text)), by) == key
