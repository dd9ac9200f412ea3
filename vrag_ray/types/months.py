"""Names of months, in full and abbreviated: English, with German, French, Spanish and Italian."""

from __future__ import annotations

ENGLISH = (
    ("january", "jan"),
    ("february", "feb"),
    ("march", "mar"),
    ("april", "apr"),
    ("may",),
    ("june", "jun"),
    ("july", "jul"),
    ("august", "aug"),
    ("september", "sept", "sep"),
    ("october", "oct"),
    ("november", "nov"),
    ("december", "dec"),
)
_OTHERS = (
    "januar janvier janv enero gennaio",
    "februar février févr febrero febbraio",
    "märz mars marzo",
    "avril abril aprile",
    "mai mayo maggio",
    "juni juin junio giugno",
    "juli juillet juil julio luglio",
    "août agosto",
    "septembre septiembre settembre",
    "oktober okt octobre octubre ottobre",
    "novembre noviembre",
    "dezember dez décembre déc diciembre dicembre",
)
MONTHS = {
    name: number
    for number, (english, others) in enumerate(zip(ENGLISH, _OTHERS, strict=True), start=1)
    for name in (*english, *others.split())
}
"""The number of a month, from 1, by each of its names in small letters."""
MONTH = rf"(?:{'|'.join(sorted(MONTHS, key=len, reverse=True))})"
"""A regular expression of all names, for use without regard to case."""
