"""UBI_* settings: one table, read once, every value checked with one clear sentence."""

from __future__ import annotations

import dataclasses
import re
import typing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.settings import Settings

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.settings import SETTINGS, Setting, UbiSettings, default_crawl, is_of_bot, read_value
from scrapy_ubi.settings.declarations import DERIVED, GONE


def read(spider: str = "walk", **values: Any) -> UbiSettings:
    return UbiSettings.from_scrapy(Settings(values), spider)


def refusal(**values: Any) -> str:
    with pytest.raises(UbiSettingError) as caught:
        read(**values)
    text = str(caught.value)
    assert "\n" not in text
    assert caught.value.setting in text
    return text


def test_every_declaration_is_a_field_and_has_a_group() -> None:
    fields = [field.name for field in dataclasses.fields(UbiSettings)]
    assert fields[: len(SETTINGS)] == [row.name for row in SETTINGS]
    assert all(row.group for row in SETTINGS)


def test_the_kind_of_a_setting_is_that_of_the_type_of_its_field() -> None:
    kinds = {bool: "flag", int: "int"}
    hints = typing.get_type_hints(UbiSettings)
    for row in SETTINGS:
        hint = hints[row.name]
        assert kinds.get(hint, row.kind) == row.kind, row
        assert hint is not float or row.kind in ("float", "seconds"), row
        if row.kind == "choice":
            assert typing.get_args(hint) == row.choices, row


def test_every_declaration_has_one_sentence_bounds_and_a_default_to_show() -> None:
    for row in SETTINGS:
        assert row.sentence.endswith(".") and row.bounds and row.shown_default, row


def test_a_default_that_is_a_constant_is_read_as_it_is_declared() -> None:
    values = UbiSettings.from_scrapy({}, "walk")
    assert all(getattr(values, row.name) == row.default for row in SETTINGS if row.default is not None)


def test_defaults() -> None:
    settings = read(BOT_NAME="bot")
    assert settings.crawl == "bot:walk"
    assert settings.dir == Path(".ubi/bot:walk")
    assert (settings.redis_url, settings.agent_id, settings.dir_given) == (None, None, False)
    assert (settings.host_delay, settings.ring_replicas) == (0.0, 200)


def test_the_name_of_bot_may_be_given() -> None:
    assert UbiSettings.from_scrapy({}, "s", bot="b").crawl == "b:s"


@pytest.mark.parametrize("nothing", [None, ""])
def test_no_redis_url_means_one_agent(nothing: str | None) -> None:
    assert read(UBI_REDIS_URL=nothing).redis_url is None


@pytest.mark.parametrize(
    "url",
    ["redis://localhost", "redis://localhost:6379/0", "rediss://user:secret@host:1/2", "unix:///run/redis.sock"],
)
def test_redis_addresses(url: str) -> None:
    assert read(UBI_REDIS_URL=url).redis_url == url


@pytest.mark.parametrize(
    "url", ["localhost:6379", "http://localhost", "redis://", "redis://h:99999", "unix://", "redis://[::1"]
)
def test_what_is_no_redis_address_is_refused(url: str) -> None:
    assert "redis://localhost:6379/0" in refusal(UBI_REDIS_URL=url)


def test_a_password_is_never_shown() -> None:
    assert "secret" not in refusal(UBI_REDIS_URL="http://user:secret@host")
    assert "secret" not in repr(read(UBI_REDIS_URL="redis://user:secret@host"))


@pytest.mark.parametrize("wrap", [lambda url: (url,), lambda url: [url], str.encode, lambda url: {"url": url}, Path])
def test_a_password_in_what_is_no_text_is_never_shown(wrap: Any) -> None:
    assert "as a text" in (text := refusal(UBI_REDIS_URL=wrap("redis://user:secret@host")))
    assert "secret" not in text


@pytest.mark.parametrize("name", ["a b", "a/b", "a{b}", "x" * 65, "..", "-", "é", 'a"b'])
@pytest.mark.parametrize("setting", ["UBI_CRAWL", "UBI_AGENT_ID"])
def test_names_that_are_no_part_of_a_key_are_refused(setting: str, name: str) -> None:
    assert repr(name) in refusal(**{setting: name})


def test_a_default_crawl_is_always_a_name() -> None:
    assert default_crawl("bot", "news.example") == "bot:news.example"
    assert default_crawl("my bot", "a/b").startswith("my_bot:a_b-")
    assert len(default_crawl("b" * 100, "s")) == 64


