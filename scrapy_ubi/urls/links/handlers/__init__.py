"""The links of what is no page of HTML, by content type: headers, feeds, sitemaps, style sheets, JSON, PDF.

Rules of this module:

* A handler reads bytes of the web: whatever they are, it raises nothing but `LinksCut` and `Unreadable`, and what it
  reads, holds and gives is bounded (`bounds`). It yields the values of links as they are written, and None where the
  loop may have its turn; values are joined to the address elsewhere.
* PDF is read in a child process (`pdf_worker`), which ends with this one; nothing of pypdf is imported here.
* Nothing here knows Scrapy.
"""

from __future__ import annotations
