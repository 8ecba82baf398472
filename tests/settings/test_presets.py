"""UBI_PRESET: many values by one name, and what is set besides wins."""

from __future__ import annotations

import logging

import pytest
from scrapy.settings import Settings, default_settings

from scrapy_ubi.adapter.components.scheduler_builder import REFUSAL
from scrapy_ubi.addon import Addon
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.settings import SETTINGS, UbiSettings, early, read_value
from scrapy_ubi.settings.presets import PRESETS, given


def placed(**values: object) -> Settings:
    settings = Settings({"ADDONS": {"scrapy_ubi.Addon": 500}, "UBI_REDIS_URL": "redis://localhost", **values})
    Addon().update_settings(settings)
    return settings


@pytest.mark.parametrize("name", PRESETS)
def test_every_value_of_a_preset_holds_and_none_is_the_default(name: str) -> None:
    rows = {row.setting: row for row in SETTINGS}
    for setting, value in PRESETS[name].items():
        if setting in rows:
            same = ("UBI_MAX_BODY", "UBI_FAST")  # asked for, the second asks the system for open files, too
            assert read_value(rows[setting], value) != rows[setting].default or setting in same
        else:
            assert hasattr(default_settings, setting) and getattr(default_settings, setting) != value
    settings = placed(UBI_PRESET=name)
    assert settings[REFUSAL] is None
    assert {setting: settings[setting] for setting in PRESETS[name]} == PRESETS[name]


@pytest.mark.parametrize("name", PRESETS)
def test_what_the_project_sets_wins(name: str) -> None:
    own = {setting: getattr(default_settings, setting, None) for setting in PRESETS[name]}
    settings = placed(UBI_PRESET=name, **own)
    assert {setting: settings[setting] for setting in own} == own
    found, usual = UbiSettings.from_scrapy(settings, "s"), UbiSettings.from_scrapy(placed(), "s")
    names = {row.name for row in SETTINGS if row.setting in own}
    assert [getattr(found, one) for one in names] == [getattr(usual, one) for one in names]


def test_it_is_found_without_the_addon_too_as_commands_read_settings() -> None:
    assert UbiSettings.from_scrapy({"UBI_PRESET": "one_site"}, "s").host_tries == 10
    assert UbiSettings.from_scrapy({"UBI_PRESET": "one_site", "UBI_HOST_TRIES": "2"}, "s").host_tries == 2
    assert early({"UBI_PRESET": "broad"}, "fast") and given({"UBI_PRESET": "broad"}, "RETRY_TIMES") == 1
    assert UbiSettings.from_scrapy({}, "s").preset is None


@pytest.mark.parametrize("name", ["braod", "onesite", "one-site", "developement", "services"])
def test_one_that_does_not_exist_is_refused_with_the_nearest_name(name: str) -> None:
    with pytest.raises(UbiSettingError, match=r"UBI_PRESET is '.*', which is no preset: ") as error:
        UbiSettings.from_scrapy({"UBI_PRESET": name}, "s")
    assert any(known in str(error.value) for known in PRESETS)
    assert placed(UBI_PRESET=name)[REFUSAL] == str(error.value)


def test_the_log_says_in_one_line_what_was_taken_and_what_was_not(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        placed(UBI_PRESET="development", UBI_START_WAIT=3)
    (said,) = (record.getMessage() for record in caplog.records if "Preset" in record.getMessage())
    assert said.startswith("Preset development: UBI_FAILURE_TIMEOUT = 6, ")
    assert said.endswith("; not UBI_START_WAIT, as set elsewhere.")


def test_a_crawl_of_plain_scrapy_has_none() -> None:
    assert placed(UBI_PRESET="broad", UBI_ENABLED=False)["RETRY_TIMES"] == default_settings.RETRY_TIMES
