"""Calendars and address books (ICS, VCF), whose lines are broken after 75 bytes wherever that is."""

from __future__ import annotations

import codecs
import re

_BEGIN = re.compile(rb"\s*BEGIN:(?:VCALENDAR|VCARD)\b", re.IGNORECASE)
_FOLD = re.compile(rb"\r?\n[ \t]")
_ESCAPE = re.compile(rb"\\([\\,;nN])")


def unfolded(data: bytes) -> bytes:
    """A calendar or an address book with whole lines and without the marks before commas; other ``data`` as it is.

    These are bytes, since a line may be broken inside a character.
    """
    if not _BEGIN.match(data.removeprefix(codecs.BOM_UTF8)):
        return data
    return _ESCAPE.sub(lambda found: b"\n" if found[1] in b"nN" else found[1], _FOLD.sub(b"", data))
