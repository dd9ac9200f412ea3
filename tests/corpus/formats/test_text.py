import base64
import json
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.documents import decoded
from vrag_ray.config import DecodeLimits
from vrag_ray.corpus.formats.json_records import json_rows
from vrag_ray.corpus.formats.named_rows import text_tables, with_named_rows
from vrag_ray.corpus.formats.text import divided_words
from vrag_ray.corpus.model import DecodeError, DecodeOptions, WorkItem
from vrag_ray.corpus.sandbox.sandbox import Sandbox
from vrag_ray.types import DocumentKind, Locator, PassageKind


def item(stop: int, name: str) -> WorkItem:
    return WorkItem("doc", DocumentKind.TEXT, 0, stop, name)


def test_markdown_is_titled_by_its_heading_and_cited_by_characters(sandbox: Sandbox, put, options: DecodeOptions):
    text = "# Field notes #\n\n" + "\n\n".join(f"Paragraph {n}: " + "word " * 400 for n in range(5))
    path = put("notes.md", text.encode())
    probe = sandbox.probe(path, "notes.md")
    assert (probe.kind, probe.title, probe.units) == (DocumentKind.TEXT, "Field notes", 3)
    units = decoded(sandbox, path, item(3, "notes.md"), options)
    for unit in units:
        assert unit.kind is PassageKind.TEXT
        assert text[unit.locator.span_start : unit.locator.span_end] == unit.text
        assert sandbox.page_text(path, DocumentKind.TEXT, unit.locator, options).text == unit.text
    assert units[2].text.startswith("Paragraph 4")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_unicode_files_with_and_without_byte_order_mark_read_alike(sandbox, put, options, encoding):
    path = put("a.txt", "größe 大きさ".encode(encoding))
    assert decoded(sandbox, path, item(1, "a.txt"), options)[0].text == "größe 大きさ"


def test_another_encoding_is_read_with_a_notice_that_names_it(sandbox, put, options):
    path = put("a.txt", "größe des hafens".encode("cp1252"))
    assert sandbox.probe(path, "a.txt").notices == ("read as CP1252: it is not UTF-8",)
    assert decoded(sandbox, path, item(1, "a.txt"), options)[0].text == "größe des hafens"


def test_any_suffix_is_a_text_where_the_content_is_one(sandbox, put, options):
    path = put("b.xyz", b"the siren failed at noon")
    assert sandbox.probe(path, "b.xyz").kind is DocumentKind.TEXT
    assert decoded(sandbox, path, item(1, "b.xyz"), options)[0].text == "the siren failed at noon"


def test_broken_lines_of_a_calendar_under_another_name_are_whole(sandbox, put, options):
    data = b"BEGIN:VCALENDAR\r\nLOCATION:Shed 5\\, Quay\r\nDESCRIPTION:Bring the paint lis\r\n t of Zo"
    path = put("a.txt", data + b"\xc3\r\n \xab\\nand keys\r\nEND:VCALENDAR\r\n")
    (unit,) = decoded(sandbox, path, WorkItem("d", DocumentKind.TEXT, 0, 1, "a.txt"), options)
    lines = [line.strip() for line in unit.text.split("\n")]
    assert lines[1:4] == ["LOCATION:Shed 5, Quay", "DESCRIPTION:Bring the paint list of Zoë", "and keys"]
    page = sandbox.page_text(path, DocumentKind.TEXT, unit.locator, options)
    assert page.text == unit.text


def test_captions_without_a_film_are_cited_by_the_characters_of_the_speech(sandbox, put, options):
    data = b"WEBVTT\n\n00:01.000 --> 00:02.000\n<v Per Vik>The dam\n\n00:02.000 --> 00:03.000\nholds.\n"
    path = put("talk.vtt", data)
    assert sandbox.probe(path, "talk.vtt").meta == {"format": "subtitles"}
    (unit,) = decoded(sandbox, path, item(1, "talk.vtt"), options)
    assert unit.text == "[0:00:01] Per Vik: The dam holds."
    page = sandbox.page_text(path, DocumentKind.TEXT, unit.locator, options, format_="subtitles")
    assert page.text == unit.text
    notices = sandbox.probe(put("b.srt", b"no times"), "b.srt").notices
    assert notices == ("read as plain text: it has no caption with a time",)


def test_a_text_is_refused_by_its_size_before_it_is_read(put):
    path = put("a.txt", b"x" * (2**20 + 1))
    refusal = (
        r"a\.txt: is a text of 1 MB, more than the limit of 1 MB: split it, .* or raise corpus\.limits\.max_text_mb"
    )
    with Sandbox(DecodeLimits(max_text_mb=1)) as small, pytest.raises(DecodeError, match=refusal):
        small.probe(path, "a.txt")


def test_binary_data_under_a_text_name_is_an_error(sandbox, put):
    with pytest.raises(DecodeError, match="binary data"):
        sandbox.probe(put("a.txt", b"abc\x00\x01"), "a.txt")


