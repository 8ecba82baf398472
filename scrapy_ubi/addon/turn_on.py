"""What the add-on puts in place where UBI_ENABLED is on. It imports all that an agent needs, and so it is imported by
the add-on only, when a crawl starts.

Rules of this module:

* Values are set at the priority of add-ons: what the user sets wins, except where the crawl could not work with it.
* Nothing is raised here, but where a name of Scrapy's is gone (`scrapy_ubi.addon` says what follows). An add-on that
  raises either is passed over with a warning, and the crawl runs without it, or ends the process with exit status 0. So
  the sentence why the crawl may not start is left in the settings, and the scheduler ends the process with it, exit
  status 1, before anything is fetched.
"""

from __future__ import annotations

import logging
from importlib.util import find_spec

import scrapy
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name
from scrapy.utils.reactor import is_reactor_installed

from scrapy_ubi.adapter.components import bot_page
from scrapy_ubi.adapter.components.find_scheduler import own_scheduler
from scrapy_ubi.adapter.components.middlewares import place_middlewares
from scrapy_ubi.adapter.components.own_concurrency import OwnConcurrency
from scrapy_ubi.adapter.components.place_component import place_component
from scrapy_ubi.adapter.components.progress import place_progress
from scrapy_ubi.adapter.components.scheduler import UbiScheduler
from scrapy_ubi.adapter.components.scheduler_builder import REFUSAL
from scrapy_ubi.adapter.downloads.name_servers import servers_of
from scrapy_ubi.adapter.downloads.resolver import ReactorNames
from scrapy_ubi.adapter.feedback import scrapy_delays
from scrapy_ubi.adapter.process.own_concurrency_limit import found_by_agent
from scrapy_ubi.adapter.scrapy_private import versions
from scrapy_ubi.addon import at_least_addon
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.outputs.replay import offline as replay
from scrapy_ubi.settings import UbiSettings, early, presets

logger = logging.getLogger(__name__)

ASYNCIO_REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"

# For each page Scrapy starts CONCURRENT_ITEMS tasks, 100 by default, to feed the item pipelines. Where there are none a
# few do as well, at a third less processor time a page; not one, as an error that escapes it would be its last. Where
# the lean way is taken items have tasks of their own when they need them, as many as with Scrapy.
CONCURRENT_ITEMS = 4

# Each of these runs whatever Python its caller sends, for anyone of this account (or with the password in the log). An
# agent has commands of its own (`scrapy ubi`). Who sets them has them.
CODE_FROM_OUTSIDE = ("TELNETCONSOLE_ENABLED", "REMOTE_CONTROL_ENABLED")

_ADDON = SETTINGS_PRIORITIES["addon"]
_SCHEDULER = global_object_name(UbiScheduler)  # by its path, as Scrapy's log shows settings
_WEB = "scrapy_ubi.web.agent_server.AgentServer"


def resolve_names(settings: BaseSettings) -> None:
    """Before there is a crawler: have Scrapy's own handlers ask UBI_DNS_SERVERS, too, where the project has no resolver
    of its own."""
    if not (servers_of(settings) and early(settings, "enabled")) or find_spec("aiodns") is None:
        return
    if not any(settings.getpriority(name) for name in versions.RESOLVERS):
        settings.set(versions.RESOLVERS[0], ReactorNames, _ADDON)


def turn_on(settings: BaseSettings) -> None:
    """Put scheduler, middlewares and what else an agent needs in place."""
    _place_preset(settings)
    replay.place_replay(settings)
    settings.set(REFUSAL, refusal(settings), _ADDON)
    # Also over a scheduler or a reactor of the user's: the start is refused with ours. And before that of an add-on
    # that comes after this one: nothing here works with another.
    settings.set(
        "SCHEDULER",
        own_scheduler(settings) or _SCHEDULER,
        max(SETTINGS_PRIORITIES["project"], settings.getpriority("SCHEDULER") or 0),
    )
    if _lacks_asyncio(settings):
        settings.set("TWISTED_REACTOR", ASYNCIO_REACTOR, at_least_addon(settings, "TWISTED_REACTOR"))
    starts = not settings.get(REFUSAL)
    signs, usage = bool(settings.get("UBI_BOT_KEY")), bool(settings.get("UBI_USAGE"))
    pool, shows = bool(settings.get("UBI_PROXY_POOL")), _shows_pages(settings)
    place_middlewares(
        settings, signs=signs and starts, usage=usage and starts, browser=shows and starts, proxies=pool and starts
    )
    for name in CODE_FROM_OUTSIDE:
        settings.set(name, False, _ADDON)
    if not settings.get_component_priority_dict_with_base("ITEM_PIPELINES"):
        settings.set("CONCURRENT_ITEMS", CONCURRENT_ITEMS, _ADDON)
    versions.without_jitter(settings, _ADDON)  # otherwise a slot would at times add to a host's delay
    _make_faster(settings)
    _place_concurrency(settings)
    _introduce(settings)
    _show(settings)
    place_progress(settings)
    scrapy_delays.let_through(settings, _ADDON)
    _say_what_is_done_otherwise(settings)


