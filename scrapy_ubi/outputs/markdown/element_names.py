"""What the names of an element (its classes and its id), and the words of a heading, say of what is in it.

Measured on pages of many sites: `benchmarks/main_text.py` tells whether a change of these lists is for the better.
"""

from __future__ import annotations

import re

MOST_NAMES = 1000  # characters that are looked at

_left_out = re.compile(
    r"(?<![a-z])(?:"
    r"shar(?:e\w*|es|ing)|social\w*|addthis\w*|follow-?(?:us|me)"
    r"|related\w*|recommend\w*|recirc\w*|outbrain|taboola|popular|trending|most-?(?:read|popular|viewed)|teasers?"
    r"|more-?(?:stories|news|from|on)|read-?(?:more|next|also|on)|up-?next|prev|next|prev-?next|linkback"
    r"|comment\w*|disqus\w*|respond|feedback|ratings?|polls?|captcha"
    r"|newsletter\w*|subscri\w*|sign-?up|log-?in|paywall\w*|donat\w*|cta"
    r"|promo\w*|advert\w*|ads?|adsbygoogle|sponsor\w*|anzeige|werbung|reklama"
    r"|side-?bar\w*|widgets?|popup|modal|alerts?|cookies?|consent|gdpr"
    r"|bread-?crumbs?|crumbs?|pagination|pager|paging|menus?|nav|nav-?bar|navigation|(?:top|foot)-?nav"
    r"|nav-?(?:header|footer)|footer|site-?header|masthead|toolbar|search-?(?:box|form|bar)?|skip-?link|header-?link"
    r"|jump-?to|edit-?(?:link|section|page)|toc|tableofcontents"
    r"|tags|tag-?list|byline|author-?(?:bio|box|info|card)|about-?author|saboxplugin\w*|(?:post|entry|article)-?meta"
    r"|dates?|timestamp|dateline|copyright|disclaimer|disclosure|citate"
    r"|sr-only|visually-?hidden|screen-?reader\w*|print-only|d-print-\w+"
    r"|carousel|galler(?:y|ies)\w*|slide-?show|credits?|(?:image|photo)-?credit"
    r"|(?<!block-)(?<!table-)caption\w*|(?:wp|image|img|photo|media|news|imageembed|figure_*)-?_*caption\w*"
    r")(?![a-z])",
    re.IGNORECASE,
)
_comments = re.compile(
    r"(?<![a-z])(?:comments(?:-?(?:area|container|section|list|wrapper))?|comment-?list|disqus\w*)(?![a-z])",
    re.IGNORECASE,
)
_body = re.compile(
    r"(?<![a-z])(?:(?:article|story|post|entry|news|blog|content)[-_]*(?:body|content|text|main|copy)\w*|body-?(?:copy|text)"
    r"|(?:rich)?text-?articlebody|mw-parser-output|markdown-body|single-?content|field-name-body)(?![a-z])",
    re.IGNORECASE,
)
_trailer = re.compile(
    r"(?:related|more (?:from|on|in|stories|news)\b|read (?:more|next|also)|you (?:may|might)|recommended|comments?\Z"
    r"|\d+ comments?|leave a|share this|top (?:videos?|stories|rated comments)|don.?t miss|join the conversation"
    r"|most (?:read|popular)|trending|latest (?:news|stories)|sign up|subscribe|about the author|also on"
    r"|what to read next)",
    re.IGNORECASE,
)


def is_left_out(names: str) -> bool:
    """Whether an element of these names stands around the content."""
    return _left_out.search(names, 0, MOST_NAMES) is not None


def is_comments(names: str) -> bool:
    """Whether it has what readers have written."""
    return _comments.search(names, 0, MOST_NAMES) is not None


def is_body(names: str) -> bool:
    """Whether it has the content itself."""
    return _body.search(names, 0, MOST_NAMES) is not None


def is_trailer(heading: str) -> bool:
    """Whether what is under such a heading leads to other pages."""
    return _trailer.match(heading[:60]) is not None
