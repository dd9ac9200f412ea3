"""The encoding that web pages, other markup and mails state themselves."""

from __future__ import annotations

import codecs
import re

from vrag_ray.corpus.formats.encodings import DecodedText, decode_text, is_unlikely
from vrag_ray.corpus.sniff import HEAD_BYTES

_ENCODING = re.compile(rb"(?:<meta[^>]*charset|<\?xml[^>]*encoding)\s*=\s*[\"']?([\w-]+)", re.IGNORECASE)
_CHARSET = re.compile(rb"((?:<meta[^>]*charset|<\?xml[^>]*encoding)\s*=\s*[\"']?)[\w-]+", re.IGNORECASE)


_EXTENDED = {"iso8859-1": "cp1252", "iso8859-9": "cp1254", "ascii": ""}
"""What calls itself Latin-1 or Latin-5 is in its extension by Windows, and every byte is a character of either."""
_BY_CHANCE = re.compile(r"[\x00-\x7f]*(?:(?<![A-Za-z])[\x80-\u07ff](?![A-Za-z])[\x00-\x7f]*){,4}")
"""What two or three words in an encoding of two bytes a character may look like in UTF-8."""


def markup_in_utf8(data: bytes) -> tuple[bytes, str]:
    """Markup in UTF-8, with nothing in it that says otherwise, since MuPDF knows few encodings; and a notice."""
    found = _ENCODING.search(data[:HEAD_BYTES])
    stated = found[1].decode("ascii") if found else ""
    # It could not be found in UTF-16.
    decoded = stated_text(data, "" if stated.lower().startswith("utf") else stated, is_doubtful=True)
    return _CHARSET.sub(rb"\1utf-8", decoded.text.encode("utf-8", "replace")), decoded.notice


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
    try:
        name = codecs.lookup(stated).name
    except (LookupError, ValueError):
        return ""
    return _EXTENDED.get(name, name)


def _decoded(data: bytes, name: str) -> str:
    """The text, "" for bytes that are not in that encoding."""
    try:
        return data.decode(name) if name and name != "utf-8" else ""
    except (UnicodeDecodeError, LookupError):
        return ""
