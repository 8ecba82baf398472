"""A made-up crawl of as many agents and hosts as wanted: documents as docs/reference/web-api.md has them.

Rules of this module: figures come from a seed and the time since the start, so they live; what is changed is kept,
and shown. Names and texts of the crawl may be hostile: they are what a web can hold.
"""

from __future__ import annotations

import math
import random
import secrets
import time
from typing import Any

Answer = dict[str, Any]
TOKEN = "secret"
HOSTILE = "<img src=x onerror=window.hurt=1>"
SCRIPT = "</script><script>window.hurt=1</script>"
STATES = ("crawling", "crawling", "crawling", "crawling", "waiting", "crawling", "leaving", "blocked", "dead", "silent")
REASONS = {
    "http/404": 812,
    "exception/DownloadTimeoutError": 304,
    "robots": 96,
    "host/dead": 51,
    "http/500": 17,
    "callback/KeyError": 4,
}
LIVE = (
    (
        "UBI_HOST_DELAY",
        "1.0",
        True,
        "seconds",
        "Seconds between two pages of a host, at least.",
    ),
    ("UBI_HOST_LIMITS", None, True, "int", "Pages of a host, at most."),
    ("UBI_CRAWL_LIMITS", None, False, "int", "Pages of the crawl, at most."),
    (
        "CONCURRENT_REQUESTS",
        "16",
        False,
        "int",
        "How many requests an agent has under way at once, of all hosts together.",
    ),
    ("LOG_LEVEL", "INFO", False, "choice", "From which level on the log of an agent's process says something."),
)


def _entry(url: str, depth: int) -> Answer:
    return {"url": url, "key": "00000000000000aa", "depth": depth, "priority": 0}