def test_json_lines_become_a_unit_a_row_with_uid_and_scalar_metadata(sandbox, put, options):
    rows = [
        {"uid": "r1", "content": "first row", "year": 2024, "score": 0.5, "ok": True, "nested": {"x": 1}},
        {"id": 7, "text": "second row\nof two lines"},
    ]
    path = put("rows.jsonl", ("\n" + "\n\n".join(map(json.dumps, rows)) + "\n").encode())
    assert sandbox.probe(path, "rows.jsonl").units == 2
    first, second = decoded(sandbox, path, item(2, "rows.jsonl"), options)
    assert (first.text, first.meta) == (
        "first row",
        {"year": 2024, "score": 0.5, "ok": True, "uid": "r1", "line": 2},
    )
    assert (second.text, second.meta) == ("second row\nof two lines", {"id": 7, "uid": "7", "line": 4})
    assert sandbox.page_text(path, DocumentKind.TEXT, second.locator, options).text == second.text


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{broken", "line 2 is not JSON"),
        ("[1]", "line 2 is not a JSON object"),
        ('{"uid": null}', "line 2 has no value"),
        ('{"uid": "x", "text": ' + "[" * 100_000, "line 2 is JSON nested too deeply"),
    ],
)
def test_a_bad_json_line_names_its_line_and_costs_only_itself(sandbox, put, options, line, reason):
    good = json.dumps({"uid": "a", "text": "fine \ud800"})
    path = put("rows.jsonl", f"{good}\n{line}\n{good}\n".encode())
    before, bad, after = decoded(sandbox, path, item(3, "rows.jsonl"), options)
    assert bad.error.startswith(f"rows.jsonl: {reason}")
    assert (before.error, before.text, after.error) == ("", "fine ?", "")


def test_json_lines_without_a_text_are_records_with_the_names_of_their_fields(sandbox: Sandbox, put, options):
    rows = [
        {"ship": "Vega", "berth": 4, "owner": {"city": "Narvik"}, "remark": "long " * 50},
        {"ship": "Alta", "berth": 9, "text": None},
        {"text": "A row of text without uid."},
    ]
    path = put("ships.jsonl", "\n".join(map(json.dumps, rows)).encode())
    assert sandbox.probe(path, "ships.jsonl").meta["format"] == "JSON Lines"
    vega, alta, text = decoded(sandbox, path, item(3, "ships.jsonl"), options)
    assert vega.text.startswith("ship: Vega, berth: 4, owner city: Narvik, remark: long long")
    assert vega.meta == {"ship": "Vega", "berth": 4, "line": 1}
    assert (alta.text, alta.meta) == ("ship: Alta, berth: 9", {"ship": "Alta", "berth": 9, "line": 2})
    assert (text.text, text.meta) == ("A row of text without uid.", {"line": 3})
    for unit in (vega, alta, text):
        page = sandbox.page_text(path, DocumentKind.TEXT, unit.locator, options, format_="JSON Lines")
        assert page.text == unit.text


LIGHTS = {
    "type": "FeatureCollection",
    "features": [
        {"properties": {"name": "Kvit", "height": 31}, "geometry": {"type": "Point", "coordinates": [5.10, 60.2]}},
        {"properties": {"name": "Raud", "height": 18}, "geometry": {"type": "Point", "coordinates": [5.25, 60.4]}},
    ],
}


@pytest.mark.parametrize("indent", [None, 2])
def test_each_object_of_json_is_a_record_however_it_is_printed(sandbox, put, options, indent):
    path = put("lights.geojson", json.dumps(LIGHTS, indent=indent).encode())
    assert sandbox.probe(path, "lights.geojson").meta["format"] == "JSON"
    [unit] = decoded(sandbox, path, item(1, "lights.geojson"), options)
    assert unit.text.split("\n\n")[:3] == [
        "type: FeatureCollection",
        "features properties name: Kvit, properties height: 31, geometry type: Point, geometry coordinates: 5.1; 60.2",
        "features properties name: Raud, properties height: 18, geometry type: Point, geometry coordinates: 5.25; 60.4",
    ]
    page = sandbox.page_text(path, DocumentKind.TEXT, unit.locator, options, format_="JSON")
    assert page.text == unit.text


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ({"port": 80, "hosts": {"a": {"ip": "x"}, "b": {"ip": "y"}}}, ["port: 80", "hosts a ip: x", "hosts b ip: y"]),
        (
            {"ships": [{"name": "Vega", "crew": [{"post": "cook", "who": "Bo"}, {"post": "mate", "who": "Mia"}]}]},
            [
                "ships name: Vega",
                "ships name: Vega, crew post: cook, who: Bo",
                "ships name: Vega, crew post: mate, who: Mia",
            ],
        ),
        (
            [{"name": "Vega", "log": "calm " * 60, "berth": 4}],
            ["name: Vega", "name: Vega, log: " + " ".join(["calm"] * 60), "name: Vega, berth: 4"],
        ),
        (["calm", "wind", 3], ["calm; wind; 3"]),
        ([["ship", "berth"], ["Vega", 4]], ["ship; berth", "Vega; 4"]),
        (
            {"hourly": {"time": ["06:00", "07:00", "08:00"], "wind": [4, None, 7.5]}, "site": "Ness"},
            ["site: Ness", "hourly time: 06:00, wind: 4", "hourly time: 07:00", "hourly time: 08:00, wind: 7.5"],
        ),
        (
            {"crane": {"0": "Odin", "1": "Alma", "2": "Thor"}, "tonnes": {"0": 73, "1": 41, "2": 58}},
            ["crane: Odin, tonnes: 73", "crane: Alma, tonnes: 41", "crane: Thor, tonnes: 58"],
        ),
        (
            {"columns": ["crane", "tonnes"], "index": [0, 1], "data": [["Odin", 73], ["Alma", None]]},
            ["crane: Odin, tonnes: 73", "crane: Alma"],
        ),
        ({"columns": ["lift"], "index": ["Odin", "Alma"], "data": [[73], [41]]}, ["Odin, lift: 73", "Alma, lift: 41"]),
        ({"title": "Lifts", "columns": ["lift"], "data": [[73]]}, ["title: Lifts, columns: lift, data: 73"]),
        ({"tags": ["a", "b", "c"], "authors": ["Lie", "Moe", "Dahl"]}, ["tags: a; b; c, authors: Lie; Moe; Dahl"]),
        ({"size": [3, 4, 5], "names": ["a", "b"]}, ["size: 3; 4; 5, names: a; b"]),
        ([{"on": True, "size": 2.50, "none": None, "empty": {}}, {}, []], ["on: true, size: 2.5"]),
    ],
)
def test_a_record_of_json_has_the_keys_that_lead_to_it_and_the_names_of_those_around_it(value, lines):
    assert [row.text.strip() for row in json_rows(json.dumps(value))] == lines


