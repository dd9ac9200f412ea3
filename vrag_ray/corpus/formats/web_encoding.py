"""The encoding of web pages and other markup, which they state themselves."""

from __future__ import annotations

import re

from vrag_ray.corpus.formats.encodings import decode_text, is_unlikely
from vrag_ray.corpus.sniff import HEAD_BYTES

_ENCODING = re.compile(rb"(?:<meta[^>]*charset|<\?xml[^>]*encoding)\s*=\s*[\"']?([\w-]+)", re.IGNORECASE)
_CHARSET = re.compile(rb"((?:<meta[^>]*charset|<\?xml[^>]*encoding)\s*=\s*[\"']?)[\w-]+", re.IGNORECASE)


def markup_in_utf8(data: bytes) -> tuple[bytes, str]:
    """Markup in UTF-8, with nothing in it that says otherwise, since MuPDF knows few encodings; and a notice.

    Where the bytes are not UTF-8, the encoding that the markup states is believed if they fit it, or else detected.
    """
    text, notice = "", ""
    stated = _ENCODING.search(data[:HEAD_BYTES])
    name = stated[1].decode("ascii").lower() if stated else ""
    # What calls itself Latin-1 is written in its extension by Windows, and every byte is a character of either.
    name = {"iso-8859-1": "cp1252", "latin1": "cp1252", "us-ascii": ""}.get(name, name)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        try:
            text = data.decode(name) if name and not name.startswith("utf") and not is_unlikely(data, name) else ""
        except (UnicodeDecodeError, LookupError):
            text = ""
    if not text or "\0" in text:
        decoded = decode_text(data)
        text, notice = decoded.text, decoded.notice
    return _CHARSET.sub(rb"\1utf-8", text.encode("utf-8", "replace")), notice
