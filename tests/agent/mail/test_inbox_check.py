"""What this agent can take of a letter that holds: URLs under their own host's name, and requests it can make."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from scrapy_ubi.agent.mail import inbox_check
from scrapy_ubi.agent.mail.inbox_check import judge_of
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.urls import normal_form
from scrapy_ubi.urls.host_keys import host_keys

HOST_OF = host_keys("host", None, None, normal_form)
KEYS: Any = None  # no request here names its host


@pytest.mark.parametrize(
    ("host", "url", "holds"),
    [
        ("h.example", "http://h.example/a", True),
        ("h.example", "https://h.example/a#b", True),
        ("h.example", "http://h.example/ü", True),
        ("h.example", "http://H.example:80/a", True),
        ("h.example", "http://h.example:8080/a", False),
        ("h.example:8080", "http://h.example:8080/a", True),
        ("h.example", "http://h.example@other.example/", False),
        ("h.example", "http://h.example.other/", False),
        ("h.example", "http://other.example/http://h.example/", False),
        ("h.example/a", "http://h.example/a/", False),
        ("h.example#1", "http://h.example/a", False),
    ],
)
def test_a_url_is_taken_under_its_own_hosts_name_alone(host: str, url: str, holds: bool) -> None:
    judge = judge_of(KEYS, HOST_OF, lambda request: None)
    for _ in range(2):  # the second time what the first one has found is remembered
        reason = judge(host, Entry(1, url, 0))
        assert reason is None if holds else "does not belong to host" in str(reason)


def test_a_request_is_judged_besides() -> None:
    judge = judge_of(KEYS, HOST_OF, lambda request: "no such callback")
    assert judge("h.example", Entry(1, "http://h.example/", 0)) is None
    assert judge("h.example", Entry(1, "http://h.example/", 0, 0, '{"callback":"gone"}')) == "no such callback"
    assert "does not belong" in str(judge("h.example", Entry(1, "http://g.example/", 0, 0, '{"callback":"gone"}')))


def test_of_a_usual_host_the_key_is_not_asked_for_each_url(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[str] = Counter()

    def host_of(url: str) -> str | None:
        asked[url] += 1
        return HOST_OF(url)

    judge = judge_of(KEYS, host_of, lambda request: None)
    for number in range(10):
        assert judge("h.example", Entry(number, f"http://h.example/{number}", 0)) is None
    assert asked == {"http://h.example/": 1, "https://h.example/": 1}
    monkeypatch.setattr(inbox_check, "HOSTS_KEPT", 1)
    assert judge("g.example", Entry(1, "http://g.example/", 0)) is None
    assert judge("h.example", Entry(1, "http://h.example/", 0)) is None
    assert asked["https://h.example/"] == 2, "what is remembered is bounded"
