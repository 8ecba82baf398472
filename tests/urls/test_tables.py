"""Cases that public tables of URL normalisation are about, by preset: what each comes to here.

By source: RFC 3986 (5.4 resolved against its base, 6.2.2, 6.2.3), the WHATWG URL standard for http and https, the
canonicalisation that Google's Safe Browsing asks for, Nutch's urlnormalizer-basic, the Internet Archive's rules,
w3lib's canonicalize_url, LARM's normaliser. Where a source goes further than a preset may, the row says what the preset
makes of it: docs/reference/url-normalisation.md has the reasons.
"""

from __future__ import annotations

from urllib.parse import urljoin

import pytest

from scrapy_ubi.urls import Normaliser
from scrapy_ubi.urls.normaliser import PRESETS

safe, larm = (Normaliser(PRESETS[name]) for name in ("safe", "larm"))

AS_SAFE = "as safe"

RFC_3986_REFERENCES = """
g:h=- g=b/c/g ./g=b/c/g g/=b/c/g/ /g=g ?y=b/c/d;p?y g?y=b/c/g?y #s=b/c/d;p?q g#s=b/c/g g?y#s=b/c/g?y ;x=b/c/;x
g;x=b/c/g;x g;x?y#s=b/c/g;x?y =b/c/d;p?q .=b/c/ ./=b/c/ ..=b/ ../=b/ ../g=b/g ../..= ../../= ../../g=g ../../../g=g
../../../../g=g /./g=g /../g=g g.=b/c/g. .g=b/c/.g g..=b/c/g.. ..g=b/c/..g ./../g=b/g ./g/.=b/c/g/ g/./h=b/c/g/h
g/../h=b/c/h g;x=1/./y=b/c/g;x=1/y g;x=1/../y=b/c/y g?y/./x=b/c/g?y/./x g?y/../x=b/c/g?y/../x
g#s/./x=b/c/g g#s/../x=b/c/g
""".split()


@pytest.mark.parametrize("case", RFC_3986_REFERENCES)
def test_the_references_of_rfc_3986_section_5_4(case: str) -> None:
    """Normal and abnormal references, against `http://a/b/c/d;p?q`: also where joining leaves its dots to us."""
    cut = max(case.rfind("=b/"), case.rfind("=g"), 0) or case.rindex("=")
    reference, expected = case[:cut], case[cut + 1 :]
    joined = urljoin("http://a/b/c/d;p?q", reference)
    assert safe(joined) == (None if expected == "-" else f"http://a/{expected}")
    if reference and reference[0] not in "/?#;" and "?" not in reference and expected != "-":
        assert safe(f"http://a/b/c/{reference}") == f"http://a/{expected}"


# url, normal form by safe (None: none), and by larm where that is another.
RFC_3986 = [
    # 6.2.2: case, escapes, dot segments
    ("http://a/b/c/%7Bfoo%7D", "http://a/b/c/%7Bfoo%7D", AS_SAFE),
    ("hTTP://a/./b/../b/%63/%7bfoo%7d", "http://a/b/c/%7Bfoo%7D", AS_SAFE),
    ("HTTP://www.EXAMPLE.com/", "http://www.example.com/", AS_SAFE),
    ("http://h/%3a%3A", "http://h/%3A%3A", AS_SAFE),
    ("http://h/%41%5a%61%7A%30%39", "http://h/AZaz09", "http://h/azaz09"),
    ("http://h/%2D%2e%5F%7e", "http://h/-._~", "http://h/-._%7E"),
    ("http://h/%21%24%26%27%28%29%2A%2B%2C%3B%3D", "http://h/%21%24%26%27%28%29%2A%2B%2C%3B%3D",
     "http://h/%21$%26%27%28%29%2A%2B%2C%3B%3D"),
    ("http://h/%2f%3F%23%5b%5D%40", "http://h/%2F%3F%23%5B%5D%40", AS_SAFE),
    ("http://h/?%41=%7e&b=%2f", "http://h/?A=~&b=%2F", "http://h/?A=%7E&b=%2F"),
    ("http://us%65r%40@h/", "http://user%40@h/", AS_SAFE),
    # 6.2.3: empty path, ports
    ("http://example.com", "http://example.com/", AS_SAFE),
    ("http://example.com:/", "http://example.com/", AS_SAFE),
    ("http://example.com:80/", "http://example.com/", AS_SAFE),
    ("http://example.com:443/", "http://example.com:443/", AS_SAFE),
    ("https://example.com:443", "https://example.com/", AS_SAFE),
    ("https://example.com:80/", "https://example.com:80/", AS_SAFE),
    # 6.2.4 is not for syntax: these stay apart
    ("http://example.com/data", "http://example.com/data", AS_SAFE),
    ("http://example.com/data/", "http://example.com/data/", AS_SAFE),
]  # fmt: skip

