"""What office files and web pages hold and do not show: taken out of their markup before MuPDF lays it out.

MuPDF lays out hidden text of Word, hidden shapes, and most of what a style sheet hides. What it draws itself in the
colour of the ground needs no look here: the pixels of the page show it.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

LEAST_POINTS = 2.0
"""Smaller type is not there to be read."""

_OFF = r"(?:0|false|off|none)"
_VANISH = re.compile(rf"<w:(?:vanish|webHidden|specVanish)(?:\s+w:val=\"(?!{_OFF}\")[^\"]*\")?\s*/>")
_WHITE = re.compile(r"<w:color\b[^>]*w:val=\"[fF]{6}\"")
_SIZE = re.compile(r"<w:sz w:val=\"(\d+)\"")
_STYLE_OF_RUN = re.compile(r"<w:rStyle w:val=\"([^\"]*)\"")
_STYLE = re.compile(r"<w:style\b[^>]*w:styleId=\"([^\"]*)\".*?</w:style>", re.DOTALL)
_GROUND = re.compile(r"<w:shd\b[^>]*w:fill=\"(?!auto|[fF]{6})[^\"]|<w:background|<w:highlight|<(?:wps|v):")
_RUN = re.compile(r"(<w:r(?:\s[^>]*)?>\s*<w:rPr>((?:(?!</w:rPr>).)*)</w:rPr>)((?:(?!</?w:r[ >]).)*)", re.DOTALL)
_WORDS = re.compile(r"<w:t(?:\s[^>]*)?>([^<]*)</w:t>")
_GONE = re.compile(r"<w:(moveFrom|del)\b(?:[^>]*[^/>])?>.*?</w:\1>", re.DOTALL)
"""Moved away, or deleted."""
_FALLBACK = re.compile(r"<mc:Fallback>.*?</mc:Fallback>", re.DOTALL)
_DRAWN_BY_NOBODY = ("word/media/", "word/embeddings/")
"""MuPDF draws no pictures of a DOCX."""
_SHAPE = re.compile(r"<p:(sp|pic|graphicFrame|cxnSp)>(?:(?!</p:\1>).)*?</p:\1>", re.DOTALL)
_HIDDEN_SHAPE = re.compile(r"<p:cNvPr\b[^>]*\bhidden=\"(?:1|true)\"")
_RUN_OF_SLIDE = re.compile(r"<a:rPr\b[^>]*\bsz=\"(\d+)\"[^>]*?(?:/>|>.*?</a:rPr>)\s*<a:t>([^<]*)</a:t>", re.DOTALL)
_LINES_OF_SLIDE = re.compile(r"<a:t>([^<]*)</a:t>")
_NOTHING = re.compile(
    r"""display\s*:\s*none | visibility\s*:\s*(?:hidden|collapse)
    | (?:^|[;\s])(?:font-size|opacity)\s*:\s*0*\.?0+(?:px|pt|em|rem|%)?\s*(?:!|;|$)
    | font-size\s*:\s*(?:0?\.\d+|1(?:\.\d+)?)(?:px|pt)\s*(?:!|;|$)
    | clip\s*:\s*rect\(\s*[01](?:px)?[,\s]+[01](?:px)?[,\s]+[01](?:px)?[,\s]+[01](?:px)?\s*\)
    | (?:left|top|right|text-indent|margin-left)\s*:\s*-\d{4,}(?:px|pt)
    """,
    re.IGNORECASE | re.VERBOSE,
)
TAG = re.compile(r"<([a-zA-Z][\w:-]*)((?:\s+[^\s=>/]+(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s>]+))?)*)\s*(/?)>")
STYLE_VALUE = re.compile(r"\bstyle\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"\b(display|visibility)\s*=\s*[\"']\s*(none|hidden|collapse)\s*[\"']", re.IGNORECASE)
SHEET = re.compile(r"(<style\b[^>]*>)(.*?)(</style>)", re.IGNORECASE | re.DOTALL)
BLOCK = re.compile(r"\{([^{}]*)\}")
_SCREEN = re.compile(r"@media\s+(?:only\s+)?(?:screen|all)\s*\{((?:[^{}]*\{[^{}]*\})*\s*)\}", re.IGNORECASE)


def hides(style: str) -> bool:
    """Whether the declarations of a style sheet or of a ``style`` attribute leave nothing to be seen."""
    return _NOTHING.search(style) is not None


def seen_page(html: str) -> str:
    """A web page in which what its styles hide is hidden as MuPDF understands it: by ``display: none``."""

    def mark(found: re.Match[str]) -> str:
        style = STYLE_VALUE.search(found[2])
        unseen = found[1].lower() == "noscript" or (style is not None and hides(style[1] or style[2] or ""))
        rest = STYLE_VALUE.sub("", found[2])
        return f'<{found[1]} style="display:none"{rest}{found[3]}>' if unseen else found[0]

    def with_none(found: re.Match[str]) -> str:
        return f"{{{found[1]};display:none}}" if hides(found[1]) else found[0]

    def marked_sheet(found: re.Match[str]) -> str:
        return found[1] + BLOCK.sub(with_none, _SCREEN.sub(r"\1", found[2])) + found[3]

    return SHEET.sub(marked_sheet, TAG.sub(mark, html))


def seen_drawing(svg: str) -> str:
    """A drawing in which what is not displayed has no opacity: MuPDF draws it otherwise."""

    def mark(found: re.Match[str]) -> str:
        style = STYLE_VALUE.search(found[2])
        unseen = _ATTRIBUTE.search(found[2]) or (style is not None and hides(style[1] or style[2] or ""))
        return f'<{found[1]} opacity="0"{found[2]}{found[3]}>' if unseen else found[0]

    return TAG.sub(mark, svg)


def seen_document(path: Path) -> tuple[bytes, list[str]]:
    """The DOCX at ``path`` without hidden text, and a notice of how many words that are.

    Text that was moved away is left out silently, as is deleted text; so is the second form of a text box.
    """
    with zipfile.ZipFile(path) as archive:
        styles = _read(archive, "word/styles.xml")
        unseen = {style[1] for style in _STYLE.finditer(styles) if _VANISH.search(style[0])}
        count = 0

        def shown(xml: str) -> str:
            nonlocal count
            may_be_white = not _GROUND.search(xml)

            def run(found: re.Match[str]) -> str:
                nonlocal count
                size, style = _SIZE.search(found[2]), _STYLE_OF_RUN.search(found[2])
                is_hidden = (
                    _VANISH.search(found[2])
                    or (size and int(size[1]) < 2 * LEAST_POINTS)
                    or (style and style[1] in unseen and "<w:vanish" not in found[2])
                    or (may_be_white and _WHITE.search(found[2]))
                )
                if not is_hidden:
                    return found[0]
                count += sum(len(words[1].split()) for words in _WORDS.finditer(found[3]))
                return found[1] + _WORDS.sub("", found[3])

            xml = _GONE.sub(lambda found: _WORDS.sub("", found[0]), _FALLBACK.sub("", xml))
            return _RUN.sub(run, xml)

        parts = r"word/(?:document\d*|header\d*|footer\d*|footnotes|endnotes)\.xml"
        data = _rewritten(archive, parts, shown)
    return data, [_notice(count)] if count else []


def seen_slide(xml: bytes) -> tuple[bytes, int]:
    """A slide of a PPTX without hidden shapes and tiny type, and how many words those have."""
    text, count = xml.decode("utf-8", "replace"), 0

    def shape(found: re.Match[str]) -> str:
        nonlocal count
        if not _HIDDEN_SHAPE.search(found[0]):
            return found[0]
        count += sum(len(words[1].split()) for words in _LINES_OF_SLIDE.finditer(found[0]))
        return ""

    def run(found: re.Match[str]) -> str:
        nonlocal count
        if int(found[1]) >= 100 * LEAST_POINTS:
            return found[0]
        count += len(found[2].split())
        return found[0].replace(f"<a:t>{found[2]}</a:t>", "<a:t></a:t>")

    text = _RUN_OF_SLIDE.sub(run, _SHAPE.sub(shape, text))
    return (text.encode(), count) if count else (xml, 0)


def _notice(count: int) -> str:
    return f"{count} words that are hidden in it are left out"


def _read(archive: zipfile.ZipFile, name: str) -> str:
    return archive.read(name).decode("utf-8", "replace") if name in archive.namelist() else ""


def _rewritten(archive: zipfile.ZipFile, parts: str, change: Callable[[str], str]) -> bytes:
    """The archive with ``change`` made to its ``parts``, and with the relations that MuPDF insists on."""
    buffer, relations = io.BytesIO(), "word/_rels/document.xml.rels"
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as out:
        for info in archive.infolist():
            if info.filename.startswith(_DRAWN_BY_NOBODY):
                continue
            data = archive.read(info)
            if re.fullmatch(parts, info.filename):
                data = change(data.decode("utf-8", "replace")).encode()
            out.writestr(info.filename, data)
        if relations not in archive.namelist():
            out.writestr(
                relations, '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"/>'
            )
    return buffer.getvalue()
