"""The recipes of docs/deploy as tests read them.

Rules of this module: recipes are read as their platforms read them, as far as this is needed; nothing of them is
written down here a second time.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "docs" / "deploy"
UNIT = DEPLOY / "systemd" / "scrapy-ubi@.service"


def documents(path: str) -> list[dict[str, Any]]:
    """The documents of a YAML file."""
    yaml = pytest.importorskip("yaml", reason="pip install pyyaml")
    return list(yaml.safe_load_all((DEPLOY / path).read_text()))


def document(path: str, kind: str) -> dict[str, Any]:
    """The manifest of this kind."""
    (found,) = [one for one in documents(path) if one["kind"] == kind]
    return found


def unit() -> dict[str, str]:
    """The directives of the unit, without their sections; lines that go on are joined, the last one counts."""
    text = re.sub(r"\\\n", " ", UNIT.read_text())
    pairs = re.findall(r"^([A-Za-z]+)=(.*)$", text, re.MULTILINE)
    return {name: value.strip() for name, value in pairs}


def unit_command(instance: str, specifiers: Mapping[str, str], environment: Mapping[str, str]) -> list[str]:
    """ExecStart as systemd would have it: specifiers first, then words, then variables."""
    text = re.sub(r"%([A-Za-z])", lambda found: {"i": instance, **specifiers}[found[1]], unit()["ExecStart"])
    return [re.sub(r"\$\{(\w+)\}", lambda found: environment[found[1]], word) for word in shlex.split(text)]


def agent(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The agent's container of a Job or StatefulSet."""
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    return dict(container)


def settings(words: list[str]) -> dict[str, str]:
    """What a command line sets by -s NAME=VALUE and --set=NAME=VALUE."""
    found = {}
    for before, word in zip(["", *words], words, strict=False):
        if before == "-s" or word.startswith("--set="):
            name, _, value = word.removeprefix("--set=").partition("=")
            found[name] = value
    return found


def commands() -> Iterator[tuple[str, list[str], float]]:
    """Of each recipe that starts agents: its name, the words of its command, and how long it waits after SIGTERM."""
    directives = unit()
    yield "systemd", shlex.split(directives["ExecStart"]), float(directives["TimeoutStopSec"])
    (compose,) = documents("compose/compose.yaml")
    service = compose["services"]["agent"]
    yield "compose", service["command"], float(service["stop_grace_period"].removesuffix("s"))
    job = document("kubernetes/batch.yaml", "Job")
    seconds = float(job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"])
    yield "kubernetes batch", shlex.split(agent(job)["command"][2].replace("\\\n", " "), comments=True), seconds
    service = document("kubernetes/service.yaml", "StatefulSet")
    seconds = float(service["spec"]["template"]["spec"]["terminationGracePeriodSeconds"])
    yield "kubernetes service", agent(service)["args"], seconds
