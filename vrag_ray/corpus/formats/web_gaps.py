"""Web pages whose neighbours stay apart: a browser puts room between controls, and between the children of a flex or
grid container. MuPDF knows neither and joins their words, as it does those of cells without a padding. It takes what
it does not know for a part of the line, so that whole containers would follow each other on one."""

from __future__ import annotations

import re

from vrag_ray.corpus.formats.unseen import BLOCK, SHEET, STYLE_VALUE, TAG

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


def _apart(selector: str) -> str:
    return f"{','.join(f'{selector}>{tag}::before' for tag in _IN_LINES)}{_BLANK}"


GAPS = (
    f"{','.join(_ON_LINES)}{{display:block}}"
    f"{','.join(f'{tag}::before,{tag}::after' for tag in CONTROLS)}{_BLANK}"
    f"{_apart(f'[{_MARK}]')}"
)
"""Style sheet of all pages."""


def with_gaps(html: str) -> str:
    """``html`` with a blank before each child of a flex or grid container that has no line of its own, and room behind
    each cell of elements that are no table; containers have lines of their own."""
    if _OWN_LINES.search(html) is None and not any(layout in html for layout in ("flex", "grid", "table-cell")):
        return html

    def marked(match: re.Match[str]) -> str:
        style = STYLE_VALUE.search(match[2])
        stated = (style[1] or style[2] or "") if style is not None else ""
        if style is None:
            return match[0]
        drawn = match[2].replace(style[0], _OWN_LINES.sub(_AS_BLOCK, _CELL.sub(_CELL_APART, style[0])), 1)
        mark = f' {_MARK}="1"' if _LAYS_OUT.search(stated) else ""
        return f"<{match[1]}{mark}{drawn}{match[3]}>"

    def with_rules(match: re.Match[str]) -> str:
        sheet, rules, end = _CELL.sub(_CELL_APART, match[2]), list[str](), 0
        for block in BLOCK.finditer(sheet):
            if _LAYS_OUT.search(block[1]):
                selectors = sheet[end : block.start()].rpartition("{")[2].rpartition("}")[2].rpartition(";")[2]
                rules += [_apart(selector.strip()) for selector in selectors.split(",") if selector.strip()]
            end = block.end()
        return match[1] + _OWN_LINES.sub(_AS_BLOCK, sheet) + "".join(rules) + match[3]

    return SHEET.sub(with_rules, TAG.sub(marked, html))
