"""Where the add-on puts `UbiRobotsMiddleware`: in the place of Scrapy's RobotsTxtMiddleware, whatever number that has.

A user's own class stays: one derived from Scrapy's, or whatever is there when Scrapy's is switched off. One derived
from `UbiRobotsMiddleware` takes the place of Scrapy's.
"""

from __future__ import annotations

import logging

from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from scrapy_ubi.adapter.components.place_component import place_component
from scrapy_ubi.adapter.components.robots_middleware import UbiRobotsMiddleware

logger = logging.getLogger(__name__)

MIDDLEWARES = "DOWNLOADER_MIDDLEWARES"


def place_robots(settings: BaseSettings) -> None:
    """Put the middleware in place, where ROBOTSTXT_OBEY is on and the user has put none of their own there."""
    if not settings.getbool("ROBOTSTXT_OBEY"):
        return
    places = {load_object(key): number for key, number in _places(settings).items()}
    own = [cls for cls in places if _is(cls, RobotsTxtMiddleware) and cls is not RobotsTxtMiddleware]
    if any(_is(cls, UbiRobotsMiddleware) for cls in places):
        settings.set_in_component_priority_dict(MIDDLEWARES, RobotsTxtMiddleware, None)
    elif own:
        logger.info(
            "%s stays: what docs/how-to/robots.md says of robots.txt holds for UbiRobotsMiddleware only.",
            own[0].__name__,
        )
    elif RobotsTxtMiddleware in places:
        settings.set_in_component_priority_dict(MIDDLEWARES, RobotsTxtMiddleware, None)
        place_component(settings, MIDDLEWARES, UbiRobotsMiddleware, places[RobotsTxtMiddleware])
    else:
        logger.info("RobotsTxtMiddleware is switched off in %s: robots.txt is left to what replaces it.", MIDDLEWARES)


def _places(settings: BaseSettings) -> BaseSettings:
    return settings.get_component_priority_dict_with_base(MIDDLEWARES)


def _is(cls: object, base: type) -> bool:
    return isinstance(cls, type) and issubclass(cls, base)