BRIGS = """<?xml version="1.0" encoding="ISO-8859-1"?>
<r:brigs xmlns:r="urn:r" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="r.xsd">
  <!-- two -->
  <r:brig name="Doris"><master>Leif R\u00f8d</master><draught unit="m">3.2</draught><flag/></r:brig>
  <r:brig name="Flora"><note>Built of <b>oak</b> &amp; pine.</note><port>Eid</port><port>Vik</port></r:brig>
</r:brigs>"""


def test_each_element_of_xml_is_a_record_of_its_attributes_and_children(sandbox, put, options):
    path = put("brigs.xml", BRIGS.encode("latin-1"))
    assert sandbox.probe(path, "brigs.xml").meta["format"] == "XML"
    [unit] = decoded(sandbox, path, item(1, "brigs.xml"), options)
    assert unit.text.strip().split("\n\n") == [
        "brigs brig name: Doris, master: Leif R\u00f8d, draught unit: m, draught: 3.2",
        "brigs brig name: Flora, note: Built of oak & pine., port: Eid; Vik",
    ]
    page = sandbox.page_text(path, DocumentKind.TEXT, unit.locator, options, format_="XML")
    assert page.text == unit.text


@pytest.mark.parametrize(
    ("text", "notice"),
    [
        ("<a>\n<b>oak</a>", "read as plain text: it is not XML from line 2, column 9 on"),
        ("<a>oak &nbsp; pine</a>", "read as plain text: it is not XML from line 1, column 8 on"),
    ],
)
def test_what_is_no_xml_is_read_as_text_with_a_notice(sandbox, put, options, text, notice):
    path = put("a.xml", text.encode())
    assert sandbox.probe(path, "a.xml").notices == (notice,)
    [unit] = decoded(sandbox, path, item(1, "a.xml"), options)
    assert unit.text == text


def test_pieces_of_json_are_whole_records_and_disjoint(sandbox, put, options):
    ships = [{"name": f"ship {number}", "berth": number, "crew": {"mates": 2}} for number in range(200)]
    path = put("ships.json", json.dumps({"ships": ships}, indent=1).encode())
    units = decoded(sandbox, path, item(sandbox.probe(path, "ships.json").units, "ships.json"), options)
    assert len(units) > 5
    assert [line for unit in units for line in unit.text.split("\n") if line] == [
        f"ships name: ship {number}, berth: {number}, crew mates: 2" for number in range(200)
    ]
    spans = [(unit.locator.span_start, unit.locator.span_end) for unit in units]
    assert all(first[1] == second[0] for first, second in pairwise(spans))
    page = sandbox.page_text(path, DocumentKind.TEXT, units[3].locator, options, format_="JSON")
    assert page.text == units[3].text


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet="ab: ", max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet="cd", max_size=2), inner, max_size=4),
    max_leaves=12,
)


@given(JSON_VALUES, st.sampled_from([None, 1]))
def test_no_word_of_json_is_lost(value, indent):
    text = json.dumps(value, indent=indent)
    shown = " ".join(row.text for row in json_rows(text))
    assert set(re.findall(r"[ab]+|\d+", text.replace("false", "").replace("null", ""))) <= set(
        re.findall(r"[ab]+|\d+", shown)
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1,}', "it is not JSON from its character 9 on"),
        ("[" * 50_000, "it is JSON that is nested too deeply"),
    ],
)
def test_what_is_no_json_is_read_as_plain_text_with_a_notice(sandbox, put, options, text, reason):
    path = put("a.json", text.encode())
    assert sandbox.probe(path, "a.json").notices == (f"read as plain text: {reason}",)
    assert decoded(sandbox, path, item(1, "a.json"), options)[0].text == text


def test_a_text_has_no_picture(sandbox, put):
    with pytest.raises(DecodeError, match="has no picture"):
        locator = Locator(span_start=0, span_end=1)
        sandbox.render(put("a.txt", b"a"), DocumentKind.TEXT, locator, dpi=72, box=None, max_pixels=100)


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.txt", b"", "is empty"),
        ("a.exe", b"MZ\x00\x03", "of no supported kind: export it as PDF, .*supported are PDF"),
        ("a.csv.gz", b"\x1f\x8b\x08\0\0", "is an archive or a compressed file, which is not read: unpack it"),
        ("a.tar", b"notes.txt".ljust(257, b"\0") + b"ustar\x0000", "is an archive or a compressed file"),
        ("a.png", b"just text", "is named .png but holds no PNG"),
        ("a.mp4", b"#EXTM3U\nhttp://example.org/x.ts", "is named .mp4 but holds no video"),
        ("a.txt", b"%PDF-1.4", "is a PDF although it is named .txt: rename it"),
        ("a.jpg", b"\x00\x00\x00\x18ftypheic", "is a HEIF although it is named .jpg: rename it"),
        ("a.pdf", b"no pdf at all", "PDF|readable"),
    ],
)
def test_what_cannot_be_read_is_refused_with_name_and_reason(sandbox, put, name, data, reason):
    with pytest.raises(DecodeError, match=reason) as caught:
        sandbox.probe(put(name, data), name)
    assert str(caught.value).startswith(f"{name}: ")


