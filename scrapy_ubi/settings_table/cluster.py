"""Which crawl an agent takes part in, what it owns, what it keeps, and when it counts as dead."""

from __future__ import annotations

from scrapy_ubi.settings_table.row import Setting

ROWS: tuple[Setting, ...] = (
    Setting(
        "enabled",
        "flag",
        True,
        "Whether the add-on does anything; False leaves the crawl to plain Scrapy, to compare the two.",
    ),
    Setting(
        "redis_url",
        "url",
        None,
        "The Redis or Valkey that carries the agents' mail; without it the crawl is a complete one of one agent.",
        default_text="None",
    ),
    Setting(
        "redis_credentials",
        "function",
        "",
        "The dotted path of a function that gives user and password of the Redis, for each new connection.",
    ),
    Setting(
        "redis_wait",
        "float",
        10.0,
        "How long a starting agent waits for a Redis that is away, in seconds; one that has joined waits as long as it "
        "takes.",
        low=0,
        high=86_400,
    ),
    Setting(
        "crawl",
        "name",
        None,
        "The name of the crawl: all agents that give it crawl together.",
        default_text="`<BOT_NAME>:<spider>`, and `:` with 8 digits for the spider's arguments if it has any",
    ),
    Setting(
        "mixed_agents",
        "flag",
        False,
        "Agents whose spiders were started with other arguments, or are of other classes, may share a crawl.",
    ),
    Setting(
        "again",
        "choice",
        "always",
        "What a start after the end of the crawl does: 'always' begins a new one, 'never' says that it is finished, "
        "and ends.",
        choices=("always", "never"),
    ),
    Setting(
        "serve",
        "flag",
        False,
        "The crawl waits for URLs from outside (`scrapy ubi seed`) when nothing is left to fetch, and does not end.",
    ),
    Setting(
        "seed_list",
        "redis_key",
        "",
        "The key of a Redis list, set or sorted set of start URLs, as scrapy-redis has it, that the agents take; with "
        "`UBI_SERVE`.",
    ),
    Setting(
        "secret",
        "secret",
        "",
        "What all agents of a crawl, and the commands that change it, sign with: anything else in Redis is refused.",
    ),
    Setting(
        "agent_id",
        "name",
        None,
        "The identifier of this agent; it alone decides which hosts the agent owns.",
        default_text="made once, kept in the agent's directory",
    ),
    Setting(
        "capacity",
        "float",
        1.0,
        "How much of the web this agent takes, relative to the others: 2 owns twice the hosts of 1.",
        above=0,
        high=1000,
        longer_name="agent_capacity",
    ),
    Setting(
        "replicas",
        "int",
        200,
        "Points of an agent of capacity 1 on the ring: more balance hosts better, and make joining a little slower.",
        low=1,
        high=100_000,
    ),
    Setting(
        "partition",
        "partition",
        "host",
        "What is owned as one and fetched one at a time: a host, all hosts of a registered domain, or what a function "
        "of a request names as its host.",
    ),
    Setting(
        "normalise",
        "steps",
        "scrapy",
        "Which URLs count as one: a preset of steps that make the normal form, by which URLs are compared and not "
        "fetched.",
    ),
    Setting(
        "host_rules",
        "rules",
        None,
        "Which host names are names of one host: rules for beginnings, ends and whole names, or the path of a file of "
        "them as LARM reads it.",
        default_text="None",
    ),
    Setting(
        "host_shards",
        "shards",
        None,
        "Giant hosts, each cut into so many shards, which agents own and fetch side by side; delays are as many times "
        "as long, so that the site feels the same rate, unless it is 'fast'.",
        default_text="None",
    ),
    Setting(
        "dir",
        "path",
        None,
        "The agent's own directory, where its identifier and its part of the frontier live.",
        default_text="`JOBDIR` if set, else `.ubi/<crawl>` in the project's root (a second process on the machine "
        "takes `.ubi/<crawl>/1`)",
    ),
    Setting(
        "memory_mb",
        "int",
        256,
        "Megabytes for all caches of the agent together; the table of known URLs is beside that, a mapped file "
        "of about 10 bytes a URL.",
        low=32,
        high=1_000_000,
    ),
    Setting(
        "seen",
        "choice",
        "exact",
        "How known URLs are remembered: exactly, or as by a Bloom filter, in half the bytes, which takes a new URL for "
        "a known one at times, so that it is never fetched.",
        choices=("exact", "bloom"),
    ),
    Setting(
        "store_engine",
        "choice",
        "auto",
        "What keeps the agent's directory: RocksDB, SQLite, or the one that has written it, RocksDB where nothing is "
        "there yet and it can be imported.",
        choices=("auto", "rocksdb", "sqlite"),
    ),
    Setting(
        "replication",
        "int",
        1,
        "How many successors keep a copy of a host: as many agents may be lost at once without losing a URL.",
        low=0,
        high=8,
    ),
    Setting(
        "heartbeat_interval",
        "seconds",
        1.0,
        "Time between two beats of an agent.",
        low=0.01,  # each asks Redis, which all agents share
        high=3600,
    ),
    Setting(
        "lease_timeout",
        "seconds",
        10.0,
        "An agent whose last acknowledged beat is older starts no fetch; more than a heartbeat, less than the failure "
        "timeout.",
        above=0,
        high=3600,
    ),
    Setting(
        "start_wait",
        "seconds",
        None,
        "How long an agent that finds no other at work waits before it fetches; 0, for development: not at all.",
        default_text="`UBI_LEASE_TIMEOUT` and a little, 11.25 with the default settings",
        low=0,
        high=7200,
    ),
    Setting(
        "failure_timeout",
        "seconds",
        15.0,
        "An agent whose beat has not changed for so long is dead to the others, and its hosts go to their next agents.",
        above=0,
        high=7200,
    ),
    Setting(
        "stall_timeout",
        "seconds",
        60.0,
        "An agent whose event loop has not turned for so long stops its own beats, as it does no work.",
        above=0,
        high=86_400,
    ),
)
