"""Web pages whose neighbours stay apart: a browser puts room between controls, and between the children of a flex or
grid container. MuPDF knows neither and joins their words, as it does those of cells without a padding. It takes what
it does not know for a part of the line, so that whole containers would follow each other on one."""

from __future__ import annotations

import re

from vrag_ray.corpus.formats.unseen import STYLE_VALUE, TAG

CONTROLS = ("button", "option", "output", "textarea")
_IN_LINES = ("a", "abbr", "b", "cite", "code", "em", "i", "label", "q", "small", "span", "strong", "time")
"""Elements without a line of their own elsewhere; those that have one are apart anyway."""
_ON_LINES = ("center", "details", "legend", "summary")
_MARK = "data-apart"
_LAYS_OUT = re.compile(r"(?:^|[;\s])display\s*:\s*(?:inline-)?(?:flex|grid)\b", re.IGNORECASE)
_OWN_LINES = re.compile(
    r"((?:^|(?<=[;\s{\"']))display\s*:\s*)(?:flex|grid|flow-root|contents|-webkit-box)\b(?!-)", re.IGNORECASE
)
_CELL = re.compile(r"(?:(?<=[;\s{\"'])|^)display\s*:\s*table-cell\b", re.IGNORECASE)
_CELL_APART = r"padding-right:8px;\g<0>"
_AS_BLOCK = r"\1block"
_BLANK = '{content:" "}'


GAPS = (
    f"{','.join(_ON_LINES)}{{display:block}}"
    f"{','.join(f'{tag}::before,{tag}::after' for tag in CONTROLS)}{_BLANK}"
    f"{','.join(f'[{_MARK}]>{tag}::before' for tag in _IN_LINES)}{_BLANK}"
)
"""Style sheet of all pages."""


def with_gaps(html: str) -> str:
    """``html``, whose styles stand in its elements, with a blank before each child of a flex or grid container that has
    no line of its own, and room behind each cell of elements that are no table; containers have lines of their own."""

    def marked(match: re.Match[str]) -> str:
        style = STYLE_VALUE.search(match[2])
        if style is None:
            return match[0]
        drawn = match[2].replace(style[0], _OWN_LINES.sub(_AS_BLOCK, _CELL.sub(_CELL_APART, style[0])), 1)
        mark = f' {_MARK}="1"' if _LAYS_OUT.search(style[1] or style[2] or "") else ""
        return f"<{match[1]}{mark}{drawn}{match[3]}>"

    return TAG.sub(marked, html)
