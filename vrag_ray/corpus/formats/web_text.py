"""What a web page or an element of it says, as plain text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from types import MappingProxyType

from vrag_ray.corpus.formats.symbol_fonts import with_written_signs
from vrag_ray.corpus.formats.unseen import (
    REPLACED_TAGS,
    STRUCK_TAGS,
    UNSEEN_ATTRIBUTES,
    hides,
    states_size,
    states_visible,
    strikes,
)
from vrag_ray.corpus.formats.web_formulas import with_written_formulas
from vrag_ray.corpus.formats.web_parts import VOID_TAGS, words_of_element
from vrag_ray.types.superscripts import superscript

_BLOCK_TAGS = """
address article aside blockquote br caption center dd details div dl dt figure footer form h1 h2 h3 h4 h5 h6 header hr
legend li main nav ol p pre section summary table tr ul
"""
_BLOCKS = frozenset(_BLOCK_TAGS.split())
CONTROLS = ("button", "option", "output", "textarea")
_APART = frozenset(("td", "th", *CONTROLS))
_SUPERSCRIPT_TAG = "sup"
_UNSEEN = frozenset(("head", "script", "style", "title", "template", "rp", "rt", "rtc")) | REPLACED_TAGS
_FILE = re.compile(r"\s*(?:cid:\S*|[^\s.]+\.(?:png|jpe?g|gif|bmp|svg|webp))\s*$", re.IGNORECASE)
"""What programs write where an author states no words for a picture."""


def _is_unseen(tag: str, attributes: Mapping[str, str | None], style: str) -> bool:
    return (
        tag in _UNSEEN
        or tag in STRUCK_TAGS
        or not UNSEEN_ATTRIBUTES.isdisjoint(attributes)
        or (tag == "dialog" and "open" not in attributes)
        or hides(style)
        or strikes(style)
    )


class _Reader(HTMLParser):
    """Of pages whose styles stand in their elements."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.beside: list[str] = []
        """What of the parts stands for pictures, and in fields."""
        self._unseen: list[str] = []
        """The open element that is not seen, and elements of the same name in it."""
        self._open: list[tuple[str, bool, bool]] = []
        """The open elements, whether they are invisible, and whether their type has no size: what stands in them may
        state otherwise."""
        self._superscripts = 0
        """Open ``sup`` elements."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID_TAGS:
            if tag in self._unseen[:1]:
                self._unseen.append(tag)
            elif not self._unseen:
                self._enter(tag, dict(attrs))
        elif not self._unseen and (words := words_of_element(tag, dict(reversed(attrs)))) and not _FILE.match(words):
            style = dict(attrs).get("style") or ""
            around = bool(self._open) and any(self._open[-1][1:])
            is_unseen = _is_unseen(tag, dict(attrs), style) or states_size(style) is False
            is_invisible = around if (visible := states_visible(style)) is None else not visible
            if not is_unseen and not is_invisible:
                self.parts.append(f" {words} ")
                self.beside.append(words)
        self._superscripts += tag == _SUPERSCRIPT_TAG
        if tag in _BLOCKS:
            self.parts.append("\n")
        elif tag in _APART:
            self.parts.append(" ")

    def _enter(self, tag: str, attributes: Mapping[str, str | None]) -> None:
        style = attributes.get("style") or ""
        if _is_unseen(tag, attributes, style):
            self._unseen.append(tag)
            return
        _, is_invisible, is_small = self._open[-1] if self._open else ("", False, False)
        if (visible := states_visible(style)) is not None:
            is_invisible = not visible
        if (readable := states_size(style)) is not None:
            is_small = not readable
        self._open.append((tag, is_invisible, is_small))

    def handle_endtag(self, tag: str) -> None:
        if tag in self._unseen[:1]:
            self._unseen.pop()
        elif not self._unseen:
            at = next((at for at in reversed(range(len(self._open))) if self._open[at][0] == tag), len(self._open))
            del self._open[at:]
        self._superscripts -= tag == _SUPERSCRIPT_TAG and self._superscripts > 0
        if tag in _BLOCKS:
            self.parts.append("\n")
        elif tag in CONTROLS:
            self.parts.append(" ")

    def handle_data(self, data: str) -> None:
        if not self._unseen and not (self._open and any(self._open[-1][1:])):
            follows = bool(self.parts) and not self.parts[-1][-1:].isspace()
            text = superscript(data) if self._superscripts and follows else data
            self.parts.append(" ".join(text.split(" ")).replace("\n", " "))


def text_of_html(html: str) -> str:
    """What a web page says, a line a block."""
    return read_html(html)[0]


def read_html(html: str, sheets: Mapping[str, str] = MappingProxyType({})) -> tuple[str, list[str], list[str]]:
    """What a web page says, a line a block; what of it stands for pictures, and in fields; and notices. ``sheets`` are
    the style sheets that are saved with it, by their addresses."""
    # It loads a parser that the children which read plain text do not need.
    from vrag_ray.corpus.formats.web_styles import with_written_styles

    reader = _Reader()
    written, notices = with_written_styles(with_written_formulas(html), lambda address: sheets.get(address, ""))
    reader.feed(with_written_signs(written))
    reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.parts).split("\n"))
    return "\n".join(line for line in lines if line), reader.beside, notices
