"""Calendars and contact cards are read as what, when, where and who."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.documents import decoded
from vrag_ray.corpus.formats.calendars import read_calendar
from vrag_ray.corpus.model import WorkItem
from vrag_ray.ingest.sources import list_sources
from vrag_ray.types import DocumentKind

EVENT = """BEGIN:VCALENDAR
PRODID:-//Example//EN
METHOD:REQUEST
BEGIN:VTIMEZONE
TZID:Europe/Oslo
BEGIN:STANDARD
DTSTART:19701025T030000
END:STANDARD
END:VTIMEZONE
BEGIN:VEVENT
UID:1@example.org
DTSTAMP:20261101T080000Z
DTSTART;TZID=Europe/Oslo:20261203T140000
DTEND;TZID="Europe/Oslo":20261203T153000
SUMMARY:Inspection of crane 2\\, quay 4
LOCATION:Shed 5\\; upper floor
DESCRIPTION:Bring the paint lis
 t.\\n\\nAnd the keys.
ORGANIZER;CN="Holm, Ida":mailto:ida@example.org
ATTENDEE;ROLE=REQ-PARTICIPANT;CN=Kai:MAILTO:kai@example.org
RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=TH;UNTIL=20270301T000000Z
STATUS:CONFIRMED
BEGIN:VALARM
TRIGGER:-PT15M
DESCRIPTION:Reminder
END:VALARM
END:VEVENT
END:VCALENDAR
"""
CARD = """BEGIN:VCARD
VERSION:3.0
N:Holm;Ida;;Dr.;
FN:Dr. Ida Holm
ORG:Port of Ness;Cranes
TEL;TYPE=WORK,VOICE:+47 22 00 11
TEL;TYPE=CELL:+47 900 00 111
item1.EMAIL;TYPE=INTERNET:ida@example.org
item1.X-ABLabel:_$!<Work>!$_
ADR;TYPE=HOME:;;Kai 5\\, left;Ness;;4711;Norway
BDAY:1985-04-12
PHOTO;ENCODING=b;TYPE=JPEG:AAAA
 AAAA
END:VCARD
"""


def test_an_event_is_read_with_its_times_and_zones_without_what_programs_need() -> None:
    decoded_text, title = read_calendar(EVENT.replace("\n", "\r\n").encode())
    assert title == "Inspection of crane 2, quay 4"
    assert decoded_text.text.splitlines() == [
        "event: Inspection of crane 2, quay 4, start: 2026-12-03 14:00 Europe/Oslo, end: 2026-12-03 15:30 Europe/Oslo, "
        "place: Shed 5; upper floor, organizer: Holm, Ida <ida@example.org>, attendee: Kai <kai@example.org>, "
        "repeats: weekly, each 2., on TH, until 2027-03-01, status: CONFIRMED",
        "description: Bring the paint list.",
        "And the keys.",
    ]


def test_a_contact_card_is_read_with_its_telephones_and_addresses() -> None:
    decoded_text, title = read_calendar(CARD.encode())
    assert title == "Dr. Ida Holm"
    assert decoded_text.text == (
        "contact: Dr. Ida Holm, organization: Port of Ness, Cranes, telephone (work): +47 22 00 11, "
        "telephone (mobile): +47 900 00 111, e-mail (Work): ida@example.org, "
        "address (home): Kai 5, left, Ness, 4711, Norway, birthday: 1985-04-12"
    )


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        ("DTSTART:20261203T140000Z", "start: 2026-12-03 14:00 UTC"),
        ("DTSTART:20261203T140000", "start: 2026-12-03 14:00"),
        ("DTSTART;VALUE=DATE:20261203\nDTEND;VALUE=DATE:20261206", "start: 2026-12-03, end: 2026-12-05"),
        ("DURATION:PT1H30M", "duration: 1 h 30 min"),
        ("EXDATE;TZID=Asia/Tokyo:20261203T090000,20261210T090000",
         "not on: 2026-12-03 09:00 Asia/Tokyo, 2026-12-10 09:00 Asia/Tokyo"),
        ("DTSTART:soon", "start: soon"),
        ("BDAY;X-APPLE-OMIT-YEAR=1604:1604-07-03", "birthday: --07-03"),
        ("X-ALT-DESC;FMTTYPE=text/html:<p>Sale of <b>pier 7</b></p>", "description: Sale of pier 7"),
        ("DESCRIPTION:Pier 7\nX-ALT-DESC;FMTTYPE=text/html:<b>Pier 7</b>", "description: Pier 7"),
        ("GEO:61.3;5.1", "coordinates: 61.3, 5.1"),
    ],
)  # fmt: skip
def test_times_and_places_of_an_event(lines: str, shown: str) -> None:
    decoded_text, title = read_calendar(f"BEGIN:VCALENDAR\nBEGIN:VEVENT\n{lines}\nEND:VEVENT\nEND:VCALENDAR".encode())
    assert (decoded_text.text, title) == (f"event, {shown}", "")


def test_a_card_of_the_old_version_in_quoted_printable_is_read() -> None:
    card = "BEGIN:VCARD\nN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;J=C3=B6rg;;;\nTEL;WORK;CELL:12\n"
    more = "NOTE;ENCODING=QUOTED-PRINTABLE;CHARSET=ISO-8859-1:Gr=F6=\n=DFe 4=0AKai\nEND:VCARD\n"
    decoded_text, title = read_calendar((card + more).encode())
    assert title == "Jörg Müller"
    assert decoded_text.text == "contact: Jörg Müller, telephone (work, mobile): 12\nnote: Größe 4\nKai"


def test_several_events_are_paragraphs_of_a_calendar_that_has_a_name() -> None:
    event = "BEGIN:VEVENT\nSUMMARY:{}\nEND:VEVENT\n"
    data = f"BEGIN:VCALENDAR\nX-WR-CALNAME:Berths\n{event.format('A')}{event.format('B')}BEGIN:VTODO\nSUMMARY:C"
    assert read_calendar(data.encode())[0].text == "calendar: Berths\n\nevent: A\n\nevent: B\n\ntask: C"
    assert read_calendar(data.encode())[1] == "Berths"


def test_other_content_under_such_a_name_is_the_text_that_it_is() -> None:
    assert read_calendar("Größe".encode("cp1252"))[0].text == "Größe"
    assert read_calendar(b"BEGIN:VCALENDAR\nEND:VCALENDAR")[0].text == "BEGIN:VCALENDAR\nEND:VCALENDAR"


def test_calendars_and_cards_of_a_folder_are_documents(tmp_path: Path, sandbox, put, options) -> None:
    for name in ("a.ics", "b.VCF", "c.vcs"):
        (tmp_path / name).write_text(EVENT)
    listing = list_sources([tmp_path])
    assert ([source.name for source in listing.sources], listing.left_out) == (["a.ics", "b.VCF", "c.vcs"], [])
    path = put("a.ics", EVENT.encode())
    probe = sandbox.probe(path, "a.ics")
    assert (probe.title, probe.meta["format"]) == ("Inspection of crane 2, quay 4", "calendar or contacts")
    (unit,) = decoded(sandbox, path, WorkItem("d", DocumentKind.TEXT, 0, 1, "a.ics"), options)
    assert "place: Shed 5; upper floor" in unit.text
    page = sandbox.page_text(path, DocumentKind.TEXT, unit.locator, options, format_=str(probe.meta["format"]))
    assert page.text == unit.text