def test_a_missing_file_is_an_error_by_name(sandbox, tmp_path):
    with pytest.raises(DecodeError, match=r"gone\.txt: cannot be opened: No such file"):
        sandbox.probe(tmp_path / "gone", "gone.txt")


BARS = """# Stock

Item | Price | # In stock
---|---:|---
Juicy \\| red apples | 1.99 | 739
Bananas | | 6

The shed is open | most days.

| Crane | Tonnes |
|:------|--------|
| Odin  | 73     |
"""


def test_rows_of_a_markdown_table_repeat_the_names_of_their_columns(sandbox, put, options):
    path = put("stock.md", BARS.encode())
    [unit] = decoded(sandbox, path, item(1, "stock.md"), options)
    assert unit.text.splitlines() == [
        "# Stock",
        "",
        "Item Price # In stock",
        "Item: Juicy | red apples, Price: 1.99, # In stock: 739",
        "Item: Bananas, # In stock: 6",
        "",
        "The shed is open | most days.",
        "",
        "Crane Tonnes",
        "Crane: Odin, Tonnes: 73",
    ]


def test_a_row_that_is_read_by_itself_has_the_names_of_its_columns():
    tables = text_tables(BARS)
    start = BARS.index("Bananas")
    assert with_named_rows(BARS, tables, start, start + 12) == "Item: Bananas, # In stock: 6"
    assert with_named_rows(BARS, tables, 0, BARS.index("\n")) == "# Stock"


@given(st.text(alphabet="a|-:\n ", max_size=60), st.integers(0, 60), st.integers(0, 60))
def test_a_text_of_bars_loses_no_word_wherever_it_is_cut(text, start, length):
    part = with_named_rows(text, text_tables(text), start, start + length)
    assert set(re.findall("a+", text[start : start + length])) <= set(re.findall("a+", part))


@pytest.mark.parametrize(
    "table",
    [
        "Quay     Depth   Berths\n-----------------------\nNorth    9.5     31\nSouth    7.0     33\n",
        "=====  =====  ======\nQuay   Depth  Berths\n=====  =====  ======\n"
        "North  9.5    31\nSouth  7.0    33\n=====  =====  ======\n",
    ],
    ids=["ruled", "reStructuredText"],
)
def test_rows_of_columns_that_blanks_align_repeat_their_names(table):
    text = f"Quays\n\n{table}\nThe lighthouse  was built in 1867."
    lines = with_named_rows(text, text_tables(text), 0, len(text)).splitlines()
    assert [line for line in lines if line.strip(" =")] == [
        "Quays",
        "Quay Depth Berths",
        "Quay: North, Depth: 9.5, Berths: 31",
        "Quay: South, Depth: 7.0, Berths: 33",
        "The lighthouse  was built in 1867.",
    ]


def test_columns_without_a_rule_or_of_uneven_rows_stay_as_they_are():
    documents = "port:    8471\n---\nport:    8472\n"
    for text in ("Quay  Depth\nNorth  9.5\n", "Quay  Depth\n-----------\nNorth  9.5\nSouth  7.0  33\n", documents):
        assert with_named_rows(text, text_tables(text), 0, len(text)) == text


@pytest.mark.parametrize(
    "table",
    [
        "Quay     Depth   Berths\nNorth    9.5     31\nOuter S  7.0     -\nWest             33\n",
        "Quay\tDepth\tBerths\nNorth\t9.5\t31\nOuter S\t7.0\t-\nWest\t\t33\n",
        "               Quay  Depth  Berths\n              North    9.5      31\n"
        "            Outer S    7.0       -\n               West             33\n",
    ],
    ids=["left", "tabs", "right"],
)
def test_columns_of_figures_without_a_rule_are_a_table_and_may_have_empty_cells(table):
    text = f"Quays of 2024\n{table}\nThe lighthouse  was built in 1867."
    lines = [line.strip() for line in with_named_rows(text, text_tables(text), 0, len(text)).splitlines()]
    assert lines == [
        "Quays of 2024",
        "Quay Depth Berths",
        "Quay: North, Depth: 9.5, Berths: 31",
        "Quay: Outer S, Depth: 7.0, Berths: -",
        "Quay: West, Berths: 33",
        "",
        "The lighthouse  was built in 1867.",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "The port  of the  north\nhas four  quays  that are\n31  metres  apart,  and it\nis  12  metres  deep here.\n",
        "Name     Vega\nWidth    20\nDepth    7\nBerths   4\n",
        "#define   WIDTH   w\n#define   DEPTH   20\n#define   BERTH   30\n",
        "int     width;   /* of the quay */\nchar    name;    /* of the ship */\nlong    berth;   /* its number */\n",
        "09:01   quay    31 ships\n09:02   shed    12 ships\n09:03   quay    14 ships\n",
        "Nora    Vega    Bergen\nIvar    Alta    Narvik\nMona    Tyr     Moss\n",
    ],
    ids=["justified", "labels", "defines", "declarations", "log", "names"],
)
def test_lines_with_gaps_that_are_no_columns_of_figures_under_names_are_no_table(text):
    assert text_tables(text) == []


