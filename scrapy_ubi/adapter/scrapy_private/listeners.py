"""Who listens to a signal of a crawl, besides Scrapy itself.

| name | used for |
| --- | --- |
| PyDispatcher's `connections` under `crawler.signals` | the receivers of a signal |
| `OffsiteMiddleware.request_scheduled` | Scrapy's own receiver, which does not count |
"""

from __future__ import annotations

from pydispatch import dispatcher
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware

_ANY_SENDER = id(dispatcher.Any)


def only_scrapy_listens(crawler: Crawler, *which: object) -> bool:
    """Whether nothing is connected to these signals but Scrapy's own offsite middleware. It is asked for every page;
    PyDispatcher's own functions take three times as long."""
    for sender in (id(crawler), _ANY_SENDER):
        of_sender = dispatcher.connections.get(sender)
        for signal in (*which, dispatcher.Any) if of_sender else ():
            for reference in of_sender.get(signal, ()):
                receiver = reference() if isinstance(reference, dispatcher.WEAKREF_TYPES) else reference
                function = getattr(receiver, "__func__", None)
                if receiver is not None and function is not OffsiteMiddleware.request_scheduled:
                    return False
    return True
