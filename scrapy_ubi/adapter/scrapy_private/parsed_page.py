"""The tree that a page was parsed into.

| name | used for |
| --- | --- |
| `TextResponse._cached_selector` | whether a page was parsed, to read links off its tree; to let go of both at once |
"""

from __future__ import annotations

from typing import Any

from scrapy.http import Response, TextResponse


def forget_tree(response: Response) -> None:
    """Let go of what a page was parsed into by `selector`, `css` or `xpath`: asked again, it is parsed again."""
    if isinstance(response, TextResponse) and hasattr(response, "_cached_selector"):
        response._cached_selector = None


def parsed_page(response: TextResponse) -> Any | None:
    """The root of the tree (lxml's) that a page of HTML was parsed into by `selector`, `css` or `xpath`; None where it
    was not yet."""
    selector = getattr(response, "_cached_selector", None)
    return selector.root if selector is not None and selector.type == "html" else None
