"""PDF files made by code: plain ones, and hostile ones of many kinds.

Rules of this module: nothing is copied from anywhere, and nothing is random but by a seed. Each hostile file says by
its name what is wrong with it. None is larger than some MB, whatever it unpacks to.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator, Mapping

URL = "https://pdf.example/link"
Objects = Mapping[int, bytes]


def file_of(objects: Objects, trailer: bytes = b"", root: int = 1) -> bytes:
    """A PDF of these objects, with a table of where they are."""
    out = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    places = {}
    for number, content in objects.items():
        places[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start, size = len(out), max(objects) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n" % size
    for number in range(1, size):
        out += b"%010d 00000 n \n" % places[number] if number in places else b"0000000000 00000 f \n"
    out += b"trailer\n<< /Size %d /Root %d 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (size, root, trailer, start)
    return bytes(out)


def stream(data: bytes, more: bytes = b"", compress: bool = True) -> bytes:
    """A stream object."""
    if compress:
        data, more = zlib.compress(data, 9), more + b" /Filter /FlateDecode"
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(data), more, data)


def link(url: str) -> bytes:
    """An annotation that leads to an address."""
    return b"<< /Type /Annot /Subtype /Link /Rect [0 0 9 9] /A << /S /URI /URI (%s) >> >>" % url.encode("latin-1")


FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


def plain(urls: list[str], text: str = "", trailer: bytes = b"", catalog: bytes = b"") -> bytes:
    """One page with links, and text."""
    content = b"BT /F1 12 Tf 10 100 Td (%s) Tj ET" % text.encode("latin-1")
    return file_of(
        {
            1: b"<< /Type /Catalog /Pages 2 0 R %s >>" % catalog,
            2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 4 0 R /Annots [%s] "
            b"/Resources << /Font << /F1 5 0 R >> >> >>" % b" ".join(map(link, urls)),
            4: stream(content),
            5: FONT,
        },
        trailer,
    )


def _pages(pages: bytes, more: Objects | None = None) -> bytes:
    return file_of({1: b"<< /Type /Catalog /Pages 2 0 R >>", 2: pages, **(more or {})})


def _page(number: int, more: bytes, objects: Objects) -> bytes:
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] %s >>" % more
    return _pages(b"<< /Type /Pages /Kids [%d 0 R] /Count 1 >>" % number, {number: page, **objects})


def circles() -> Iterator[tuple[str, bytes]]:
    """Objects that lead back to themselves."""
    yield "circle: the tree of pages has itself as a kid", _pages(b"<< /Type /Pages /Kids [2 0 R] /Count 1 >>")
    yield (
        "circle: two nodes of the tree have each other",
        _pages(
            b"<< /Type /Pages /Kids [3 0 R 3 0 R] /Count 2 >>",
            {3: b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 /Parent 2 0 R >>"},
        ),
    )
    yield "circle: an object is a reference to itself", _page(3, b"/Annots 4 0 R", {4: b"4 0 R"})
    ring = {number: b"%d 0 R" % (number + 1 if number < 60 else 4) for number in range(4, 61)}
    yield "circle: 57 references in a ring", _page(3, b"/Annots 4 0 R", ring)
    yield (
        "circle: annotations in each other",
        _page(3, b"/Annots [4 0 R]", {4: b"<< /A 5 0 R >>", 5: b"<< /A 4 0 R /Next 5 0 R /URI 4 0 R >>"}),
    )
    yield (
        "circle: the length of a stream is in that stream",
        _page(3, b"/Contents 4 0 R", {4: b"<< /Length 4 0 R >>\nstream\nBT ET\nendstream"}),
    )
    yield (
        "circle: a form that draws itself",
        _page(
            3,
            b"/Contents 4 0 R /Resources << /XObject << /X 5 0 R >> >>",
            {
                4: stream(b"/X Do " * 1000),
                5: stream(b"/X Do /X Do", b"/Type /XObject /Subtype /Form /Resources << /XObject << /X 5 0 R >> >>"),
            },
        ),
    )
    made = bytearray(plain([URL]))
    at = made.rindex(b"/Size")
    previous = made.rindex(b"xref\n0 ")
    yield "circle: the table of objects is its own predecessor", bytes(made[:at] + b"/Prev %d " % previous + made[at:])


def bombs() -> Iterator[tuple[str, bytes]]:
    """Little that becomes much."""
    zeros = bytes(70_000_000)
    text = b"BT /F1 9 Tf " + b"(%s) Tj " % URL.encode() * 1_000_000 + b"ET"
    fonts = b"/Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >>"
    yield "bomb: a page of 70 MB of zeros", _page(3, fonts, {4: stream(zeros), 5: FONT})
    yield "bomb: a page of a million texts", _page(3, fonts, {4: stream(text), 5: FONT})
    packed = zlib.compress(zlib.compress(bytes(300_000_000), 9), 9)
    yield (
        "bomb: 300 MB packed twice",
        _page(
            3,
            fonts,
            {
                4: b"<< /Length %d /Filter [/FlateDecode /FlateDecode] >>\nstream\n%s\nendstream"
                % (len(packed), packed),
                5: FONT,
            },
        ),
    )
    parts = b"/Contents [%s]" % (b"4 0 R " * 200)
    yield "bomb: one stream of 40 MB two hundred times", _page(3, parts, {4: stream(zeros[:40_000_000])})
    yield (
        "bomb: an object stream of 70 MB",
        _page(3, b"/Annots 9 0 R", {4: stream(zeros, b"/Type /ObjStm /N 100000 /First 60000000")}),
    )
    operators = stream(b"q " * 20_000_000)
    yield "bomb: twenty million operators", _page(3, fonts, {4: operators, 5: FONT})
    unicode_map = b"beginbfrange " + b"<0000> <FFFF> <0000> " * 300_000 + b" endbfrange"
    font = b"<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H /ToUnicode 6 0 R >>"
    yield (
        "bomb: a font with a map of 300,000 ranges",
        _page(3, fonts, {4: stream(b"BT /F1 9 Tf <0001> Tj ET"), 5: font, 6: stream(unicode_map)}),
    )
    row = b"<< /Predictor 15 /Columns 2000000000 /Colors 32 /BitsPerComponent 16 >>"
    yield (
        "bomb: a predictor with rows of a terabyte",
        _page(3, fonts, {4: stream(b"\x02" * 100_000, b"/DecodeParms " + row), 5: FONT}),
    )
    ascii_hex = b"<< /Length 4000000 /Filter [%s] >>\nstream\n%s\nendstream" % (
        b"/ASCIIHexDecode " * 40,
        b"3" * 4_000_000,
    )
    yield "bomb: forty filters on each other", _page(3, fonts, {4: ascii_hex, 5: FONT})
    lzw = b"<< /Length 2000000 /Filter /LZWDecode >>\nstream\n%s\nendstream" % (b"\x80\x0b\x60\x50" * 500_000)
    yield "bomb: LZW without end", _page(3, fonts, {4: lzw, 5: FONT})


def tables() -> Iterator[tuple[str, bytes]]:
    """Tables of objects that say too much."""
    body = b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n<< /Kids [] >>\nendobj\n"
    end = b"trailer\n<< /Size 3 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % len(body)
    yield "table: four billion entries", body + b"xref\n0 4294967295\n0000000000 65535 f \n" + end
    yield "table: a million true entries", body + b"xref\n0 1000000\n" + b"0000000009 00000 n \n" * 1_000_000 + end
    yield "table: a hundred thousand sections", body + b"xref\n" + b"1 1\n0000000009 00000 n \n" * 100_000 + end
    rows = stream(bytes(60_000_000), b"/Type /XRef /W [1 4 2] /Size 8000000 /Root 1 0 R /Index [0 8000000]")
    start = b"startxref\n%d\n%%%%EOF\n" % len(body)
    yield "table: a stream of eight million entries", body + b"9 0 obj\n" + rows + b"\nendobj\n" + start
    wide = stream(bytes(100), b"/Type /XRef /W [100000000 100000000 100000000] /Size 9 /Root 1 0 R")
    yield "table: entries as wide as a hundred MB", body + b"9 0 obj\n" + wide + b"\nendobj\n" + start
    chain = bytearray(body)
    previous = 0
    for _ in range(20_000):
        place = len(chain)
        chain += b"xref\n0 1\n0000000000 65535 f \ntrailer\n<< /Size 3 /Root 1 0 R /Prev %d >>\n" % previous
        previous = place
    yield "table: a chain of twenty thousand", bytes(chain) + b"startxref\n%d\n%%%%EOF\n" % previous
    yield "table: none, and a million objects", body + b"7 0 obj\n<<>>\nendobj\n" * 300_000
    yield "table: startxref far behind the end", body + b"startxref\n99999999999999999999\n%%EOF\n"


def deep() -> Iterator[tuple[str, bytes]]:
    """Things within things."""
    tree = {number: b"<< /Type /Pages /Kids [%d 0 R] /Count 1 >>" % (number + 1) for number in range(2, 30_000)}
    yield "deep: a tree of pages of thirty thousand levels", file_of({1: b"<< /Pages 2 0 R >>", **tree})
    yield "deep: brackets", _page(3, b"/Annots " + b"[" * 500_000, {})
    yield "deep: dictionaries", _page(3, b"/Annots " + b"<< /A " * 200_000, {})
    yield "deep: brackets that are closed", _page(3, b"/Annots " + b"[" * 100_000 + b"]" * 100_000, {})
    yield (
        "deep: names in brackets in content",
        _page(3, b"/Contents 4 0 R /Resources << >>", {4: stream(b"BT " + b"[" * 3_000_000 + b" TJ ET")}),
    )
    wide = b"<< /Type /Pages /Kids [%s] /Count 90000 >>" % (b"3 0 R " * 90_000)
    leaf = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Annots [%s] >>" % (link(URL) * 1000)
    yield "wide: one page ninety thousand times", _pages(wide, {3: leaf})
    fans = {n: b"<< /Type /Pages /Kids [%s] /Count 9 >>" % (b"%d 0 R " % (n + 1) * 10) for n in range(2, 12)}
    yield (
        "wide: a tree of ten billion pages",
        file_of({1: b"<< /Pages 2 0 R >>", **fans, 12: b"<< /Type /Page /MediaBox [0 0 9 9] >>"}),
    )
    many = b"/Annots [%s]" % b" ".join(link(f"{URL}{number}") for number in range(60_000))
    yield "wide: sixty thousand links", _page(3, many, {})
    yield "wide: a link of five MB", _page(3, b"/Annots [%s]" % link("http://x.example/" + "a" * 5_000_000), {})
    yield "wide: a name of five MB", _page(3, b"/" + b"N" * 5_000_000 + b" 1", {})
    yield "wide: a text that is not closed", _page(3, b"/Annots (" + b"(" * 3_000_000, {})
    yield "wide: five MB of comments", plain([URL]).replace(b"3 0 obj\n", b"3 0 obj\n" + b"%\n" * 2_500_000)


def encrypted() -> Iterator[tuple[str, bytes]]:
    """Files that want a password, or say so."""
    key = b"<%s>" % (b"41" * 32)
    said = b"/Filter /Standard /V 1 /R 2 /P -4 /O %s /U %s" % (key, key)
    identity = b"/ID [<00> <00>]"
    yield "encrypted: with a password", plain([URL], trailer=b"/Encrypt << %s >> %s" % (said, identity))
    strong = b"/Filter /Standard /V 5 /R 6 /Length 256 /P -4 /O %s /U %s /OE %s /UE %s /Perms %s" % ((key,) * 5)
    yield "encrypted: AES, malformed", plain([URL], trailer=b"/Encrypt << %s >> %s" % (strong, identity))
    yield "encrypted: by what nobody knows", plain([URL], trailer=b"/Encrypt << /Filter /Other /V 99 >>")
    yield "encrypted: in a circle", plain([URL], trailer=b"/Encrypt 6 0 R")


def broken(count: int, seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """Files that were whole: cut, and with bytes changed at random."""
    chance = random.Random(seed)
    whole = plain([f"{URL}{number}" for number in range(200)], text=URL * 20)
    yield "broken: empty", b""
    yield "broken: a head alone", b"%PDF-1.7\n"
    for number in range(count):
        made = bytearray(whole)
        if number % 3 == 0:
            del made[chance.randrange(len(made)) :]
        for _ in range(chance.choice((1, 10, 100, 1000))):
            if made:
                made[chance.randrange(len(made))] = chance.randrange(256)
        if number % 3 == 1:
            at = chance.randrange(len(made))
            made[at:at] = made[chance.randrange(len(made)) :][:5000] * chance.randrange(1, 50)
        yield f"broken: at random, {number} of seed {seed}", bytes(made)


def hostile(count: int = 50, seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """So many hostile files: all the kinds, and as many broken ones as are missing."""
    made = 0
    for kind in (circles(), bombs(), tables(), deep(), encrypted(), broken(count, seed)):
        for each in kind:
            if made == count:
                return
            made += 1
            yield each
