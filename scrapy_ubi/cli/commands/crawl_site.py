"""`scrapy ubi crawl URL...`: a crawl without a project, by rules.

Rules of this module:

* What does not hold in rules or options is an error before anything is started.
* The agents are those of `scrapy ubi run`, of a project that is part of this package (`cli.patterns.pages_project`);
  the user's own project, where there is one, takes no part.
* The rules are written into the crawl's directory for the agents, when it is known that no other command uses it.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from scrapy.settings import BaseSettings, Settings, get_settings_priority

from scrapy_ubi.cli.commands import crawl_markdown
from scrapy_ubi.cli.commands import run as running
from scrapy_ubi.cli.commands.crawl_ending import judge
from scrapy_ubi.cli.commands.crawl_options import rules_of, source_of
from scrapy_ubi.cli.commands.run_plan import make_plan
from scrapy_ubi.cli.patterns.crawl_settings import crawl_name, settings_of
from scrapy_ubi.cli.patterns.page_rules import PageRules
from scrapy_ubi.cli.patterns.pages_spider import PagesSpider
from scrapy_ubi.cli.patterns.rules_source import RulesSource
from scrapy_ubi.errors import UbiDirectoryError
from scrapy_ubi.outputs import stores
from scrapy_ubi.settings import UbiSettings

PROJECT = "scrapy_ubi.cli.patterns.pages_project"
FILE = "rules.json"
FILTERS = "UBI_FILTERS"
ENVIRONMENT = "SCRAPY_SETTINGS_MODULE"


def run(settings: BaseSettings, opts: argparse.Namespace) -> int:
    """Crawl; the exit status. Raises UbiError, UsageError before any agent is started."""
    source = source_of(opts)
    rules = rules_of(source)
    own = own_settings(settings, rules)
    name = opts.crawl or own.get("UBI_CRAWL") or crawl_name(rules, source.mark)
    own.set("UBI_CRAWL", name, "cmdline")
    crawl_markdown.keep(own, opts, documents=rules.follow.documents)
    wanted = UbiSettings.from_scrapy(own, PagesSpider.name)
    path = wanted.dir.absolute() / FILE
    asked = argparse.Namespace(**vars(opts))
    asked.spider, asked.crawl, asked.one_file = PagesSpider.name, name, True
    asked.spargs = [f"rules={source.mark}", f"_rules={path}"]
    with project():
        plan = make_plan(own, asked)
        running.make_directories(plan)
        _write(source, path)
        ending: running.Judgement = partial(judge, rules, stores.make(own.getlist("UBI_STORES"), own))
        if opts.markdown:
            ending = crawl_markdown.written_at_the_end(opts, plan, ending)
        return running.supervise(own, asked, plan, ending, [pause_of(wanted)])


def pause_of(settings: UbiSettings) -> str:
    """How long a host is left alone between two pages, in a sentence."""
    if factor := settings.delay_factor:
        least = f", {settings.host_delay:g} s at least" if settings.host_delay else ""
        took = "as long as its last answer took" if factor == 1 else f"{factor:g} times as long as its last answer took"
        pause = f"{took}{least}, {settings.max_delay:g} s at most"
    elif settings.host_delay:
        pause = f"{settings.host_delay:g} s"
    else:
        pause = "no pause"
    return f"Pause between two pages of a host: {pause} (--delay); longer where robots.txt or the host asks for it."


def own_settings(settings: BaseSettings, rules: PageRules) -> Settings:
    """The settings of such a crawl: of this package's project, of the rules, and of the command line, which wins."""
    own = Settings()
    own.setmodule(PROJECT, "project")
    own.setdict(settings_of(rules), "cmdline")
    least = get_settings_priority("cmdline")
    for name in settings:
        if isinstance(name, str) and (settings.getpriority(name) or 0) >= least:
            value = settings[name]
            if name == FILTERS and (scope := own.get(name)):  # without it the crawl would leave the site
                value = f"{scope}; {value}"
            own.set(name, value, "cmdline")
    return own


@contextmanager
def project() -> Iterator[None]:
    """Within this block, and for processes that are started in it, this package's project is Scrapy's."""
    before = os.environ.get(ENVIRONMENT)
    os.environ[ENVIRONMENT] = PROJECT
    try:
        yield
    finally:
        if before is None:
            del os.environ[ENVIRONMENT]
        else:
            os.environ[ENVIRONMENT] = before


def _write(source: RulesSource, path: os.PathLike[str]) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(source.as_json())
    except OSError as error:
        raise UbiDirectoryError(f"{path} cannot be written ({error.strerror or error}).") from error