def _place_preset(settings: BaseSettings) -> None:
    """Set what UBI_PRESET holds, but for what anybody else has set; and say so, in a line."""
    held = presets.values_of(settings)
    kept = [name for name in held if settings.getpriority(name)]
    for name, value in held.items():
        if name not in kept:
            settings.set(name, value, _ADDON)
    if held:
        besides = f"; not {', '.join(kept)}, as set elsewhere" if kept else ""
        taken = ", ".join(f"{name} = {value!r}" for name, value in held.items() if name not in kept)
        logger.info("Preset %s: %s%s.", settings[presets.NAME], taken or "nothing of it", besides)


def _make_faster(settings: BaseSettings) -> None:
    """Open the room of what makes Scrapy faster, where there is one."""
    if not (early(settings, "lean") or early(settings, "fast")):
        return
    try:
        from scrapy_ubi import fast
    except ImportError as error:
        logger.info("UBI_LEAN, UBI_FAST: pages go Scrapy's own way (slower, same items), as scrapy_ubi.fast: %s", error)
    else:
        fast.install(settings)


def _place_concurrency(settings: BaseSettings) -> None:
    """As many requests at once as UBI_CONCURRENCY says; what it does not say is CONCURRENT_REQUESTS', where that is
    set."""
    if found_by_agent(settings) is not None:
        place_component(settings, "EXTENSIONS", OwnConcurrency, 0)
    elif loads := early(settings, "concurrency"):
        settings.set("CONCURRENT_REQUESTS", loads.most, at_least_addon(settings, "CONCURRENT_REQUESTS"))


def refusal(settings: BaseSettings) -> str | None:
    """One sentence why a crawl with these settings may not start, None when it may."""
    if scrapy.version_info[:2] < versions.TRIED[0]:
        wanted = ".".join(map(str, versions.TRIED[0]))
        return f"Scrapy {scrapy.__version__} is too old: install Scrapy {wanted} or later."
    if (settings.getpriority("SCHEDULER") or 0) > _ADDON and own_scheduler(settings) is None:
        return (
            f"SCHEDULER is set to {settings['SCHEDULER']!r}: remove it, as the agents schedule requests among "
            "themselves, or remove scrapy_ubi.Addon from ADDONS."
        )
    if _lacks_asyncio(settings):
        return (
            f"TWISTED_REACTOR is set to {settings['TWISTED_REACTOR']!r}: remove it, as the agents talk to each other "
            "by asyncio."
        )
    if settings.get("UBI_DNS_SERVERS") and find_spec("aiodns") is None:
        return "UBI_DNS_SERVERS needs aiodns, which is not installed: pip install 'scrapy-ubi[dns]', or remove it."
    if _shows_pages(settings) and find_spec("scrapy_playwright") is None:
        return (
            "UBI_BROWSER needs scrapy-playwright, which is not installed: pip install 'scrapy-ubi[browser]', or remove "
            "it."
        )
    if _shows_pages(settings) and not settings.getbool("TWISTED_REACTOR_ENABLED"):
        return "UBI_BROWSER needs a reactor, as scrapy-playwright does: remove it, or TWISTED_REACTOR_ENABLED = False."
    if settings.get("UBI_RECRAWL") and settings.getbool("HTTPCACHE_ENABLED"):
        return (
            "UBI_RECRAWL and HTTPCACHE_ENABLED are set: remove one of them, as pages that are visited again would come "
            "from Scrapy's cache."
        )
    try:
        replay.check(UbiSettings.from_scrapy(settings, "spider"))
        scrapy_delays.check(settings)
        if settings.get("UBI_BOT_KEY"):
            from scrapy_ubi.adapter.components import bot_auth  # it needs `cryptography`, which takes a moment

            bot_auth.key_of(settings)
    except UbiSettingError as error:
        return str(error)
    return None


def _shows_pages(settings: BaseSettings) -> bool:
    """Whether a browser is to show pages."""
    return settings.get("UBI_BROWSER") in ("auto", "always")


def _lacks_asyncio(settings: BaseSettings) -> bool:
    """Whether this crawl would run on a reactor without asyncio that is not installed yet."""
    if not settings.getbool("TWISTED_REACTOR_ENABLED") or is_reactor_installed():
        return False  # one that is installed is looked at when the spider is opened
    return bool(settings["TWISTED_REACTOR"] != ASYNCIO_REACTOR)


def _introduce(settings: BaseSettings) -> None:
    """Have the User-Agent say whom a webmaster can ask, or the user be warned that it does not."""
    place_component(settings, "EXTENSIONS", bot_page.BotPage, 0)
    if isinstance(page := settings.get("UBI_BOT_PAGE"), str) and page and not settings.get(REFUSAL):
        bot_page.introduce(settings, page, _ADDON)


def _show(settings: BaseSettings) -> None:
    """Let the agent show its crawl to browsers. The room of that stands above this one, and is named only."""
    if not settings.get("UBI_WEB"):
        return
    if find_spec("aiohttp") is None:
        logger.warning("UBI_WEB shows nothing: aiohttp is not installed (pip install 'scrapy-ubi[web]').")
        return
    place_component(settings, "EXTENSIONS", load_object(_WEB), 0)


def _say_what_is_done_otherwise(settings: BaseSettings) -> None:
    if settings[REFUSAL] is None:
        if remark := versions.remark():
            logger.info("%s", remark)
        for sentence in scrapy_delays.remarks(settings):
            logger.warning("%s", sentence)
