"""Every query of the dashboard and every alert is tried on what a real crawl was recorded to tell (`recorded/`): three
agents, one of them killed; the page of all of them, and that of one.

Our own rules look whether metrics and labels are there. promtool, where it is installed, runs the queries, and the
alerts with what should set them off.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scrapy_ubi.agent.metrics.metric_table import METRICS
from tests.support.prometheus import Recorded, needs_promtool, promtool

DEPLOY = Path(__file__).parents[3] / "docs" / "deploy" / "prometheus"
RECORDED = Path(__file__).parent / "recorded"
MINUTES = 40  # that series go on
# Only told of a crawl in which something else happened; and what is younger than the recording.
RARE = {"ubi_notes_total", "ubi_complete_hosts", "ubi_limited_bytes_total"}

AGENT, CRAWL = ((RECORDED / name).read_text() for name in ("agent.prom", "crawl.prom"))
BOTH = Recorded(AGENT + CRAWL)


def queries() -> list[tuple[str, str]]:
    """(title of the panel, query)"""
    panels = json.loads((DEPLOY / "grafana.json").read_text())["panels"]
    return [(panel["title"], target["expr"]) for panel in panels for target in panel.get("targets", [])]


def alerts() -> dict[str, str]:
    """Name -> expression."""
    found = re.findall(
        r"- alert: (\w+)\n\s+expr: (.+?)\n\s+(?:for|labels):", (DEPLOY / "alerts.yml").read_text(), re.DOTALL
    )
    return {name: re.sub(r"^\|\s*|\s+", " ", text).strip() for name, text in found}


def runnable(query: str) -> str:
    return query.replace("$crawl", "faulty").replace("$__rate_interval", "5m")


def test_the_recording_has_every_metric_and_label_of_the_table() -> None:
    for metric in METRICS:
        name = f"{metric.name}_bucket" if metric.kind == "histogram" else metric.name
        if metric.name not in RARE:
            assert {*metric.labels} <= BOTH.labels_of(name) and BOTH.of(name), f"record again: {name}"
    known = {metric.name for metric in METRICS}
    assert {re.sub("_(bucket|sum|count)$", "", name) for name, _, _ in BOTH.samples} <= known


@pytest.mark.parametrize("number", range(len(queries())))
def test_a_query_of_the_dashboard_names_what_is_there(number: int) -> None:
    title, query = queries()[number]
    assert not BOTH.wrong(query), title


def test_the_alerts_name_what_is_there() -> None:
    assert len(alerts()) == 8
    for name, expression in alerts().items():
        assert not BOTH.wrong(expression), name


def test_what_is_not_there_is_found_out() -> None:
    wrong = BOTH.wrong('sum by (agent, host) (rate(ubi_page_total{crawl="$crawl"}[5m])) / ubi_hosts{status="busy"}')
    assert "no metric ubi_page_total" in wrong and "no label host" in wrong and "ubi_hosts has no label status" in wrong
    assert BOTH.wrong('ubi_hosts{state="bussy"}') == ["ubi_hosts has no state='bussy'"]
    assert BOTH.wrong('ubi_queue_urls{host="a"} > 0') == ["ubi_queue_urls has no label host"]


def test_a_dashboard_that_grafana_takes() -> None:
    board = json.loads((DEPLOY / "grafana.json").read_text())
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    placed = [panel["gridPos"] for panel in board["panels"]]
    assert all(place["x"] >= 0 and place["x"] + place["w"] <= 24 for place in placed)
    cells = [
        (x, y)
        for one in placed
        for x in range(one["x"], one["x"] + one["w"])
        for y in range(one["y"], one["y"] + one["h"])
    ]
    assert len(set(cells)) == len(cells), "no panel lies on another one"
    assert {one["name"] for one in board["templating"]["list"]} == {"datasource", "crawl"}


# -- promtool


def series(changed: Callable[[str, dict[str, str], float], str] | None = None) -> Iterator[dict[str, str]]:
    """Every series, as promtool takes them in; counters rise by a hundredth a minute. `changed` gives others."""
    for name, labels, value in BOTH.samples:
        text = ",".join(f"{label}={json.dumps(one)}" for label, one in labels.items())
        rises = value / 100 if name.endswith(("_total", "_bucket", "_sum", "_count")) else 0
        usual = f"{value}+{rises}x{MINUTES}"
        job = "ubi-agents" if any(one[0] == name and one[1] == labels for one in AGENT_SAMPLES) else "ubi"
        yield {
            "series": f'{name}{{job="{job}",{text}}}',
            "values": changed(name, dict(labels), value) or usual if changed is not None else usual,
        }


AGENT_SAMPLES = Recorded(AGENT).samples


def run(tmp_path: Path, *tests: dict[str, Any]) -> None:
    """Have promtool run these; JSON is YAML."""
    own = {"rule_files": [str(DEPLOY / "alerts.yml")], "evaluation_interval": "1m", "tests": list(tests)}
    (tmp_path / "tests.yml").write_text(json.dumps(own))
    promtool("test", "rules", str(tmp_path / "tests.yml"))


@needs_promtool
def test_promtool_takes_what_is_recorded_and_written() -> None:
    promtool("check", "metrics", stdin=AGENT)
    promtool("check", "metrics", stdin=CRAWL)
    promtool("check", "rules", str(DEPLOY / "alerts.yml"))
    promtool("check", "config", "prometheus.yml", cwd=DEPLOY)


@needs_promtool
def test_every_query_of_the_dashboard_finds_something(tmp_path: Path) -> None:
    asked = [
        {
            "expr": f"count({runnable(query)}) > bool 0",
            "eval_time": "20m",
            "exp_samples": [{"labels": "{}", "value": 1}],
        }
        for _, query in queries()
    ]
    run(tmp_path, {"interval": "1m", "input_series": list(series()), "promql_expr_test": asked})


@needs_promtool
def test_agents_are_counted_once_though_they_are_asked_twice(tmp_path: Path) -> None:
    queue = sum({labels["agent"]: value for _, labels, value in Recorded(CRAWL).find("ubi_queue_urls", {})}.values())
    title = dict(queries())
    told = [labels["agent"] for _, labels, _ in BOTH.find("ubi_queue_urls", {})]
    assert len(told) > len(set(told)), "one is asked twice"
    fresh = max(Recorded(AGENT).value("ubi_queue_urls"), Recorded(CRAWL).value("ubi_queue_urls", agent="a0"))
    expected = queue - Recorded(CRAWL).value("ubi_queue_urls", agent="a0") + fresh
    asked = {
        "expr": runnable(title["Queue"]),
        "eval_time": "5m",
        "exp_samples": [{"labels": "{}", "value": expected}],
    }
    run(tmp_path, {"interval": "1m", "input_series": list(series()), "promql_expr_test": [asked]})


Changed = Callable[[str, dict[str, str], float], str]


def flat(name: str, value: float, **labels: str) -> Changed:
    """Series of this name and these labels have this value."""

    def changed(one: str, own: dict[str, str], before: float) -> str:
        holds = one == name and all(own.get(label) == text for label, text in labels.items())
        return f"{value}x{MINUTES}" if holds else ""

    return changed


def stands(one: str, own: dict[str, str], before: float) -> str:
    """No page is fetched any more."""
    return f"{before}x{MINUTES}" if one == "ubi_pages_total" else ""


def buries(one: str, own: dict[str, str], before: float) -> str:
    """A letter is set aside each minute."""
    return f"0+1x{MINUTES}" if one == "ubi_dead_letters_total" and own["agent"] == "a1" else ""


def leaves(one: str, own: dict[str, str], before: float) -> str:
    """An agent works no longer from the fifth minute on."""
    holds = one == "ubi_agent_state" and own["agent"] == "a1" and own["state"] == "crawling"
    return f"1x5 0x{MINUTES}" if holds else ""


CASES: dict[str, tuple[Changed, dict[str, str], str]] = {
    "UbiAgentDead": (flat("x", 0), {"crawl": "faulty", "agent": "a2"}, "1m"),
    "UbiNotSettled": (flat("ubi_view_complete", 0), {"crawl": "faulty"}, "11m"),
    "UbiDeadLetters": (buries, {"crawl": "faulty"}, "5m"),
    "UbiRedisAway": (flat("ubi_redis_up", 0, agent="a0"), {"crawl": "faulty"}, "2m"),
    "UbiNothingFetched": (stands, {"crawl": "faulty"}, "20m"),
    "UbiAgentBlocked": (
        flat("ubi_agent_state", 1, agent="a1", state="blocked"),
        {"crawl": "faulty", "agent": "a1"},
        "6m",
    ),
    "UbiFewerAgents": (leaves, {"crawl": "faulty"}, "15m"),
    "UbiLoopLate": (flat("ubi_loop_lag_seconds", 7), {"crawl": "faulty", "agent": "a0"}, "11m"),
}


@needs_promtool
@pytest.mark.parametrize("alert", CASES)
def test_an_alert_goes_off_when_it_should_and_not_else(tmp_path: Path, alert: str) -> None:
    """None but that of the agent that was killed goes off in the crawl that was recorded."""
    changed, labels, when = CASES[alert]
    found = [{"exp_labels": {**labels, "severity": severity(alert)}, "exp_annotations": annotations(alert, labels)}]
    usual = {"eval_time": when, "alertname": alert, "exp_alerts": found if alert == "UbiAgentDead" else []}
    due = {"eval_time": when, "alertname": alert, "exp_alerts": found}
    run(
        tmp_path,
        {"interval": "1m", "input_series": list(series()), "alert_rule_test": [usual]},
        {"interval": "1m", "input_series": list(series(changed)), "alert_rule_test": [due]},
    )


@needs_promtool
def test_a_crawl_that_is_paused_sets_off_nothing(tmp_path: Path) -> None:
    def changed(one: str, own: dict[str, str], before: float) -> str:
        paused = flat("ubi_agent_state", 1, state="paused")
        return stands(one, own, before) or paused(one, own, before)

    quiet = {"eval_time": "20m", "alertname": "UbiNothingFetched", "exp_alerts": []}
    run(tmp_path, {"interval": "1m", "input_series": list(series(changed)), "alert_rule_test": [quiet]})


def rule(alert: str) -> str:
    """The text of one rule."""
    return (DEPLOY / "alerts.yml").read_text().split(f"- alert: {alert}\n")[1].split("- alert:")[0]


def severity(alert: str) -> str:
    return re.findall(r"severity: (\w+)", rule(alert))[0]


def annotations(alert: str, labels: dict[str, str]) -> dict[str, str]:
    """What is said, with these labels in their places."""
    said = dict(re.findall(r'(summary|description): "(.*)"', rule(alert)))
    for name, text in said.items():
        for label, value in labels.items():
            text = text.replace(f"{{{{ $labels.{label} }}}}", value)
        said[name] = text
    return said
