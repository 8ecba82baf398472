"""Pages for the tests of links: a small made corpus, and HTML that hypothesis draws."""

from __future__ import annotations

from hypothesis import strategies as st
from scrapy.http import HtmlResponse

ADDRESS = "http://www.example.com/a-b/c_d/page.html?q=1"

HREFS = (
    "",
    " ",
    "#",
    "#top",
    "?",
    "?x=1",
    "?x=a'b",
    "?x=é&y=ü",
    "x",
    "x.html",
    "./x",
    "./",
    ".",
    "..",
    "../",
    "../x",
    "../../x",
    "../../../../x/",
    ".././x",
    "../..//x",
    "..//x",
    "..x",
    ".x/y",
    "x/",
    "x/../y",
    "x/./y",
    "x//y",
    "//",
    "//h.example",
    "//h.example/x",
    "/",
    "/x",
    "/x//y",
    "/x/../y",
    "/.x",
    "/x:y",
    "x:y",
    "x/y:z",
    "1:2",
    "a;b",
    "a;",
    "/a;b?c",
    "a b",
    "a%20b",
    "a%2",
    "%",
    "é",
    "/é?ü#ö",
    "x'y",
    "x|y",
    "x[1]",
    "x\\y",
    "a#b#c",
    "a?b?c",
    "a?#b",
    "a#",
    "a?b/../c",
    "a?u=http://x/y",
    "\tx\n",
    "x\ny",
    "\u00a0x",
    "http:",
    "http://",
    "http:x",
    "http:/x",
    "http://h.example",
    "http://h.example/",
    "http://h.example?x",
    "http://h.example#f",
    "http://H.Example/X",
    "http://h.example:80/",
    "http://h.example:080/",
    "http://h.example:99999/",
    "http://h.example:/",
    "http://u:p@h.example/",
    "http://[::1]/",
    "http://[::1/",
    "http://é.example/",
    "http://h.example/a/../b",
    "http://h.example/a//b",
    "http://h..example/",
    "http://.example/",
    "http://-h.example-/",
    "http://h.example./",
    "https://h.example/x",
    "HTTP://h.example/",
    "ftp://h.example/x",
    "ftp://h.example/x.pdf",
    "file:///x",
    "mailto:a@b.example",
    "javascript:void(0)",
    "data:,x",
    "httpx://h/",
    "http://xn--a.example/",
    "x.PDF",
    "x.pdf?y",
    "x.pdf#y",
    "x?y=z.pdf",
    "x.pdf;y",
    "x;y.pdf",
    "x.tar.gz",
    "a.b/c",
    "http://h.pdf",
    "http://h.pdf#x",
    "http://h.pdf/",
    "http:///x.pdf",
    "&amp;",
    "?a=1&amp;b=2",
    "?a=1&copy=2",
    "?a&lt",
    "~x",
    "x@y",
    "(x)",
    "\ufeffx",
    "\U0001f600",
    "x" * 300,
    "../" * 9,
    "-",
    "_",
    "=",
    "x.",
    "x..",
    "x./y",
    "x/.",
    "x/..",
)

BASES = (
    ADDRESS,
    "http://www.example.com",
    "http://www.example.com/",
    "https://h.example:8080/x/",
    "http://h.example/a//b/c",
    "http://h.example/a/../b/c",
    "http://h.example/.a/b",
    "http://h.example/a;b/c;d",
    "http://h.example/a?b#c",
    "http://h.example/a'b/c",
    "http://h.example/%7ea/b",
    "http://u@h.example/a/",
    "http://H.example/a/",
    "ftp://h.example/a/b",
    "http://h.example?x=/y/z",
    "http://h.example/x:y/z",
    "file:///a/b.html",
    "http://h.example/a/?b'c",
    "http://h-1.example/a-b/",
)

PAGES = (
    "",
    "   ",
    "plain text",
    "<a href=x>1<a href=y>2",
    "<a href='x'>a<b>b</b><!-- c -->d</a>",
    "<A HREF=X>up</A>",
    "<a href>none</a><a href=''>empty</a><a name=x>no link</a>",
    "<a href=a href=b>twice</a>",
    "<map><area href=a><area href=b></map>",
    "<area href=1><a href=2>x</a><area href=3>",
    "<a href=x rel='a NoFollow b'>n</a><a href=y rel=nofollow,ugc>m</a><a rel href=z>",
    "<base href='http://b.example/q/r'><a href=s>t</a>",
    "<base href='/q/'><a href=s>t</a>",
    "<!--<base href='/q/'>--><a href=s>t</a>",
    "<BASE target=_top><a href=s>t</a>",
    "<base href=javascript:x><a href=s>t</a>",
    "<svg><a href=s xlink:href=t>u</a><a xlink:href=v>w</a></svg>",
    "<a href='x&#10;y'>z</a>",
    "<a href=x>caf&eacute; &amp; &#x41;</a>",
    "<div class=m><a href=1>1</a><div class=m><a href=2>2</a></div></div><a href=3>3</a>",
    "<a href=x><img src=y alt=z></a>",
    "<frameset><frame src=f1><frame src=f2></frameset>",
    "<iframe src=i></iframe><link rel=canonical href=c><link rel=icon href=d>",
    "<ul><li><a href=1>1</a><li><a href=2>2</a></ul>",
    "<title><a href=x>t</a></title><script>'<a href=y>'</script><a href=z>z</a>",
)

words = st.sampled_from(
    ["x", "page", "..", ".", "/", "//", "a b", "é", "?", "#", "%41", ";", ":", "&amp;", "'", "http://h.example", "-"]
)
hrefs = st.sampled_from(HREFS) | st.lists(words, max_size=6).map("".join)
rels = st.sampled_from(["", " rel=nofollow", ' rel="me NOFOLLOW"', " rel=noopener"])
texts = st.sampled_from(
    ["", "text", "two words", "é", "&lt;x&gt;", "<b>bold</b>", " <i>x</i> y ", "<!-- c -->", "<img src=i>"]
)


def _quoted(value: str) -> str:
    return '"' + value.replace('"', "%22") + '"'


links = st.builds(
    lambda tag, href, rel, text: f"<{tag} href={_quoted(href)}{rel}>{text}</{tag}>", st.just("a"), hrefs, rels, texts
)
around = st.sampled_from(
    ["{}", "<p>{}</p>", "<div class=m>{}</div>", "<ul><li>{}</ul>", "<h1>{}</h1>text", "<td>{}", "&nbsp;{}"]
)
# HTML that both parsers read alike: every element is closed where it has to be.
tidy = st.lists(st.builds(str.format, around, links), max_size=8).map("".join)


def page(text: str | bytes, address: str = ADDRESS, charset: str = "utf-8") -> HtmlResponse:
    body = text if isinstance(text, bytes) else text.encode(charset, "xmlcharrefreplace")
    return HtmlResponse(address, body=body, headers={"Content-Type": f"text/html; charset={charset}"})
