"""Documents that a DOCX holds whole, at a place of its text (``altChunk``): programs write reports so, and Word shows
them as a part of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

from vrag_ray.corpus.formats.encodings import decode_text
from vrag_ray.corpus.formats.mail import shown_part
from vrag_ray.corpus.formats.references import is_held, picture_targets
from vrag_ray.corpus.formats.unseen import seen_page
from vrag_ray.corpus.formats.web_colours import with_drawn_colours
from vrag_ray.corpus.formats.web_encoding import markup_in_utf8
from vrag_ray.corpus.formats.web_formulas import with_written_formulas
from vrag_ray.corpus.formats.web_styles import with_written_styles
from vrag_ray.corpus.model import DecodeError, clean
from vrag_ray.corpus.sniff import Format, sniff_bytes

_BODY = re.compile(r"<body\b([^>]*)>(.*?)(?:</body\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_AROUND = re.compile(r"<!doctype[^>]*>|</?(?:html|head|body)\b[^>]*>", re.IGNORECASE)
_NOT_SHOWN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(style|script|title|template|iframe)\b.*?(?:</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL
)
"""Also where it does not end: nothing behind the chunk is to be lost."""
_ELEMENT = re.compile(r"\s*<[!?a-zA-Z]")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk as HTML, and what of it is left out, in words."""

    markup: str
    notices: tuple[str, ...] = ()


def format_of(data: bytes, name: str) -> Format:
    """What a chunk is. Raises DecodeError for what is of no known kind."""
    try:
        detected = sniff_bytes(data, name).format
    except DecodeError:
        # Its name may claim another kind.
        detected = sniff_bytes(data, "").format
    if detected is Format.TEXT and _ELEMENT.match(decode_text(data).text):
        return Format.HTML
    return detected


def chunk_of(data: bytes, format_: Format) -> Chunk:
    """A text or a web page. Raises DecodeError for another format."""
    if format_ is Format.HTML:
        return _web_page(markup_in_utf8(data)[0].decode("utf-8", "replace"))
    if format_ is Format.MAIL:
        # A web page with its pictures in one file.
        text, is_html = shown_part(data)
        return _web_page(text) if is_html else _plain(text)
    if format_ is Format.TEXT:
        return _plain(decode_text(data).text)
    raise DecodeError(f"{format_} is not read there")


def _plain(text: str) -> Chunk:
    return Chunk("".join(f"<p>{escape(line)}</p>" for line in clean(text).splitlines() if line.strip()))


def _web_page(html: str) -> Chunk:
    styled, notices = with_written_styles(with_written_formulas(html))
    shown = _NOT_SHOWN.sub(" ", with_drawn_colours(seen_page(styled)))
    body = _BODY.search(shown)
    attributes, inner = (body[1], body[2]) if body is not None else ("", shown)
    markup = f"<div{attributes}>{_AROUND.sub(' ', inner)}</div>"
    others = sum(not is_held(target) for target in picture_targets(shown, markdown=False))
    pictures = "1 picture of a web page in it is" if others == 1 else f"{others} pictures of a web page in it are"
    return Chunk(markup, (*notices, *([f"{pictures} left out"] if others else [])))