def test_two_spiders_have_two_default_crawls() -> None:
    """Where a character was replaced, or the end cut off, they shared one: each went on with the other's pages."""
    long = "s" * 60
    spiders = ["zeitung-ä", "zeitung-ü", "zeitung-_", "a/b", "a b", f"{long}1", f"{long}2"]
    assert len({default_crawl("scrapybot", spider) for spider in spiders}) == len(spiders)
    assert default_crawl("bot", "ä") == default_crawl("bot", "ä")


def test_two_sets_of_arguments_have_two_default_crawls() -> None:
    """They shared one: each dropped the other's URLs as off-site."""
    assert UbiSettings.from_scrapy({}, "s", bot="b", arguments="0123abcd").crawl == "b:s:0123abcd"
    assert UbiSettings.from_scrapy({}, "s", bot="b", arguments="0123abcd").dir == Path(".ubi/b:s:0123abcd")
    assert UbiSettings.from_scrapy({"UBI_CRAWL": "c"}, "s", bot="b", arguments="0123abcd").crawl == "c"
    long = "s" * 60
    assert len({default_crawl("b", long, arguments) for arguments in ("", "0123abcd", "0123abce")}) == 3


@given(st.text(), st.text(), st.sampled_from(["", "0123abcd"]))
def test_the_default_crawl_holds_as_a_setting(bot: str, spider: str, arguments: str) -> None:
    crawl = default_crawl(f"b{bot}", spider, arguments)
    assert read(UBI_CRAWL=crawl).crawl == crawl
    assert not spider or is_of_bot(crawl, f"b{bot}")


def test_a_crawl_of_another_bot_is_told_apart() -> None:
    assert is_of_bot("bot:walk", "bot") and is_of_bot("bot:walk:0123abcd", "bot")
    assert not is_of_bot("bot2:walk", "bot") and not is_of_bot("bot", "bot")


def test_an_unknown_name_is_refused_with_the_nearest_known() -> None:
    assert "did you mean UBI_REDIS_URL" in refusal(UBI_REDIS_ULR="redis://x")
    assert "did you mean UBI_AGENT_CAPACITY" in refusal(UBI_CAPACITY=2)
    assert "docs/reference/settings.md" in refusal(UBI_ZZZZZZZ=1)


def test_numbers_of_the_command_line_are_texts() -> None:
    settings = read(UBI_REPLICATION="2", UBI_AGENT_CAPACITY="0.5", UBI_HOST_DELAY="0")
    assert (settings.replication, settings.capacity, settings.ring_replicas) == (2, 0.5, 100)


@pytest.mark.parametrize(("value", "wanted"), [(True, True), (0, False), ("1", True), ("False", False), ("true", True)])
def test_a_flag_is_a_bool_or_what_the_command_line_has_for_one(value: Any, wanted: bool) -> None:
    assert read_value(Setting("x", "flag", False, "A flag."), value) is wanted


@pytest.mark.parametrize("value", ["yes", 2, 1.5, [True], "none"])
def test_a_flag_that_does_not_hold_is_refused(value: Any) -> None:
    with pytest.raises(UbiSettingError, match=r"UBI_X is .*: give True or False"):
        read_value(Setting("x", "flag", False, "A flag."), value)


@pytest.mark.parametrize("value", [-1, 0, "0", "nan", "inf", "many", True, [1], 1e9, "", b"1"])
def test_a_capacity_that_does_not_hold_is_refused(value: Any) -> None:
    assert "a number above 0 and of at most 1000" in refusal(UBI_AGENT_CAPACITY=value)


@pytest.mark.parametrize("value", [0, 1.5, "1.5", "1e3", "2**3", 10**400])
def test_a_number_that_does_not_hold_is_refused(value: Any) -> None:
    assert "a whole number of at least 1" in refusal(UBI_HOST_LOAD_TAKE=value)


def test_a_choice_that_does_not_hold_is_refused() -> None:
    assert "'host', 'domain' or" in refusal(UBI_PARTITION="ip")
    assert "as a text" in refusal(UBI_PARTITION=1)


