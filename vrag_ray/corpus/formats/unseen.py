"""What office files and web pages hold and do not show, or show struck out: taken out of their markup before MuPDF lays
it out.

MuPDF lays out hidden text of Word, hidden shapes, and most of what a style sheet hides. What it draws itself in the
colour of the ground needs no look here: the pixels of the page show it. It draws no line through struck text, which
would be read as if it still held.
"""

from __future__ import annotations

import re
import zipfile
from bisect import bisect_right
from collections.abc import Callable, Iterator

LEAST_POINTS = 2.0
"""Smaller type is not there to be read."""

_OFF = r"(?:0|false|off|none)"
_VANISH = re.compile(rf"<w:(?:vanish|webHidden|specVanish)(?:\s+w:val=\"(?!{_OFF}\")[^\"]*\")?\s*/>")
_STRIKE = re.compile(r"<w:d?strike(?:\s+w:val=\"([^\"]*)\")?\s*/>")
_COLOUR = re.compile(r"<w:color\b[^>]*w:val=\"([^\"]*)\"")
_SIZE = re.compile(r"<w:sz w:val=\"(\d+)\"")
_TABLE = re.compile(r"</?w:tbl>")
_STYLE_OF = re.compile(r"<w:(?:[rp]|tbl)Style w:val=\"([^\"]*)\"")
_STYLE = re.compile(r"<w:style\b[^>]*w:styleId=\"([^\"]*)\"(?:[^>]*[^/>])?>(.*?)</w:style>", re.DOTALL)
_BASE = re.compile(r"<w:basedOn w:val=\"([^\"]*)\"")
_PARAGRAPH = re.compile(r"<w:p(?:\s[^>]*)?>(?:(?!</?w:p[ >]).)*", re.DOTALL)
_PROPERTIES = re.compile(r"<w:pPr>(?:(?!</w:pPr>).)*", re.DOTALL)
_GROUND = re.compile(
    r"<w:shd\b[^>]*w:fill=\"(?!auto|[fF]{6})[^\"]|<w:background|<w:highlight|<(?:wps|v):|behindDoc=\"1\""
)
_RUN = re.compile(r"(<w:r(?:\s[^>]*)?>\s*<w:rPr>((?:(?!</w:rPr>).)*)</w:rPr>)((?:(?!</?w:r[ >]).)*)", re.DOTALL)
_WORDS = re.compile(r"<w:t(?:\s[^>]*)?>([^<]*)</w:t>")
_GONE = re.compile(r"<w:(moveFrom|del)\b(?:[^>]*[^/>])?>.*?</w:\1>", re.DOTALL)
"""Moved away, or deleted."""
_CHANGED = re.compile(r"<w:([a-z]\w*)Change\b(?:[^>]*[^/>])?>.*?</w:\1Change>", re.DOTALL)
"""The look that something had before it was changed."""
_FALLBACK = re.compile(r"<mc:Fallback>.*?</mc:Fallback>", re.DOTALL)
_WITH_TEXT = re.compile(r"word/(?:document\d*|header\d*|footer\d*|footnotes|endnotes)\.xml")
_SHAPE = re.compile(r"<p:(sp|pic|graphicFrame|cxnSp)>(?:(?!</p:\1>).)*?</p:\1>", re.DOTALL)
_HIDDEN_SHAPE = re.compile(r"<p:cNvPr\b[^>]*\bhidden=\"(?:1|true)\"")
_STRUCK_ON_SLIDE = re.compile(r"\bstrike=\"(?:sng|dbl)Strike\"")
_RUN_OF_SLIDE = re.compile(
    r"<a:rPr\b([^>]*?)(?:/>|(?<!/)>((?:(?!</a:rPr>).)*)</a:rPr>)\s*<a:t>([^<]*)</a:t>", re.DOTALL
)
_OUTLINE_OF_TEXT = re.compile(r"<a:ln\b[^>]*?(?:/>|(?<!/)>.*?</a:ln>)", re.DOTALL)
_NO_FILL = re.compile(r"<a:noFill\s*/>|<a:solidFill>(?:(?!</a:solidFill>).)*<a:alpha val=\"0%?\"\s*/>", re.DOTALL)
_SIZE_ON_SLIDE = re.compile(r"\bsz=\"(\d+)\"")
_LINES_OF_SLIDE = re.compile(r"<a:t>([^<]*)</a:t>")
_NOUGHT = r"(?:0+(?:\.0*)?|\.0+)(?:%|[a-z]+)?"
_NOTHING = re.compile(
    rf"""display\s*:\s*none
    | content-visibility\s*:\s*hidden
    | clip\s*:\s*rect\(\s*[01](?:px)?[,\s]+[01](?:px)?[,\s]+[01](?:px)?[,\s]+[01](?:px)?\s*\)
    | (?:left|top|right|text-indent|margin-left)\s*:\s*-(?:\d{{4,}}(?:px|pt)|\d{{3,}}(?:r?em|ex|ch|vw))
    | clip-path\s*:\s*(?:
        circle\(\s*{_NOUGHT}\s*(?:at\b|\)) | ellipse\(\s*{_NOUGHT}\s
        | polygon\((?:\s*{_NOUGHT}\s+{_NOUGHT}\s*,)*\s*{_NOUGHT}\s+{_NOUGHT}\s*\)
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_NO_OPACITY = re.compile(
    r"(?:^|[;\s])opacity\s*:\s*(?:0*\.?0+%?|0*\.0[012]\d*|0*[012](?:\.\d+)?%)\s*(?:!|;|$)", re.IGNORECASE
)
"""Less than 3 %, which nobody sees."""
_NO_AREA = re.compile(
    rf"""(?:^|[;\s])(?:
        (?:-webkit-)?transform\s*:[^;]*\bscale(?:
            (?:3d|X|Y)?\(\s*{_NOUGHT}\s*[,)] | (?:3d)?\(\s*[\d.]+\s*,\s*{_NOUGHT}\s*[,)]
        )
        | (?:-webkit-)?transform\s*:[^;]*\btranslate(?:3d|X|Y)?\(\s*-(?:\d{{4,}}p[xt]|\d{{3,}}v[wh])
        | scale\s*:\s*{_NOUGHT}\s*(?:!|;|$)
        | (?:-webkit-)?filter\s*:[^;]*\bopacity\(\s*{_NOUGHT}\s*\)
    )""",
    re.IGNORECASE | re.VERBOSE,
)
"""Drawn as a point, outside of the window or without ink, from where an animation may bring it in."""
_INSET = re.compile(r"clip-path\s*:\s*inset\(([^)]*)\)", re.IGNORECASE)
_PERCENT = re.compile(r"\d{1,4}(?:\.\d{1,9})?%")
_WHOLE = 100.0
_SIDES_OF = {1: (0, 0, 0, 0), 2: (0, 1, 0, 1), 3: (0, 1, 2, 1), 4: (0, 1, 2, 3)}
"""By the number of values: which of them hold for the top, the right, the bottom and the left."""
_FADES_IN = re.compile(r"(?:^|[;\s])(?:-webkit-)?animation(?:-name)?\s*:\s*(?!none\b)\w", re.IGNORECASE)
_VISIBILITY = re.compile(r"(?:^|[;\s])visibility\s*:\s*(hidden|collapse|visible)\b", re.IGNORECASE)
_SIZE_STATED = re.compile(
    r"(?:^|[;\s])font(?:-size)?\s*:[^;]*?(?:\d(?:px|pt|pc|rem|cm|mm|in|q|v[wh]|vmin|vmax)\b|medium|small|large)",
    re.IGNORECASE,
)
_NO_SIZE = re.compile(
    r"""(?:^|(?<=[;\s]))(?:
    font-size\s*:\s*(?:0*\.?0+(?:px|pt|em|rem|%|vw)?|(?:0?\.\d+|1(?:\.\d+)?)(?:px|pt))
    | font\s*:\s*0(?:px|pt|em|rem|%)?\s*(?:/\s*[\w.%]+)?\s[^;!]*?
    )\s*(?=!|;|$)""",
    re.IGNORECASE | re.VERBOSE,
)
_NO_SIZE_AS_DRAWN = "font-size:0px"
"""MuPDF takes no other nought."""
_FLAT = re.compile(r"(?:^|[;\s])(?:max-)?height\s*:\s*(?:0*\.?0+(?:px|pt|em|rem|%|vh)?|1px)\s*(?:!|;|$)", re.IGNORECASE)
_CLIPS = re.compile(r"(?:^|[;\s])overflow(?:-[xy])?\s*:\s*(?:hidden|clip)\b", re.IGNORECASE)
"""What stands out of an element of no height is seen without this, and in its padding, as videos do."""
_NARROW = re.compile(r"(?:^|[;\s])width\s*:\s*0*\.?0+(?:px|em|rem|%|vw)?\s*(?:!|;|$)", re.IGNORECASE)
_WIDENED = re.compile(r"\bflex|table-cell|ellipsis|min-width|padding", re.IGNORECASE)
"""By a container, or by what stands in it."""
_PADDED = re.compile(r"(?:^|[;\s])padding[\w-]*\s*:\s*(?!0(?:px)?\s*(?:!|;|$))", re.IGNORECASE)
_INDENTED = re.compile(r"(?:^|[;\s])text-indent\s*:\s*[1-9]\d\d%", re.IGNORECASE)
_OPEN = re.compile(r"\sopen(?=[\s=]|$)", re.IGNORECASE)
_LINE_THROUGH = re.compile(r"text-decoration(?:-line)?\s*:[^;{}]*\bline-through", re.IGNORECASE)
_NO_LINE = re.compile(r"text-decoration(?:-line)?\s*:\s*none", re.IGNORECASE)
REPLACED_TAGS = frozenset(("audio", "canvas", "datalist", "meter", "progress", "video"))
"""Elements in place of whose words a browser draws something else."""
STRUCK_TAGS = frozenset(("del", "s", "strike"))
STRUCK_CLASS = "struck-out"
_CELLS = frozenset(("td", "th"))
TAG = re.compile(r"<([a-zA-Z][\w:-]*)((?:\s+[^\s=>/<]+(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s>]+))?)*)\s*(/?)>")
STYLE_VALUE = re.compile(r"\bstyle\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
_CLASS = re.compile(r"\bclass\s*=\s*(?:\"[^\"]*\"|'[^']*')", re.IGNORECASE)
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
UNSEEN_ATTRIBUTES = frozenset(("hidden", "popover"))
"""A popover is closed until a script or a button opens it."""
_HIDDEN = re.compile(rf"\s(?:{'|'.join(sorted(UNSEEN_ATTRIBUTES))})(?=[\s=]|$)", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"\b(display|visibility)\s*=\s*[\"']\s*(none|hidden|collapse)\s*[\"']", re.IGNORECASE)
SHEET = re.compile(r"(<style\b[^>]*>)(.*?)(</style>)", re.IGNORECASE | re.DOTALL)


def hides(style: str) -> bool:
    """Whether the declarations of a style sheet or of a ``style`` attribute leave nothing of an element to be seen,
    whatever stands in it."""
    return bool(
        _NOTHING.search(style)
        or ((_NO_OPACITY.search(style) or _NO_AREA.search(style)) and not _FADES_IN.search(style))
        or ((inset := _INSET.search(style)) is not None and _cuts_off_all(inset[1]))
        or (_FLAT.search(style) and _CLIPS.search(style) and not _PADDED.search(style))
        or (_NARROW.search(style) and _CLIPS.search(style) and not _WIDENED.search(style))
        or (_INDENTED.search(style) and _CLIPS.search(style) and "nowrap" in style)
    )


def _cuts_off_all(insets: str) -> bool:
    """Whether an element is wholly cut off by insets from its sides, as style sheets state them: ``50%``, ``0 100% 0
    0``, with ``round`` and radii behind them."""
    stated = insets.lower().split("round")[0].split()
    shares = [float(inset[:-1]) if _PERCENT.fullmatch(inset) else 0.0 for inset in stated]
    if len(shares) not in _SIDES_OF:
        return False
    top, right, bottom, left = (shares[stated_at] for stated_at in _SIDES_OF[len(shares)])
    return top + bottom >= _WHOLE or left + right >= _WHOLE


def states_visible(style: str) -> bool | None:
    """Whether declarations make visible what does not state otherwise; None where they do not tell."""
    stated = _VISIBILITY.findall(style)
    return None if not stated else stated[-1].lower() == "visible"


def states_size(style: str) -> bool | None:
    """Whether declarations give type a size that can be read; None where they do not tell."""
    if _NO_SIZE.search(style):
        return False
    # A share of a type without a size has none.
    return True if _SIZE_STATED.search(style) else None


def leaves_unseen(style: str) -> bool:
    """Whether nothing of an element is seen in which nothing states otherwise."""
    return hides(style) or states_visible(style) is False or states_size(style) is False


def seen_page(html: str) -> str:
    """A web page, whose styles stand in its elements, in which what they hide is hidden as MuPDF understands it: by
    ``display: none``, and where what stands in it may be seen, by type without a size."""

    def mark(match: re.Match[str]) -> str:
        style = STYLE_VALUE.search(match[2])
        name, stated = match[1].lower(), (style[1] or style[2] or "") if style is not None else ""
        attributes = _QUOTED.sub("", match[2])
        is_closed = name in REPLACED_TAGS or name == "noscript" or (name == "dialog" and not _OPEN.search(attributes))
        if is_closed or hides(stated) or _HIDDEN.search(attributes):
            return f'<{match[1]} style="display:none"{STYLE_VALUE.sub("", match[2])}{match[3]}>'
        if style is None or not _NO_SIZE.search(stated):
            return match[0]
        start, end = style.span(1 if style[1] else 2)
        return f"<{match[1]}{match[2][:start]}{_NO_SIZE.sub(_NO_SIZE_AS_DRAWN, stated)}{match[2][end:]}{match[3]}>"

    return TAG.sub(mark, html)


def strikes(style: str) -> bool:
    """Whether the declarations of a style sheet or of a ``style`` attribute draw a line through text."""
    return _LINE_THROUGH.search(style) is not None


def without_struck(html: str, *, marks_only: bool = False) -> str:
    """The web page ``html``, whose styles stand in its elements, changed so that what is struck out on it is not shown,
    or has the class ``STRUCK_CLASS``; ``html`` itself where nothing is.

    A cell of a table stays, and is empty: without it the cells behind it would stand below other heads.
    """

    def unstruck_tag(match: re.Match[str]) -> str:
        name, style = match[1].lower(), STYLE_VALUE.search(match[2])
        stated = (style[1] or style[2] or "") if style is not None else ""
        if not strikes(stated) and (name not in STRUCK_TAGS or _NO_LINE.search(stated)):
            return match[0]
        attributes = STYLE_VALUE.sub("", match[2])
        if marks_only:
            return f'<{match[1]} class="{STRUCK_CLASS}"{_CLASS.sub("", attributes)}{match[3]}>'
        look = "display:table-cell;visibility:hidden" if name in _CELLS else "display:none"
        return f'<{match[1]} style="{look}"{attributes}{match[3]}>'

    return TAG.sub(unstruck_tag, html)


def struck_notice(count: int) -> str:
    return f"{count} words that are struck out in it are left out"


def seen_drawing(svg: str) -> str:
    """A drawing in which what is not displayed has no opacity: MuPDF draws it otherwise."""

    def mark(match: re.Match[str]) -> str:
        style = STYLE_VALUE.search(match[2])
        stated = (style[1] or style[2] or "") if style is not None else ""
        unseen = _ATTRIBUTE.search(match[2]) or leaves_unseen(stated)
        return f'<{match[1]} opacity="0"{match[2]}{match[3]}>' if unseen else match[0]

    return TAG.sub(mark, svg)


def seen_document(archive: zipfile.ZipFile) -> tuple[dict[str, bytes], list[str]]:
    """The parts of a DOCX that have text, without what is hidden or struck out in it, and notices of how many words
    that are.

    Text that was moved away is left out silently, as is deleted text; so is the second form of a text box.
    """
    styles = _read(archive, "word/styles.xml")
    looks = {style[1]: style[2] for style in _STYLE.finditer(styles)}

    def by_style(properties: str) -> str:
        """The properties of the style that is named there, then those of the styles that it is based on."""
        named = _STYLE_OF.search(properties)
        chain: dict[str, str] = {}
        while named is not None and named[1] in looks and named[1] not in chain:
            chain[named[1]] = looks[named[1]]
            named = _BASE.search(looks[named[1]])
        return "".join(chain.values())

    hidden = struck = 0

    def has_ground(part: str) -> bool:
        # Of the styles those alone that are used: some programs write dozens of coloured ones.
        used = "".join(by_style(named) for named in {style[0] for style in _STYLE_OF.finditer(part)})
        return _GROUND.search(part + used) is not None

    def on_white(xml: str) -> Callable[[re.Match[str]], bool]:
        """Whether a match in ``xml`` stands in a table, or outside of all, where nothing has a ground of its own."""
        tables = list(outermost(_TABLE, xml))
        ends = [0, *(end for _, end in tables)]
        beside = "".join(xml[end:start] for end, (start, _) in zip(ends, [*tables, (len(xml), 0)], strict=True))
        starts = [start for start, _ in tables]
        on_ground = [has_ground(xml[start:end]) for start, end in tables]
        beside_on_ground = has_ground(beside)

        def is_on_white(match: re.Match[str]) -> bool:
            at = bisect_right(starts, match.start()) - 1
            return not (on_ground[at] if at >= 0 and match.start() < tables[at][1] else beside_on_ground)

        return is_on_white

    def shown(xml: str) -> str:
        def run(match: re.Match[str]) -> str:
            of_style = "" if "<w:vanish" in match[2] else by_style(match[2])
            is_hidden = _is_unseen(match[2] + of_style, is_on_white=is_on_white(match))
            is_struck = not is_hidden and _is_struck(match[2] + of_style)
            return match[1] + without_words(match[3], is_struck) if is_hidden or is_struck else match[0]

        def paragraph(match: re.Match[str]) -> str:
            properties = _PROPERTIES.match(match[0], match[0].index(">") + 1)
            of_style = by_style(properties[0]) if properties is not None else ""
            is_hidden = _is_unseen(of_style, is_on_white=is_on_white(match))
            is_struck = not is_hidden and _is_struck(of_style)
            return without_words(match[0], is_struck) if is_hidden or is_struck else match[0]

        def without_words(part: str, is_struck: bool) -> str:
            nonlocal hidden, struck
            count = sum(len(words[1].split()) for words in _WORDS.finditer(part))
            hidden, struck = (hidden, struck + count) if is_struck else (hidden + count, struck)
            return _WORDS.sub("", part)

        xml = _CHANGED.sub("", _FALLBACK.sub("", xml))
        xml = _GONE.sub(lambda match: _WORDS.sub("", match[0]), xml)
        if looks:
            is_on_white = on_white(xml)
            xml = _PARAGRAPH.sub(paragraph, xml)
        is_on_white = on_white(xml)
        return _RUN.sub(run, xml)

    parts = {name: shown(_read(archive, name)).encode() for name in archive.namelist() if _WITH_TEXT.fullmatch(name)}
    return parts, [*([hidden_notice(hidden)] if hidden else []), *([struck_notice(struck)] if struck else [])]


def outermost(tags: re.Pattern[str], markup: str) -> Iterator[tuple[int, int]]:
    """Where the elements of one kind begin and end that stand in no other of it, as character offsets. ``tags`` finds
    the tags at which they begin and end."""
    depth = start = 0
    for tag in tags.finditer(markup):
        if not tag[0].startswith("</"):
            start = start if depth else tag.start()
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                yield start, tag.end()


def _is_unseen(properties: str, *, is_on_white: bool) -> bool:
    """Whether the properties of text leave nothing of it to be seen; the first of a kind counts."""
    size, colour = _SIZE.search(properties), _COLOUR.search(properties)
    return (
        _VANISH.search(properties) is not None
        or (size is not None and int(size[1]) < 2 * LEAST_POINTS)
        or (is_on_white and colour is not None and colour[1].upper() == "FFFFFF")
    )


def _is_struck(properties: str) -> bool:
    """Whether a line, or two, are drawn through text; the first statement counts."""
    stated = _STRIKE.search(properties)
    return stated is not None and re.fullmatch(_OFF, stated[1] or "") is None


def seen_slide(xml: bytes) -> tuple[bytes, int, int]:
    """A slide of a PPTX without hidden shapes, tiny or transparent type and struck text; how many words are hidden, and
    struck out."""
    text, count, struck = xml.decode("utf-8", "replace"), 0, 0

    def shape(match: re.Match[str]) -> str:
        nonlocal count
        if not _HIDDEN_SHAPE.search(match[0]):
            return match[0]
        count += sum(len(words[1].split()) for words in _LINES_OF_SLIDE.finditer(match[0]))
        return ""

    def run(match: re.Match[str]) -> str:
        nonlocal count, struck
        size, words = _SIZE_ON_SLIDE.search(match[1]), len(match[3].split())
        if (size is not None and int(size[1]) < 100 * LEAST_POINTS) or _is_transparent(match[2] or ""):
            count += words
        elif _STRUCK_ON_SLIDE.search(match[1]):
            struck += words
        else:
            return match[0]
        return match[0].replace(f"<a:t>{match[3]}</a:t>", "<a:t></a:t>")

    text = _RUN_OF_SLIDE.sub(run, _SHAPE.sub(shape, text))
    return (text.encode(), count, struck) if count or struck else (xml, 0, 0)


def _is_transparent(properties: str) -> bool:
    """Whether neither the letters of a run of a slide are filled, nor their outlines drawn."""
    outline = _OUTLINE_OF_TEXT.search(properties)
    is_outlined = outline is not None and "Fill" in outline[0] and not _NO_FILL.search(outline[0])
    return not is_outlined and _NO_FILL.search(_OUTLINE_OF_TEXT.sub("", properties)) is not None


def hidden_notice(count: int) -> str:
    return f"{count} words that are hidden in it are left out"


def _read(archive: zipfile.ZipFile, name: str) -> str:
    return archive.read(name).decode("utf-8", "replace") if name in archive.namelist() else ""
