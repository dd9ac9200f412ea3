"""What a web page or an element of it says, as plain text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
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
from vrag_ray.corpus.formats.web_parts import BLOCK_TAGS, VOID_TAGS, words_of_element
from vrag_ray.types.superscripts import superscript

CONTROLS = ("button", "option", "output", "textarea")
_APART = frozenset(("td", "th", *CONTROLS))
_SUPERSCRIPT_TAG = "sup"
_UNSEEN = frozenset(("head", "script", "style", "title", "template", "rp", "rt", "rtc")) | REPLACED_TAGS
_FILE = re.compile(r"\s*(?:cid:\S*|[^\s.]+\.(?:png|jpe?g|gif|bmp|svg|webp))\s*$", re.IGNORECASE)
"""What programs write where an author states no words for a picture."""
_COLOUR = re.compile(r"(?:^|(?<=[;\s]))color\s*:\s*([^;\s][^;]*)", re.IGNORECASE)
_GROUND = re.compile(r"(?:^|(?<=[;\s]))background(?:-color|-image)?\s*:\s*([^;\s][^;]*)", re.IGNORECASE)
_WHITE = re.compile(
    r"(?:#?fff(?:fff)?(?:ff)?|white|transparent)\b|rgba?\(\s*255\s*[,\s]\s*255\s*[,\s]\s*255\b", re.IGNORECASE
)
_NO_GROUND = re.compile(rf"{_WHITE.pattern}|(?:none|initial|inherit)\b", re.IGNORECASE)


def _is_unseen(tag: str, attributes: Mapping[str, str | None], style: str) -> bool:
    return (
        tag in _UNSEEN
        or tag in STRUCK_TAGS
        or not UNSEEN_ATTRIBUTES.isdisjoint(attributes)
        or (tag == "dialog" and "open" not in attributes)
        or hides(style)
        or strikes(style)
    )


@dataclass(frozen=True, slots=True)
class _Open:
    """An open element: whether what stands in it is invisible, without size, or white, where that states nothing else,
    and whether it or one around it has a ground."""

    tag: str
    is_invisible: bool = False
    is_small: bool = False
    is_white: bool = False
    has_ground: bool = False


class _Reader(HTMLParser):
    """Of pages whose styles stand in their elements."""

    def __init__(self, page: _Open) -> None:
        super().__init__()
        self._page = page
        self.parts: list[str] = []
        self.beside: list[str] = []
        """What of the parts stands for pictures, and in fields."""
        self._unseen: list[str] = []
        """The open element that is not seen, and elements of the same name in it."""
        self._open: list[_Open] = []
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
            is_unseen = _is_unseen(tag, dict(attrs), style) or states_size(style) is False
            is_invisible = self._is_unseen_here() if (visible := states_visible(style)) is None else not visible
            if not is_unseen and not is_invisible:
                self.parts.append(f" {words} ")
                self.beside.append(words)
        self._superscripts += tag == _SUPERSCRIPT_TAG
        if tag in BLOCK_TAGS:
            self.parts.append("\n")
        elif tag in _APART:
            self.parts.append(" ")

    def _enter(self, tag: str, attributes: Mapping[str, str | None]) -> None:
        style = attributes.get("style") or ""
        if _is_unseen(tag, attributes, style):
            self._unseen.append(tag)
            return
        around = self._open[-1] if self._open else self._page
        visible, readable = states_visible(style), states_size(style)
        grounds = [*_GROUND.findall(style), *filter(None, map(attributes.get, ("bgcolor", "background")))]
        colour = _COLOUR.search(style) or _COLOUR.match(f"color:{attributes.get('color') or ''}")
        self._open.append(
            _Open(
                tag,
                around.is_invisible if visible is None else not visible,
                around.is_small if readable is None else not readable,
                around.is_white if colour is None else _WHITE.match(colour[1]) is not None,
                around.has_ground or any("url(" in ground or not _NO_GROUND.match(ground) for ground in grounds),
            )
        )

    def _is_unseen_here(self) -> bool:
        around = self._open[-1] if self._open else self._page
        return around.is_invisible or around.is_small or (around.is_white and not around.has_ground)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._unseen[:1]:
            self._unseen.pop()
        elif not self._unseen:
            at = next((at for at in reversed(range(len(self._open))) if self._open[at].tag == tag), len(self._open))
            del self._open[at:]
        self._superscripts -= tag == _SUPERSCRIPT_TAG and self._superscripts > 0
        if tag in BLOCK_TAGS:
            self.parts.append("\n")
        elif tag in CONTROLS:
            self.parts.append(" ")

    def handle_data(self, data: str) -> None:
        if not self._unseen and not self._is_unseen_here():
            follows = bool(self.parts) and not self.parts[-1][-1:].isspace()
            text = superscript(data) if self._superscripts and follows else data
            self.parts.append(" ".join(text.split(" ")).replace("\n", " "))


def text_of_html(html: str) -> str:
    """What a web page says, a line a block."""
    return read_html(html, on_white=False)[0]


def read_html(
    html: str, sheets: Mapping[str, str] = MappingProxyType({}), *, on_white: bool = True
) -> tuple[str, list[str], list[str]]:
    """What a web page says, a line a block; what of it stands for pictures, and in fields; and notices. ``sheets`` are
    the style sheets that are saved with it, by their addresses; ``on_white`` says that white words on no ground are
    not seen."""
    # It loads a parser that the children which read plain text do not need.
    from vrag_ray.corpus.formats.web_styles import with_written_styles

    reader = _Reader(_Open("", has_ground=not on_white))
    written, notices = with_written_styles(with_written_formulas(html), lambda address: sheets.get(address, ""))
    reader.feed(with_written_signs(written))
    reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.parts).split("\n"))
    return "\n".join(line for line in lines if line), reader.beside, notices
