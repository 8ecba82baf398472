"""Shapes of pages: ordinary ones that are large, and such as keep a parser busy. Each is made in any size."""

from __future__ import annotations

from collections.abc import Callable

Shape = Callable[[int], bytes]


def _of(unit: str, before: str = "", after: str = "") -> Shape:
    return lambda number: (before + unit * number + after).encode()


def _numbered(unit: str, before: str = "", after: str = "") -> Shape:
    return lambda number: (before + "".join(unit.format(i) for i in range(number)) + after).encode()


ORDINARY: dict[str, Shape] = {
    "cells without end tags": _of("<tr><td>x<td>y", "<table>"),
    "cells with end tags": _of("<tr><td>x</td><td><b>y</b></td></tr>", "<table><tbody>", "</tbody></table>"),
    "small tables in paragraphs": _of("<p><table><tr><td>x</table>"),
    "captions and columns": _of("<table><caption>c<colgroup><col><col><thead><tr><th>x<tbody><tr><td>y</table>"),
    "fonts in cells": _of("<tr><td><font color=red>x<td><font size=2>y", "<table>"),
    "fonts in paragraphs": _of("<p><font color=red>x"),
    "fonts around paragraphs": _of("<font face=a><p><b>x</b></font>"),
    "formatting out of turn": _of("<p><b><i>x</b></i> y"),
    "definitions": _of("<dt>x<dd>y<p>z", "<dl>"),
    "items without end tags": _of("<li>x<p>y", "<ul>"),
    "lists fifty deep": _of("<ul>" + "<li>x<ul>" * 50 + "<li>y" + "</ul>" * 51),
    "divisions fifty deep": _of("<div class=a>" * 50 + "x" + "</div>" * 50),
    "options without end tags": _of("<option value=1>x", "<form><select name=a>", "</select></form>"),
    "options": _of("<option value=1 selected>x</option>", "<select>", "</select>"),
    "groups of options": _of("<optgroup label=x><option>x<option>y", "<select>", "</select>"),
    "forms across rows": _of("<form><tr><td>x<input></form>", "<table>", "</table>"),
    "diagrams": _of(
        '<div class=d><svg viewBox="0 0 1 1"><g><circle r="1"/><a xlink:href="#x"><text>x</text></a>'
        '<path d="M0"/></g></svg></div>'
    ),
    "icons": _of('<button><svg><title>x</title><style>a{}</style><use href="#a"/></svg></button>'),
    "formulas": _of("<p>as <math><mrow><mi>x</mi><mo>=</mo><msup><mi>y</mi><mn>2</mn></msup></mrow></math>"),
    "links": _of("<a href=/a>x</a> "),
    "links without end tags": _of("<a href=/a>x "),
    "anchors without end tags": _of("<a name=x><h2>y</h2><p>z"),
    "one line": _of('<div class=a><span><a href="/a">x</a><em>y</em></span></div>'),
    "program text": _of('<span class="k">if</span> <span class="n">a</span>\n', "<pre>", "</pre>"),
    "scripts with tags": _of("<script>document.write('<div><p>');</script><p>x"),
    "comments with tags": _of("<!-- <div> --><p>x"),
    "readings": _of("<p><ruby>x<rt>y</ruby><ruby>z<rp>(<rt>w<rp>)</ruby>"),
    "details": _of("<details><summary>x</summary><p>y</details>"),
    "text fields": _of("<p><textarea>a <b> c</textarea>"),
    "templates": _of("<template><div>x</div></template>"),
    "text": _of("a < b <= c "),
    "long paragraphs": _of("<p class=a>" + "words of a page, and its site's; " * 60 + "</p>"),
    "prose before blocks": _of("words of a page, " * 100 + "<div class=a title=x>y</div>"),
    "blanks before blocks": _of("<a href=/a>x</a>" + "\n" * 1_500 + "<section class='a b' id=c>x</section>"),
    "data in scripts": _of('<script>var a = [{"a": "<", "b": [1, 2, 3]},' + '{"c": "d", "e": 1},' * 90 + "]</script>x"),
    "tags in scripts": _of("<script>a.html = \"<p class='x y'>\" + 'z';</script>" + "words of a page " * 4),
    "a large image": _of("AAA/ B", "<p><img src='data:image/png;base64,", "'>"),
}

# In thousands, each takes lexbor the time of millions, or of gigabytes.
HOSTILE: dict[str, Shape] = {
    "open divisions": _of("<div>"),
    "in capitals": _of("<DIV >"),
    "open lists": _of("<ul><li>"),
    "end tags of nothing": _of("<div></x>"),
    "looked through by others": lambda number: b"<span>" * (number // 4) + b"</x>" * (4 * number),
    "items in items": _of("<div><span></div><li></span></div><div><span></div><dd></span></div>"),
    "end tags in values": _of("<div a='</div>'>"),
    "ends in values": _of('<div a="></div>">'),
    "end tags in comments": _of("<div><!--</div>-->"),
    "cut comments": _of("<!--><div>"),
    "instructions": _of("<div><?</div>"),
    "no end tags": _of("<div></ </div>"),
    "in objects": _of("<div><object></div></object>" + "<div>"),
    "cells of no table": _of("<td><div><td>"),
    "begins as text": lambda number: b"<textarea><!--</textarea>" + b"<div>" * number,
    "scripts in scripts": lambda number: b"<script><!--<script></script>" + b"</script>" * 2 + b"<div>" * number,
    "attributes": _numbered(" a{}", "<p", ">"),
    "attributes with ends": _numbered(' a{}="><"', "<p", ">"),
    "attributes behind an end in a value": _numbered(" a{}", '<p title="a > b"', ">"),
    "attributes behind ends in a value": _numbered(" a{}", "<p title = '> \" >'", ">"),
    "attributes behind an end, many tags": lambda times: (
        b'<p x=">"' + b"".join(b" a%d" % n for n in range(times)) + b"></p>" * 9
    ),
    "attributes between many ends in values": _numbered(' a{0} b{0} c{0} d=">"', "<p x=y", ">"),
    "attributes of some tags": lambda number: (b"<p" + b"".join(b" a%d" % n for n in range(number // 2)) + b">") * 9,
    "attributes of the body": _numbered("<body a{}>"),
    "formatting": _numbered("<b {}>"),
    "formatting in objects": _numbered("<object><b {0}></object><b {0}>"),
    "forms in buttons": _of("<button><b><form></form><form><div>"),
    "options that are not told": _of("<OpTion selected>x", "<select>"),
}
