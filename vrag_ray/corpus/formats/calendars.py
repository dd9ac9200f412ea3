"""Calendar files (iCalendar) and contact cards (vCard) as lines that say what, when, where and who.

Both are lines ``NAME;PARAMETER=value:value``, broken after 75 bytes wherever that is, also inside a character.
"""

from __future__ import annotations

import codecs
import quopri
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from vrag_ray.corpus.formats.encodings import DecodedText, decode_text
from vrag_ray.corpus.formats.web_encoding import stated_text
from vrag_ray.corpus.formats.web_text import text_of_html
from vrag_ray.corpus.model import DecodeError

LONGEST_OF_RECORD = 80
"""Characters of a property that stands on the line of its component; others are texts of their own."""
_BEGIN = re.compile(rb"\s*BEGIN:(?:VCALENDAR|VCARD)\b", re.IGNORECASE)
_FOLD = re.compile(rb"\r?\n[ \t]")
_ESCAPE_OF_BYTES = re.compile(rb"\\([\\,;nN])")
_ESCAPE = re.compile(r"\\([\\,;nN:])")
_LINE = re.compile(r"(?:([\w-]+)\.)?([\w-]+)((?:;(?:\"[^\"]*\"|[^\":;])*)*):(.*)", re.DOTALL)
_PARAMETER = re.compile(r";([\w-]+)(?:=((?:\"[^\"]*\"|[^\";])*))?")
_PART = re.compile(r"(?:\\.|[^;\\])*")
_TIME = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:T(\d\d):?(\d\d)(?::?(\d\d))?(?:\.\d+)?(Z|[+-]\d\d:?\d\d)?)?")
_DURATION = re.compile(r"([+-]?)P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")
_SHOWN = {
    "VEVENT": "event",
    "VTODO": "task",
    "VJOURNAL": "journal",
    "VFREEBUSY": "busy times",
    "VCARD": "contact",
}
"""Components that are read, and what they are called where they have no title."""
_READ = frozenset((*_SHOWN, "VCALENDAR"))
_TITLES = frozenset(("SUMMARY", "FN"))
_NAMES = {
    "DTSTART": "start", "DTEND": "end", "DUE": "due", "COMPLETED": "completed", "DURATION": "duration",
    "LOCATION": "place", "GEO": "coordinates", "DESCRIPTION": "description",
    "X-ALT-DESC": "description", "COMMENT": "comment", "NOTE": "note",
    "ORGANIZER": "organizer", "ATTENDEE": "attendee", "CONTACT": "contact", "STATUS": "status", "URL": "address",
    "CATEGORIES": "categories", "PRIORITY": "priority", "RESOURCES": "resources", "RRULE": "repeats",
    "RDATE": "also on", "EXDATE": "not on", "RECURRENCE-ID": "in place of", "FREEBUSY": "busy", "ATTACH": "attached",
    "PERCENT-COMPLETE": "percent complete", "NICKNAME": "nickname", "ORG": "organization", "TITLE": "title",
    "ROLE": "role", "TEL": "telephone", "EMAIL": "e-mail", "ADR": "address", "LABEL": "address", "BDAY": "birthday",
    "ANNIVERSARY": "anniversary", "IMPP": "messages", "RELATED": "related", "LANG": "language", "GENDER": "gender",
    "MEMBER": "member", "CONFERENCE": "conference", "X-SOCIALPROFILE": "profile",
}  # fmt: skip
"""Properties that are read. The others are of the program that wrote the file, or pictures and keys."""
_TIMES = frozenset(("DTSTART", "DTEND", "DUE", "COMPLETED", "RDATE", "EXDATE", "RECURRENCE-ID", "BDAY", "ANNIVERSARY"))
_STRUCTURED = frozenset(("N", "ORG", "ADR", "GENDER", "GEO"))
_SILENT = frozenset(("VOICE", "INTERNET", "PREF", "UNKNOWN", "X-USER-DEFINED", "OTHER"))
"""Kinds of a telephone or an address that say nothing."""
_UNITS = ("weeks", "days", "h", "min", "s")
_LABEL = "X-ABLABEL"
"""What the user calls a property of the same group."""


@dataclass(frozen=True, slots=True)
class _Property:
    name: str
    group: str
    parameters: dict[str, str]
    value: str


