"""What is learned of a site: which lossy steps of the normal form hold there (`UBI_NORMALISE = "learned"`).

Rules of this module:

* A *site* is a host with its port, as normal forms have it. Each step is learned of each site by itself; `www` of the
  site without the `www.`.
* A step is *tried*: two pages whose URLs only this step takes for one are fetched both, and their contents compared.
  After `AGREE` pairs that were equal, each with a content of its own, it is *on*; at the first pair that was not it is
  *off*, permanently. (A content of its own: a site that answers everything with one page would teach nothing else.)
* What was learned is JSON and travels with the host's state: {site: {step: 1 (on), 0 (off), or a list of the pairs that
  agreed, by 16 bits of their content}}. It may come from another agent, so all of it is validated whenever it is read;
  what does not hold counts as never learned.
* Steps that are on are taken `www` first, then as `urls.steps` orders them. Each makes a URL shorter, or lowers
  capitals, or sorts: so a URL is never taken for one that is taken for it, in whatever order steps come and go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from scrapy_ubi.urls.normal import host_and_port, is_host, normal_form, with_host
from scrapy_ubi.urls.normaliser import PRESETS, TRIED, Normaliser

AGREE = 5  # pairs: a site that tells spellings apart for one page in two would pass with 3 %
MOST_SITES = 6  # of one partition key: notes have 4,096 characters for all that is noted
ON, OFF = 1, 0
WWW = "www."

Site = dict[str, int | list[int]]  # step -> ON, OFF, or the pairs that agreed
Sites = dict[str, Site]


def read(value: object) -> Sites:
    """What a note says was learned, as far as it holds."""
    if not isinstance(value, Mapping) or len(value) > MOST_SITES:
        return {}
    found: Sites = {}
    for name, steps in value.items():
        if isinstance(name, str) and isinstance(steps, Mapping):
            site = {step: state for step, state in steps.items() if step in TRIED and _is_state(state)}
            if site:
                found[name] = {step: list(state) if isinstance(state, list) else state for step, state in site.items()}
    return found


def _is_state(state: object) -> bool:
    if isinstance(state, list):  # `is_list` and `is_count` in place: notes are read for every page and link of a site
        return len(state) <= AGREE and all(type(pair) is int and 0 <= pair < 1 << 16 for pair in state)
    return type(state) is int and state in (ON, OFF)


def agreed(site: Site, step: str, content: int) -> bool:
    """A pair of this content (a hash) has agreed: note it. Whether that was news."""
    state = site.setdefault(step, [])
    content &= (1 << 16) - 1
    if not isinstance(state, list) or content in state:
        return False
    state.append(content)
    if len(state) >= AGREE:
        site[step] = ON
    return True


def shown(value: object) -> str:
    """For people, what a note says: `+index -www slashes 2/5`, by site where there are several."""
    sites = read(value)
    texts = [
        (name, " ".join(_shown(step, site[step]) for step in TRIED if step in site)) for name, site in sites.items()
    ]
    return texts[0][1] if len(texts) == 1 else "; ".join(f"{name}: {text}" for name, text in texts)


def _shown(step: str, state: int | list[int]) -> str:
    return f"{step} {len(state)}/{AGREE}" if isinstance(state, list) else f"{'+' if state == ON else '-'}{step}"


def site_of(form: str) -> str:
    """The site of a normal form."""
    return "".join(host_and_port(form))


def bare(form: str) -> str:
    """A normal form without the `www.` of its host; as it is where there is none, or nothing else."""
    if WWW not in form:
        return form
    without = with_host(form, lambda host: host[4:] if host.startswith(WWW) and is_host(host[4:]) else host)
    return without if normal_form(without) == without else form  # `www.1` would become an address


def www_site(site: str) -> str:
    """The site of which the step `www` is learned."""
    return site.removeprefix(WWW)


def by(form: str, steps: Iterable[str]) -> tuple[str, tuple[str, ...]]:
    """A normal form by these steps as well, and those that have changed it."""
    steps = frozenset(steps)
    changed: tuple[str, ...] = ()
    if "www" in steps and (without := bare(form)) != form:
        form = without
        changed = ("www",)
    judged = _normaliser(steps - {"www"}).judged(form)
    assert judged is not None, form
    return judged.normal, changed + judged.steps


@lru_cache(1 << len(TRIED))
def _normaliser(steps: frozenset[str]) -> Normaliser:
    return Normaliser(PRESETS["safe"] | steps)


def on(sites: Sites, site: str) -> frozenset[str]:
    """The steps that are on for URLs of a site, but for `www`."""
    return frozenset(step for step, state in sites.get(site, {}).items() if state == ON and step != "www")


def class_of(sites: Sites, form: str) -> tuple[str, tuple[str, ...]]:
    """The form that stands for all URLs taken for this one by what was learned, and the steps that have changed it."""
    site = site_of(form)
    changed: tuple[str, ...] = ()
    while sites.get(www_site(site), {}).get("www") == ON and (without := bare(form)) != form:
        form = without
        changed = ("www",)
        site = site_of(form)
    steps = on(sites, site)
    if not steps:
        return form, changed
    form, others = by(form, steps)
    return form, changed + others