def test_iterations_need_a_limit_of_loads_and_rankings_need_iterations() -> None:
    said = refusal(UBI_HOST_ITERATE=True)
    assert "UBI_MAX_LOAD_SECONDS" in said and "UBI_HOST_ITERATE" in said and said.count("\n") == 0
    assert "UBI_HOST_ITERATE = True" in refusal(UBI_RANK="opic")
    on = {"UBI_HOST_ITERATE": True, "UBI_MAX_LOAD_SECONDS": 60}
    assert "own fingerprinter" in refusal(**on, UBI_RANK="opic", REQUEST_FINGERPRINTER_CLASS="my.Fingerprinter")
    found = read(**on, UBI_RANK="opic", UBI_HOST_LOAD_TAKE=4, CONCURRENT_REQUESTS=18)
    assert found.hosts_at_once == 4 and str(found.host_concurrency) == "4"
    assert str(read(**on, UBI_HOST_LOAD_TAKE=4, UBI_HOST_CONCURRENCY=2).host_concurrency) == "2"
    assert str(read(UBI_HOST_LOAD_TAKE=4).host_concurrency) == "1" and read(CONCURRENT_REQUESTS=1).hosts_at_once == 1


def test_the_lease_ends_before_the_others_take_over() -> None:
    assert "UBI_FAILURE_TIMEOUT" in refusal(UBI_LEASE_TIMEOUT=15.0)
    assert "UBI_LEASE_TIMEOUT" in refusal(UBI_HEARTBEAT_INTERVAL=10.0)
    read(UBI_HEARTBEAT_INTERVAL=0.5, UBI_LEASE_TIMEOUT=3.0, UBI_FAILURE_TIMEOUT=5.0)


def test_an_agent_of_a_group_looks_at_its_lease_in_time() -> None:
    redis = {"UBI_REDIS_URL": "redis://localhost"}
    assert "by at least 0.04 s" in refusal(**redis, UBI_LEASE_TIMEOUT=14.97)
    read(UBI_LEASE_TIMEOUT=14.97)  # alone, an agent has no lease to lose


seconds_of_failure = st.floats(0.2, 7200)


@given(seconds_of_failure)
def test_all_times_follow_from_the_failure_timeout_and_keep_their_order(failure: float) -> None:
    found = read(UBI_REDIS_URL="redis://localhost", UBI_FAILURE_TIMEOUT=failure)
    assert found.heartbeat_interval < found.lease_timeout < found.failure_timeout
    assert found.flush_interval <= (found.failure_timeout - found.lease_timeout) / 2
    assert 2 * found.flush_interval <= found.stall_timeout
    assert found.resend_timeout > 2 * found.flush_interval


@given(st.floats(0.01, 10), st.floats(0.001, 1), st.floats(0.001, 1))
def test_times_that_are_given_make_the_others(beat: float, more: float, gap: float) -> None:
    given = {"UBI_HEARTBEAT_INTERVAL": beat, "UBI_LEASE_TIMEOUT": beat + more}
    found = read(UBI_REDIS_URL="redis://x", **given, UBI_FAILURE_TIMEOUT=beat + more + 0.04 + gap)
    assert 0.01 <= found.flush_interval <= (found.failure_timeout - found.lease_timeout) / 2


def test_the_defaults_derive_what_agents_had_before() -> None:
    found = read()
    assert (found.heartbeat_interval, found.lease_timeout, found.failure_timeout) == (1.0, 10.0, 15.0)
    assert (found.flush_interval, found.resend_timeout, found.stall_timeout, found.handoff_timeout) == (0.2, 5, 60, 60)
    assert (found.flush_records, found.outbox_records, found.suppressed_keys, found.store_mb) == (
        1000, 200_000, 1_000_000, 64,
    )  # fmt: skip


def test_caches_follow_from_the_memory() -> None:
    little, much = read(UBI_MEMORY_MB=32), read(UBI_MEMORY_MB=1_000_000)
    assert (little.outbox_records, little.suppressed_keys, little.store_mb) == (25_000, 125_000, 16)
    assert little.flush_records < much.flush_records and much.suppressed_keys == 100_000_000
    assert all(getattr(one, name) > 0 for one in (little, much) for name in DERIVED)


@pytest.mark.parametrize("name", GONE)
def test_a_setting_that_is_gone_is_refused_with_what_replaces_it(name: str) -> None:
    said = refusal(**{name: 1})
    assert said == f"{name} is no setting any more: {GONE[name]}."
    assert all(other in (row.setting for row in SETTINGS) for other in re.findall(r"UBI_[A-Z_]+", GONE[name]))


def test_duplicates_are_named_with_what_is_done_with_them() -> None:
    wanted = {
        "exact": (0, "mark"), "near": (3, "mark"), "near(5)": (5, "mark"), "near(5, skip)": (5, "skip"),
        "exact(unfollow)": (0, "unfollow"), "near( skip )": (3, "skip"),
    }  # fmt: skip
    assert {text: read(UBI_DUPLICATES=text).duplicates for text in wanted} == wanted
    for text in ("near(0)", "near(21)", "exact(3)", "near(3, drop)", "near()", "skip"):
        assert "UBI_DUPLICATES" in refusal(UBI_DUPLICATES=text)


