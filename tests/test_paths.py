"""Import paths that are in people's settings and code keep working, wherever the classes are written."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from importlib import import_module

import pytest
from scrapy.utils.misc import load_object

import scrapy_ubi

PATHS = [
    ("scrapy_ubi", "PageObserver"),
    ("scrapy_ubi", "Addon"),
    ("scrapy_ubi", "LinkExtractor"),
    ("scrapy_ubi", "PlainLinks"),
    ("scrapy_ubi", "TooLong"),
    ("scrapy_ubi", "UbiCrawlSpider"),
    ("scrapy_ubi", "UbiSpider"),
    ("scrapy_ubi", "feed_params"),
    ("scrapy_ubi", "item_id"),
    ("scrapy_ubi.addon", "Addon"),
    ("scrapy_ubi.errors", "UbiDirectoryError"),
    ("scrapy_ubi.errors", "UbiError"),
    ("scrapy_ubi.errors", "UbiRefused"),
    ("scrapy_ubi.errors", "UbiSettingError"),
    ("scrapy_ubi.errors", "UbiUnavailable"),
    ("scrapy_ubi.monitor.status", "read_status"),
    ("scrapy_ubi.outcome", "TooLong"),
    ("scrapy_ubi.outputs.stores", "Page"),
    ("scrapy_ubi.outputs.stores", "Store"),
    ("scrapy_ubi.ranking.ranker_contract", "Candidate"),
    ("scrapy_ubi.ranking.ranker_contract", "Page"),
    ("scrapy_ubi.ranking.ranker_contract", "PageLink"),
    ("scrapy_ubi.ranking.ranker_contract", "Ranker"),
    ("scrapy_ubi.requests.plugin_codecs", "PageMethods"),
    ("scrapy_ubi.scheduler", "UbiScheduler"),
    ("scrapy_ubi.spiders", "UbiSpider"),
    ("scrapy_ubi.urls", "url_key"),
    ("scrapy_ubi.urls.filters", "Link"),
    ("scrapy_ubi.urls.filters", "UrlFilter"),
    ("scrapy_ubi.urls.scores", "LinkBatch"),
]
MOVED = sorted(f"scrapy_ubi.{path}" for path in scrapy_ubi.MOVED)


@pytest.mark.parametrize(("module", "name"), PATHS, ids=[f"{module}.{name}" for module, name in PATHS])
def test_a_documented_path_leads_to_its_class(module: str, name: str) -> None:
    assert getattr(import_module(module), name) is not None
    assert load_object(f"{module}.{name}") is getattr(import_module(module), name)


@pytest.mark.parametrize("path", MOVED)
def test_a_path_of_before_has_the_names_of_its_place_and_is_loaded_when_asked(path: str) -> None:
    place = import_module(f"scrapy_ubi.{scrapy_ubi.MOVED[path.removeprefix('scrapy_ubi.')]}")
    names = [name for name in vars(place) if not name.startswith("_")]
    assert all(getattr(import_module(path), name) is getattr(place, name) for name in names)
    assert importlib.util.find_spec(path) is not None
    with pytest.raises(AttributeError):
        _ = import_module(path).no_such_name
    assert not hasattr(import_module(path), "__file__"), "who looks through all modules loads none"


def test_every_way_to_import_finds_a_path_of_before() -> None:
    code = (
        "import sys\n"
        "import scrapy_ubi.ranking.ranker_contract as contract\n"
        "assert 'scrapy' not in sys.modules\n"
        "import scrapy_ubi.scheduler\n"
        "assert 'scrapy' not in sys.modules\n"
        "assert scrapy_ubi.scheduler.UbiScheduler.__name__ == 'UbiScheduler'\n"
        "from scrapy_ubi import ranking\n"
        "assert ranking.Ranker is contract.Ranker\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