def test_struck_words_of_markdown_are_left_out_and_counted_and_the_others_keep_their_places(sandbox, put, options):
    text = "# Fares\n\nA ticket costs ~~40~~ 55 crowns, ~~and a\nchild pays 9~~.\n\n| Day | Fare |\n|---|---|\n"
    text += "| May | ~~7~~ 8 |\n"
    path = put("fares.md", text.encode())
    assert sandbox.probe(path, "fares.md").notices == ("7 words that are struck out in it are left out",)
    [unit] = decoded(sandbox, path, item(1, "fares.md"), options)
    lines = [" ".join(line.split()) for line in unit.text.splitlines() if line.strip()]
    assert lines == ["# Fares", "A ticket costs 55 crowns, .", "Day Fare", "Day: May, Fare: 8"]
    assert (unit.locator.span_start, unit.locator.span_end) == (0, len(text) - 1)
    assert sandbox.page_text(path, DocumentKind.TEXT, unit.locator, options).text == unit.text


@pytest.mark.parametrize(
    "text",
    [
        "Write `~~old~~` for what is struck out.",
        "~~~\n~~old~~\n~~~",
        "Title\n~~~~~\n\nabout ~~5 and ~~ 6, or ~~\n\n7~~",
        "\\~~40~~",
    ],
    ids=["code", "fence", "unpaired", "escaped"],
)
def test_tildes_that_strike_nothing_out_stay(sandbox, put, options, text):
    path = put("a.md", text.encode())
    assert sandbox.probe(path, "a.md").notices == ()
    assert decoded(sandbox, path, item(1, "a.md"), options)[0].text == text


HIDDEN = """# Gauges

The station <!-- not
shown --> has <span style="display:none">un <span>seen</span> words</span>36 gauges.
<p hidden>gone</p><div class="hidden">stays</div><input hidden>

[//]: # (a remark)
[comment]: <> "another"
[map]: maps/a.md "Map of gauges"

<style>p {color: red}</style>`<!-- code -->`
"""


def test_what_a_markdown_text_does_not_show_is_left_out_and_everything_else_stays_in_its_place(sandbox, put, options):
    path = put("a.md", HIDDEN.encode())
    probe = sandbox.probe(path, "a.md")
    assert probe.notices == ("9 words that are hidden in it are left out",)
    (unit,) = decoded(sandbox, path, item(1, "a.md"), options)
    shown = ['# Gauges The station has 36 gauges. <div class="hidden">stays</div><input hidden>']
    shown += ['[map]: maps/a.md "Map of gauges" `<!-- code -->`']
    assert " ".join(unit.text.split()) == " ".join(shown)
    assert (unit.locator.span_start, unit.locator.span_end) == (0, len(HIDDEN) - 1)
    assert unit.text.index("36 gauges") == HIDDEN.index("36 gauges")
    format_ = str(probe.meta["format"])
    assert sandbox.page_text(path, DocumentKind.TEXT, unit.locator, options, format_=format_).text == unit.text


@pytest.mark.parametrize("remarks", ["[a]: # (x)\n" * 20000, "<!-- " + "x\n" * 60000 + " -->", "\n" * 120000])
def test_no_piece_is_long_where_most_of_a_text_is_blank(sandbox, put, options, remarks):
    text = f"The quay is 9 m wide.\n{remarks}\nIt has 36 gauges."
    path = put("a.md", text.encode())
    units = decoded(sandbox, path, item(2, "a.md"), options)
    assert [unit.text for unit in units] == ["The quay is 9 m wide.", "It has 36 gauges."]
    assert units[1].locator.span_start == text.index("It has")
    assert sandbox.probe(put("b.md", remarks.encode()), "b.md").units == 1
    assert len(decoded(sandbox, put("b.md", remarks.encode()), item(1, "b.md"), options)[0].text) < 60_000


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "A <!-- comment --> and <p hidden>text</p> are shown as they are."),
        ("a.md", "```html\n<!-- comment -->\n<p hidden>text</p>\n```"),
        ("a.md", "Write\n\n    <!-- comment -->\n\nfor a comment that begins with <!-- and has no end"),
        ("a.md", "The <span hidden>element has no end"),
    ],
    ids=["text", "fence", "indented", "without end"],
)
def test_comments_that_are_shown_stay(sandbox, put, options, name, text):
    path = put(name, text.encode())
    assert sandbox.probe(path, name).notices == ()
    assert decoded(sandbox, path, item(1, name), options)[0].text == text


WRAPPED = """The keeper measured the concen-
tration of the salt in the north-
ern basin. The well-
being of the seals, the sea-
bird colony and the tide-
water gauge followed. A tidewater
gauge stands near each bird by the sea.
"""


