"""The text that Prometheus reads holds every value, whatever stands in a label."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily

from scrapy_ubi.agent.metrics.exposition import LONGEST_LABEL, Exposition, Histogram, labels
from scrapy_ubi.agent.metrics.metric_table import METRICS, OF_COUNTERS, OF_THE_CRAWL
from scrapy_ubi.agent.profile.profile import COUNTERS
from tests.support.prometheus import Recorded

UNITS = ("bytes", "seconds")


@given(st.text(max_size=LONGEST_LABEL))
def test_any_text_is_the_value_of_a_label(value: str) -> None:
    page = Exposition()
    page.put("ubi_queue_urls", 7, labels({"crawl": value, "agent": "a"}))
    assert Recorded(page.text()).samples == [("ubi_queue_urls", {"crawl": value, "agent": "a"}, 7.0)]


@settings(max_examples=50)
@given(st.floats(0, 1e18) | st.integers(0, 10**18))
def test_a_number_is_what_prometheus_client_makes_of_it(value: float) -> None:
    class Collector:
        def collect(self) -> list[GaugeMetricFamily]:
            family = GaugeMetricFamily("ubi_queue_urls", "x", labels=["agent"])
            family.add_metric(["a"], value)
            return [family]

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector())  # type: ignore[arg-type]
    page = Exposition()
    page.put("ubi_queue_urls", value, labels({"agent": "a"}))
    assert Recorded(page.text()).samples == Recorded(generate_latest(registry).decode()).samples


def test_a_long_label_is_cut() -> None:
    assert labels({"a": "x" * 1000}) == f'a="{"x" * LONGEST_LABEL}"'


def test_metrics_stand_in_the_order_of_the_table_with_one_head_each() -> None:
    page = Exposition()
    for name in ("ubi_queue_urls", "ubi_pages_total"):
        for agent in "ab":
            page.put(name, 1, labels({"agent": agent}))
    assert page.text().splitlines() == [
        "# HELP ubi_pages_total Responses fetched.",
        "# TYPE ubi_pages_total counter",
        'ubi_pages_total{agent="a"} 1',
        'ubi_pages_total{agent="b"} 1',
        "# HELP ubi_queue_urls URLs that wait to be fetched.",
        "# TYPE ubi_queue_urls gauge",
        'ubi_queue_urls{agent="a"} 1',
        'ubi_queue_urls{agent="b"} 1',
    ]


def test_buckets_of_a_histogram_add_up() -> None:
    histogram, page = Histogram((0.1, 1.0)), Exposition()
    for seconds in (0.05, 0.1, 0.5, 7.0):
        histogram.observe(seconds)
    page.put_histogram("ubi_load_seconds", histogram, 'agent="a"')
    told = Recorded(page.text())
    assert [told.value("ubi_load_seconds_bucket", le=bound) for bound in ("0.1", "1.0", "+Inf")] == [2, 3, 4]
    assert told.value("ubi_load_seconds_count") == 4
    assert told.value("ubi_load_seconds_sum") == pytest.approx(7.65)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_name_is_one_that_prometheus_recommends(metric: tuple[str, ...]) -> None:
    """The rules of `promtool check metrics`, for machines without it."""
    name, kind, meaning, own, _ = METRICS[[one.name for one in METRICS].index(metric[0])]
    assert re.fullmatch(r"(ubi|process)(_[a-z]+)+", name)
    assert (kind == "counter") == name.endswith("_total")
    assert kind != "histogram" or name.endswith("_seconds")
    assert not re.search(r"_(?:milliseconds|ms|minutes|kilobytes|kb|mb|percent|count|sum|bucket|gauge|counter)\b", name)
    assert (meaning and not meaning.endswith(".") and meaning[0].isupper()) or meaning[0].isdigit()
    assert not {"le", "host", "url", "quantile"} & set(own)
    assert not any(f"_{unit}_" in name and not name.endswith("_total") for unit in UNITS)


def test_every_counter_of_the_profile_has_a_metric_or_is_part_of_one() -> None:
    assert COUNTERS.keys() - OF_COUNTERS.keys() == {"hosts", "hosts_held", "hosts_busy", "hosts_waiting"}
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    assert {*OF_COUNTERS.values(), *OF_THE_CRAWL} <= {metric.name for metric in METRICS}