WHATWG = [
    ("http://example\t.\norg", "http://example.org/", AS_SAFE),
    ("  \x00http://h/a\x1f ", "http://h/a", AS_SAFE),
    ("http://user:pass@foo:21/bar;par?b#c", "http://user:pass@foo:21/bar;par?b", AS_SAFE),
    ("http://f:00000000000000000000080/c", "http://f/c", AS_SAFE),
    ("http://f:0/c", "http://f:0/c", AS_SAFE),
    ("http://f:\n/c", "http://f/c", AS_SAFE),
    ("http://f:65536/c", None, None),
    ("http://f:b/c", None, None),
    ("http://::@c@d:2", "http://:%3A%40c@d:2/", AS_SAFE),
    ("http://a:b@c:29/d", "http://a:b@c:29/d", AS_SAFE),
    ("http://foo/bar?baz=ü#ü", "http://foo/bar?baz=%C3%BC", AS_SAFE),
    ("http://h/foo%", "http://h/foo%25", AS_SAFE),  # the standard leaves a stray %: here it has one spelling
    ("http://h/foo%2zbar", "http://h/foo%252zbar", AS_SAFE),
    ("http://h/foo\t%91", "http://h/foo%91", AS_SAFE),
    ("http://h/(%28:%3A%29)", "http://h/(%28:%3A%29)", "http://h/%28%28%3A%3A%29%29"),
    ("http://h/?it's", "http://h/?it%27s", AS_SAFE),
    ("http://h/it's", "http://h/it's", "http://h/it%27s"),
    ("http://h/a?b c\"<>", "http://h/a?b%20c%22%3C%3E", AS_SAFE),
    ("http://h/a/%2e%2E/%2e/b", "http://h/b", AS_SAFE),
    ("http://h/%2e./%2e%2e/..%2f", "http://h/..%2F", AS_SAFE),
    ("http://h/foo/../../../ton", "http://h/ton", AS_SAFE),
    ("http://h/foo/.../..ton", "http://h/foo/.../..ton", AS_SAFE),
    ("http://h/////../a", "http://h////a", "http://h/a"),
    ("http://www.foo。bar.com/", "http://www.foo.bar.com/", AS_SAFE),
    ("http://Ｇｏ.com", "http://go.com/", AS_SAFE),
    ("http://GOO\u200b\u2060\ufeffgoo.com", "http://googoo.com/", AS_SAFE),
    ("http://你好你好", "http://xn--6qqa088eba/", AS_SAFE),
    ("https://faß.ExAmPlE/", "https://xn--fa-hia.example/", AS_SAFE),
    ("http://192.0x00A80001", "http://192.168.0.1/", AS_SAFE),
    ("http://0300.168.0.0xF0", "http://192.168.0.240/", AS_SAFE),
    ("http://256/", "http://0.0.1.0/", AS_SAFE),
    ("http://192.168.257/", "http://192.168.1.1/", AS_SAFE),
    ("http://192.168.0.257", None, None),
    ("http://1.2.3.08/", None, None),
    ("http://foo.0x4", None, None),
    ("http://[0:0:0:0:0:0:13.1.68.3]", "http://[::d01:4403]/", AS_SAFE),
    ("http://[2001:DB8:0:0:8::1]/", "http://[2001:db8::8:0:0:1]/", AS_SAFE),
    ("http://[1::2::3]/", None, None),
    ("http://ho st/", None, None),
    ("http://h/\ufffd?\ufdd0", "http://h/%EF%BF%BD?%EF%B7%90", AS_SAFE),
    ("http://h/%7Ffp3%3Eju%3Dduvgw%3Dd", "http://h/%7Ffp3%3Eju%3Dduvgw%3Dd", AS_SAFE),
    ("http://h/##asdf", "http://h/", AS_SAFE),
    # what browsers repair, and Scrapy could not fetch as it was found
    ("http:///h/a", None, None),
    ("http:h/a", None, None),
    (r"http:\\h\a", None, None),
    ("http://h%2eexample/", None, None),
    ("http://!\"$&'()*+,-.;=_`{}~/", None, None),
]  # fmt: skip

