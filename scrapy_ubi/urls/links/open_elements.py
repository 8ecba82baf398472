"""The elements that stand open while a page is parsed, told tag by tag, and what each tag then costs its parser.

The parser of the HTML standard (lexbor) looks up through all open elements at many tags, so a page that leaves many
open takes quadratic time. How many are open is known only to who ends them as the parser does: most pages leave the end
tags of cells, rows, items and paragraphs out, and these are ended by what follows.

Rules of this module:

* What is really open is always among what is open here: cost is never told too low, but for a small factor. It may be
  told too high.
* *Special* elements (the standard's word: blocks, cells, items, ...) are ended by what ends them there: all that stands
  in them with them. Other ones (`span`, `b`, ...) end by their own end tag right behind what is in them, or with the
  special element that they are in.
* Where that would take the whole parser (an anchor point in a table in a template), what is open by then is *unsure*:
  `_sure` elements from the ground. Of those only the innermost one may be ended, by its own end tag. Elements that come
  later are sure again.
* Formatting elements that were ended with what they are in are opened again by the parser where text or another element
  of a line follows, until their end tag comes; of those with equal tags three at most. What a cell or an `object` is
  in is not opened in it. (Of `a`, only one is ever open: it is passed over.)
"""

from __future__ import annotations

import re
from collections import defaultdict

from scrapy_ubi.urls.links.growth import NAMES

VOID = frozenset(
    b"area base basefont bgsound br col embed frame hr image img input keygen link meta param source track wbr".split()
)
RAW = frozenset(b"iframe noembed noframes script style textarea title xmp".split())  # what is in them is no tag

_HEADINGS = frozenset(b"h1 h2 h3 h4 h5 h6".split())
_BLOCKS = frozenset(  # ended by their end tag with all that is in them; and they end a paragraph
    b"address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer header "
    b"hgroup listing main menu nav ol pre search section summary ul".split()
)
_END_PARAGRAPHS = _BLOCKS | _HEADINGS | frozenset(b"dd dt form hr li p plaintext xmp".split())
_ENDED_WHOLE = _BLOCKS | frozenset(b"applet button marquee object select".split())
_ITEMS = {b"li": frozenset([b"li"]), b"dd": frozenset([b"dd", b"dt"]), b"dt": frozenset([b"dd", b"dt"])}
_BODIES = frozenset(b"tbody tfoot thead".split())
_CELLS = frozenset(b"td th".split())
_PARTS = _BODIES | _CELLS | frozenset(b"caption col colgroup tr".split())  # of tables
_MODES = _PARTS | frozenset(b"table template".split())
_IN_TABLE = _BODIES | frozenset(b"table tr".split())
_FOREIGN = {b"svg": b"svg:", b"math": b"math:"}  # their elements are known by these: `svg:title`
_POINTS = frozenset(  # what is in these is HTML
    b"svg:desc svg:foreignobject svg:title math:mi math:mn math:mo math:ms math:mtext".split()
)
_BREAK_OUT = frozenset(  # HTML elements that end foreign ones
    b"b big blockquote body br center code dd div dl dt em embed font h1 h2 h3 h4 h5 h6 head hr i img li listing menu "
    b"meta nobr ol p pre ruby s small span strike strong sub sup table tt u ul var".split()
)
_SCOPE = (
    frozenset(b"applet caption html marquee object select table td template th".split()) | _POINTS
)  # nothing ends them
_BUTTON_SCOPE, _ITEM_SCOPE = _SCOPE | {b"button"}, _SCOPE | {b"ol", b"ul"}
_TABLE_SCOPE = frozenset(b"table template".split())
_SPECIAL = (_END_PARAGRAPHS | _ENDED_WHOLE | _MODES | _SCOPE | frozenset(b"frameset noscript".split())) - {b"dialog"}
_NOT_PASSED = _SPECIAL - frozenset(b"address div p".split())  # by an item that looks for the one before it
_NOSCRIPT = frozenset([b"noscript"])
_IMPLIED = frozenset(b"dd dt li optgroup option p rb rp rt rtc".split())
_HEAD = frozenset(b"base basefont bgsound head html link meta noframes noscript script style template title".split())
_RUBY = frozenset(b"rb rp rt rtc".split())
_MARKERS = frozenset(b"applet caption marquee object td template th".split())
_NOT_IN_LINES = (  # nothing is opened again for them
    _END_PARAGRAPHS
    | _PARTS
    | _HEAD
    | frozenset(b"iframe noembed param rb rp rt rtc source table textarea track".split())
) - {b"noscript", b"xmp"}
# Tags at which the parser looks at the innermost element only, or not at all.
_CHEAP = frozenset(
    b"abbr bdi bdo big b br canvas cite code data del dfn em embed font i img ins kbd label map mark meter noscript "
    b"object output picture progress q s samp script small source span strike strong style sub sup template time tt u "
    b"var video wbr".split()
)
_LEAVES = frozenset(
    b"a abbr b big cite code data del em font i ins kbd label mark q s samp small span strike strong sub sup time tt "
    b"u var".split()
)
_ALIKE = 3  # of formatting elements with equal tags that are opened again
_MULTIPLE = re.compile(rb" multiple(?![^ \t\n\r\f/])")  # as `page.eased` writes it
_TRIES = 8  # blocks in a formatting element that its end tag is carried out of
_COPIES = 4  # that are made of it and of those in it, for each of these blocks
_DEAR = 4  # steps that a comparison of two formatting elements, or of two elements of a list of options, takes


