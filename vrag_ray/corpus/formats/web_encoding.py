"""The encoding that web pages, other markup and mails state themselves."""

from __future__ import annotations

import codecs
import re

from vrag_ray.corpus.formats.encodings import EXTENSIONS, DecodedText, decode_text, is_unlikely
from vrag_ray.corpus.sniff import HEAD_BYTES

_ENCODING = re.compile(rb"(?:<meta[^>]*charset|<\?xml[^>]*encoding)\s*=\s*[\"']?([\w-]+)", re.IGNORECASE)
_CHARSET = re.compile(rb"((?:<meta[^>]*charset|<\?xml[^>]*encoding)\s*=\s*[\"']?)[\w-]+", re.IGNORECASE)


_EXTENDED = {"iso8859-1": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874", "tis-620": "cp874", "ascii": ""}
"""What calls itself Latin-1, Latin-5 or Thai is in its extension by Windows: Python takes all bytes for characters."""
_OTHER_LABEL = re.compile(
    r"(?:x-)?(?:(?:windows|dos)-(?P<page>\d{3,4})|(?P<name>.+?)(?:(?<=8859-8)-[ei])?)", re.IGNORECASE
)
"""Labels that Python does not know: windows-874, dos-874, x-sjis, x-cp1251, iso-8859-8-i."""
_BY_CHANCE = re.compile(r"[\x00-\x7f]*(?:(?<![A-Za-z])[\x80-\u07ff](?![A-Za-z])[\x00-\x7f]*){,4}")
"""What two or three words in an encoding of two bytes a character may look like in UTF-8."""


def markup_in_utf8(data: bytes) -> tuple[bytes, str]:
    """Markup in UTF-8, with nothing in it that says otherwise, since MuPDF knows few encodings; and a notice."""
    decoded = markup_text(data)
    return _CHARSET.sub(rb"\1utf-8", decoded.text.encode("utf-8", "replace")), decoded.notice


def markup_text(data: bytes) -> DecodedText:
    """Markup in the encoding that it states, where its bytes are likely in it. The errors are those of
    ``stated_text``."""
    match = _ENCODING.search(data[:HEAD_BYTES])
    stated = match[1].decode("ascii") if match else ""
    # It could not be found in UTF-16.
    return stated_text(data, "" if stated.lower().startswith("utf") else stated, is_doubtful=True)


def stated_text(data: bytes, stated: str, *, is_doubtful: bool = False) -> DecodedText:
    """A text that states its encoding, "" where it states none, and a notice of a guess.

    What is UTF-8 is read as that whatever it states, but for a few words in an encoding of several bytes a character,
    which may be right in UTF-8 by chance, and for those that write everything in ASCII. What is not UTF-8 is read as it
    states where the bytes fit that, and, where the statement is doubtful, are likely in it; else its encoding is
    detected.

    Raises:
        DecodeError: binary data, damaged text, or an encoding that cannot be detected.
    """
    name = _known(stated)
    by_statement = _decoded(data, name)
    if not by_statement and name in EXTENSIONS:
        name = EXTENSIONS[name]
        by_statement = _decoded(data, name)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "" if is_doubtful and by_statement and is_unlikely(data, name) else by_statement
    else:
        if 0 < len(by_statement) < len(data) and _BY_CHANCE.fullmatch(text):
            text = by_statement
    return DecodedText(text) if text and "\0" not in text else decode_text(data)


def _known(stated: str) -> str:
    """The name of the encoding to read by what is stated, "" for one that is unknown."""
    other = _OTHER_LABEL.fullmatch(stated.strip())
    for label in (stated, f"cp{other['page']}" if other["page"] else other["name"]) if other else ():
        try:
            name = codecs.lookup(label).name
        except (LookupError, ValueError):
            continue
        return _EXTENDED.get(name, name)
    return ""


def _decoded(data: bytes, name: str) -> str:
    """The text, "" for bytes that are not in that encoding."""
    try:
        return data.decode(name) if name and name != "utf-8" else ""
    except (UnicodeDecodeError, LookupError):
        return ""
