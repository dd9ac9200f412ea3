"""Fonts that draw signs in the places of letters: Symbol, Wingdings, Webdings. Pure.

Files name their characters by the letter in whose place a sign stands ("x" for a crossed box), or by a code for private
use (U+F078), as Microsoft's programs do; both say nothing to a reader of the text alone.
"""

from __future__ import annotations

import re
from functools import cache
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


def signs_of(font: str, text: str) -> str:
    """``text`` as the signs that a font of signs draws for it, character by character; text of other fonts as it is.

    ``font`` is a name as it stands in a file: "ABCDEF+Wingdings-Regular". Characters that stand for themselves (beyond
    U+00FF), and those without a sign, stay.
    """
    signs = _signs(font)
    return "".join(signs.get(character, character) for character in text) if signs else text


@cache
def _signs(font: str) -> MappingProxyType[str, str] | None:
    family = _FAMILIES.get(_STYLES.sub("", font.rpartition("+")[2].lower()))
    if family is None:
        return None
    from mammoth.docx.dingbats import dingbats

    signs: dict[str, str] = {}
    for (name, byte), code in dingbats.items():
        if name == family and byte > _BLANK:
            signs[chr(ord(PRIVATE_USE) + byte)] = sign = chr(code).translate(_USUAL)
            if family != "Symbol":
                # Letters of Symbol are Greek, and MuPDF says so.
                signs[chr(byte)] = sign
    return MappingProxyType(signs)
