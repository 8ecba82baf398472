"""One system's run in the frontier benchmark, in a process of its own: its figures as one JSON line.

CPU is user and system time of the process and all its threads, on one core, less what the benchmark itself needs (the
links, the samples). Memory is what the process has resident beyond the moment before its frontier was made. Linux only.
"""

from __future__ import annotations

import gc
import json
import os
import random
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from frontier_load import LINKS, Links, Web
from processes import cpu_seconds

WAVE = 32  # loads under way at a time, as CONCURRENT_REQUESTS has it
STEP = 1.3  # from sample to sample, until a tenth of the whole is more


class Clock:
    """CPU and wall seconds of what is measured; what happens within `apart` does not count."""

    def __init__(self) -> None:
        self._cpu, self._wall = time.process_time(), time.monotonic()
        self._own_cpu = self._own_wall = 0.0

    def __enter__(self) -> None:
        self._since = time.thread_time(), time.monotonic()

    def __exit__(self, *_: object) -> None:
        self._own_cpu += time.thread_time() - self._since[0]
        self._own_wall += time.monotonic() - self._since[1]

    @property
    def cpu(self) -> float:
        """CPU seconds so far."""
        return time.process_time() - self._cpu - self._own_cpu

    @property
    def wall(self) -> float:
        """Seconds so far."""
        return time.monotonic() - self._wall - self._own_wall