SAFE_BROWSING = [
    # Escapes are decoded once, and only where that changes nothing; there they are decoded until nothing changes.
    ("http://host/%25%32%35", "http://host/%2525", AS_SAFE),
    ("http://host/%2525252525252525", "http://host/%2525252525252525", AS_SAFE),
    ("http://host/asdf%25%32%35asd", "http://host/asdf%2525asd", AS_SAFE),
    ("http://host/%%%25%32%35asd%%", "http://host/%25%25%2525asd%25%25", AS_SAFE),
    ("http://%31%36%38%2e%31%38%38%2e%39%39%2e%32%36/", None, None),
    ("http://h/%2E%73%65%63%75%72%65/%77%77%77%2E%65%62%61%79%2E%63%6F%6D/", "http://h/.secure/www.ebay.com/", AS_SAFE),
    ("http://195.127.0.11/uploads/%20%20/.verify/.eBay=x", "http://195.127.0.11/uploads/%20%20/.verify/.eBay=x",
     "http://195.127.0.11/uploads/%20%20/.verify/.ebay=x"),
    ("http://3279880203/blah", "http://195.127.0.11/blah", AS_SAFE),
    ("http://www.google.com/blah/..", "http://www.google.com/", AS_SAFE),
    ("www.google.com/", None, None),
    ("http://www.evil.com/blah#frag", "http://www.evil.com/blah", AS_SAFE),
    ("http://www.GOOgle.com/", "http://www.google.com/", AS_SAFE),
    ("http://www.google.com./", "http://www.google.com/", AS_SAFE),
    ("http://www.google.com.../", None, None),
    ("http://www.google.com/foo\tbar\rbaz\n2", "http://www.google.com/foobarbaz2", AS_SAFE),
    ("http://www.google.com/q?", "http://www.google.com/q", AS_SAFE),
    ("http://www.google.com/q?r?", "http://www.google.com/q?r?", "http://www.google.com/q?r%3F"),
    ("http://www.google.com/q?r?s", "http://www.google.com/q?r?s", "http://www.google.com/q?r%3Fs"),
    ("http://evil.com/foo#bar#baz", "http://evil.com/foo", AS_SAFE),
    ("http://evil.com/foo;", "http://evil.com/foo;", AS_SAFE),
    ("http://evil.com/foo?bar;", "http://evil.com/foo?bar;", AS_SAFE),
    ("http://notrailingslash.com", "http://notrailingslash.com/", AS_SAFE),
    ("http://www.gotaport.com:1234/", "http://www.gotaport.com:1234/", AS_SAFE),
    ("  http://www.google.com/  ", "http://www.google.com/", AS_SAFE),
    ("http:// leadingspace.com/", None, None),
    ("http://%20leadingspace.com/", None, None),
    ("https://www.securesite.com/", "https://www.securesite.com/", AS_SAFE),
    ("http://host.com/ab%23cd", "http://host.com/ab%23cd", AS_SAFE),
    ("http://host.com//twoslashes?more//slashes", "http://host.com//twoslashes?more//slashes",
     "http://host.com/twoslashes?more%2F%2Fslashes"),
]  # fmt: skip