class _Formatting:
    """A formatting element that is not ended by its end tag."""

    __slots__ = ("is_open", "name", "tag")

    def __init__(self, name: bytes, tag: bytes) -> None:
        self.name = name
        self.tag = tag
        self.is_open = True


class OpenElements:
    """The elements that stand open, as the tags of a page come one by one.

    `steps`: elements that the parser has looked at; `again`: formatting elements that it has opened again; `deepest`:
    of the depths so far; `patience`: how many elements may still be looked at here.
    """

    def __init__(self, patience: int, quirks: bool | None) -> None:
        """`quirks`: whether paragraphs go on around tables; None: not known."""
        self.steps = self.again = self.deepest = 0
        self.patience = patience
        self._quirks = quirks
        self._names: list[bytes] = []
        self._entries: list[_Formatting | None] = []  # of each element that stands open
        self._count: defaultdict[bytes, int] = defaultdict(int)
        self._sure = 0  # so many elements from the ground may have been ended already
        self._first_foreign = -1  # where the outermost foreign element stands
        # Those without an end tag so far, parted by the markers that stand open.
        self._formatting: list[list[_Formatting]] = [[]]
        self._waiting = 0  # of the last of them, those that are to be opened again
        self._reopens_a = False  # an `a` was ended with what it is in: where, it may be open again
        self._form: _Formatting | None = None  # which was begun last and not ended, in the stack or not
        self._in_head = True
        self._bodies = self._options = 0
        self._searched = False  # whether a select is open that each of its options has looked through

    # -- what may be asked ---------------------------------------------------------------------------------------------

    @property
    def waits(self) -> bool:
        """Whether formatting elements are to be opened again where text comes."""
        return self._waiting > 0

    @property
    def surely_html(self) -> bool:
        """Whether what comes is no foreign element."""
        return self._first_foreign < 0 or (self._top_is_sure() and not self._is_foreign())

    @property
    def surely_foreign(self) -> bool:
        """Whether what comes is within svg or math."""
        return self._first_foreign >= 0 and self._top_is_sure() and self._is_foreign()

    def _top_is_sure(self) -> bool:
        return len(self._names) > self._sure

    def _is_foreign(self) -> bool:
        """Whether the innermost element is foreign, and no point where HTML begins."""
        return b":" in self._names[-1] and self._names[-1] not in _POINTS

    def pass_over(self, name: bytes) -> bool:
        """Whether an element, with its end tag right behind its text, changes nothing of what is open."""
        if name not in _LEAVES or self._waiting or self._in_head or self._first_foreign >= 0:
            return False
        count = self._count
        if count[b"select"] or count[b"colgroup"] or count[b"dialog"]:
            return False
        self.steps += 2 * len(self._names) + 2 + len(self._formatting[-1]) * _DEAR
        return True

    # -- tags ----------------------------------------------------------------------------------------------------------

    def open_element(self, name: bytes, attributes: bytes, whole: bool) -> None:
        """A start tag. `name` in lower case, `attributes` as written; `whole`: it ends with `/>`."""
        if self._first_foreign >= 0 and self._in_foreign(name, whole):
            return
        if name in (b"body", b"html", b"head"):
            more = len(attributes) // 2
            self._bodies += more  # all of them have theirs compared with those of the others
            self.steps += 1 + self._bodies * more
            return
        self.steps += 1 if name in _CHEAP else len(self._names) + 1
        if self._in_head and name not in _HEAD:
            self._in_head = False
        self._leave_columns(name)
        if self._searched:
            self._in_select(name, attributes)
        if name in _PARTS:
            self._begin_part(name)
            return
        if name == b"form" and self._form is not None and not self._count[b"template"]:
            return
        self._end_what_it_ends(name)
        if self._waiting and name not in _NOT_IN_LINES:
            self.open_again()
        if name in VOID:
            if name == b"input" and self._count[b"select"]:
                self._end_whole(b"select", _SCOPE)
            return
        if name == b"select" and self._count[b"select"]:
            if not self._end_whole(b"select", _SCOPE):
                self._push(name)
                self._searched = True
            return
        if name == b"frameset":
            self._unsure()
        elif name == b"form":
            self._begin_form()
            return
        if name in NAMES:
            self._begin_formatting(name, attributes)
            return
        if name in _FOREIGN:
            if not whole:
                self._push_foreign(_FOREIGN[name] + name)
            return
        self._push(name)
        if name == b"select" and not _MULTIPLE.match(attributes):
            self._searched = True
        if name == b"noscript" and self._in_head:
            self._unsure()

    def text(self, name: bytes) -> None:
        """An element of `RAW`, with its end tag: nothing is in it but text."""
        self.steps += len(self._names) + 1
        if name in (b"textarea", b"xmp", b"iframe", b"noembed"):
            self._in_head = False
        self._leave_columns(name)
        if name == b"xmp" and self._count[b"p"]:
            self._end_whole(b"p", _BUTTON_SCOPE)
        self.open_again()

    def _in_select(self, name: bytes, attributes: bytes) -> None:
        """At each option the parser looks through what is in its select."""
        self._options += 1
        if name == b"option":
            self.steps += self._options * (_DEAR * 4 if b"select" in attributes.lower() else _DEAR)

    def close_element(self, name: bytes) -> None:
        """An end tag."""
        names = self._names
        self.steps += len(names) + 1
        if self._first_foreign >= 0 and self._end_in_foreign(name):
            return
        self._leave_columns(name)
        if name in NAMES:
            self._end_formatting(name)
            return
        if name == b"a":
            self._reopens_a = False
        if not self._count[name] and not (name in _HEADINGS and any(self._count[one] for one in _HEADINGS)):
            if name == b"form":
                self._form = None
            return
        if name in _ENDED_WHOLE:
            self._end_whole(name, _SCOPE)
        elif name == b"template":
            self._end_whole(name, frozenset())
        elif name == b"noscript":
            self._end_innermost(_NOSCRIPT, _SPECIAL)  # if nothing special is in it
        elif name == b"p":
            self._end_whole(name, _BUTTON_SCOPE)
        elif name in _ITEMS:
            self._end_whole(name, _ITEM_SCOPE if name == b"li" else _SCOPE)
        elif name in _HEADINGS:
            self._end_innermost(_HEADINGS, _SCOPE)
        elif name == b"form":
            self._end_form()
        elif name == b"table" or name in _PARTS:
            self._end_whole(name, _TABLE_SCOPE)
        elif names[-1] == name:
            self._pop_last()
        else:
            self._end_among_others(name)

    # -- what start tags end -------------------------------------------------------------------------------------------

    def _end_what_it_ends(self, name: bytes) -> None:
        names = self._names
        if name in _ITEMS:
            self._end_item(_ITEMS[name])
        if name in _END_PARAGRAPHS:
            if self._count[b"p"]:
                self._end_whole(b"p", _BUTTON_SCOPE)
            if name in _HEADINGS:
                self._leave_heading()
        elif name == b"table":
            self._begin_table()
        elif name == b"button" and self._count[name]:
            self._end_whole(name, _SCOPE)
        elif name in _RUBY and self._count[b"ruby"]:
            at = len(names) - 1
            while at >= 0 and names[at] in _IMPLIED:
                if names[at] in _SPECIAL:
                    self._unsure()
                    return
                at -= 1
        elif name == b"a" and self._count[name]:
            if names[-1] == name:
                self._pop_last()
            elif self._count[b"dialog"]:
                self._unsure()
        elif name == b"nobr" and any(one.name == name for one in self._formatting[-1]):
            self._end_formatting(name)
        elif name in (b"option", b"optgroup") and names:
            if names[-1] == b"option":
                self._pop_last()
            if name == b"optgroup" and names and names[-1] == name and self._count[b"select"]:
                select = self._find(b"select", _SCOPE)
                if select is not None and select >= self._sure and names[select] == b"select":
                    self._pop_last()

    def _end_item(self, which: frozenset[bytes]) -> None:
        """The item before this one, unless a special element is in between."""
        if any(self._count[one] for one in which):
            self._end_innermost(which, _NOT_PASSED)

    def _leave_heading(self) -> None:
        """A heading that is innermost is ended by the next one."""
        if not any(self._count[one] for one in _HEADINGS):
            return
        at = self._innermost(_HEADINGS, _SPECIAL)
        if at is None:
            return
        if at == len(self._names) - 1 and not self._reopens_a:
            self._pop(at)
        else:
            self._unsure()

    # -- forms ---------------------------------------------------------------------------------------------------------

    def _begin_form(self) -> None:
        form = _Formatting(b"form", b"")
        if self._count[b"template"]:
            self._unsure()
        else:
            self._form = form
            at = self._mode()
            if at is not None and at >= self._sure and self._names[at] in _IN_TABLE:
                form.is_open = False  # it is over at once
                return
        self._push(b"form")
        self._entries[-1] = form

    def _end_form(self) -> None:
        """A form ends, and nothing that is in it but what ends by itself."""
        names = self._names
        form = self._form
        if self._count[b"template"]:
            self._unsure()
            return
        self._form = None
        if form is None or not form.is_open:
            return
        at = len(names) - 1
        while self._entries[at] is not form:
            self.patience -= 1
            if names[at] in _SCOPE:
                if at < self._sure:
                    self._unsure()
                return
            at -= 1
        if at < self._sure:
            self._unsure()
            return
        while names[-1] in _IMPLIED:
            self._pop_last()
        form.is_open = False
        self._take_out(at)

    # -- tables --------------------------------------------------------------------------------------------------------

    def _mode(self) -> int | None:
        """Where the innermost part of a table, table or template stands."""
        names = self._names
        for at in range(len(names) - 1, -1, -1):
            self.patience -= 1
            if names[at] in _MODES:
                return at
        return None

    def _begin_table(self) -> None:
        at = self._mode() if self._count[b"table"] else None
        if at is not None and self._names[at] in _IN_TABLE:
            table = self._find(b"table", _TABLE_SCOPE)
            if table is None or table < self._sure:
                self._unsure()
            else:
                self._pop(table)
                self._begin_table()
        elif self._count[b"p"] and self._quirks is not True:
            if self._quirks is None:
                self._unsure()
            else:
                self._end_whole(b"p", _BUTTON_SCOPE)

    def _leave_columns(self, name: bytes) -> None:
        if self._names and self._names[-1] == b"colgroup" and name not in (b"col", b"colgroup", b"template"):
            self._pop_last()

    def _begin_part(self, name: bytes) -> None:
        """A row, a cell, ...: it ends cells and rows, and brings along what it has to stand in."""
        names = self._names
        if not self._count[b"table"] and not self._count[b"template"]:
            return  # nothing begins outside of tables
        at = self._mode()
        table = self._find(b"table", _TABLE_SCOPE)
        if at is None or table is None or names[table] != b"table" or table < self._sure:
            self._unsure()
            if name in _CELLS:
                self._push(b"tbody")
                self._push(b"tr")
            if name != b"col":
                self._push(name)
            return
        if name == b"col" and names[at] == b"colgroup":
            return
        bodies = [place for place in range(table + 1, at + 1) if names[place] in _BODIES]
        rows = [place for place in range(table + 1, at + 1) if names[place] == b"tr"]
        self.patience -= at - table
        if name in _CELLS and rows:
            self._pop(rows[-1] + 1)
        elif name in (*_CELLS, b"tr") and bodies:
            self._pop(bodies[-1] + 1)
        else:
            self._pop(table + 1)
            if name in _CELLS or name == b"tr":
                self._push(b"tbody")
        if name in _CELLS and names[-1] != b"tr":
            self._push(b"tr")
        self._push(b"colgroup" if name == b"col" else name)

    # -- foreign elements ----------------------------------------------------------------------------------------------

    def _in_foreign(self, name: bytes, whole: bool) -> bool:
        """A start tag where foreign elements are open. Return whether that was all there was to do."""
        names = self._names
        if not self._top_is_sure():
            self.steps += len(names) + 1
            self._push(name)  # it may be anything
            self._unsure()
            return True
        if not self._is_foreign():
            return False
        if name in _BREAK_OUT:
            if name == b"font":  # some do
                self._unsure()
                return self._in_foreign(name, whole)
            self._leave_foreign()
            return False
        self.steps += 1
        if not whole:
            self._push_foreign(names[-1].partition(b":")[0] + b":" + name)
            if name == b"annotation-xml":
                self._unsure()
        return True

    def _end_in_foreign(self, name: bytes) -> bool:
        """An end tag where foreign elements are open. Return whether that was all there was to do."""
        names = self._names
        if not self._top_is_sure():
            if names and names[-1].rpartition(b":")[2] == name:
                self._pop_last()
            return True
        if b":" not in names[-1]:
            return False
        if names[-1] in _POINTS and self._waiting:
            self._unsure()
            return True
        if name in (b"p", b"br"):
            self._leave_foreign()
            return False
        at = len(names) - 1
        while at >= 0 and b":" in names[at]:
            self.patience -= 1
            if names[at].rpartition(b":")[2] == name:
                if at >= self._sure:
                    self._pop(at)
                else:
                    self._unsure()
                return True
            at -= 1
        return False

    def _leave_foreign(self) -> None:
        """End the foreign elements from the innermost one to where HTML was left."""
        names = self._names
        at = len(names) - 1
        while at > 0 and b":" in names[at - 1] and names[at - 1] not in _POINTS:
            at -= 1
        self._pop(at)

    # -- formatting ----------------------------------------------------------------------------------------------------

    def open_again(self) -> None:
        """Text comes, or an element of a line: what waits is opened again."""
        if not self._waiting or (self._first_foreign >= 0 and self.surely_foreign):
            return
        for entry in self._formatting[-1]:
            if not entry.is_open:
                entry.is_open = True
                self._push(entry.name)
                self._entries[-1] = entry
                self.again += 1
        self._waiting = 0

    def _begin_formatting(self, name: bytes, attributes: bytes) -> None:
        entries = self._formatting[-1]
        entry = _Formatting(name, name + attributes)
        alike = [one for one in entries if one.tag == entry.tag]
        if len(alike) >= _ALIKE:
            entries.remove(alike[0])
        self.steps += len(entries) * _DEAR
        self.patience -= len(entries)
        entries.append(entry)
        self._push(name)
        self._entries[-1] = entry

    def _end_formatting(self, name: bytes) -> None:
        names = self._names
        entries = self._formatting[-1]
        entry = next((one for one in reversed(entries) if one.name == name), None)
        self.patience -= len(entries)
        self.steps += len(entries)
        if names and names[-1] == name and self._entries[-1] in (entry, None):
            self._pop_last()
        if entry is None:
            if self._count[name]:
                self._end_among_others(name)
            return
        if not entry.is_open:
            entries.remove(entry)
            self._waiting -= bool(self._waiting)
            return
        special = 0
        for at in range(len(names) - 1, -1, -1):
            self.patience -= 1
            if self._entries[at] is entry:
                tries = min(special, _TRIES)
                self.steps += tries * len(names)
                self.again += tries * _COPIES
                if not special:
                    self._pop(at)
                    entries.remove(entry)
                    self._waiting -= bool(self._waiting)
                elif special < _TRIES:
                    entries.remove(entry)
                    self._carry_out(at)
                return
            if names[at] in _SCOPE:
                return
            special += names[at] in _SPECIAL

    def _end_among_others(self, name: bytes) -> None:
        """An element of a line may be ended with what is in it; that may stay open here, and be opened again."""
        names = self._names
        if b":" in names[-1] or self._count[b"dialog"]:
            self._unsure()  # these are ended by it, if they are in it
        for at in range(len(names) - 1, -1, -1):
            self.patience -= 1
            if names[at] == name or names[at] in _SPECIAL:
                return
            if (entry := self._entries[at]) is not None and entry.is_open:
                entry.is_open = False
                self._waiting += 1

    def _carry_out(self, at: int) -> None:
        """The formatting element there was ended within blocks: of what is between it and them, only the last three
        stay open, block by block."""
        entries = self._formatting[-1]
        between: list[int] = []
        for place in range(at, len(self._names)):
            if self._names[place] in _SPECIAL:
                between = []
                continue
            between.append(place)
            if len(between) > 3 and (entry := self._entries[first := between.pop(0)]) in entries:
                entries.remove(entry)
                self._entries[first] = None

    # -- the elements --------------------------------------------------------------------------------------------------

    def _find(self, name: bytes, scope: frozenset[bytes]) -> int | None:
        """Where the innermost one of this name stands, or what is not looked into for it; or, if that is unsure, the
        last unsure one. None: nowhere."""
        names = self._names
        for at in range(len(names) - 1, -1, -1):
            self.patience -= 1
            if names[at] == name or (names[at] in scope and at >= self._sure):
                return at
            if at < self._sure:
                return at
        return None

    def _end_whole(self, name: bytes, scope: frozenset[bytes]) -> bool:
        """End an element with all that is in it, if it is in this scope. Whether it was ended."""
        names = self._names
        if not names:
            return False
        if names[-1] == name:
            self._pop_last()
            return True
        at = self._find(name, scope)
        if at is None:
            return False
        if at < self._sure:
            self._unsure()
            return False
        if names[at] != name:
            return False
        self._pop(at)
        return True

    def _innermost(self, which: frozenset[bytes], beyond: frozenset[bytes]) -> int | None:
        """Where the innermost element of these names stands; None where there is none, or one of `beyond` is in
        between, or that is unsure: then all is."""
        names = self._names
        for at in range(len(names) - 1, -1, -1):
            self.patience -= 1
            if names[at] in which:
                return at
            if at < self._sure:
                self._unsure()
                return None
            if names[at] in beyond:
                return None
        return None

    def _end_innermost(self, which: frozenset[bytes], beyond: frozenset[bytes]) -> None:
        """End the innermost element of these names with what is in it, unless one of `beyond` is in between."""
        at = self._innermost(which, beyond)
        if at is None:
            return
        if at >= self._sure or at == len(self._names) - 1:
            self._pop(at)
        else:
            self._unsure()

    def _push(self, name: bytes) -> None:
        self._names.append(name)
        self._entries.append(None)
        self._count[name] += 1
        self.deepest = max(self.deepest, len(self._names))
        if name in _MARKERS:
            self._formatting.append([])
            self._waiting = 0

    def _push_foreign(self, name: bytes) -> None:
        if self._first_foreign < 0:
            self._first_foreign = len(self._names)
        self._push(name)

    def _pop_last(self) -> None:
        self._pop(len(self._names) - 1)

    def _pop(self, at: int) -> None:
        """This one, and what is in it."""
        names = self._names
        changed = False
        for place in range(len(names) - 1, at - 1, -1):
            name = names[place]
            entry = self._entries[place]
            self._count[name] -= 1
            self._reopens_a |= name == b"a" and place > at
            if entry is not None:
                entry.is_open = False
                changed = True
            elif name in _MARKERS and len(self._formatting) > 1:
                rest = self._formatting.pop()
                changed = True
                if place < self._sure:  # there may be no such element
                    self._formatting[-1] += rest
        del names[at:], self._entries[at:]
        if changed:
            self._waiting = sum(not entry.is_open for entry in self._formatting[-1])
            self.patience -= len(self._formatting[-1])
        self._cut()

    def _take_out(self, at: int) -> None:
        self._count[self._names[at]] -= 1
        del self._names[at], self._entries[at]
        self._first_foreign -= self._first_foreign > at
        self._cut()

    def _cut(self) -> None:
        self._sure = min(self._sure, len(self._names))
        if self._first_foreign >= len(self._names):
            self._first_foreign = -1
        if not self._count[b"select"]:
            self._options = 0
            self._searched = False

    def _unsure(self) -> None:
        """All that stands open may have been ended; formatting elements are opened again then."""
        self._sure = len(self._names)
        for entry in self._entries:
            if entry is not None and entry.name in NAMES:
                entry.is_open = False
        self._waiting = sum(not entry.is_open for entry in self._formatting[-1])
        self.patience -= self._sure
