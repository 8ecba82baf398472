"""Where a class of this package has its place among Scrapy's components."""

from __future__ import annotations

from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name


def place_component(settings: BaseSettings, name: str, cls: type, place: int) -> None:
    """Put `cls` into the component setting `name`, unless the user has, by class or by path.

    As `setdefault_in_component_priority_dict`, but by its path: Scrapy's log lists components as they are set."""
    components = settings.getdict(name)
    if all(load_object(one) is not cls for one in components):
        components[global_object_name(cls)] = place
        settings.set(name, components, settings.getpriority(name) or 0)
