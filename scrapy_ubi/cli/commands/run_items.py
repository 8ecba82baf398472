"""The one file of items at the end of `scrapy ubi run` and `scrapy ubi crawl`, of what all agents have kept."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from scrapy_ubi.cli.commands import collect
from scrapy_ubi.cli.commands.run_plan import RunPlan
from scrapy_ubi.errors import UbiDirectoryError
from scrapy_ubi.outputs.collector import UbiNothingCollected


def collect_items(plan: RunPlan, run: str) -> list[str]:
    """Write the files; a sentence for each. `run`: that of the crawl, '' where it is not known. Raises UbiError."""
    said: list[str] = []
    for path in plan.files.collected:
        asked = argparse.Namespace(
            kind="items", output=path, dir=[], run=run or None, crawl=plan.crawl, json=False, latest=False
        )
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)  # as Scrapy's feeds do
        except OSError as error:
            raise UbiDirectoryError(f"{path} cannot be written ({error.strerror or error}).") from error
        try:
            said += collect.run(plan.seen, asked).lines
        except UbiNothingCollected:
            Path(path).write_bytes(b"")
            said.append(f"{path}: there are no items.")
        if kind := plan.files.formats.get(path):
            try:
                write_as(kind, path, plan.seen)
            except OSError as error:
                raise UbiDirectoryError(f"{path} cannot be written ({error.strerror or error}).") from error
    return said


def write_as(kind: str, path: str, settings: BaseSettings) -> None:
    """Write JSON lines in another format, over themselves. Raises OSError."""
    exporters = settings.get_component_priority_dict_with_base("FEED_EXPORTERS")
    fields = settings.getdictorlist("FEED_EXPORT_FIELDS") or None
    beside = f"{path}.part"
    try:
        with open(path, encoding="utf-8") as lines, open(beside, "wb") as file:
            encoding = settings.get("FEED_EXPORT_ENCODING") or "utf-8"
            exporter = load_object(exporters[kind])(file, fields_to_export=fields, encoding=encoding)
            exporter.start_exporting()
            for line in lines:
                exporter.export_item(json.loads(line))
            exporter.finish_exporting()
        os.replace(beside, path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
