"""The error tree: one root, every leaf says who has to act."""

from __future__ import annotations

import inspect

from scrapy_ubi import errors
from scrapy_ubi.errors import UbiError, UbiSettingError


def test_every_error_descends_from_the_root_and_is_documented() -> None:
    leaves = [value for _, value in inspect.getmembers(errors, inspect.isclass)]
    assert all(issubclass(leaf, UbiError) and leaf.__doc__ for leaf in leaves)


def test_a_setting_error_names_the_setting_and_the_remedy() -> None:
    error = UbiSettingError("UBI_X", "is -1", "give a number above 0")
    assert str(error) == "UBI_X is -1: give a number above 0."
    assert (error.setting, error.remedy) == ("UBI_X", "give a number above 0")
