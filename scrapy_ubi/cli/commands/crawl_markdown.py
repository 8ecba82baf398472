"""`scrapy ubi crawl URL --markdown`: the store that keeps pages as Markdown, and what is written at the end."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from scrapy.settings import BaseSettings, get_settings_priority

from scrapy_ubi.cli.commands import collect
from scrapy_ubi.cli.commands.redis_connection import UbiNotFound
from scrapy_ubi.cli.commands.run import Judgement
from scrapy_ubi.cli.commands.run_plan import RunPlan
from scrapy_ubi.cli.monitor.status import CrawlStatus
from scrapy_ubi.cli.supervisor.restarts import FAILED, INTERRUPTED, Conclusion
from scrapy_ubi.errors import UbiError
from scrapy_ubi.outputs import stores
from scrapy_ubi.outputs.collector import UbiNothingCollected
from scrapy_ubi.outputs.markdown import markdown_collector
from scrapy_ubi.outputs.markdown.markdown_store import MarkdownStore

STORES = "UBI_STORES"
_NONE = "No page has text that could be written as Markdown: see the logs; --documents reads PDF and Office files."


def keep(settings: BaseSettings, opts: argparse.Namespace, *, documents: bool) -> None:
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


def written_at_the_end(opts: argparse.Namespace, plan: RunPlan, judge: Judgement) -> Judgement:
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
