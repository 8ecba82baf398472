"""The one table of all UBI_* settings: a row is a setting's name, kind, default, bounds and one sentence.

`settings.py` reads and checks by it, and the reference in the docs is checked against it. Rules:

* the setting of a row is `UBI_` and its name in capitals (but `UBI_AGENT_CAPACITY` for `capacity`);
* `bounds` says to people what the check compares with: `low` and `high` inclusive, `above` exclusive;
* a row whose default is not a constant has None, and says in `default_text` what it is.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

PREFIX = "UBI_"

Kind = Literal[
    "name", "url", "path", "choice", "filters", "file", "steps", "rules", "flag", "contact", "int", "float", "seconds"
]


class Setting(NamedTuple):
    """One row of the table.

    `default` None means that the default is not a constant: `default_text` then says what it is. `low` and `high` are
    inclusive, `above` is exclusive.
    """

    name: str
    kind: Kind
    default: object
    sentence: str
    default_text: str = ""
    low: float | None = None
    high: float | None = None
    above: float | None = None
    choices: tuple[str, ...] = ()
    longer_name: str = ""

    @property
    def setting(self) -> str:
        """The name in settings.py: UBI_REPLICAS for `replicas`."""
        return PREFIX + (self.longer_name or self.name).upper()

    @property
    def shown_default(self) -> str:
        """The default, for people."""
        return self.default_text or repr(self.default)

    @property
    def bounds(self) -> str:
        """What values may be, for people: 'seconds above 0', '0 to 8', one of the choices."""
        if self.choices:
            return " or ".join(repr(choice) for choice in self.choices)
        if self.kind == "name":
            return "letters, digits and _ . : - only, at most 64 of them"
        if self.kind == "url":
            return "a redis://, rediss:// or unix:// address"
        if self.kind == "path":
            return "a directory"
        if self.kind == "flag":
            return "True or False"
        if self.kind == "filters":
            return "a list of filters"
        if self.kind == "contact":
            return "an address: http://, https:// or mailto:, without spaces and brackets"
        if self.kind == "file":
            return "a file"
        if self.kind == "steps":
            return "'safe', 'larm' or 'learned', with +step or -step after it, or a list of steps"
        if self.kind == "rules":
            return "a list of rules, or the path of a file of them"
        unit = {"int": "a whole number", "float": "a number", "seconds": "a number of seconds"}[self.kind]
        limits = [
            f"above {self.above:g}" if self.above is not None else "",
            f"of at least {self.low:g}" if self.low is not None else "",
            f"of at most {self.high:g}" if self.high is not None else "",
        ]
        return " ".join([unit, " and ".join(limit for limit in limits if limit)]).strip()


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "redis_url",
        "url",
        None,
        "The Redis or Valkey that carries the agents' mail; without it the crawl is a complete one of one agent.",
        default_text="None",
    ),
    Setting(
        "crawl",
        "name",
        None,
        "The name of the crawl: all agents that give it crawl together.",
        default_text="`<BOT_NAME>:<spider>`",
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
        "choice",
        "host",
        "What is owned as one and fetched one at a time: a host, or all hosts of a registered domain.",
        choices=("host", "domain"),
    ),
    Setting(
        "normalise",
        "steps",
        "safe",
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
        "dir",
        "path",
        None,
        "The agent's own directory, where its identifier and its part of the frontier live.",
        default_text="`JOBDIR` if set, else `.ubi/<crawl>` (a second process on the machine takes `.ubi/<crawl>/1`)",
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
        "a known one now and then, so that it is never fetched.",
        choices=("exact", "bloom"),
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
        above=0,
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
    Setting(
        "host_delay",
        "seconds",
        None,
        "Politeness: time between the end of a load from a host and the start of the next, in the whole cluster.",
        default_text="`DOWNLOAD_DELAY`",
        low=0,
        high=86_400,
    ),
    Setting(
        "delay_factor",
        "float",
        0.0,
        "Politeness: the delay of a host is so many times its last response time, where that is longer; 0: it is not.",
        low=0,
        high=1000,
    ),
    Setting(
        "max_delay",
        "seconds",
        60.0,
        "The longest delay that UBI_DELAY_FACTOR makes of a response time.",
        low=0,
        high=86_400,
    ),
    Setting(
        "polite_by_ip",
        "flag",
        False,
        "Whether hosts on one IP address, as far as one agent owns them, are loaded from as if they were one.",
    ),
    Setting(
        "max_retry_after",
        "seconds",
        600.0,
        "How long a host that answers 429 or 503 with Retry-After is left alone, at most; 0: the header is ignored.",
        low=0,
        high=86_400,
    ),
    Setting(
        "retry_after_times",
        "int",
        3,
        "How often in a row a host may ask to come back later; at the next time it is given up.",
        low=0,
        high=1_000_000,
    ),
    Setting(
        "host_failures",
        "int",
        5,
        "Time-outs and connection errors in a row that exclude a host for a while; 0: none do.",
        low=0,
        high=1_000_000,
    ),
    Setting(
        "host_pause",
        "seconds",
        60.0,
        "How long a host is excluded at first; each time that it still does not answer, twice as long, up to an hour.",
        low=0,
        high=86_400,
    ),
    Setting(
        "host_tries",
        "int",
        3,
        "How often a host is excluded before it is given up.",
        low=0,
        high=1000,
    ),
    Setting(
        "flush_interval",
        "seconds",
        0.2,
        "Time between two flushes: what was found is written down and sent, mail is read.",
        above=0,
        high=60,
    ),
    Setting(
        "flush_records",
        "int",
        1000,
        "Records that make a flush come before its time.",
        low=1,
        high=1_000_000,
    ),
    Setting(
        "handoff_timeout",
        "seconds",
        60.0,
        "How long a new owner waits for the former one to hand a host over, before it fetches at the risk of "
        "duplicates.",
        above=0,
        high=86_400,
    ),
    Setting(
        "leave_timeout",
        "seconds",
        60.0,
        "How long an agent that leaves tries to hand on all it holds; what is left stays on its disk.",
        low=0,
        high=86_400,
    ),
    Setting(
        "resend_timeout",
        "seconds",
        5.0,
        "A letter that is not acknowledged after so long is sent again.",
        above=0,
        high=3600,
    ),
    Setting(
        "window",
        "int",
        8,
        "Letters in a lane that may wait for their acknowledgement at once; bounds the mail that Redis holds.",
        low=1,
        high=1000,
    ),
    Setting(
        "letter_records",
        "int",
        500,
        "Records in one letter, at most.",
        low=1,
        high=100_000,
    ),
    Setting(
        "outbox_records",
        "int",
        200_000,
        "Records that wait in the outbox before the agent fetches no more until some are acknowledged.",
        low=1,
        high=100_000_000,
    ),
    Setting(
        "suppressed_keys",
        "int",
        1_000_000,
        "Keys of foreign URLs remembered as known to their owners, so that they are not sent again.",
        low=0,
        high=1_000_000_000,
    ),
    Setting(
        "max_letter_bytes",
        "int",
        1_000_000,
        "The longest letter that is sent or accepted; a request that would not fit cannot leave the agent.",
        low=16_384,
        high=256_000_000,
    ),
    Setting(
        "max_url_length",
        "int",
        4096,
        "The longest URL that is kept, in characters; longer ones are dropped and counted.",
        low=64,
        high=65_536,
    ),
    Setting(
        "host_max_pages",
        "int",
        0,
        "Pages of a host that are done before it is ended (PLmax); 0: any number.",
        low=0,
        high=1_000_000_000_000,
    ),
    Setting(
        "host_max_known",
        "int",
        0,
        "URLs of a host that are known before no more of it are taken (TTmax); 0: any number.",
        low=0,
        high=1_000_000_000_000,
    ),
    Setting(
        "host_max_depth",
        "int",
        0,
        "How many links deeper than the first page of a host its pages may be; 0: any number.",
        low=0,
        high=1_000_000,
    ),
    Setting(
        "host_max_seconds",
        "seconds",
        0.0,
        "Time after the first load of a host at which it is ended (TDLmax); 0: never.",
        low=0,
        high=315_360_000,
    ),
    Setting(
        "host_max_iterations",
        "int",
        0,
        "Iterations of a host, of UBI_HOST_LOAD_TAKE pages each, before it is ended (Imax); 0: any number.",
        low=0,
        high=1_000_000_000_000,
    ),
    Setting(
        "host_stable_iterations",
        "int",
        0,
        "Iterations in a row without a new URL of the host before it is ended (TSTmax); 0: any number.",
        low=0,
        high=1_000_000,
    ),
    Setting(
        "host_load_take",
        "int",
        1,
        "Pages in an iteration of a host (LT).",
        low=1,
        high=1_000_000,
    ),
    Setting(
        "max_load_seconds",
        "seconds",
        0.0,
        "The longest that the load of a page may take (TLLmax); 0: as long as DOWNLOAD_TIMEOUT says.",
        low=0,
        high=86_400,
    ),
    Setting(
        "crawl_max_pages",
        "int",
        0,
        "Pages that all agents together load before the crawl ends; 0: any number.",
        low=0,
        high=1_000_000_000_000_000,
    ),
    Setting(
        "crawl_max_known",
        "int",
        0,
        "URLs known to all agents together before no more are taken; 0: any number.",
        low=0,
        high=1_000_000_000_000_000,
    ),
    Setting(
        "crawl_max_depth",
        "int",
        0,
        "How many links from the seeds pages may be; 0: any number.",
        low=0,
        high=1_000_000,
    ),
    Setting(
        "crawl_max_seconds",
        "seconds",
        0.0,
        "How long the crawl may run before it ends; 0: any time.",
        low=0,
        high=315_360_000,
    ),
    Setting(
        "bot_page",
        "contact",
        None,
        "The address of a page that explains the bot to webmasters; the User-Agent names it.",
        default_text="None",
    ),
    Setting(
        "max_body",
        "int",
        200_000,
        "Bytes of a page that are loaded and kept: of a larger one only the beginning; 0 keeps all.",
        low=0,
        high=2_000_000_000,
    ),
    Setting(
        "max_body_types",
        "choice",
        "html",
        "What UBI_MAX_BODY cuts: HTML, of which a beginning is of use, or everything that callbacks get.",
        choices=("html", "all"),
    ),
    Setting(
        "error_log",
        "file",
        None,
        "The file to which every unanticipated error is written, with its URL, callback and traceback.",
        default_text="`errors.log` in the agent's directory",
    ),
    Setting(
        "error_burst",
        "int",
        50,
        "So many unanticipated errors within UBI_ERROR_BURST_SECONDS stop the agent; 0: none do.",
        low=0,
        high=1_000_000,
    ),
    Setting(
        "error_burst_seconds",
        "seconds",
        60.0,
        "The time in which UBI_ERROR_BURST errors are a burst.",
        above=0,
        high=86_400,
    ),
    Setting(
        "fast",
        "flag",
        False,
        "Whether pages are fetched by a lean HTTP/1.1 download handler in place of Scrapy's.",
    ),
    Setting(
        "filters",
        "filters",
        (),
        "The filters that links have to pass, in their order.",
        default_text="[]",
    ),
    Setting(
        "filter_log",
        "file",
        None,
        "The file to which every link that a filter refuses is written, with the page that it was found on.",
        default_text="None",
    ),
    Setting(
        "foreign_downloads",
        "choice",
        "refuse",
        "What to do with downloads that bypass the scheduler (media files) and whose host another agent owns.",
        choices=("refuse", "allow"),
    ),
    Setting(
        "robots_ttl",
        "seconds",
        86_400.0,
        "How long a robots.txt that was read is obeyed before it is fetched again.",
        low=1,
        high=31_536_000,
    ),
    Setting(
        "robots_timeout",
        "seconds",
        15.0,
        "How long the load of a robots.txt may take; DOWNLOAD_TIMEOUT where that is less.",
        above=0,
        high=3600,
    ),
    Setting(
        "robots_give_up",
        "seconds",
        120.0,
        "How long a robots.txt that cannot be read is tried, the host's pages waiting, before they fail.",
        low=0,
        high=31_536_000,
    ),
    Setting(
        "max_crawl_delay",
        "seconds",
        60.0,
        "The longest Crawl-delay of a robots.txt that is honoured; longer ones count as this; 0 ignores them.",
        low=0,
        high=86_400,
    ),
    Setting(
        "sitemaps",
        "int",
        0,
        "How many URLs are taken of the sitemaps that a robots.txt names; 0: none of them is fetched.",
        low=0,
        high=1_000_000,
    ),
)
