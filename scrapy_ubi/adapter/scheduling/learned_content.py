"""What the learned forms of URLs compare pages by (UBI_NORMALISE with `learned`)."""

from __future__ import annotations

from scrapy.http import Response

from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.requests.observers import PageObserver
from scrapy_ubi.agent.hosts.learned_forms import CUT, content_of


class LearnedContent(PageObserver):
    """Notes the content of each page with its flight: a page that was cut has none."""

    def answered(self, flight: Flight, response: Response) -> None:
        """This is the page."""
        if not any(flag in response.flags for flag in CUT):
            flight.content = content_of(response.status, response.body)
