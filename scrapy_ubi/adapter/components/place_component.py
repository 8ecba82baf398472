"""Where a class of this package has its place among Scrapy's components."""

from __future__ import annotations

from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name


def place_component(settings: BaseSettings, name: str, component: type | str, place: int) -> None:
    """Put a class, or the one at a path (which is not imported for that), into the component setting `name`, unless
    the user has, by class or by path.

    As `setdefault_in_component_priority_dict`, but by its path: Scrapy's log lists components as they are set."""
    components = settings.getdict(name)
    path = component if isinstance(component, str) else global_object_name(component)
    if all(one != path and global_object_name(load_object(one)) != path for one in components):
        components[path] = place
        settings.set(name, components, settings.getpriority(name) or 0)
