"""What people see of a crawl: its state, its mail, its measures.

`status` reads the crawl's keys, `agent.profile` and `inbox_text` judge what they hold, `measures` computes, `url_owner`
asks the ring, `render_status` and `document` put it all into text and JSON. Everything read from Redis may have been
written by anybody: a value that does not hold is shown as `unreadable` and counted; it never raises, and
`terminal_text` takes the control characters out of whatever is printed.
"""

from __future__ import annotations