def test_words_that_line_ends_divide_are_whole_in_their_piece_and_keep_the_lines(sandbox, put, options):
    path = put("notes.txt", WRAPPED.encode())
    (unit,) = decoded(sandbox, path, item(1, "notes.txt"), options)
    assert unit.text.splitlines() == [
        "The keeper measured the concentration",
        "of the salt in the northern",
        "basin. The well-being",
        "of the seals, the sea-bird",
        "colony and the tidewater",
        "gauge followed. A tidewater",
        "gauge stands near each bird by the sea.",
    ]
    assert (unit.locator.span_start, unit.locator.span_end) == (0, len(WRAPPED.rstrip()))
    assert sandbox.page_text(path, DocumentKind.TEXT, unit.locator, options).text == unit.text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("    We repaired the har-\r\n  bour wall.", "    We repaired the harbour\n  wall."),
        ("-v     Print the infor-\n       mation of ships", "-v     Print the information\n       of ships"),
        ("The sluice keeper (see the infor-\nmation) left.", "The sluice keeper (see the information)\nleft."),
        ("We sought the informa-\ntion", "We sought the information"),
        ("> We sought the infor-\n> mation of it", "> We sought the information\n> of it"),
        (">> > We sought the infor-\n>> > mation of it", ">> > We sought the information\n>> > of it"),
        ("We sought the infor-\n\fmation of it", "We sought the information\nof it"),
        ("We sought the infor-\n\n        - 17 -\n\n\f  mation of it", "We sought the information\n  of it"),
        (
            "\\section{Reefs}\nWe sought \\emph{all} infor-\nmation $x = 1$ of sea\\-wa\\-ter~\\cite{a}",
            "\\section{Reefs}\nWe sought \\emph{all} information\n$x = 1$ of seawater~\\cite{a}",
        ),
    ],
)
def test_a_divided_word_is_whole_however_its_lines_are_set(text: str, shown: str) -> None:
    assert with_named_rows(text, divided_words(text, []), 0, len(text)) == shown


@pytest.mark.parametrize(
    "text",
    [
        "the years of pre-\nand post-war trade",
        "width = total - depth-\nmargin of the hull",
        "return total of depth-\nmargin;",
        "anti-\nnon-\nself-",
        "prefix anti-\nprefix non-",
        "- items such as salt-\n- herring and cod",
        "reached pages ten-\n12 of it",
        "a line of mail --\nsigned by the keeper\n-- \nthe keeper",
        "call it with --dry-\nrun or with nothing",
        "name: the old har-\nport: of call",
        "Salt     dried and pre-\nherring  served fresh",
        "2031-05-01 10:00:01 opened the har-\n2031-05-01 10:00:02 closed it",
        "open the file data/har-\nbour with it",
        "a choice of ab-\nb) or of none",
        "> they asked about the infor-\nmation is below",
        "> they asked about the infor-\n>> mation is below",
        "find the range with [a\\-z] or sea\\-water here",
    ],
)
def test_lines_that_end_in_a_hyphen_for_another_reason_stay(text: str) -> None:
    assert divided_words(text, []) == []


def test_a_divided_word_in_a_table_stays_with_its_row() -> None:
    text = "ship  cargo  crates\n----  -----  ------\nOdin  tin    of sal-\nvage  ore    some"
    assert divided_words(text, text_tables(text)) == []


def test_both_pieces_show_the_word_that_stands_at_their_border() -> None:
    text = "We measured the concen-\ntration twice"
    rows = divided_words(text, [])
    assert with_named_rows(text, rows, 0, 23) == "We measured the concentration\n"
    assert with_named_rows(text, rows, 24, len(text)) == "concentration\ntwice"


def test_columns_of_prose_are_read_one_after_the_other() -> None:
    text = (
        "Minutes\n\n"
        "The granary of Elverum burned in          The armoury of Elverum was moved\n"
        "1877 while the clerk Mads Lie was         in 1881 by the captain Nils Fossum\n"
        "away, and the corn of the whole           to the rock above the river, where\n"
        "valley was lost in one night.             it still stands today.\n"
    )
    shown = with_named_rows(text, text_tables(text), 0, len(text))
    assert shown == (
        "Minutes\n\n"
        "The granary of Elverum burned in\n1877 while the clerk Mads Lie was\naway, and the corn of the whole\n"
        "valley was lost in one night.\n\n"
        "The armoury of Elverum was moved\nin 1881 by the captain Nils Fossum\nto the rock above the river, where\n"
        "it still stands today.\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "The lower gate of the mill      Opened in the spring of each year\n"
        "The upper gate of the mill      Opened in the autumn of each year\n"
        "The gate of the long lock       Opened on the first day of June\n",
        "first = find(name, paths)       # resource compiler of all\n"
        "second = find(name, path)       # message compiler of all\n"
        "third = find(name, paths)       # manifest tool of them all\n",
        "--verbose      print more messages than usual\n"
        "--quiet        print no messages but errors\n"
        "--output       write into this file instead\n",
    ],
    ids=["a table of phrases", "code", "options"],
)
def test_lines_that_do_not_run_on_are_no_columns_of_prose(text: str) -> None:
    assert with_named_rows(text, text_tables(text), 0, len(text)) == text


def test_lines_that_end_as_on_old_macs_are_lines(sandbox, put, options):
    path = put("quarry.md", b"# Quarry\r\rThe face is 44 m high.\r\r## Rail\rTwo trains.\r")
    assert sandbox.probe(path, "quarry.md").title == "Quarry"
    [unit] = decoded(sandbox, path, item(1, "quarry.md"), options)
    assert unit.text == "# Quarry\n\nThe face is 44 m high.\n\n## Rail\nTwo trains."


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        ("Nine<br/>pumps", "Nine pumps"),
        ("Nine <i>old</i>er pu<lb break='no'/>mps", "Nine older pumps"),
        ("Nine<p>old<lb/>er</p>", "Nineold er"),
    ],
)
def test_an_empty_element_between_texts_of_xml_parts_words(sandbox, put, options, inside, text):
    path = put("a.xml", f"<r><m>{inside}</m></r>".encode())
    [unit] = decoded(sandbox, path, item(1, "a.xml"), options)
    assert unit.text.strip() == f"r m: {text}"


