"""Fonts that draw signs in the places of letters: Symbol, Wingdings, Webdings. Pure.

Files name their characters by the letter in whose place a sign stands ("x" for a crossed box), or by a code for private
use (U+F078), as Microsoft's programs do; both say nothing to a reader of the text alone.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape, unescape
from types import MappingProxyType

PRIVATE_USE = "\uf000"
"""Where codes for private use begin: 0xF0 and the character's own byte."""
_BLANK = 0x20
_STYLES = re.compile(r"regular|bold|italic|oblique|(?<=symbol)(?:mt|ps)|[^a-z0-9]")
_FAMILIES = {
    "symbol": "Symbol",
    "wingdings": "Wingdings",
    "wingdings2": "Wingdings 2",
    "wingdings3": "Wingdings 3",
    "webdings": "Webdings",
}
_USUAL = str.maketrans(
    "🗹🗷🗵⌧⮽🞎🞏🞐🞑🗸🗶🗴⚫◼🔾🔿🞂⮚🡺🡨🡪🡩🡫🡠🡢🡡🡣",
    "☑☒☒☒☒☐☐☐☐✓✗✗●■○○▸➢➔←→↑↓←→↑↓",
)
"""Signs that hardly any font of a screen has, by those that most have."""


_FONT = r"(?:font-family\s*:|\bface\s*=)\s*(?:[\"']|&quot;)?\s*(Symbol|Wingdings(?: [23])?|Webdings)\b"
_IN_FONT = re.compile(_FONT, re.IGNORECASE)
_RUN = re.compile(
    rf"(<\w[^<>]*?{_FONT}[^<>]*>(?:\s*<\w(?![^<>]*\b(?:font|font-family|face)\s*[:=])[^<>]*>)*)([^<]+)", re.IGNORECASE
)
"""The tag of an element whose font is a font of signs, the tags up to its first text, the font, and that text."""


def signs_of(font: str, text: str, *, symbol_letters: bool = False) -> str:
    """``text`` as the signs that a font of signs draws for it, character by character; text of other fonts as it is.

    ``font`` is a name as it stands in a file: "ABCDEF+Wingdings-Regular". Characters that stand for themselves (beyond
    U+00FF), and those without a sign, stay. ``symbol_letters``: letters in Symbol stand for Greek letters; MuPDF gives
    Greek letters by themselves.
    """
    signs = _signs(font, symbol_letters)
    return "".join(signs.get(character, character) for character in text) if signs else text


def with_written_signs(markup: str) -> str:
    """``markup`` of a web page with the first text of each element in a font of signs written as signs: Word writes
    ticks, arrows and the marks of lists so, and Outlook a smile."""
    if _IN_FONT.search(markup) is None:
        return markup
    return _RUN.sub(
        lambda run: run[1] + escape(signs_of(run[2], unescape(run[3]), symbol_letters=True), quote=False), markup
    )


@cache
def _signs(font: str, symbol_letters: bool) -> MappingProxyType[str, str] | None:
    family = _FAMILIES.get(_STYLES.sub("", font.rpartition("+")[2].lower()))
    if family is None:
        return None
    from mammoth.docx.dingbats import dingbats

    signs: dict[str, str] = {}
    for (name, byte), code in dingbats.items():
        if name == family and byte > _BLANK:
            signs[chr(ord(PRIVATE_USE) + byte)] = sign = chr(code).translate(_USUAL)
            if family != "Symbol" or symbol_letters:
                signs[chr(byte)] = sign
    return MappingProxyType(signs)
