"""The reference is complete: every setting, stat, counter and command is in it, and nothing that does not exist."""

from __future__ import annotations

import argparse
import ast
import re
from pathlib import Path

import pytest

from scrapy_ubi.agent.profile.profile import COUNTERS, STATES
from scrapy_ubi.cli.commands.options import add_subcommands
from scrapy_ubi.settings import SETTINGS, Setting
from scrapy_ubi.settings.declarations import DERIVED, GONE
from scrapy_ubi.settings.live_rows import LIVE
from scrapy_ubi.settings.presets import PRESETS
from tests.support.parsed import parsed

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"


def text(name: str) -> str:
    return (REFERENCE / name).read_text()


def sections(name: str) -> dict[str, str]:
    """Text by heading of the second level."""
    parts = re.split(r"^## (.+)$", text(name), flags=re.MULTILINE)[1:]
    return {title.strip(): body.strip() for title, body in zip(parts[::2], parts[1::2], strict=True)}


@pytest.mark.parametrize("row", SETTINGS, ids=lambda row: row.setting)
def test_setting_has_a_section_that_begins_with_its_default(row: Setting) -> None:
    body = sections("settings.md").get(row.setting)
    assert body, f"docs/reference/settings.md lacks a section '## {row.setting}'"
    first, _, rest = body.partition("\n")
    assert first == f"Default: {row.shown_default}"
    assert rest.strip(), f"docs/reference/settings.md says nothing about {row.setting}"


def test_every_setting_is_in_the_index_of_its_page() -> None:
    index = sections("settings.md")["All of them"]
    assert [row.setting for row in SETTINGS if f"(#{row.setting.lower()})" not in index] == []


def test_no_setting_is_documented_that_does_not_exist() -> None:
    names = {row.setting for row in SETTINGS}
    assert {title for title in sections("settings.md") if title.startswith("UBI_")} == names
    for page in (ROOT / "docs").rglob("*.md"):
        named = set(re.findall(r"\bUBI_[A-Z_]+[A-Z]\b", page.read_text()))
        before = set(GONE) if page.parent.name == "decisions" else set()
        assert named <= names | before, f"{page} names settings that do not exist"


def test_the_tables_of_the_settings_are_those_of_the_declarations() -> None:
    page = sections("settings.md")
    values = dict.fromkeys(setting for held in PRESETS.values() for setting in held)
    shown = [[f"`{held[name]!r}`" if name in held else "" for held in PRESETS.values()] for name in values]
    rows = [f"| `{name}` | {' | '.join(row)} |" for name, row in zip(values, shown, strict=True)]
    assert re.findall(r"^\| `[A-Z_]+` .*$", page["Presets"], re.MULTILINE) == rows
    assert re.findall(r" \| ([^|]+) \|$", page["What follows from others"], re.MULTILINE)[2:] == [*DERIVED.values()]


def test_the_index_of_the_settings_has_their_groups_in_order() -> None:
    index = sections("settings.md")["All of them"]
    groups = dict.fromkeys(row.group for row in SETTINGS)
    assert re.findall(r"^- (.+?): \[", index, re.MULTILINE) == [*groups]


def used_stats() -> set[str]:
    """Every stat named in the package; a part that varies is written `{}`."""
    found: set[str] = set()
    for source in (ROOT / "scrapy_ubi").rglob("*.py"):
        tree = parsed(source.read_text())
        inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                found.add("".join(str(p.value) if isinstance(p, ast.Constant) else "{}" for p in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
                found.add(node.value)
    return {name for name in found if re.fullmatch(r"ubi/[\w/{}]+", name)}


def documented_stats() -> set[str]:
    cells = " ".join(re.findall(r"^\| (`ubi/.*?) \|", text("stats.md"), re.MULTILINE))
    return {re.sub(r"<[^>]*>", "{}", name) for name in re.findall(r"`(ubi/[^`]*)`", cells)}


def test_every_stat_is_documented_and_every_documented_stat_exists() -> None:
    documented, used = documented_stats(), used_stats()
    assert documented <= used
    # `ubi/failed/<reason>` stands for `ubi/failed/codec/<reason>` as well; `ubi/<counter>` for none but itself.
    families = [re.escape(name).replace(re.escape("{}"), ".+") for name in documented if name != "ubi/{}"]
    unknown = {name for name in used - documented if not any(re.fullmatch(family, name) for family in families)}
    assert not unknown, "docs/reference/stats.md lacks these"


def test_every_counter_and_state_is_documented() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", text("counters-and-measures.md"), re.MULTILINE))
    assert {name: rows.get(name) for name in COUNTERS} == dict(COUNTERS)
    for state in STATES:
        assert f"| {state} |" in text("commands.md")


def test_what_else_happened_is_documented() -> None:
    rows = re.findall(r"^\| (`.+?`) \|", sections("counters-and-measures.md")["What else happened"], re.MULTILINE)
    documented = {re.sub(r"<[^>]*>", "{}", name) for row in rows for name in re.findall(r"`([^`]+)`", row)}
    texts = [source.read_text() for source in (ROOT / "scrapy_ubi").rglob("*.py")]
    noted = {name for text in texts for name in re.findall(r"_?note\(f?\"([^\"]+)\"", text)}
    whole = {re.sub(r"{\w+}", "{}", name) for name in noted}
    families = [re.escape(name).replace(re.escape("{}"), ".+") for name in whole]
    assert len(whole) >= 7 and whole - {"ended/{}", "refused/{}"} <= documented
    assert all(any(re.fullmatch(family, name) for family in families) for name in documented)


def test_every_command_and_option_is_documented() -> None:
    parser = argparse.ArgumentParser()
    add_subcommands(parser)
    (chosen,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    for name, sub in chosen.choices.items():
        assert f"## scrapy ubi {name}" in text("commands.md")
        for action in sub._actions:
            for option in action.option_strings:
                assert option == "-h" or option in text("commands.md"), f"commands.md lacks {option} of {name}"


def pages() -> list[Path]:
    return [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#][^)]*)\)", page.read_text()):
        if "://" not in target:
            path, _, anchor = target.partition("#")
            there = (page.parent / path).resolve()
            assert there.exists(), f"{page.name}: {target}"
            assert not anchor or anchor in anchors(there), f"{page.name}: {target}"


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("row", SETTINGS, ids=lambda row: row.setting)
def test_a_live_setting_is_said_to_be_one_and_no_other(row: Setting) -> None:
    wanted = {"": None, "crawl": "the crawl", "host": "the crawl, or a host"}[row.live]
    said = re.findall(r"^\[Live\]\(\S+\): (.+)\.$", sections("settings.md")[row.setting], re.MULTILINE)
    assert said == ([] if wanted is None else [wanted])


def test_the_page_on_running_crawls_names_every_live_setting() -> None:
    page = (ROOT / "docs" / "how-to" / "change-a-running-crawl.md").read_text()
    table = page.partition("| live setting |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`([A-Z_]{6,})`", table)) == set(LIVE)
