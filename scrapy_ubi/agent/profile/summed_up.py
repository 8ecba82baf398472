"""What is left of the profiles of agents that are long gone: their sum, in the place of another profile.

Rules of this module:

* The sum is read as a profile is (`read_profile`), of an agent `*` that has left, so that who adds up what all have
  counted needs to know nothing of it. `agents` says how many are in it, `unreadable` how many of these said nothing
  that could be read.
* Added are counts of what was done, by name and by reason; what an agent has (`STANDING`: hosts, URLs that wait),
  others have taken over. The time is the longest, as everywhere.
* It is bounded: reasons beyond `MOST_REASONS` are counted as `other`, hosts are named of the most frequent reasons.
  Where it is still too long for a profile, it names no hosts and no examples, then fewer reasons.
* Who was lost is asked at the end of the crawl (`lost_agents`): losses stay, and of the gone what tells that one of
  these came back. Of a loss that is seen later than that it is not known, and the crawl says that somebody is missing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from scrapy_ubi.agent.profile.figures import MOST_REASONS
from scrapy_ubi.agent.profile.heavy_hitters import MOST_REASONS as MOST_PLACES
from scrapy_ubi.agent.profile.heavy_hitters import PUBLISHED
from scrapy_ubi.agent.profile.profile import COUNTERS, MAX_PROFILE, STANDING, Profile, read_profile
from scrapy_ubi.ground.untrusted.checks import MOST_COUNT, Fields, Malformed, json_object, texts_in
from scrapy_ubi.protocol.losses import MOST_COUNTED, MOST_LOSSES, MOST_SAFE, GroupLoss, read_lives, read_losses, written
from scrapy_ubi.transport.contract import SUMMED_UP

MOST_EXAMPLES = 10  # steps that have one


class SummedUp(NamedTuple):
    """How many agents these are, how many of them said nothing that could be read, and what the others have counted."""

    agents: int
    unreadable: int
    profile: Profile


def read_sum(text: bytes) -> SummedUp | str:
    """The sum, or the reason why it is unreadable."""
    profile = read_profile(SUMMED_UP, text)
    if isinstance(profile, str):
        return profile
    try:
        said = Fields(json_object(text))
        return SummedUp(said.count("agents"), said.count("unreadable"), profile)
    except Malformed as reason:
        return str(reason)


def sum_of(before: str | None, gone: Mapping[str, str], profiles: Mapping[str, str]) -> str:
    """The sum `before` and what these agents have published, as JSON; `profiles` are those of all agents. A sum that
    cannot be read counts as none."""
    former = read_sum(before.encode(errors="replace")) if before is not None else ""
    read = {name: read_profile(name, text.encode(errors="replace")) for name, text in gone.items()}
    good = [one for one in read.values() if isinstance(one, Profile)]
    told = [json.loads(gone[one.agent]) for one in good]
    agents, unreadable = len(gone), len(gone) - len(good)
    if isinstance(former, SummedUp):
        agents, unreadable = agents + former.agents, unreadable + former.unreadable
        good, told = [former.profile, *good], [json.loads(before or ""), *told]
    losses = {loss for text in profiles.values() if '"losses"' in text or '"missed"' in text for loss in _losses(text)}
    document = {
        "agent": SUMMED_UP,
        "state": "left",
        "agents": agents,
        "unreadable": unreadable,
        "updated": max((one.updated for one in good), default=0.0),
        "handed_over": True,
        **_of_losses(told, losses),
    }
    text = ""
    for most, places in ((MOST_REASONS, MOST_PLACES), (MOST_REASONS, 0), (MOST_REASONS // 10, 0), (1, 0)):
        text = _text(document | {"counters": _counted(good, most, places)})
        if len(text.encode(errors="replace")) <= MAX_PROFILE:
            break
    return text


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _counted(all_of: list[Profile], most: int, places: int) -> dict[str, Any]:
    """The counters of all of them together: so many reasons by name, hosts and examples of so many."""
    counts = {
        name: min(sum(one.count(name) for one in all_of), MOST_COUNT - 1)
        for name in COUNTERS
        if name not in (*STANDING, "lost_agents")
    }
    counts["lost_agents"] = max((one.count("lost_agents") for one in all_of), default=0)
    failed, noted = _added((one.failed for one in all_of), most), _added((one.noted for one in all_of), most)
    examples = {step: pairs[:1] for one in reversed(all_of) for step, pairs in one.examples.items() if pairs}
    return {
        **counts,
        "responses": _added((one.responses for one in all_of), most),
        "failed": failed,
        "requeued": _added((one.requeued for one in all_of), most),
        "noted": noted,
        "joined": _added((one.joined for one in all_of), most),
        "failed_at": _places((one.failed_at for one in all_of), list(failed)[:places]),
        "noted_at": _places((one.noted_at for one in all_of), list(noted)[:places]),
        "examples": dict(list(examples.items())[: min(MOST_EXAMPLES, places)]),
        "seconds": max((one.seconds for one in all_of), default=0.0),
        "pages_per_second": 0.0,
    }


def _added(all_of: Iterable[Mapping[str, int]], most: int) -> dict[str, int]:
    """By reason, the most frequent first; so many of them, what is beyond as `other`."""
    total: Counter[str] = Counter()
    for one in all_of:
        total.update(one)
    rest = total.pop("other", 0)
    first = dict(total.most_common(most - 1))
    rest += sum(total.values()) - sum(first.values())
    return {**first, "other": rest} if rest else first


def _places(all_of: Iterable[Mapping[str, Mapping[str, int]]], reasons: Iterable[str]) -> dict[str, dict[str, int]]:
    """By reason, the most frequent first, hosts at which it happened."""
    total: dict[str, Counter[str]] = {}
    for one in all_of:
        for reason, hosts in one.items():
            total.setdefault(reason, Counter()).update(hosts)
    return {reason: dict(total[reason].most_common(PUBLISHED)) for reason in reasons if reason in total}


def _losses(text: str) -> list[GroupLoss]:
    try:
        said = json_object(text)
    except Malformed:
        return []
    return [*read_losses(said.get("losses")), *read_losses(said.get("missed"))]


def _of_losses(told: list[dict[str, Any]], losses: set[GroupLoss]) -> dict[str, Any]:
    """What `lost_agents` has to know of those who are gone; `losses` are those that all tell of."""
    members = {member for loss in losses for member in loss.members}
    lives, names = {life for _, life in members if life}, {name for name, _ in members}
    former: dict[str, None] = {}
    relieved: dict[str, None] = {}
    counted = dict.fromkeys(life for one in told for life in read_lives(one.get("counted")))
    for one in told:
        if one.get("handed_over") is not True:
            continue
        carried = (*texts_in(one.get("former")), *texts_in([one.get("incarnation")]))
        former |= dict.fromkeys(life for life in carried if life in lives)
        relieved |= dict.fromkeys(name for name in (one.get("agent"), *texts_in(one.get("relieved"))) if name in names)
    safe = dict.fromkeys(life for one in told for life in read_lives(one.get("safe")))
    found: dict[str, Any] = {
        "former": list(former),
        "relieved": list(relieved),
        "counted": [*counted][-MOST_COUNTED:],
        "safe": [*safe][-MOST_SAFE:],
    }
    for name in ("losses", "missed"):
        kept = [loss for one in told for loss in read_losses(one.get(name))]
        found[name] = written(list(dict.fromkeys(kept))[-MOST_LOSSES:])
    return {name: value for name, value in found.items() if value}