class Run:
    """A system, its web and what is measured of it."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self.spec = spec
        self.directory = Path(spec["directory"])
        factory = system(spec["system"])
        self.web = Web(spec["hosts"], spec["mix"], spec["seed"])
        rehearsal = Web(spec["hosts"], spec["mix"], spec["seed"] + 1)
        rehearsal.known += 1
        self.chunk = max(25, min(1250, spec["known"] // 400))  # pages at a time
        factory.rehearse(rehearsal.pages(self.chunk))
        self.spare = [open(os.devnull) for _ in range(8)]  # noqa: SIM115  to go on with when all files are taken
        gc.collect()
        self.files_before, self.memory_before = len(os.listdir("/proc/self/fd")), memory()
        self.it = factory(spec["system"], self.directory, spec.get("redis_port"))
        self.row: dict[str, Any] = {
            **{key: spec[key] for key in ("system", "known", "hosts", "mix", "round", "fill")},
            "load": os.getloadavg()[0],
            "stopped": "",
            "samples": [],
        }

    def whole(self) -> dict[str, Any]:
        """Offers, then pops."""
        self.offers()
        self.pops()
        self.row["load_end"] = os.getloadavg()[0]
        return self.row

    # ------------------------------------------------------------------ offers

    def offers(self) -> None:
        """Offer links until as many URLs are known as wanted."""
        clock = self.clock = Clock()
        self.offered = self.taken = self.expected = self.sampled = 0
        self.make_cpu = self.make_wall = 0.0
        seeds = self.web.seeds(self.chunk * LINKS)
        try:
            while self.expected < self.spec["known"] and not self._late():
                with clock:
                    links = next(seeds, None) or self.web.pages(self.chunk)
                    if self.spec["fill"]:
                        links = links.fresh()
                self._offer(links)
                if self.offered >= min(self.sampled * STEP, self.sampled + self.spec["known"]):
                    self._sample()
        except OSError as error:
            self.row["stopped"] = f"{error.strerror}"
            for file in self.spare:
                file.close()
        self.it.settle()
        self._quiet()
        self._sample()
        last = self.row["samples"][-1]
        self.row |= {
            "offers": self.offered,
            "taken": self.taken,
            "wrong": self.taken - self.expected,
            "offer_cpu": clock.cpu - self.make_cpu,
            "offer_wall": clock.wall - self.make_wall,
            "make_cpu": self.make_cpu,
            "files": max(sample["files"] for sample in self.row["samples"]),
            **{key: last[key] for key in ("memory", "anonymous", "disk", "server") if key in last},
        }

    def _offer(self, links: Links) -> None:
        with self.clock:
            prepared = self.it.prepare(links)
            self.expected += sum(links.news)
        cpu, wall = time.process_time(), time.monotonic()
        made = self.it.make(prepared)
        self.make_cpu += time.process_time() - cpu
        self.make_wall += time.monotonic() - wall
        self.offered += len(made)
        self.taken += self.it.offer(made)

    def _quiet(self) -> None:
        """Wait until nothing goes on in the background: what the offers have left to be sorted is of their cost."""
        end = time.monotonic() + 120
        while time.monotonic() < end:
            before = time.process_time()
            time.sleep(0.5)
            if time.process_time() - before < 0.01:
                return

    def _late(self) -> bool:
        """Whether the offers take too long: the limit is one of CPU, and twice that by the clock."""
        if self.clock.cpu > self.spec["limit"]:
            self.row["stopped"] = f"after {self.spec['limit']:.0f} s of CPU"
        elif self.clock.wall > 2 * self.spec["limit"]:
            self.row["stopped"] = f"after {2 * self.spec['limit']:.0f} s by the clock"
        return bool(self.row["stopped"])

    def _sample(self) -> None:
        """How things are."""
        self.sampled = self.offered
        with self.clock:
            now, before = memory(), self.memory_before
            sample = {
                "known": self.taken,
                "offers": self.offered,
                "cpu": round(self.clock.cpu - self.make_cpu, 4),
                "wall": round(self.clock.wall - self.make_wall, 4),
                "memory": now["VmRSS"] - before["VmRSS"],
                "anonymous": now["RssAnon"] - before["RssAnon"],
                "files": len(os.listdir("/proc/self/fd")) - self.files_before,
            }
            if self.spec["disk"]:
                sample["disk"] = disk(self.directory)
            if self.spec.get("redis_port"):
                sample["server"] = self._server()
            self.row["samples"].append(sample)
            print(json.dumps({"progress": sample}), flush=True)

    def _server(self) -> dict[str, float]:
        import redis

        with redis.Redis(port=self.spec["redis_port"]) as client:
            used = client.info("memory")["used_memory"]
        return {"memory": used - self.spec["redis_empty"], "cpu": cpu_seconds(self.spec["redis_pid"])}

    # ------------------------------------------------------------------ pops

    def pops(self) -> None:
        """Pop in waves; what was popped is done."""
        clock = Clock()
        before = self._server() if self.spec.get("redis_port") else None
        popped, finish_cpu = 0, 0.0
        most = self.spec["pops"] if not self.row["stopped"].startswith("Too many") else 0
        while popped < most and clock.wall < self.spec["limit"] / 2:
            wave = self.it.pop(WAVE)
            if not wave:
                break
            popped += len(wave)
            cpu = time.process_time()
            self.it.finish(wave)
            finish_cpu += time.process_time() - cpu
        cpu = time.process_time()
        self.it.settle()
        finish_cpu += time.process_time() - cpu
        with clock:
            now = memory()["VmRSS"] - self.memory_before["VmRSS"]
        self.row |= {
            "pops": popped,
            "pop_cpu": clock.cpu - finish_cpu,
            "finish_cpu": finish_cpu,
            "pop_wall": clock.wall,
            "memory_after_pops": now,
            "files_after_pops": len(os.listdir("/proc/self/fd")) - self.files_before,
        }
        if before is not None:
            self.row["pop_server_cpu"] = self._server()["cpu"] - before["cpu"]
        if self.spec["disk"]:
            self.row["disk_after_pops"] = disk(self.directory)


def system(name: str) -> Any:
    """The class that plays a system."""
    if name == "memory":
        from frontier_ours import InMemory

        return InMemory
    if name in ("disk", "bloom"):
        from frontier_ours import OnDisk

        return OnDisk
    from frontier_peers import Peer

    return Peer


def memory() -> dict[str, int]:
    """Resident bytes of this process: all, and what is its own alone."""
    lines = Path("/proc/self/status").read_text().splitlines()
    found = dict(line.split(":", 1) for line in lines)
    return {key: int(found[key].split()[0]) * 1024 for key in ("VmRSS", "RssAnon", "RssFile", "RssShmem")}


def disk(directory: Path) -> int:
    """Bytes that the files there take."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.stat(os.path.join(folder, name)).st_blocks * 512
            except FileNotFoundError:  # a compaction has just taken it away
                continue
    return total


def link_cost() -> dict[str, float]:
    """Seconds a link costs before it is offered to ours: normal form, partition key and key of its text."""
    from scrapy_ubi.urls import normal_form, partition_key, url_key

    web = Web(1000)
    web.known += 100
    texts = web.pages(2500).texts()
    best = []
    for _ in range(5):
        start = time.process_time()
        for one in texts:
            normal = normal_form(one)
            assert normal is not None
            partition_key(normal)
            url_key("GET", normal)
        best.append((time.process_time() - start) / len(texts))
    return {"seconds": sorted(best)[2]}


def main(spec: dict[str, Any]) -> None:
    """What a child process does."""
    os.sched_setaffinity(0, {spec["core"]})
    random.seed(spec["seed"])
    if spec["system"] == "link":
        print(json.dumps({"row": link_cost()}), flush=True)
        return
    if spec.get("reopen"):
        from frontier_ours import reopen

        print(json.dumps({"row": reopen(spec)}), flush=True)
        return
    run = Run(spec)
    row = run.whole()
    if spec["disk"]:
        np.save(Path(spec["directory"]).with_suffix(".known.npy"), run.web.known)
    print(json.dumps({"row": row}), flush=True)
    os.kill(os.getpid(), 9)  # no clean end: what lies on disk now is what a kill leaves