class MadeUp:
    """The crawl. `agents` and `hosts` are how many; `hostile` gives some of them names that are markup; `long` gives
    all of them names as long as they can be met, without a place to break; `age`: seconds that it has run."""

    def __init__(
        self,
        agents: int = 4,
        hosts: int = 4_200,
        hostile: bool = False,
        seed: int = 7,
        token: str = TOKEN,
        long: bool = False,
        age: float = 5_400.0,
    ) -> None:
        self.random = random.Random(seed)
        self.token = token
        self.begun = time.time() - age
        self.hostile = hostile
        self.long = long
        self.hosts = hosts
        self.names = [f"lab-{number}" for number in range(1, agents + 1)]
        if hostile:
            self.names[0] = HOSTILE
        self.paused = False
        self.warnings: list[str] = []
        self.changed: list[Answer] = []
        self.answers: list[Answer] = []
        if long:
            self.names = [f"crawler{number:03}".ljust(60, "w") for number in range(1, agents + 1)]
            self._say_long()
        self.states = {
            name: STATES[number % len(STATES)] if agents > 4 else "crawling" for number, name in enumerate(self.names)
        }
        self.capacity = {name: 2.0 if number % 3 == 1 else 1.0 for number, name in enumerate(self.names)}
        self.told: list[tuple[str, Answer]] = []
        self.events: list[Answer] = []
        for number, name in enumerate(self.names[:6]):
            self.happen("joined", name, f"Agent {name} has joined.", self.begun + 3 + number)
        self.happen("settled", None, "All agents agree who takes part, and have handed over.", self.begun + 12)

    def _say_long(self) -> None:
        seed: Answer = {"seed": "1-1", "time": time.time(), "said": "OK", "why": "", "url": "", "name": "order" * 40}
        url = f"http://{self.host_name(1)}/{'path' * 60}"
        self.answers += [
            {**seed, "url": url},
            {**seed, "seed": "1-2", "said": "REFUSED", "why": "why" * 90, "name": ""},
        ]
        setting: Answer = {"name": "UBI_HOST_DELAY", "host": self.host_name(1), "value": 4.0, "n": 1}
        self.changed.append({**setting, "who": "w" * 60, "when": time.time()})

    def happen(self, what: str, agent: str | None, text: str, when: float | None = None) -> None:
        self.events.append(
            {"id": len(self.events) + 1, "time": when or time.time(), "what": what, "agent": agent, "text": text}
        )

    def die(self, name: str) -> None:
        self.states[name] = "dead"
        self.happen("dead", name, f"The others have declared agent {name} dead.")

    # ---- documents

    @property
    def name(self) -> str:
        if self.long:
            return "m" * 80 + ":" + "w" * 80
        return f"shop:{HOSTILE}" if self.hostile else "shop:prices"

    def about(self) -> Answer:
        return {
            "version": "0.1.0",
            "crawl": self.name,
            "source": "redis",
            "shown": "redis://lab:6379/0",
            "agent": None,
            "changes": bool(self.token),
            "token_to_read": False,
            "verbs": [],
            "sorts": ["queued", "slowest", "done", "failed", "next", "host"],
        }

    def owner(self, url: str) -> Answer:
        others = {"successors": self.names[1:2], "order": self.names[:9]}
        return {"url": url, "host": "shop.example", "partition": "host", "owner": self.names[0], **others}

    def crawl(self) -> Answer:
        now = time.time()
        rows = [self.row(name, now) for name in self.names]
        rows.sort(key=lambda row: (row["state"] not in ("dead", "silent", "blocked"), row["agent"]))
        names = ("pages", "done", "unique", "known", "queued", "in_flight", "hosts", "forwarded")
        totals = {name: sum(row[name] for row in rows) for name in names}
        pace = sum(row["pages_per_second"] for row in rows)
        return {
            "time": now,
            "crawl": self.name,
            "lives": True,
            "state": "running",
            "run": "5f2c",
            "finished": False,
            "paused": self.paused,
            "arguments": [{"section": "world"}],
            "views": 1,
            "settled": True,
            "unreadable": 0,
            "warnings": self.warnings,
            "measures": {
                "agents": len(rows),
                "totals": totals,
                "overlap": 0.0,
                "overhead": 1.42,
                "balance_pages": {"highest": 1.04, "deviation": 0.03},
                "balance_hosts": {"highest": 1.05, "deviation": 0.02},
                "failed": REASONS,
                "noted": {"duplicates/exact": 120, "duplicates/near": 44},
                "joined": {},
                "seconds": now - self.begun,
                "pages_per_second": pace,
                "average_pages_per_second": pace * 0.93,
            },
            "remaining": self.remaining(),
            "agents_total": len(rows),
            "agents": rows[:1000],
            "events": self.events[-100:],
        }

    def remaining(self) -> Answer:
        """As `cli.monitor.ahead` says it."""
        slowest = self.host_row(3)
        host = slowest["host"]
        more = f"The slowest host: {host}, of which 3,416 URLs wait, one each 10.0 s: 9 h 29 min at least."
        first = (
            "Paused: 3,416 URLs wait until somebody resumes the crawl." if self.paused else "About 9 h 29 min to go."
        )
        return {
            "kind": "about",
            "seconds": slowest["needs"],
            "host": {"host": host},
            "sentences": [first] if self.paused else [first, more],
        }

    def row(self, name: str, now: float) -> Answer:
        number = self.names.index(name)
        alive = self.states[name] not in ("dead", "left")
        spent = now - self.begun
        weight = self.capacity[name] / sum(self.capacity.values())
        share = weight * (1 + 0.06 * math.sin(number * 2.1))
        pace = (
            48.0 * share * (1 + 0.1 * math.sin(now / 7 + number))
            if self.states[name] not in ("dead", "left", "silent") and not self.paused
            else 0.0
        )
        pages = int(share * 48 * spent)
        return {
            "agent": name,
            "state": "paused" if self.paused and alive else self.states[name],
            "working": self.states[name] not in ("dead", "silent", "left"),
            "incarnation": f"{number:08x}c3a1",
            "replicas": int(200 * self.capacity[name]),
            "inbox": (number * 7) % 5,
            "dead_letters": 1 if number == 1 else 0,
            "age": 1.2,
            "unreadable": [],
            "view": "9f2ce01a77",
            "capacity": self.capacity[name],
            "share": share if alive else None,
            "fair": weight if alive else None,
            "pages": pages,
            "done": pages + 40,
            "unique": pages + 31,
            "known": int(pages * 1.35),
            "queued": int(share * max(0, 96_000 - 9 * spent)),
            "in_flight": 4 if pace else 0,
            "hosts": int(share * self.hosts),
            "forwarded": pages * 2,
            "outbox": 12,
            "failed": int(1284 * share),
            "pages_per_second": pace,
            "seconds": spent,
            "spider": "w" * 80 if self.long else "prices",
            "machine": f"crawl{number + 1}.{'m' * 60 if self.long else 'lab'}.example",
            "pid": 4100 + number,
            "version": "0.1.0",
            "started": self.begun + number,
            "live": "",
        }

    def history(self) -> Answer:
        now = time.time()
        points = []
        age = min(3600.0, now - self.begun)
        step_of = max(2.0, age / 360)
        for step in range(int(age / step_of)):
            at = now - age + step_of * step
            pace = (
                48 * (1 + 0.14 * math.sin(at / 190) + 0.07 * math.sin(at / 23)) if abs(at - now + 1500) > 90 else 12.0
            )
            points.append([at, int((at - self.begun) * 48), pace, max(0, 96_000 - 9 * (at - self.begun)), 800 + step])
        return {
            "crawl": self.name,
            "source": "agents",
            "step": step_of,
            "fields": ["time", "pages", "pages_per_second", "queued", "failed"],
            "points": points,
            "events": [{"time": self.begun + 60, "what": "dead", "agent": "lab-0", "text": "dead: agent lab-0"}],
            "missing": {},
        }

    def ring(self) -> Answer:
        draw = random.Random(3)
        names = [name for name in self.names if self.states[name] not in ("dead", "left")]
        rows = [self.row(name, time.time()) for name in names]
        sectors: list[int] = []
        while len(sectors) < 720:
            sectors += [draw.choices(range(len(names)), [self.capacity[name] for name in names])[0]] * draw.randint(
                1, 4
            )
        keep = ("agent", "replicas", "capacity", "share", "fair", "hosts")
        return {
            "crawl": self.name,
            "replicas": sum(row["replicas"] for row in rows),
            "agents": [{name: row[name] for name in keep} for row in rows],
            "sectors": sectors[:720],
        }

    def host_name(self, number: int) -> str:
        if self.hostile and number % 7 == 0:
            return f"{HOSTILE}.{number}.example"
        if self.long:
            return f"h{number:06}".ljust(62, "w") + ("." + "m" * 62) * 2 + ".example-shop"
        return f"{('shop', 'news', 'www', 'blog')[number % 4]}{number}.site{number % 97}.example"

    def host_row(self, number: int) -> Answer:
        draw = random.Random(number)
        state = draw.choice(("busy", "waiting", "waiting", "idle", "resting", "excluded", "postponed: retry-after"))
        queued = max(0, int(9_000 / (1 + number) ** 0.7) + draw.randint(-3, 9)) if state != "idle" else 0
        row = {
            "agent": self.names[number % len(self.names)],
            "host": self.host_name(number),
            "state": state,
            "role": "owner",
            "queued": queued,
            "done": draw.randint(10, 4000),
            "failed": draw.choice((0, 0, 0, 2, 31)),
            "next": draw.choice((0, 0.4, 12.0)) if queued else None,
            "delay": draw.choice((0.5, 1.0, 2.0, 10.0)),
            "error": draw.choice(
                ("", "", "", "exception/DownloadTimeoutError", SCRIPT if self.hostile else "http/503")
            ),
            "learned": "",
            "loads": "",
        }
        return {**row, "needs": queued * row["delay"]}

    def host_list(self, query: Any) -> Answer:
        limit, first = int(query.get("limit", 50)), int(query.get("after") or 0)
        wanted = query.get("search", "")
        found = [number for number in range(min(self.hosts, 3_000)) if wanted in self.host_name(number)]
        if query.get("sort") == "slowest":
            made = {number: self.host_row(number) for number in found}
            found.sort(key=lambda number: -made[number]["needs"])
        total = self.hosts if not wanted else len(found)
        rows = [self.host_row(number) for number in found[first : first + limit]]
        after = str(first + limit) if first + limit < len(found) else None
        return {
            "crawl": self.name,
            "lives": True,
            "missing": {},
            "sort": query.get("sort", "queued"),
            "total": total,
            "after": after,
            "hosts": rows,
        }

    def host(self, name: str) -> Answer:
        number = next((number for number in range(min(self.hosts, 3_000)) if self.host_name(number) == name), None)
        if number is None:
            return {"crawl": self.name, "lives": True, "missing": {}, "host": name, "owner": None, "agents": []}
        row = self.host_row(number)
        delay = next(
            (one["value"] for one in self.changed if one["host"] == name and one["name"] == "UBI_HOST_DELAY"),
            row["delay"],
        )
        mine = {
            **row,
            "delay": float(delay),
            "notes": {
                "delay": {"robots": 2.0},
                "robots": {f"http://{name}": {"t": time.time() - 3000, "d": 2.0, "r": "Disallow: /cart"}},
                **(
                    {"until": [time.time() + 40, "retry-after"], "health": [2, 0]}
                    if "postponed" in row["state"]
                    else {}
                ),
            },
            "queue": [
                _entry(f"http://{name}/page/{n}?q={'x' * (n * 9)}", 2 + n % 3) for n in range(min(12, row["queued"]))
            ],
            "in_flight": [{"url": f"http://{name}/now"}],
            "failures": [
                {**_entry(f"http://{name}/gone/{n}", 3), "reason": "http/404", "when": time.time() - 400 * (n + 1)}
                for n in range(min(5, row["failed"]))
            ],
        }
        copy = {**mine, "role": "copy", "agent": self.names[(number + 1) % len(self.names)]}
        return {
            "crawl": self.name,
            "lives": True,
            "missing": {},
            "host": name,
            "owner": row["agent"],
            "agents": [mine, copy],
        }

    def failed(self, query: Any) -> Answer:
        reason, host = query.get("reason", ""), query.get("host", "")
        reasons = {
            name: number
            for name, number in REASONS.items()
            if not reason or name == reason or name.startswith(reason + "/")
        }
        reasons = {name: max(1, number // 40) for name, number in reasons.items()} if host else reasons
        rows = []
        for number in range(min(sum(reasons.values()), int(query.get("limit", 50)))):
            why = list(reasons)[number % len(reasons)]
            at = host or self.host_name(number)
            rows.append(
                {
                    "agent": self.names[number % len(self.names)],
                    "url": f"http://{at}/old/{number}",
                    "host": at,
                    "key": f"{number:016x}",
                    "reason": why,
                    "when": time.time() - 37 * number,
                    "depth": 3,
                    "priority": 0,
                }
            )
        return {
            "crawl": self.name,
            "lives": True,
            "missing": {},
            "total": sum(reasons.values()),
            "reasons": reasons,
            "failed": rows,
        }

    def url(self, url: str) -> Answer:
        common = {
            "crawl": self.name,
            "lives": True,
            "missing": {},
            "url": url,
            "key": "8f2e9c0011aa34d1",
            "fingerprinter": None,
            "host": "shop.example",
            "owner": self.names[0],
            "successors": self.names[1:2],
            "filter": None,
        }
        if "gone" in url or "old" in url:
            found = {
                "where": "failed",
                "agent": self.names[0],
                "reason": "http/404",
                "when": time.time() - 700,
                "depth": 3,
                "priority": 0,
                "before": None,
                "status": None,
            }
        elif "new" in url:
            found = {
                "where": "unknown",
                "agent": None,
                "reason": None,
                "when": None,
                "depth": None,
                "priority": None,
                "before": None,
                "status": None,
            }
        else:
            found = {
                "where": "queued",
                "agent": self.names[0],
                "reason": None,
                "when": None,
                "depth": 2,
                "priority": 0,
                "before": 41,
                "status": None,
            }
        agents = [
            {"agent": self.names[0], "where": found["where"], "role": "owner", "state": "waiting"},
            {"agent": self.names[-1], "where": "queued", "role": "copy"},
        ]
        return {**common, **found, "agents": agents if found["agent"] else []}

    def inbox(self, agent: str) -> Answer:
        letters = []
        for number in range((self.names.index(agent) * 7) % 5):
            urls = [f"http://{self.host_name(n)}/found/{n}" for n in range(6)]
            discovered = [{"key": f"{n:016x}", "url": url, "depth": 4, "priority": 0} for n, url in enumerate(urls)]
            deltas = [
                {
                    "host": self.host_name(number + n),
                    "discovered": discovered,
                    "done": [f"{n:016x}"] * n,
                    "redo": [],
                    "notes": None,
                    "offer": None,
                }
                for n in range(5)
            ]
            letters.append(
                {
                    "id": f"{int(time.time() * 1000) - 900 * number}-0",
                    "time": time.time() - 0.9 * number,
                    "from": self.names[0],
                    "lane": "discovery" if number % 2 else "state",
                    "seq": 1200 + number,
                    "view": "9f2c",
                    "size": 2_311,
                    "records": 34,
                    "hosts": {},
                    "unreadable": None,
                    "head": None,
                    "deltas": deltas,
                }
            )
        return {"crawl": self.name, "agent": agent, "total": len(letters), "letters": letters}

    def dead(self, agent: str) -> Answer:
        rows = [
            {
                "id": "1764249588000-0",
                "time": time.time() - 86_000,
                "reason": "the letter is not JSON",
                "sender": "lab-9",
                "size": 812,
                "head": SCRIPT + '{"v": 1, "lane": ',
            }
        ]
        return {
            "crawl": self.name,
            "agent": agent,
            "total": 1,
            "dead": rows if self.names.index(agent) == 1 else [],
        }

    def items(self) -> Answer:
        texts = [f'{{"url": "http://{self.host_name(n)}/{n}", "title": "{SCRIPT}"}}' for n in range(5)] + ["w" * 900]
        items = [{"agent": self.names[-1], "item": text, "bytes": len(text), "cut": False} for text in texts]
        return {"crawl": self.name, "looked": ".ubi", "missing": {}, "items": items, "hint": None}

    def outputs(self) -> Answer:
        rows = []
        for number, name in enumerate(self.names[:20]):
            for store, size in (("items", 8_123_400), ("warc", 1_120_300_000), ("links", 94_000_000)):
                rows.append(
                    {
                        "agent": name,
                        "run": "5f2c",
                        "store": store,
                        "parts": 3 + number % 3,
                        "open_parts": 1,
                        "bytes": size + number * 777,
                        "pages": size // 900 if store == "items" else None if store == "warc" else 12_000,
                    }
                )
        joined = {"learned": 12, "sort-query": 311}
        return {
            "crawl": self.name,
            "looked": ".ubi/shop:prices",
            "missing": {self.names[0]: f"It runs on the machine {'m' * 60}: collect its outputs there."},
            "outputs": rows,
            "duplicates": {
                "joined": joined,
                "examples": {"learned": [f"http://a.example/?{HOSTILE}", "http://a.example/"]},
                "overlap": 0.0,
                "copies": [
                    {"url": f"http://a.example/print/{HOSTILE}", "kind": "near", "first": "http://a.example/1"},
                    {"url": "http://a.example/2?session=1", "kind": "exact", "first": None},
                ],
            },
        }

    def settings(self) -> Answer:
        live = [
            {
                "name": name,
                "value": value,
                "host": host,
                "kind": kind,
                "choices": ["INFO", "DEBUG"] if kind == "choice" else [],
                "help": text,
            }
            for name, value, host, kind, text in LIVE
        ]
        return {
            "crawl": self.name,
            "mark": "2.a1",
            "changed": self.changed,
            "behind": [],
            "refused": {},
            "live": live,
        }

    # ---- changes

    def change(self, verb: str, body: Answer) -> Answer:
        if verb == "token":
            return {}
        self.told.append((verb, body))
        host = body.get("host", "")
        entry = {"host": host, "n": 1, "who": "web@lab", "when": time.time()}
        if verb in ("pause", "resume") and not host:
            self.paused = verb == "pause"
            self.happen(
                "paused" if self.paused else "resumed", None, f"The crawl was {'paused' if self.paused else 'resumed'}."
            )
        if verb == "pause":
            self.changed.append({**entry, "name": "pause", "value": True})
        if verb == "resume":
            self.changed = [one for one in self.changed if (one["name"], one["host"]) != ("pause", host)]
        if verb == "set":
            for name, value in body["values"].items():
                self.changed = [one for one in self.changed if (one["name"], one["host"]) != (name, host)] + [
                    {**entry, "name": name, "value": value}
                ]
        if verb == "unset":
            self.changed = [one for one in self.changed if one["host"] != host or one["name"] not in body["names"]]
        if verb == "drain":
            self.states[body["agent"]] = "leaving"
            return {
                "crawl": self.name,
                "agent": body["agent"],
                "incarnation": "1",
                "state": "asked",
                "seconds": 0.0,
            }
        if verb == "requeue":
            return {"crawl": self.name, "requeued": 12, "unfit": 0, "agents": {}}
        if verb == "seeds":
            answers = [
                {
                    "url": url,
                    "said": "OK" if url.startswith("http") else "REFUSED",
                    "why": "" if url.startswith("http") else "it is no URL",
                }
                for url in body["urls"]
            ]
            self.answers = [
                {**one, "seed": secrets.token_hex(4), "time": time.time()} for one in answers
            ] + self.answers
            return {"crawl": self.name, "sent": len(answers), "unanswered": 0, "answers": answers}
        return {"crawl": self.name, "mark": "2.a1", "set": [], "behind": [], "seconds": 0.4}
