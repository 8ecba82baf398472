"""Every metric: name, kind, labels, meaning, and who tells it. The reference (docs/reference/metrics.md) and the
dashboard are checked against it.

Rules of this module:

* Names are Prometheus's: a base unit at the end (`_seconds`, `_bytes`) or what is counted, and `_total` for counters.
* Each has the labels `crawl` and `agent` before its own, but for what is said of the whole crawl (`OF_THE_CRAWL`).
* A metric told by both says the same at the agent and of it at the page of all agents.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Kind = Literal["counter", "gauge", "histogram"]
Teller = Literal["both", "agent", "all"]  # an agent's own page, the page of all agents, or both


class Metric(NamedTuple):
    """One row: `meaning` has no full stop, as its line of HELP."""

    name: str
    kind: Kind
    meaning: str
    labels: tuple[str, ...] = ()
    teller: Teller = "both"


# Counters and gauges that are a counter of the profile (`agent.profile.profile.COUNTERS`).
OF_COUNTERS: Mapping[str, str] = {
    "pages": "ubi_pages_total",
    "done": "ubi_done_urls_total",
    "unique": "ubi_unique_urls",
    "known": "ubi_known_urls",
    "queued": "ubi_queue_urls",
    "in_flight": "ubi_loads_in_progress",
    "hosts_complete": "ubi_complete_hosts",
    "body_bytes": "ubi_limited_bytes_total",
    "outbox": "ubi_outbox_records",
    "links": "ubi_links_total",
    "forwarded": "ubi_forwarded_urls_total",
    "suppressed": "ubi_suppressed_urls_total",
    "received": "ubi_received_urls_total",
    "refused": "ubi_refused_records_total",
    "replicated": "ubi_replicated_records_total",
    "letters_sent": "ubi_sent_letters_total",
    "bytes_sent": "ubi_sent_letters_bytes_total",
    "resent": "ubi_resent_letters_total",
    "dead_letters": "ubi_dead_letters_total",
    "untravelled": "ubi_untravelled_requests_total",
    "mail_put_off": "ubi_put_off_mail_total",
    "writes_refused": "ubi_refused_exchanges_total",
    "fences": "ubi_fences_total",
    "rejoins": "ubi_rejoins_total",
    "redone": "ubi_redone_pages_total",
    "visited": "ubi_repeated_visits_total",
    "heavy_rows": "ubi_unvisitable_pages_total",
    "handoff_timeouts": "ubi_handoff_timeouts_total",
    "lost_agents": "ubi_lost_agents",
    "received_bytes": "ubi_received_bytes_total",
}

METRICS: tuple[Metric, ...] = (
    # who and how
    Metric("ubi_agent_info", "gauge", "Always 1; the labels say what it is", ("version", "incarnation", "spider")),
    Metric("ubi_agent_state", "gauge", "1 for the state that the agent is in, 0 for all others", ("state",)),
    Metric("ubi_agent_start_time_seconds", "gauge", "When the agent was started, in unix time"),
    Metric("ubi_agent_capacity", "gauge", "How much of the web the agent takes, relative to the others"),
    Metric("ubi_profile_age_seconds", "gauge", "Time since the agent published its profile", (), "all"),
    Metric("ubi_view_settled", "gauge", "1 when the agent has handed over all it holds under its view of the group"),
    Metric("ubi_view_complete", "gauge", "1 when all living agents have one view, have settled, and hold up no host"),
    Metric("ubi_pending_hosts", "gauge", "Hosts that the agent no longer owns and cannot let go yet"),
    # pages
    Metric("ubi_pages_total", "counter", "Responses fetched"),
    Metric("ubi_done_urls_total", "counter", "URLs finished: fetched and parsed, or failed permanently"),
    Metric("ubi_received_bytes_total", "counter", "Bytes of responses that the present process has received"),
    Metric("ubi_limited_bytes_total", "counter", "Bytes of bodies received, where a limit counts them"),
    Metric("ubi_responses_total", "counter", "Responses that the present process has received, by class", ("class",)),
    Metric("ubi_failures_total", "counter", "URLs that failed after all retries, by reason", ("reason",)),
    Metric("ubi_notes_total", "counter", "What else happened, by the first word of its name", ("name",)),
    Metric("ubi_loads_in_progress", "gauge", "Requests handed to Scrapy and not finished"),
    # what is known
    Metric("ubi_queue_urls", "gauge", "URLs that wait to be fetched"),
    Metric("ubi_known_urls", "gauge", "URLs known of the hosts that the agent owns"),
    Metric("ubi_unique_urls", "gauge", "Finished URLs of the hosts that the agent owns, each counted once"),
    Metric("ubi_slowest_host_seconds", "gauge", "How long what waits of the host takes that needs longest"),
    Metric("ubi_hosts", "gauge", "Hosts that the agent owns: busy, waiting, held or idle", ("state",)),
    Metric("ubi_complete_hosts", "gauge", "Hosts that the agent owns of which nothing is left to fetch or to settle"),
    Metric("ubi_links_total", "counter", "Outlinks offered by the spider"),
    Metric("ubi_untravelled_requests_total", "counter", "Requests that no letter to their owner could carry"),
    # mail
    Metric("ubi_forwarded_urls_total", "counter", "URLs sent to other agents"),
    Metric("ubi_suppressed_urls_total", "counter", "URLs not sent because their owner was known to have them"),
    Metric("ubi_received_urls_total", "counter", "URLs received from other agents"),
    Metric("ubi_refused_records_total", "counter", "Records refused by agents that do not own the host"),
    Metric("ubi_replicated_records_total", "counter", "Records sent as copies and at handovers"),
    Metric("ubi_outbox_records", "gauge", "Records not yet acknowledged by their receivers"),
    Metric("ubi_inbox_letters", "gauge", "Entries in the agent's inbox in Redis", (), "all"),
    Metric("ubi_sent_letters_total", "counter", "Letters appended to inboxes of other agents"),
    Metric("ubi_sent_letters_bytes_total", "counter", "Bytes of those letters"),
    Metric("ubi_resent_letters_total", "counter", "Letters sent again after a time-out"),
    Metric("ubi_letters_total", "counter", "Letters exchanged by the present process", ("lane", "direction"), "agent"),
    Metric("ubi_dead_letters_total", "counter", "Letters and records set aside because they did not hold"),
    # trouble
    Metric("ubi_redis_up", "gauge", "1 when the last exchange with Redis was answered"),
    Metric("ubi_put_off_mail_total", "counter", "Letters and answers put off: their Redis was away or full"),
    Metric("ubi_refused_exchanges_total", "counter", "Exchanges that Redis refused because its memory was full"),
    Metric("ubi_fences_total", "counter", "Times the agent was cut off for longer than its lease"),
    Metric("ubi_rejoins_total", "counter", "Times the others had declared the agent dead, and it joined again"),
    Metric("ubi_redone_pages_total", "counter", "Pages of a lost agent done without a fetch"),
    Metric("ubi_repeated_visits_total", "counter", "Visits of pages that were visited before"),
    Metric("ubi_unvisitable_pages_total", "counter", "Pages not visited again: their requests are too long to travel"),
    Metric("ubi_handoff_timeouts_total", "counter", "Times it began to fetch before everything was handed over"),
    Metric("ubi_lost_agents", "gauge", "Agents lost together, more than there are copies, and not back at the end"),
    # an agent's process
    Metric("ubi_load_seconds", "histogram", "How long loads took, from the permit to the last byte", (), "agent"),
    Metric("ubi_exchange_seconds", "histogram", "How long exchanges with Redis took", (), "agent"),
    Metric("ubi_flush_seconds", "histogram", "How long flushes to the agent's disk took", (), "agent"),
    Metric("ubi_loop_lag_seconds", "gauge", "The longest lag of the event loop in the last minute", (), "agent"),
    Metric("ubi_store_bytes_total", "counter", "Bytes that stores have written to their files", ("store",), "agent"),
    Metric("process_cpu_seconds_total", "counter", "Processor time of the process", (), "agent"),
    Metric("process_resident_memory_bytes", "gauge", "Memory of the process that is in use", (), "agent"),
    # the crawl as a whole
    Metric("ubi_agents", "gauge", "Agents of the crawl in each state", ("state",), "all"),
    Metric("ubi_remaining_seconds", "gauge", "How long the crawl still takes, where that can be told", (), "all"),
    Metric("ubi_crawl_finished", "gauge", "1 when the crawl is over: nothing was left to fetch anywhere", (), "all"),
    Metric("ubi_crawl_views", "gauge", "Views of the group that working agents have; 1 when they agree", (), "all"),
    Metric("ubi_unreadable_values", "gauge", "Values in Redis that could not be read", (), "all"),
)  # fmt: skip

OF_THE_CRAWL = ("ubi_agents", "ubi_remaining_seconds", "ubi_crawl_finished", "ubi_crawl_views", "ubi_unreadable_values")
