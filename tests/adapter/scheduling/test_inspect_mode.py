"""A look at a page or two is alone, and leaves no trace."""

from __future__ import annotations

from scrapy import Request

from scrapy_ubi.adapter.scheduling.inspect_mode import Trial
from scrapy_ubi.adapter.scheduling.kept_requests import MOST
from scrapy_ubi.settings import UbiSettings


def test_what_is_left_of_the_settings_leads_to_nobody() -> None:
    trial = Trial()
    wanted = UbiSettings(redis_url="redis://h", agent_id="a1", crawl="news", max_retry_after=60, host_failures=3)
    left = trial.settings(wanted)
    assert (left.redis_url, left.agent_id, left.max_retry_after, left.host_failures) == (None, None, 0, 0)
    assert left.crawl == "news" and left.dir_given and left.dir.is_dir()
    assert all(trial.kept.add(key, Request("http://h1.example/")) for key in range(MOST + 1))
    trial.close()
    assert not left.dir.exists()
