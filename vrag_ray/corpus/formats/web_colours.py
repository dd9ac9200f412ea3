"""Web pages with their colours written as MuPDF draws them: words on a ground that it leaves out could not be read.

It knows plain colours of style sheets. It draws no gradients and pictures behind text, resolves no custom properties,
gives groups of rows no ground, and takes colours from attributes in part.
"""

from __future__ import annotations

import re

from PIL import ImageColor

from vrag_ray.corpus.formats.unseen import BLOCK, SHEET, STYLE_VALUE, TAG

MIDDLE_GREY = "#808080"
"""In place of a picture behind text: light type and dark type differ from it."""
MOST_NESTED = 5
"""Custom properties that name each other."""
_PROPERTY = re.compile(r"(--[\w-]+)\s*:\s*([^;{}]+)")
_VARIABLE = re.compile(r"var\(\s*(--[\w-]+)\s*(?:,([^()]*))?\)")
_HSL = re.compile(r"hsla?\(\s*([\d.]+)(?:deg)?[\s,]+([\d.]+)%[\s,]+([\d.]+)%[^)]*\)", re.IGNORECASE)
_GROUND = re.compile(r"\bbackground(?:-image)?\s*:\s*((?:url\([^)]*\)|[^;{}])*)", re.IGNORECASE)
_ADDRESS = re.compile(r"url\([^)]*\)", re.IGNORECASE)
_COLOUR = re.compile(r"#[0-9a-f]{3,8}\b|rgba?\([^)]*\)|\b[a-z]{3,20}\b", re.IGNORECASE)
_FAINT = re.compile(r"rgba?\([^)]*[,/]\s*(?:0?\.[0-4]\d*|0|[0-4]?\d%)\s*\)|#\w{6}[0-7]\w\b", re.IGNORECASE)
_GROUP = re.compile(r"\b(?:thead|tbody|tfoot)(?=\s*(?:,|$))")
_ATTRIBUTE = re.compile(r"\s(bgcolor|text|color)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+))", re.IGNORECASE)
_MEANING = {
    **{(tag, "bgcolor"): "background-color" for tag in ("body", "table", "thead", "tbody", "tfoot", "tr", "td", "th")},
    ("body", "text"): "color",
    ("font", "color"): "color",
}


def with_drawn_colours(html: str) -> str:
    """``html`` with its grounds and the colours of its type as plain declarations of style sheets."""
    properties: dict[str, str] = {}
    for sheet in SHEET.finditer(html):
        for name, value in _PROPERTY.findall(sheet[2]):
            properties.setdefault(name, value.strip())

    def plain(style: str) -> str:
        for _ in range(MOST_NESTED):
            style = _VARIABLE.sub(lambda found: properties.get(found[1], found[2] or "inherit"), style)
        return _GROUND.sub(_drawn_ground, _HSL.sub(_as_hex, style))

    def drawn_sheet(found: re.Match[str]) -> str:
        return found[1] + _with_groups(plain(found[2])) + found[3]

    def drawn_tag(found: re.Match[str]) -> str:
        name, attributes = found[1], found[2]
        declarations, style = _declared(name.lower(), attributes), STYLE_VALUE.search(attributes)
        stated = (style[1] or style[2] or "") if style is not None else ""
        drawn = plain(stated)
        if not declarations and drawn == stated:
            return found[0]
        attributes = STYLE_VALUE.sub("", attributes)
        if declarations:
            attributes = _ATTRIBUTE.sub("", attributes)
        quote = "'" if '"' in drawn else '"'
        return f"<{name}{attributes} style={quote}{';'.join([*declarations, drawn])}{quote}{found[3]}>"

    return SHEET.sub(drawn_sheet, TAG.sub(drawn_tag, html))


def _declared(tag: str, attributes: str) -> list[str]:
    """What attributes say of colours, as declarations; "inherit" for what is no colour, as a digit."""
    found = []
    for attribute in _ATTRIBUTE.finditer(attributes):
        meaning = _MEANING.get((tag, attribute[1].lower()))
        value = (attribute[2] or attribute[3] or attribute[4] or "").strip().lower()
        if meaning is not None:
            found.append(f"{meaning}:{value if _is_colour(value) else 'inherit'}")
    return found


def _drawn_ground(found: re.Match[str]) -> str:
    value = found[1]
    colours = [
        colour for colour in _COLOUR.findall(_ADDRESS.sub("", value)) if _is_colour(colour) and not _FAINT.match(colour)
    ]
    if colours:
        return f"background-color:{colours[0]}"
    fills = "cover" in value or "no-repeat" not in value
    if "gradient(" in value or (_ADDRESS.search(value) and fills):
        return f"background-color:{MIDDLE_GREY}"
    return found[0]


def _is_colour(text: str) -> bool:
    return text.startswith(("#", "rgb")) or text.lower() in ImageColor.colormap


def _as_hex(found: re.Match[str]) -> str:
    hue, saturation, lightness = (float(found[number]) for number in (1, 2, 3))
    red, green, blue, *_ = ImageColor.getrgb(f"hsl({hue},{min(saturation, 100)}%,{min(lightness, 100)}%)")
    return f"#{red:02x}{green:02x}{blue:02x}"


def _with_groups(sheet: str) -> str:
    """``sheet`` with the declarations of groups of rows given to their rows."""
    parts: list[str] = []
    end = 0
    for block in BLOCK.finditer(sheet):
        selector = sheet[end : block.start()]
        parts.append(_GROUP.sub(lambda group: f"{group[0]}, {group[0]} tr", selector) + block[0])
        end = block.end()
    return "".join([*parts, sheet[end:]])
