"""Web pages with their colours written as MuPDF draws them: words on a ground that it leaves out could not be read.

It knows plain colours of style sheets, and of those with an opacity ``#rrggbbaa`` alone: in others it draws no words.
It draws no gradients and pictures behind text or in it, resolves no custom properties, gives groups of rows no ground,
and takes colours from attributes in part.
"""

from __future__ import annotations

import re

from PIL import ImageColor

from vrag_ray.corpus.formats.unseen import STYLE_VALUE, TAG

MIDDLE_GREY = "#808080"
"""In place of a picture behind text, or in it: light type and dark type, and such grounds, differ from it."""
_NUMBER = r"(\d*\.?\d+)"
_ALPHA = rf"\s*(?:[,/]\s*{_NUMBER}(%?)\s*)?\)"
_RGB = re.compile(rf"rgba?\(\s*{_NUMBER}(%?)[\s,]+{_NUMBER}%?[\s,]+{_NUMBER}%?{_ALPHA}", re.IGNORECASE)
_HSL = re.compile(rf"hsla?\(\s*{_NUMBER}(?:deg)?[\s,]+{_NUMBER}%[\s,]+{_NUMBER}%{_ALPHA}", re.IGNORECASE)
_UNKNOWN = re.compile(r"\b(?:rgb|hsl)a?\([^()]*\binherit\b[^()]*\)", re.IGNORECASE)
"""A colour that is made of a property without a value."""
_GROUND = re.compile(r"\bbackground(?:-image)?\s*:\s*((?:url\([^)]*\)|[^;{}])*)", re.IGNORECASE)
_ADDRESS = re.compile(r"url\([^)]*\)", re.IGNORECASE)
_COLOUR = re.compile(r"#[0-9a-f]{3,8}\b|rgba?\([^)]*\)|\b[a-z]{3,20}\b", re.IGNORECASE)
_FAINT = re.compile(r"rgba?\([^)]*[,/]\s*(?:0?\.[0-4]\d*|0|[0-4]?\d%)\s*\)|#\w{6}[0-7]\w\b", re.IGNORECASE)
_BY_GROUND = re.compile(r"\bbackground-clip\s*:\s*text\b", re.IGNORECASE)
"""Letters are filled by their ground, which is drawn nowhere else."""
_CLEAR = re.compile(r"(?:^|[;\s])(?:-webkit-text-fill-)?color\s*:\s*(?:transparent\b|#0{8}\b|#0{4}\b)", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"\s(bgcolor|text|color)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+))", re.IGNORECASE)
_MEANING = {
    **{(tag, "bgcolor"): "background-color" for tag in ("body", "table", "thead", "tbody", "tfoot", "tr", "td", "th")},
    ("body", "text"): "color",
    ("font", "color"): "color",
}


def with_drawn_colours(html: str) -> str:
    """``html``, whose styles stand in its elements, with its grounds and the colours of its type as plain
    declarations."""

    def plain(style: str) -> str:
        style = _UNKNOWN.sub("inherit", style)
        style = _RGB.sub(_as_hex, _HSL.sub(_as_hex_of_hue, style))
        return _GROUND.sub(_drawn_ground, style)

    def lettered(style: str) -> str:
        return f"{style};{_lettered(is_clear=_CLEAR.search(style) is not None)}" if _BY_GROUND.search(style) else style

    def drawn_tag(match: re.Match[str]) -> str:
        name, attributes = match[1], match[2]
        declarations, style = _declared(name.lower(), attributes), STYLE_VALUE.search(attributes)
        stated = (style[1] or style[2] or "") if style is not None else ""
        drawn = lettered(plain(stated))
        if not declarations and drawn == stated:
            return match[0]
        attributes = STYLE_VALUE.sub("", attributes)
        if declarations:
            attributes = _ATTRIBUTE.sub("", attributes)
        quote = "'" if '"' in drawn else '"'
        return f"<{name}{attributes} style={quote}{';'.join([*declarations, drawn]).lstrip('; ')}{quote}{match[3]}>"

    return TAG.sub(drawn_tag, html)


def _lettered(*, is_clear: bool) -> str:
    fill = f";color:{MIDDLE_GREY};-webkit-text-fill-color:{MIDDLE_GREY}"
    return "background-color:transparent" + fill * is_clear


def _declared(tag: str, attributes: str) -> list[str]:
    """The colours that attributes state, as declarations; "inherit" for what is no colour, as a digit."""
    declarations = []
    for attribute in _ATTRIBUTE.finditer(attributes):
        meaning = _MEANING.get((tag, attribute[1].lower()))
        value = (attribute[2] or attribute[3] or attribute[4] or "").strip().lower()
        if meaning is not None:
            declarations.append(f"{meaning}:{value if _is_colour(value) else 'inherit'}")
    return declarations


def _drawn_ground(match: re.Match[str]) -> str:
    value = match[1]
    colours = [
        colour for colour in _COLOUR.findall(_ADDRESS.sub("", value)) if _is_colour(colour) and not _FAINT.match(colour)
    ]
    if colours:
        return f"background-color:{colours[0]}"
    fills = "cover" in value or "no-repeat" not in value
    if "gradient(" in value or (_ADDRESS.search(value) and fills):
        return f"background-color:{MIDDLE_GREY}"
    return match[0]


def _is_colour(text: str) -> bool:
    return text.startswith(("#", "rgb")) or text.lower() in ImageColor.colormap


def _as_hex(match: re.Match[str]) -> str:
    """The colour in the notation whose alpha MuPDF reads: of ``rgba`` it takes a share for a number up to 255."""
    most = 100 if match[2] else 255
    channels = [min(255, round(255 * float(match[number]) / most)) for number in (1, 3, 4)]
    return "#" + "".join(f"{channel:02x}" for channel in channels) + _hex_alpha(match[5], match[6])


def _as_hex_of_hue(match: re.Match[str]) -> str:
    hue, saturation, lightness = (float(match[number]) for number in (1, 2, 3))
    red, green, blue, *_ = ImageColor.getrgb(f"hsl({hue},{min(saturation, 100)}%,{min(lightness, 100)}%)")
    return f"#{red:02x}{green:02x}{blue:02x}{_hex_alpha(match[4], match[5])}"


def _hex_alpha(share: str | None, percent: str | None) -> str:
    if share is None:
        return ""
    alpha = min(255, round(255 * float(share) / (100 if percent else 1)))
    return "" if alpha == 255 else f"{alpha:02x}"