def unfolded(data: bytes) -> bytes:
    """A calendar or an address book with whole lines and without the marks before commas; other ``data`` as it is.

    These are bytes, since a line may be broken inside a character.
    """
    if not _BEGIN.match(data.removeprefix(codecs.BOM_UTF8)):
        return data
    return _ESCAPE_OF_BYTES.sub(lambda match: b"\n" if match[1] in b"nN" else match[1], _FOLD.sub(b"", data))


def read_calendar(data: bytes) -> tuple[DecodedText, str]:
    """What a calendar file or contact cards say, a component on a line as records of other formats are, with its
    description below it and a blank line between components, and a notice of a guessed encoding; and a title, "" where
    there is none. Other ``data`` is the text that it is.

    Raises:
        DecodeError: binary data, damaged text, or an encoding that cannot be detected.
    """
    if not _BEGIN.match(data.removeprefix(codecs.BOM_UTF8)):
        return decode_text(data), ""
    decoded = decode_text(b"\n".join(_whole_lines(_FOLD.sub(b"", data))))
    parts, titles, calendar = list[str](), list[str](), ""
    for component in _components(decoded.text):
        if component[0].value == "VCALENDAR":
            calendar = next((_plain(item.value) for item in component if item.name == "X-WR-CALNAME"), calendar)
            continue
        title, lines = _shown(component)
        titles.append(title)
        short = [line for line in lines if len(line) <= LONGEST_OF_RECORD and "\n" not in line]
        parts.append("\n".join([", ".join(short), *(line for line in lines if line not in short)]))
    if not parts:
        return decode_text(unfolded(data)), ""
    if calendar:
        parts.insert(0, f"calendar: {calendar}")
    title = titles[0] if len(titles) == 1 else calendar
    return DecodedText("\n\n".join(parts), decoded.notice), title


def _whole_lines(data: bytes) -> Iterator[bytes]:
    """Lines, those in quoted-printable (vCard 2.1) without the breaks of that."""
    line, is_quoted = b"", False
    for part in data.splitlines():
        if not line:
            is_quoted = b"QUOTED-PRINTABLE" in part.partition(b":")[0].upper()
        line += part
        if is_quoted and line.endswith(b"="):
            line = line[:-1]
            continue
        yield line
        line = b""
    yield line


def _components(text: str) -> Iterator[list[_Property]]:
    """The components that are read and the calendar itself, each in the order of their ends, begun by its ``BEGIN``.

    What another one holds, as an alarm, is not among its properties.
    """
    opened = list[list[_Property]]()
    for line in text.splitlines():
        match = _LINE.fullmatch(line.strip())
        if match is None:
            continue
        name = match[2].upper()
        if name == "BEGIN":
            opened.append([_Property(name, "", {}, match[4].strip().upper())])
        elif name == "END" and opened:
            component = opened.pop()
            if component[0].value in _READ:
                yield component
        elif opened:
            opened[-1].append(_property(name, match))
    # Of a file that is cut off.
    yield from (component for component in reversed(opened) if component[0].value in _READ)


def _property(name: str, match: re.Match[str]) -> _Property:
    parameters: dict[str, str] = {}
    for stated in _PARAMETER.finditer(match[3]):
        # vCard 2.1 states kinds without their name.
        key, value = (stated[1].upper(), stated[2]) if stated[2] is not None else ("TYPE", stated[1])
        parameters[key] = ",".join(filter(None, (parameters.get(key, ""), value.replace('"', ""))))
    value = match[4].strip()
    if "QUOTED-PRINTABLE" in (parameters.get("ENCODING", "") + parameters.get("TYPE", "")).upper():
        try:
            value = stated_text(quopri.decodestring(value.encode()), parameters.get("CHARSET", "")).text
        except DecodeError:
            value = quopri.decodestring(value.encode()).decode("utf-8", "replace")
    return _Property(name, (match[1] or "").upper(), parameters, value)


def _shown(component: list[_Property]) -> tuple[str, list[str]]:
    """The title of a component, and its lines."""
    kind = component[0].value
    component = [item for item in component if item.name != "X-ALT-DESC" or not _has(component, "DESCRIPTION")]
    labels = {item.group: _plain(item.value).strip("_$!<>") for item in component if item.name == _LABEL}
    title = next((_plain(item.value) for item in component if item.name in _TITLES and item.value), "")
    if not title:
        title = next((_of_parts(item, name_first=True) for item in component if item.name == "N"), "")
    lines = [f"{_SHOWN[kind]}: {title}" if title else _SHOWN[kind]]
    for item in component:
        # A picture, a sound or a file in its bytes.
        is_data = "ENCODING" in item.parameters and item.parameters["ENCODING"].upper() in ("B", "BASE64")
        if item.name not in _NAMES or is_data or not (value := _value(item)):
            continue
        kinds = [labels[item.group]] if item.group and item.group in labels else _kinds(item)
        of_kind = f" ({', '.join(kinds)})" if kinds else ""
        lines.append(f"{_NAMES[item.name]}{of_kind}: {value}")
    return title, lines


