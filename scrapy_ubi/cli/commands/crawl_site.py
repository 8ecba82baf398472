"""`scrapy ubi crawl URL...`: a crawl without a project, by rules. At its end it says how many pages were fetched, and
why others were not; with `--markdown` a store keeps pages as Markdown, which is written then.

Rules of this module:

* What does not hold in rules or options is an error before anything is started.
* The agents are those of `scrapy ubi run`, of a project that is part of this package (`cli.patterns.pages_project`);
  the user's own project, where there is one, takes no part.
* The rules are written into the crawl's directory for the agents, when it is known that no other command uses it.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from scrapy.settings import BaseSettings, Settings, get_settings_priority

from scrapy_ubi.cli.commands import collect
from scrapy_ubi.cli.commands import run as running
from scrapy_ubi.cli.commands.crawl_options import rules_of, source_of
from scrapy_ubi.cli.commands.redis_connection import UbiNotFound, listed
from scrapy_ubi.cli.commands.run import Judgement
from scrapy_ubi.cli.commands.run_plan import RunPlan, make_plan
from scrapy_ubi.cli.commands.run_words import measures_of, pages, reasons
from scrapy_ubi.cli.monitor.status import CrawlStatus
from scrapy_ubi.cli.monitor.text_table import count
from scrapy_ubi.cli.patterns.crawl_settings import crawl_name, settings_of
from scrapy_ubi.cli.patterns.page_rules import PageRules
from scrapy_ubi.cli.patterns.pages_spider import PagesSpider
from scrapy_ubi.cli.patterns.rules_source import RulesSource
from scrapy_ubi.cli.supervisor.restarts import FAILED, INTERRUPTED, OK, Conclusion
from scrapy_ubi.errors import UbiDirectoryError, UbiError
from scrapy_ubi.outputs import stores
from scrapy_ubi.outputs.collector import UbiNothingCollected
from scrapy_ubi.outputs.markdown import markdown_collector
from scrapy_ubi.outputs.markdown.markdown_store import MarkdownStore
from scrapy_ubi.outputs.stores import Store
from scrapy_ubi.policy.politeness.page_robots import DIRECTIVES, NOFOLLOW
from scrapy_ubi.settings import UbiSettings

STORES = "UBI_STORES"
_NONE = "No page has text that could be written as Markdown: see the logs; --documents reads PDF and Office files."

PROJECT = "scrapy_ubi.cli.patterns.pages_project"
FILE = "rules.json"
FILTERS = "UBI_FILTERS"
ENVIRONMENT = "SCRAPY_SETTINGS_MODULE"


def judge(
    rules: PageRules, stores: Sequence[Store], status: CrawlStatus, result: Conclusion
) -> tuple[list[str], Conclusion]:
    """What is to be said, and how it ended; `stores`: those of the crawl."""
    measures = measures_of(status)
    failed = sum(measures.failed.values())
    # Not all that is done was fetched: a start page that is linked, in a crawl that goes on, is done without.
    fetched = max(0, min(measures.totals["done"] - failed, measures.totals["pages"]))
    rest = f", {count(failed)} failed" if failed else ""
    said = [f"{count(fetched)} {pages(fetched)} fetched{rest}."] if fetched or failed else []
    said += reasons(measures)
    said += _left_out(measures.noted, stores)
    if result.status == OK and failed and not fetched:
        start = listed(rules.crawl.start[:3], longest=100)
        return said, Conclusion(FAILED, f"Nothing was fetched of {start}: see above why; the logs tell more.")
    return said, result


def _left_out(noted: Mapping[str, int], stores: Sequence[Store]) -> Iterator[str]:
    """What was left out as pages ask for it."""
    for directive in DIRECTIVES:
        number = noted.get(f"page_robots/{directive}", 0)
        obeying = [store.name for store in stores if store.obeyed == directive]
        says = f"{count(number)} {'page says' if number == 1 else 'pages say'} {directive}"
        if number and directive == NOFOLLOW:
            yield f"{says}: {'its' if number == 1 else 'their'} links were not followed."
        elif number and obeying:
            yield f"{says}: left out of the {'store' if len(obeying) == 1 else 'stores'} {' and '.join(obeying)}."


def keep_markdown(settings: BaseSettings, opts: argparse.Namespace, *, documents: bool) -> None:
    """Have the agents keep Markdown, where that is asked for. Raises UbiError where it cannot be written."""
    if not opts.markdown:
        for option, value in (("--chunks", opts.chunks), ("--whole-page", opts.whole_page)):
            if value:
                raise UbiNotFound(f"{option} is for --markdown: give both.")
        return
    collect.check_markdown(opts.markdown, opts.chunks)
    if markdown_collector.is_tree(opts.markdown):
        markdown_collector.check_tree(Path(opts.markdown))
    is_ours = settings.getpriority(STORES) == get_settings_priority("project")  # of this package's project
    given = [] if is_ours else settings.getlist(STORES)
    if any(isinstance(store, MarkdownStore) for store in stores.make(given, settings)):
        return
    arguments = [*(["content=page"] if opts.whole_page else []), *(["documents=yes"] if documents else [])]
    store = f"{MarkdownStore.name}({', '.join(arguments)})" if arguments else MarkdownStore.name
    stores.make([store], settings)  # what is not installed is said before anything is started
    settings.set(STORES, ", ".join([*map(str, given), store]), "cmdline")


def markdown_at_the_end(opts: argparse.Namespace, plan: RunPlan, judge: Judgement) -> Judgement:
    """`judge`, which is also told what became of the Markdown. It is not written after an interruption: the crawl goes
    on."""

    def ending(status: CrawlStatus, result: Conclusion) -> tuple[list[str], Conclusion]:
        said, result = judge(status, result)
        if result.status == INTERRUPTED:
            name = shlex.quote(plan.crawl)
            said.append(f"Markdown so far: scrapy ubi collect markdown --crawl {name} -o {shlex.quote(opts.markdown)}")
            return said, result
        asked = argparse.Namespace(
            kind="markdown", output=opts.markdown, chunks=opts.chunks, dir=[], run=status.run or None, crawl=plan.crawl,
            json=False, latest=False,
        )  # fmt: skip
        try:
            said += collect.run(plan.seen, asked).lines
        except UbiNothingCollected:
            return said, result if result.status else Conclusion(FAILED, _NONE)
        except UbiError as error:
            return said, result if result.status else Conclusion(FAILED, str(error))
        return said, result

    return ending


def run(settings: BaseSettings, opts: argparse.Namespace) -> int:
    """Crawl; the exit status. Raises UbiError, UsageError before any agent is started."""
    source = source_of(opts)
    rules = rules_of(source)
    own = own_settings(settings, rules)
    name = opts.crawl or own.get("UBI_CRAWL") or crawl_name(rules, source.mark)
    own.set("UBI_CRAWL", name, "cmdline")
    keep_markdown(own, opts, documents=rules.follow.documents)
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
            ending = markdown_at_the_end(opts, plan, ending)
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