NUTCH = [
    ("http://Foo.Com/index.html", "http://foo.com/index.html", "http://foo.com/"),
    ("http://foo.com:81/", "http://foo.com:81/", AS_SAFE),
    ("http://foo.com/foo.html#ref", "http://foo.com/foo.html", AS_SAFE),
    ("http://foo.com/%66oo.html", "http://foo.com/foo.html", AS_SAFE),
    ("http://foo.com/aa/./foo.html", "http://foo.com/aa/foo.html", AS_SAFE),
    ("http://foo.com/aa/bb/../", "http://foo.com/aa/", AS_SAFE),
    ("http://foo.com/aa/..", "http://foo.com/", AS_SAFE),  # Nutch left this one for long
    ("http://foo.com/aa/bb/cc/../../foo.html", "http://foo.com/aa/foo.html", AS_SAFE),
    ("http://foo.com/aa/bb/../cc/dd/../ee/foo.html", "http://foo.com/aa/cc/ee/foo.html", AS_SAFE),
    ("http://foo.com/../../foo.html", "http://foo.com/foo.html", AS_SAFE),
    ("http://foo.com/aa/../bb/../foo.html/../../", "http://foo.com/", AS_SAFE),
    ("http://foo.com/a..a/../foo.html", "http://foo.com/foo.html", AS_SAFE),
    ("http://foo.com/a..a/foo.html", "http://foo.com/a..a/foo.html", AS_SAFE),
    ("http://foo.com//aa//bb//foo.html", "http://foo.com//aa//bb//foo.html", "http://foo.com/aa/bb/foo.html"),
    ("http://foo.com/aa?referer=http://bar.com", "http://foo.com/aa?referer=http://bar.com",
     "http://foo.com/aa?referer=http%3A%2F%2Fbar.com"),
    ("http://foo.com/{{stuff}}", "http://foo.com/%7B%7Bstuff%7D%7D", AS_SAFE),
    ("http://foo.com/you%20too&me", "http://foo.com/you%20too&me", AS_SAFE),
    ("http://foo.com/file.html%23cz", "http://foo.com/file.html%23cz", AS_SAFE),
    ("http://foo.com/?x[y]=1", "http://foo.com/?x%5By%5D=1", AS_SAFE),
    ("http://foo.com/?aa=1&bb=%E4", "http://foo.com/?aa=1&bb=%E4", AS_SAFE),
    ("http://user:pass@h/", "http://user:pass@h/", AS_SAFE),
    ("http://user@h:80/", "http://user@h/", AS_SAFE),
    ("http://Schöne.example", "http://xn--schne-lua.example/", AS_SAFE),
]  # fmt: skip

INTERNET_ARCHIVE = [
    ("http://www.archive.org:80/", "http://www.archive.org/", AS_SAFE),
    ("https://www.archive.org:80/", "https://www.archive.org:80/", AS_SAFE),
    ("http://www.archive.org/big/", "http://www.archive.org/big/", AS_SAFE),
    ("dns:www.archive.org", None, None),
    ("http://example.org/\u2691", "http://example.org/%E2%9A%91", AS_SAFE),
    ("http://example.org/%e2%9a%91", "http://example.org/%E2%9A%91", AS_SAFE),
    ("http://h/bl\u2691ah?z\u265fz=z\u4e00z", "http://h/bl%E2%9A%91ah?z%E2%99%9Fz=z%E4%B8%80z", AS_SAFE),
    ("http://example.org/\U0001f0a1", "http://example.org/%F0%9F%82%A1", AS_SAFE),
    ("http://example.org/\u2028", "http://example.org/%E2%80%A8", AS_SAFE),  # no white space of the standard's
    ("\nhttp://examp\rle.org/", "http://example.org/", AS_SAFE),
    ("Http://example.com", "http://example.com/", AS_SAFE),
    ("https://.foobar.org/", None, None),
    ("https://foo...bar.org/", None, None),
    ("http://h/SED.zip?CFID=14387305&CFTOKEN=72942008", "http://h/SED.zip?CFID=14387305&CFTOKEN=72942008",
     "http://h/sed.zip?CFID=14387305&CFTOKEN=72942008"),
]  # fmt: skip