def _has(component: list[_Property], name: str) -> bool:
    return any(item.name == name and item.value for item in component)


def _kinds(item: _Property) -> list[str]:
    """Of a telephone, an address and the like: ``work``, ``mobile``."""
    stated = item.parameters.get("TYPE", "").upper().split(",") if item.name in ("TEL", "EMAIL", "ADR", "LABEL") else ()
    return ["mobile" if kind == "CELL" else kind.lower() for kind in stated if kind and kind not in _SILENT]


def _value(item: _Property) -> str:
    if item.name in _TIMES:
        times = (_time(item, part.strip()) for part in item.value.split(","))
        return ", ".join(filter(None, times))
    if item.name == "DURATION" and (match := _DURATION.fullmatch(item.value)):
        return " ".join(f"{n} {unit}" for n, unit in zip(match.groups()[1:], _UNITS, strict=True) if n and int(n))
    if item.name == "RRULE":
        return _rule(item.value)
    if item.name in ("ORGANIZER", "ATTENDEE"):
        called, address = item.parameters.get("CN", ""), _without_scheme(item.value)
        return f"{called} <{address}>" if called and address != called else address or called
    if item.name in _STRUCTURED:
        return _of_parts(item)
    text = _without_scheme(_plain(item.value))
    return text_of_html(text) if item.parameters.get("FMTTYPE", "").lower() == "text/html" else text


def _of_parts(item: _Property, *, name_first: bool = False) -> str:
    """The parts of a name, an organization or an address that are not empty."""
    parts = [_plain(part) for part in _PART.findall(item.value) if part.strip()]
    # The family's name is the first.
    return " ".join([*parts[1:2], *parts[:1]]) if name_first else ", ".join(parts)


def _time(item: _Property, text: str) -> str:
    """``2026-12-03 14:00 Europe/Berlin``; of a day at whose begin something ends, the day before."""
    match = _TIME.fullmatch(text.partition("/")[0])
    if match is None:
        return _plain(text)
    year, month, day, hour, minute, second, offset = match.groups()
    if hour is None:
        try:
            stated = date(int(year), int(month), int(day))
        except ValueError:
            return text
        if item.parameters.get("X-APPLE-OMIT-YEAR") == year:
            return f"--{month}-{day}"
        return str(stated - timedelta(days=1) if item.name == "DTEND" else stated)
    zone = "UTC" if offset == "Z" else offset or item.parameters.get("TZID", "")
    clock = f"{hour}:{minute}" + (f":{second}" if second and second != "00" else "")
    return f"{year}-{month}-{day} {clock} {zone}".rstrip()


def _rule(value: str) -> str:
    """``weekly, on MO, until 2026-12-31``."""
    stated = dict(part.upper().partition("=")[::2] for part in value.split(";"))
    until = _TIME.match(stated.get("UNTIL", ""))
    parts = [
        stated.get("FREQ", "").lower(),
        f"each {stated['INTERVAL']}." if stated.get("INTERVAL", "1") != "1" else "",
        *(f"on {stated[key]}" for key in ("BYDAY", "BYMONTHDAY") if key in stated),
        f"in month {stated['BYMONTH']}" if "BYMONTH" in stated else "",
        f"until {until[1]}-{until[2]}-{until[3]}" if until is not None else "",
        f"{stated['COUNT']} times" if "COUNT" in stated else "",
    ]
    return ", ".join(filter(None, parts))


def _without_scheme(value: str) -> str:
    return re.sub(r"(?:mailto|tel|sms|xmpp|geo):(?=\S)", "", value, count=1, flags=re.IGNORECASE)


def _plain(value: str) -> str:
    """A value without the marks before commas, whose lines are not parted by others without words."""
    text = _ESCAPE.sub(lambda match: "\n" if match[1] in "nN" else match[1], value)
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())