def notebook(*cells: dict[str, object], **members: object) -> bytes:
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **members}).encode()


def code(source: str, *outputs: dict[str, object]) -> dict[str, object]:
    return {"cell_type": "code", "metadata": {}, "source": source.splitlines(keepends=True), "outputs": outputs}


PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(400)).decode()


def test_a_notebook_is_read_as_its_cells_and_what_they_printed(sandbox, put, options):
    frame = {"text/plain": ["   year  level\n", "0  2019   3.41\n", "1  2020   3.57"], "text/html": "<p>frame</p>"}
    cells = (
        code("# load the gauges\nlevels = read('a.csv')"),
        {"cell_type": "markdown", "metadata": {}, "source": ["# Tides\n", "\n", "The constant of Bergneset is 0.73."]},
        code(
            "fit(levels)",
            {"output_type": "stream", "name": "stdout", "text": ["\r10 %\r 99 %\r\x1b[32mrms error: 0.042\x1b[0m\r\n"]},
            {"output_type": "execute_result", "data": frame},
            {"output_type": "display_data", "data": {"image/png": PICTURE, "text/plain": "<Figure 640x480>"}},
        ),
        code("show(1)", {"output_type": "display_data", "data": {"text/html": "<b>Span</b><p>27 m</p>"}}),
        code("1 / 0", {"output_type": "error", "ename": "ZeroDivisionError", "evalue": "by zero", "traceback": ["T"]}),
    )
    path = put("tides.ipynb", notebook(*cells))
    probe = sandbox.probe(path, "tides.ipynb")
    assert (probe.title, probe.meta["format"], probe.meta["attachments"]) == ("Tides", "Jupyter notebook", 1)
    (unit,) = decoded(sandbox, path, item(1, "tides.ipynb"), options)
    lines = [line for line in unit.text.split("\n") if line.strip("` ")]
    assert lines == [
        "# load the gauges",
        "levels = read('a.csv')",
        "# Tides",
        "The constant of Bergneset is 0.73.",
        "fit(levels)",
        "rms error: 0.042",
        "year level",
        "column 1: 0, year: 2019, level: 3.41",
        "column 1: 1, year: 2020, level: 3.57",
        "![output](data:image/png;base64)",
        "show(1)",
        "Span",
        "27 m",
        "1 / 0",
        "ZeroDivisionError: by zero",
    ]
    page = sandbox.page_text(path, DocumentKind.TEXT, unit.locator, options, format_="Jupyter notebook")
    assert page.text == unit.text


def test_cells_in_worksheets_and_pictures_of_a_cell_are_read(sandbox, put, options):
    sheet = {
        "cells": [
            {"cell_type": "heading", "level": 2, "source": "Kilns"},
            {"cell_type": "code", "input": "heat()", "outputs": [{"output_type": "stream", "text": "1260 degrees"}]},
        ]
    }
    path = put("old.ipynb", json.dumps({"worksheets": [sheet], "nbformat": 3}).encode())
    (unit,) = decoded(sandbox, path, item(1, "old.ipynb"), options)
    assert unit.text == "## Kilns\n\n```\nheat()\n```\n\n```\n1260 degrees\n```"
    cell = {
        "cell_type": "markdown",
        "source": "![map](attachment:m.png)",
        "attachments": {"m.png": {"image/png": PICTURE}},
    }
    assert sandbox.probe(put("new.ipynb", notebook(cell)), "new.ipynb").meta["attachments"] == 1


@pytest.mark.parametrize("text", ['{"cells": 3}', '{"a": 1}', "[1]", '{"cells": [', "the siren failed"])
def test_what_is_no_notebook_is_a_text_with_a_notice(sandbox, put, options, text):
    path = put("a.ipynb", text.encode())
    assert sandbox.probe(path, "a.ipynb").notices == (
        "read as plain text: it is no Jupyter notebook, or a damaged one",
    )
    assert decoded(sandbox, path, item(1, "a.ipynb"), options)[0].text == text


