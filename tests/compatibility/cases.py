"""The rows of the compatibility table that a project stands for: what each needs, and where its items end up."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.support.server import Server
from tests.support.site import Site

BUCKET = "feeds"


@dataclass
class World:
    """What a project finds around it."""

    site: Site
    server: Server
    s3: str = ""  # the endpoint, where there is one

    def lines(self) -> str:
        """Lines for its settings.py."""
        return (
            f'\nZYTE_API_URL = "http://127.0.0.1:{self.site.port}/v1/"\nREDIS_URL = "{self.server.url}"\n'
            f'AWS_ENDPOINT_URL = "{self.s3}"\n'
        )


Items = Callable[[Path, World], Iterable[dict[str, Any]]]


def _none(place: Path, world: World) -> Iterable[dict[str, Any]]:
    return ()


def _avro(place: Path, world: World) -> Iterable[dict[str, Any]]:
    avro: Any = import_module("fastavro")
    for file in place.glob("big-*.avro"):
        if file.stat().st_size:
            with file.open("rb") as rows:
                yield from avro.reader(rows)


def _objects(place: Path, world: World) -> Iterable[dict[str, Any]]:
    """Those of the bucket, which is emptied."""
    client = s3_client(world.s3)
    for found in client.list_objects_v2(Bucket=BUCKET).get("Contents", ()):
        body = client.get_object(Bucket=BUCKET, Key=found["Key"])["Body"].read()
        yield from map(json.loads, body.decode().splitlines())
        client.delete_object(Bucket=BUCKET, Key=found["Key"])


def _listed(place: Path, world: World) -> Iterable[dict[str, Any]]:
    """Those of RedisPipeline's list, which is emptied."""
    with world.server.client() as client:
        found: Any = client.lrange("walk:items", 0, -1)
        client.delete("walk:items")
    yield from map(json.loads, found)


def s3_client(endpoint: str) -> Any:
    """A client of that endpoint."""
    boto3: Any = import_module("boto3")
    names = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "eu-west-1"}
    return boto3.client("s3", endpoint_url=endpoint, **names)


@dataclass(frozen=True)
class Case:
    """`needs`: modules without which it is skipped. `elsewhere`: the items that it puts somewhere else than into the
    feeds, which must be the same as well. `says`: what agents of a group say at their start. `loses`: what a killed
    agent may take with it, which is said. `broken`: what plain Scrapy says, with which it does not run."""

    name: str
    needs: tuple[str, ...] = ()
    elsewhere: Items = _none
    says: str = ""
    loses: str = ""
    broken: str = ""
    programs: tuple[str, ...] = field(default=())

    def project(self) -> Path:
        """Its folder."""
        return Path(__file__).with_name("projects") / self.name

    def items(self, place: Path, world: World) -> Counter[str]:
        """Those that are elsewhere."""
        return Counter(json.dumps(item, sort_keys=True) for item in self.elsewhere(place, world))


PLAYWRIGHT = ("scrapy_playwright", "playwright")
CASES = (
    Case("httpcache"),
    Case("media", ("PIL",)),
    Case("playwright", PLAYWRIGHT, programs=("chromium",)),
    Case("poet", ("scrapy_poet",)),
    Case("zyte", ("scrapy_zyte_api",)),
    Case("impersonate", ("scrapy_impersonate",)),
    Case("spidermon", ("spidermon", "jsonschema"), says="SPIDERMON_ENABLED"),
    Case(
        "deltafetch", ("scrapy_deltafetch",), says="DELTAFETCH_DIR", broken="doesn't support asynchronous spider output"
    ),
    Case("rotating_proxies", ("rotating_proxies",)),
    Case("bigexporters", ("zuinnote", "fastavro"), _avro, broken="_get_serialized_fields"),
    Case("s3_feeds", ("moto", "boto3"), _objects, loses="FEED_EXPORT_BATCH_ITEM_COUNT"),
    Case("redis_pipeline", ("scrapy_redis",), _listed),
    Case("together", (*PLAYWRIGHT, "scrapy_poet", "spidermon", "jsonschema"), programs=("chromium",)),
)