W3LIB = [
    ("http://www.example.com/do?c=3&b=5&b=2&a=50", "http://www.example.com/do?c=3&b=5&b=2&a=50", AS_SAFE),
    ("http://www.example.com/do?&a=1", "http://www.example.com/do?&a=1", AS_SAFE),
    ("http://www.example.com/do?q=a space&a=1", "http://www.example.com/do?q=a%20space&a=1", AS_SAFE),
    ("http://www.example.com/do?q=a+space&a=1", "http://www.example.com/do?q=a+space&a=1",
     "http://www.example.com/do?q=a%20space&a=1"),
    ("http://www.example.com/a do?a=1", "http://www.example.com/a%20do?a=1", AS_SAFE),
    ("http://www.example.com/do?#frag", "http://www.example.com/do", AS_SAFE),
    ("http://www.example.com/a%a3do", "http://www.example.com/a%A3do", AS_SAFE),
    ("http://www.example.com/résumé?q=résumé", "http://www.example.com/r%C3%A9sum%C3%A9?q=r%C3%A9sum%C3%A9", AS_SAFE),
    ("http://foo.com/AC%2FDC+rocks%3f/?yeah=1", "http://foo.com/AC%2FDC+rocks%3F/?yeah=1",
     "http://foo.com/ac%2Fdc%20rocks%3F/?yeah=1"),
    ("http://www.EXAMPLE.com/", "http://www.example.com/", AS_SAFE),
    ("http://www.bücher.de?q=bücher", "http://www.xn--bcher-kva.de/?q=b%C3%BCcher", AS_SAFE),
    ("http://user:pass@www.example.com/do?a=1#frag", "http://user:pass@www.example.com/do?a=1", AS_SAFE),
    ("http://www.example.com:80/do?a=", "http://www.example.com/do?a=", AS_SAFE),
]  # fmt: skip

LARM = [
    ("http://HOST/Path/Page.HTML", "http://host/Path/Page.HTML", "http://host/path/page.html"),
    ("https://HOST/Path/", "https://host/Path/", "https://host/path/"),
    ("http://host/a//b///c", "http://host/a//b///c", "http://host/a/b/c"),
    ("http://host/index.html", "http://host/index.html", "http://host/"),
    ("http://host/a/index.htm?b=C", "http://host/a/index.htm?b=C", "http://host/a/?b=C"),
    ("http://host/a/Default.ASPX#b", "http://host/a/Default.ASPX", "http://host/a/"),
    ("http://host/index", "http://host/index", AS_SAFE),
    ("http://host/a b", "http://host/a%20b", AS_SAFE),
    ("http://host/a+b", "http://host/a+b", "http://host/a%20b"),
    ("http://host/a%2Bb", "http://host/a%2Bb", AS_SAFE),
    ("http://host/~user", "http://host/~user", "http://host/%7Euser"),
    ("http://host/%7euser", "http://host/~user", "http://host/%7Euser"),
    ("http://host/$a-b_c.d&e;f@g=h", "http://host/$a-b_c.d&e;f@g=h", AS_SAFE),
    ("http://host/a!b*c'd(e)f,g:h", "http://host/a!b*c'd(e)f,g:h", "http://host/a%21b%2Ac%27d%28e%29f%2Cg%3Ah"),
    ("http://host/a/../b/./c", "http://host/b/c", AS_SAFE),
    ("http://host//index.html//", "http://host//index.html//", "http://host/index.html/"),
    ("http://www.host/", "http://www.host/", AS_SAFE),
]  # fmt: skip

TABLES = {
    "RFC 3986": RFC_3986, "WHATWG": WHATWG, "Safe Browsing": SAFE_BROWSING, "Nutch": NUTCH,
    "Internet Archive": INTERNET_ARCHIVE, "w3lib": W3LIB, "LARM": LARM,
}  # fmt: skip


@pytest.mark.parametrize("source", TABLES)
def test_what_each_url_comes_to(source: str) -> None:
    found = [(url, safe(url), larm(url)) for url, _, _ in TABLES[source]]
    expected = [(url, by_safe, by_safe if by_larm == AS_SAFE else by_larm) for url, by_safe, by_larm in TABLES[source]]
    assert found == expected