def test_a_comment_in_code_is_no_heading(sandbox, put):
    path = put("a.md", b"Set it up:\n\n```sh\n# as root\nmake\n```\n\n# The `tide` tool\n")
    assert sandbox.probe(path, "a.md").title == "The `tide` tool"


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("a.md", "---\ntags: [x]\ntitle: Trip to Senja\n---\n# Day 1\n", "Trip to Senja"),
        ("a.qmd", '---\n# settings\ntitle: "Yield: plot 9"\nauthor: T\n---\n\n## Harvest\n', "Yield: plot 9"),
        ("a.Rmd", "+++\ntitle = 'Rain'\n+++\nText\n", "Rain"),
        ("a.md", "---\ntitle: >\n  Folded\n---\n# Heading\n", "Heading"),
        ("a.md", "---\n\nA rule, and below it a\ntitle: none\n", "a"),
        ("a.md", "# Heading\n\n---\ntitle: no\n---\n", "Heading"),
        (
            "a.tex",
            "\\documentclass{article}\n% \\title{Old}\n\\title[S]{Loss of {D}ykes\\thanks{X}}\n",
            "Loss of Dykes",
        ),
        ("a.tex", '\\documentclass{article}\n\\title{Der K\\"onig}\n', "Der König"),
        ("a.tex", "\\documentclass{article}\n\\title{Of \\'{x} rays}\n", "a"),
        ("a.txt", "Write \\title{x} on top.", "a"),
        ("a.org", "#+AUTHOR: Liv\n#+TITLE: Minutes of May\n* Roof\n", "Minutes of May"),
    ],
)
def test_a_text_has_the_title_that_it_states_before_it(sandbox, put, name, text, title):
    assert sandbox.probe(put(name, text.encode()), name).title == title


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "Boats:\n+----+------+\n| no | name |\n+====+======+\n| 1  | Hval |\n+----+------+\n| 2  | Sel  |\n"
            "+----+------+\nTwo rows.\n",
            "Boats:\nno name\nno: 1, name: Hval\nno: 2, name: Sel\n\nTwo rows.\n",
        ),
        (
            " no | name\n----+------\n  1 | Hval\n  2 | Sel\n(2 rows)\n",
            "no name\nno: 1, name: Hval\nno: 2, name: Sel\n(2 rows)\n",
        ),
        ("{|\n|-\n| Gerda || 1954\n|-\n| Frida || 1971\n|}\n", None),
        ("a|b\n-|-\n1|2\n", "a b\na: 1, b: 2\n"),
    ],
    ids=["grid", "psql", "wiki", "Markdown"],
)
def test_rows_of_tables_with_drawn_borders_have_the_names_of_their_columns(text: str, shown: str | None) -> None:
    assert with_named_rows(text, text_tables(text), 0, len(text)) == (text if shown is None else shown)


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("a.rst", ".. _top:\n\n======\nSilt\n======\n\nIt is deep.\n", "Silt"),
        ("a.rst", ":orphan:\n\nSilt of the basins\n------------------\n", "Silt of the basins"),
        ("a.adoc", "// remark\n= Silt of basins\nAda Lund\n", "Silt of basins"),
        ("a.txt", "\nSilt report\n===========\n\nIt is deep.\n", "Silt report"),
        ("a.txt", "----------\nSilt diary\n----------\n\nIt is deep.\n", "Silt diary"),
        ("a.md", "Silt report\n===========\n\nIt is deep.\n", "Silt report"),
        ("a.txt", "Vessel Crew\n-----------\nHval 9\n", "a"),
        ("a.yaml", "---\nname: Silt\n---\n", "a"),
        ("a.txt", "It is deep.\nSilt report\n===========\n", "a"),
        ("a.txt", "A long line of a text\n===\n", "a"),
    ],
)
def test_a_heading_above_a_rule_and_that_of_asciidoc_are_titles(sandbox, put, name, text, title):
    assert sandbox.probe(put(name, text.encode()), name).title == title


PROPERTIES = (
    "<?xml version='1.0'?><plist><dict><key>station</key><string>Skjeret</string><key>open</key><true/>"
    "<key>crew</key><array><string>Ola</string><string>Kari</string></array></dict></plist>"
)


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        (
            "a.kml",
            "<?xml version='1.0'?><kml><Placemark><name>Buoy</name><description><![CDATA[<b>Light</b>: 6 s<br>"
            "Red]]></description></Placemark></kml>",
            "kml Placemark name: Buoy, kml Placemark description: Light: 6 s Red",
        ),
        (
            "a.rss",
            "<rss><item><title>Crane</title><description>&lt;p&gt;It lifts &lt;b&gt;6 &amp;amp; 7&lt;/b&gt; t"
            "&lt;/p&gt;</description></item></rss>",
            "rss item title: Crane, rss item description: It lifts 6 & 7 t",
        ),
        ("a.json", '{"body": "<p>The <em>toll</em> is 9</p>", "rule": "a <b and c> d"}',
         "body: The toll is 9, rule: a <b and c> d"),
        ("a.plist", PROPERTIES,
         "plist dict station: Skjeret, plist dict open: true, plist dict crew string: Ola; Kari"),
        ("a.xyz", "<?xml version='1.0'?><a><b>9</b></a>", "a b: 9"),
    ],
)  # fmt: skip
def test_records_hold_the_words_of_web_pages_in_them_and_values_stand_behind_their_keys(
    sandbox, put, options, name, text, shown
):
    (unit,) = decoded(sandbox, put(name, text.encode()), item(1, name), options)
    assert unit.text.strip() == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (r"\section{A} M{\"u}hle, Ren\'e, Fran\c{c}ois, \v{S}ik, Mart\'{\i}nez, S{\o}rby, Stra{\ss}e, \AA lesund",
         r"\section{A} Mühle, René, François, Šik, Martínez, Sørby, Straße, Ålesund"),
        (r"\section{A} 45~crowns, Fig.~\ref{a}, a~b, 9\,\% of R\&D, see /~ida",
         r"\section{A} 45 crowns, Fig. \ref{a}, a b, 9\,% of R&D, see /~ida"),
        ('@book{a, author = {Erd{\\H{o}}s and \\L{}ukasz}}', "@book{a, author = {Erdős and Łukasz}}"),
        (r"\section{A} \omega, \'{x}, \label{o}", r"\section{A} \omega, \'{x}, \label{o}"),
        (r"Open C:\o and say \'e", r"Open C:\o and say \'e"),
    ],
    ids=["TeX", "signs", "BibTeX", "commands", "no TeX"],
)  # fmt: skip
def test_letters_that_tex_writes_as_commands_are_read(sandbox, put, options, text, shown):
    (unit,) = decoded(sandbox, put("a.tex", text.encode()), item(1, "a.tex"), options)
    assert unit.text == shown


def test_a_title_of_tex_may_have_accents(sandbox, put):
    text = r"\documentclass{a}\title{Die M\"uhle am Fluss}"
    assert sandbox.probe(put("a.tex", text.encode()), "a.tex").title == "Die Mühle am Fluss"