def test_bodies_are_cut_where_they_are_html_or_all_of_them() -> None:
    wanted = {0: (0, False), 4096: (4096, False), "4096": (4096, False), "all(4096)": (4096, True)}
    assert {value: read(UBI_MAX_BODY=value).max_body for value in wanted} == wanted
    for value in (-1, True, "all", "all(-1)", "all(3000000000)", 3_000_000_000, 1.5):
        assert "UBI_MAX_BODY" in refusal(UBI_MAX_BODY=value)


@pytest.mark.parametrize("setting", ["UBI_HEARTBEAT_INTERVAL"])
def test_an_agent_does_something_else_than_to_beat(setting: str) -> None:
    assert refusal(**{setting: 0.0001}).startswith(f"{setting} is 0.0001: give a number of seconds of at least 0.01")
    read(**{setting: 0.01})


def test_an_agent_has_no_more_replicas_than_its_beat_can_say() -> None:
    most = read(UBI_AGENT_CAPACITY=1000)
    line = Beat("0123abcd", 0, most.ring_replicas, "0" * 16).line(1)
    assert Beat.parse(line) is not None


def test_relations_hold_for_settings_made_by_hand_too() -> None:
    with pytest.raises(UbiSettingError):
        UbiSettings(lease_timeout=20.0)


def test_jobdir_is_the_directory_unless_ubi_dir_is_set() -> None:
    assert (read(JOBDIR="jobs/1").dir, read(JOBDIR="jobs/1").dir_given) == (Path("jobs/1"), True)
    assert read(JOBDIR="jobs/1", UBI_DIR="other").dir == Path("other")
    assert read(UBI_DIR=Path("p")).dir == Path("p")


def test_the_host_delay_is_the_download_delay_unless_set() -> None:
    assert read(DOWNLOAD_DELAY=1.5).host_delay == 1.5
    assert read(DOWNLOAD_DELAY="2").host_delay == 2.0
    assert read(DOWNLOAD_DELAY=1.5, UBI_HOST_DELAY=0).host_delay == 0.0
    assert refusal(DOWNLOAD_DELAY="fast").startswith("DOWNLOAD_DELAY is 'fast'")


@pytest.mark.parametrize(
    ("value", "of_host", "of_others"),
    [
        (None, "1", "1"),
        (8, "8", "8"),
        ("8", "8", "8"),
        ("auto(8)", "auto(8)", "auto(8)"),
        ({"Shop.example": 8}, "8", "1"),
        ('{"shop.example": "auto(4)", "*": 2}', "auto(4)", "2"),
        ({"shop.example": "auto(1)"}, "1", "1"),
    ],
)
def test_loads_of_a_host_at_once(value: object, of_host: str, of_others: str) -> None:
    loads = read(UBI_HOST_CONCURRENCY=value).host_concurrency
    assert [str(loads.for_host(host)) for host in ("shop.example", "other.example")] == [of_host, of_others]
    assert loads.most == max(loads.for_host("shop.example").most, loads.others.most)


@pytest.mark.parametrize(
    "value", [0, -1, True, 1.5, 1001, "x", "auto", "auto(0)", "{", "[]", {"a.example": 0}, {3: 4}, {"a.example": {}}]
)
def test_loads_at_once_that_do_not_hold(value: object) -> None:
    assert refusal(UBI_HOST_CONCURRENCY=value).startswith("UBI_HOST_CONCURRENCY is ")


def test_a_host_that_no_url_of_the_crawl_has_is_refused() -> None:
    rule = "synonym(a.example) = b.example"
    assert "name 'shop.example'" in refusal(UBI_HOST_CONCURRENCY={"shop.example/": 2})
    assert "names 'a b'" in refusal(UBI_HOST_CONCURRENCY={"a b": 2})
    assert "name 'example.com'" in refusal(UBI_HOST_CONCURRENCY={"www.example.com": 2}, UBI_PARTITION="domain")
    assert "name 'b.example'" in refusal(UBI_HOST_CONCURRENCY={"a.example": 2}, UBI_HOST_RULES=[rule])


def test_hosts_of_one_address_and_several_loads_of_all_hosts_exclude_each_other() -> None:
    assert "UBI_POLITE_BY_IP" in refusal(UBI_HOST_CONCURRENCY=2, UBI_POLITE_BY_IP=True)
    assert read(UBI_HOST_CONCURRENCY={"shop.example": 2}, UBI_POLITE_BY_IP=True).polite_by_ip


