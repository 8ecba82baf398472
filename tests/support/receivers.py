"""Those who receive items while they come: a webhook's server, a consumer group, `scrapy ubi items --follow`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import redis

from scrapy_ubi.outputs.delivery.webhook_store import sign
from tests.support.group import CRAWL, LIMIT, Group

KEY = b"a key for the tests"


class Items:
    """What a receiver has got: item -> how often, by identity; URLs by identity."""

    def __init__(self) -> None:
        self.times: Counter[str] = Counter()
        self.urls: dict[str, str] = {}

    def take(self, name: str, item: dict[str, Any]) -> None:
        self.times[name] += 1
        assert self.urls.setdefault(name, item["url"]) == item["url"], f"{name} is two items"

    def once(self) -> Counter[str]:
        """Each URL, as often as it has identities."""
        return Counter(self.urls.values())


class Hook(ThreadingHTTPServer):
    """A receiver of webhooks, which may be `away`: it answers with 503."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.got, self.wrong, self.away, self.refused = Items(), list[str](), False, 0
        self.largest, self.most, self.hangs_up, self.retry_after = 0, 1_000_000, False, ""
        self.names, self.last = list[str](), dict[str, Any]()
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/items"

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        name, when = self.headers["webhook-id"], self.headers["webhook-timestamp"]
        said = json.loads(body)
        items = said["items"]
        with self.server.lock:
            status = 503 if self.server.away else 413 if len(items) > self.server.most else 204
            if status != 204:
                self.server.refused += 1
            else:
                self.server.names.append(name)
                self.server.last = said
                if self.headers["webhook-signature"] != sign(KEY, name, when, body):
                    self.server.wrong.append(name)
                self.server.largest = max(self.server.largest, len(items))
                for one in items:
                    self.server.got.take(one["id"], one["item"])
        self.send_response(status)
        self.send_header("Content-Length", "0")
        if self.server.retry_after:
            self.send_header("Retry-After", self.server.retry_after)
        self.end_headers()
        self.close_connection = self.close_connection or self.server.hangs_up

    def log_message(self, *args: Any) -> None:
        """Nothing."""


class Workers:
    """A consumer group, with one slow consumer in a thread, which goes on whatever happens to Redis."""

    def __init__(self, group: Group) -> None:
        self._server, self.key = group.server, group.keys.items
        self.got, self.longest = Items(), 0
        self._ended = threading.Event()
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def _work(self) -> None:
        quiet = 0
        while not (self._ended.is_set() and quiet > 3):
            try:
                quiet = 0 if self._read() else quiet + 1
            except redis.ResponseError as error:
                assert "NOGROUP" in str(error), error
                with suppress(redis.RedisError):
                    self._client().xgroup_create(self.key, "workers", "0", mkstream=True)
            except redis.RedisError:
                time.sleep(0.1)

    def _client(self) -> Any:
        return self._server.client()

    def _read(self) -> bool:
        with self._client() as client:
            self.longest = max(self.longest, client.xlen(self.key))
            said = client.xreadgroup("workers", "w", {self.key: ">"}, count=20, block=200)
            for _, entries in said or ():
                time.sleep(0.05)
                for name, fields in entries:
                    self.got.take(fields[b"id"].decode(), json.loads(fields[b"item"]))
                    client.xack(self.key, "workers", name)
            return bool(said)

    def end(self) -> None:
        self._ended.set()
        self.thread.join(LIMIT)
        assert not self.thread.is_alive()


class Follower:
    """`scrapy ubi items --follow --until-end`."""

    def __init__(self, group: Group, *options: str) -> None:
        self.out, self.err = group.place / "followed", group.place / "followed.err"
        command = [sys.executable, "-m", "scrapy", "ubi", "items", "--follow", "--crawl", CRAWL, *options]
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.popen = subprocess.Popen(
                [*command, "--redis-url", group.server.url], stdout=out, stderr=err, cwd=group.place, env=os.environ
            )

    def until_there(self, group: Group) -> None:
        """Until it has its group."""
        limit = time.monotonic() + LIMIT
        with group.server.client() as client:
            while not client.exists(group.keys.items) or not any(
                one["name"].startswith(b"follow:") for one in client.xinfo_groups(group.keys.items)
            ):
                assert time.monotonic() < limit and self.popen.poll() is None, self.err.read_text()
                time.sleep(0.05)

    def end(self) -> Items:
        assert self.popen.wait(LIMIT) == 0, self.err.read_text()
        got, times = Items(), Counter[tuple[str, str]]()
        for line in self.out.read_text().splitlines():
            said = json.loads(line)
            got.take(said["id"], said["item"])
            times[said["run"], said["id"]] += 1
        assert set(times.values()) <= {1}
        return got


def key_file(place: Path) -> Path:
    path = place / "hook.key"
    path.write_bytes(KEY)
    return path