def test_settings_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        read().crawl = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, "scrapy"),
        ("", "scrapy"),
        ("larm", "larm"),
        ("safe +slashes", "safe +slashes"),
        (["larm", "-index"], "larm -index"),
        ("safe,+plus,+characters,+path-case,+slashes,+index", "larm"),
    ],
)
def test_the_normal_form_is_kept_by_its_one_name(value: Any, name: str) -> None:
    assert read(UBI_NORMALISE=value).normalise == name


@pytest.mark.parametrize("value", ["lamr", "safe slashes", "safe +slash", [], 1, True, {"safe": 1}])
def test_what_is_no_normal_form_is_refused(value: Any) -> None:
    text = refusal(UBI_NORMALISE=value)
    assert repr(value) in text and "'safe', 'larm' or 'learned'" in text


@pytest.mark.parametrize(
    ("value", "filters"),
    [
        (None, ()),
        ("", ()),
        ([], ()),
        ("length(5); traps", ("length(5); traps",)),
        (["traps", ("length", 5)], ("traps", ("length", 5))),
    ],
)
def test_filters_are_a_list_or_a_text(value: Any, filters: tuple[object, ...]) -> None:
    assert read(UBI_FILTERS=value).filters == filters


@pytest.mark.parametrize("value", [3, {"length": 5}, True])
def test_what_is_no_list_of_filters_is_refused(value: Any) -> None:
    assert "a list of filters" in refusal(UBI_FILTERS=value)


def test_the_filter_log_is_a_file() -> None:
    assert read().filter_log is read(UBI_FILTER_LOG="").filter_log is None
    assert read(UBI_FILTER_LOG="refused.jsonl").filter_log == Path("refused.jsonl")
    assert read(UBI_FILTER_LOG=Path("refused.jsonl")).filter_log == Path("refused.jsonl")
    assert "a file" in refusal(UBI_FILTER_LOG=3)


@pytest.mark.parametrize("path", ["a\0b", "\ud800", Path("a\0b")])
@pytest.mark.parametrize("setting", ["UBI_DIR", "UBI_FILTER_LOG", "UBI_HOST_RULES"])
def test_what_cannot_be_a_path_is_refused(setting: str, path: str | Path) -> None:
    assert "no path" in refusal(**{setting: path})


def test_rules_for_hosts_come_from_a_list_or_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "hosts.properties"
    file.write_text("# of ours\nstartsWith(www,) = ,\nsynonym(a,example) = b.example\n")
    read_from = [read(UBI_HOST_RULES=value).host_rules for value in (str(file), file)]
    listed = read(UBI_HOST_RULES=["startsWith(www.)=", "synonym(a.example) = b.example"]).host_rules
    assert read_from == [listed, listed]
    assert listed is not None and listed.resolve("www.a.example") == "b.example"
    assert [read(UBI_HOST_RULES=value).host_rules for value in (None, "", [], ())] == [None] * 4


def test_rules_for_hosts_that_do_not_hold_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "hosts.properties"
    file.write_text("\nsynonym(a) = b\nwww. = x\n")
    assert "line 3, 'www. = x', is no rule: write startsWith(part)" in refusal(UBI_HOST_RULES=str(file))
    assert "No such file" in refusal(UBI_HOST_RULES=str(tmp_path / "none"))
    assert "a list of rules, or the path of a file" in refusal(UBI_HOST_RULES=str(tmp_path))
    file.write_bytes(b"synonym(\xfc) = b")
    assert "no UTF-8" in refusal(UBI_HOST_RULES=str(file))
    assert "rule 2" in refusal(UBI_HOST_RULES=["synonym(a) = b", "synonym(a) = c"])
    for value in (1, True, [1], {"a": "b"}):
        assert repr(value) in refusal(UBI_HOST_RULES=value)


@pytest.mark.parametrize(
    ("limit", "longest"),
    [
        (2083, 4096),
        ("2083", 4096),
        (10_000, 10_000),
        ("10000", 10_000),
        (1_000_000, 65_536),
        (0, 65_536),
        ("none", 4096),
    ],
)
def test_a_url_may_be_as_long_as_scrapys_limit_lets_it_be_and_4096_characters_at_least(
    limit: int | str, longest: int
) -> None:
    assert read(URLLENGTH_LIMIT=limit).max_url_length == longest
    assert read().max_url_length == 4096
