import pytest

from tests.support.documents import decoded
from vrag_ray.corpus.formats.table import dialect_of, labelled, rows_of
from vrag_ray.corpus.model import DecodeError, WorkItem
from vrag_ray.types import DocumentKind


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_rows_repeat_the_names_of_their_columns_whatever_parts_the_cells(delimiter):
    text = "\n".join(delimiter.join(row) for row in (["crane", "tonnes"], ["Odin", "73"], ["Thor", "88"]))
    dialect = dialect_of(text)
    assert dialect is not None
    assert (dialect.delimiter, dialect.header) == (delimiter, ("crane", "tonnes"))
    rows = list(rows_of(text, dialect.delimiter))[dialect.body :]
    assert [labelled(row.cells, dialect.header) for row in rows] == [
        "crane: Odin, tonnes: 73",
        "crane: Thor, tonnes: 88",
    ]


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("region,2021,2022\nNorth,3,4\n", ("region", "2021", "2022")),
        ("Yearbook,,\ncrane,tonnes,port\nOdin,73,Kiel\nThor,88,Kiel\n", ("crane", "tonnes", "port")),
        ("Port,Depth,\nBergen,9.4,m\nKiel,7.1,m\n", ("Port", "Depth", "")),
        (",Port,Depth\n0,Bergen,9.4\n1,Kiel,7.1\n", ("", "Port", "Depth")),
        ("Yearbook,tonnes,\ncrane,lifts,port\nOdin,73,Kiel\nThor,88,Kiel\n", ("crane", "lifts", "port")),
        ("1,2\n3,4\n", ()),
        ("Ann,Kiel\nBob,Kiel\n", ()),
    ],
)
def test_the_header_is_the_row_that_names_columns(text, header):
    dialect = dialect_of(text)
    assert dialect is not None
    assert dialect.header == header


def test_prose_is_no_table():
    assert dialect_of("Text, with commas,\nof any number.\nHere, and, here.\nNone at all.\n") is None


def test_pieces_end_at_rows_and_are_read_again_as_they_were_indexed(sandbox, put, options):
    rows = "".join(f'"crane {number}",{number},"a remark\non two lines"\n' for number in range(200))
    path = put("cranes.csv", ("Yearbook,,\nname,tonnes,remark\n" + rows).encode())
    probe = sandbox.probe(path, "cranes.csv")
    assert (probe.kind, probe.meta["format"], probe.notices) == (DocumentKind.TEXT, "table", ())
    assert probe.units > 5
    units = decoded(sandbox, path, WorkItem("d", DocumentKind.TEXT, 0, probe.units, "cranes.csv"), options)
    lines = [line for unit in units for line in unit.text.splitlines()]
    assert lines[:2] == ["Yearbook", "name tonnes remark"]
    assert lines[2:] == [f"name: crane {n}, tonnes: {n}, remark: a remark on two lines" for n in range(200)]
    for unit in (units[0], units[3]):
        page = sandbox.page_text(path, DocumentKind.TEXT, unit.locator, options, format_="table")
        assert page.text == unit.text


def test_words_that_line_ends_divide_are_whole_in_their_cell(sandbox, put, options):
    rows = ['name,"concen-\ntration"', 'North,"615 at the sea-\nbird rock, tide-\nwater fell"', "South,702 by sea-bird"]
    path = put("lakes.csv", "\n".join(rows).encode())
    (unit,) = decoded(sandbox, path, WorkItem("d", DocumentKind.TEXT, 0, 1, "lakes.csv"), options)
    assert unit.text.splitlines() == [
        "name concentration",
        "name: North, concentration: 615 at the sea-bird rock, tidewater fell",
        "name: South, concentration: 702 by sea-bird",
    ]


def test_rows_of_an_old_mac_end_at_carriage_returns_and_line_feeds_in_cells_do_not_end_them(sandbox, put, options):
    path = put("cranes.csv", b'name,tonnes,remark\rOdin,73,"old\nand slow"\rThor,88,new\r')
    assert sandbox.probe(path, "cranes.csv").notices == ()
    (unit,) = decoded(sandbox, path, WorkItem("d", DocumentKind.TEXT, 0, 1, "cranes.csv"), options)
    assert unit.text.splitlines() == [
        "name tonnes remark",
        "name: Odin, tonnes: 73, remark: old and slow",
        "name: Thor, tonnes: 88, remark: new",
    ]


def test_a_table_without_columns_is_read_as_text_and_says_so(sandbox, put, options):
    path = put("notes.csv", b"only\nlines\n")
    probe = sandbox.probe(path, "notes.csv")
    assert probe.notices == ("read as plain text: no table is seen in it",)
    (unit,) = decoded(sandbox, path, WorkItem("d", DocumentKind.TEXT, 0, 1, "notes.csv"), options)
    assert unit.text == "only\nlines"


def test_a_table_has_no_picture(sandbox, put, options):
    path = put("a.csv", b"a,b\n1,2\n")
    locator = decoded(sandbox, path, WorkItem("d", DocumentKind.TEXT, 0, 1, "a.csv"), options)[0].locator
    with pytest.raises(DecodeError, match="has no picture"):
        sandbox.render(path, DocumentKind.TEXT, locator, dpi=72, box=None, max_pixels=100)


@pytest.mark.parametrize(
    ("above", "rows"),
    [
        (
            '"Account";"DE12 3456";\n"From";"2024-03-01";\n\n',
            '"Day";"Payee";"Sum";"Note"\n4;Ulm;-87,00;a\n11;Bau;99;b\n',
        ),
        ("# Station: Aker\n# Height: 13 m\n# Source: MET\n", "date,temp\n1 May,-3.2\n2 May,-4.0\n"),
        ("Readings\nGauge 4\nMarch\nApril\n", "day\tlevel\n1\t3.4\n2\t3.5\n"),
    ],
)
def test_a_short_table_below_lines_that_say_what_it_is_about_is_one(above, rows):
    dialect = dialect_of(above + rows)
    assert dialect is not None
    assert (len(dialect.header), dialect.body) == (
        len(rows.split("\n")[0].split(dialect.delimiter)),
        above.count("\n") + 1 - above.count("\n\n"),
    )


def test_two_lines_with_commas_below_a_note_are_no_table():
    assert (
        dialect_of("A note on the ferry\nthat leaves at nine\nand comes back.\nBring food, water\nand a coat, please\n")
        is None
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "Dues\n\nShip,Dues\nAlma,310\n\nStaff\n\nName,Post\nEli,porter\nJan,diver\n",
            ["Dues", "Ship Dues", "Ship: Alma, Dues: 310", "Staff", "Name Post", "Name: Eli, Post: porter",
             "Name: Jan, Post: diver"],
        ),
        (
            "Day;Users\n2 May;31\n3 May;40\n;\nSource;Share\nMail;12\nWeb;59\n",
            ["Day Users", "Day: 2 May, Users: 31", "Day: 3 May, Users: 40", "Source Share", "Source: Mail, Share: 12",
             "Source: Web, Share: 59"],
        ),
        (
            "Town,Chief\nNorth\nOslo,Kari\nMoss,Ola\n\nSouth\nVoss,Ada\nOdda,Per\n\nSki,-\nNes,7\n",
            ["Town Chief", "Town: North", "Town: Oslo, Chief: Kari", "Town: Moss, Chief: Ola", "Town: South",
             "Town: Voss, Chief: Ada", "Town: Odda, Chief: Per", "Town: Ski, Chief: -", "Town: Nes, Chief: 7"],
        ),
        ("sep=;\nPort;Fee\nMoss;41,5\nTau;38,0\n", ["Port Fee", "Port: Moss, Fee: 41,5", "Port: Tau, Fee: 38,0"]),
        (
            ";January;;February;\nQuay;Planned;Paid;Planned;Paid\nA;100;90;110;105\nB;200;210;205;199\n",
            ["January February", "Quay Planned Paid Planned Paid",
             "Quay: A, January Planned: 100, January Paid: 90, February Planned: 110, February Paid: 105",
             "Quay: B, January Planned: 200, January Paid: 210, February Planned: 205, February Paid: 199"],
        ),
        (
            '"EXTF";700;21;"Batch";9;2024\nAmount;Account;Text\n1190,00;1200;Crane\n59,50;1200;Paint\n',
            ["EXTF 700 21 Batch 9 2024", "Amount Account Text", "Amount: 1190,00, Account: 1200, Text: Crane",
             "Amount: 59,50, Account: 1200, Text: Paint"],
        ),
    ],
    ids=["titles", "figures", "groups of rows", "Excel", "groups of columns", "line of a program"],
)  # fmt: skip
def test_each_row_is_named_by_the_header_of_its_own_table(sandbox, put, options, text, shown):
    path = put("a.csv", text.encode())
    units = decoded(
        sandbox, path, WorkItem("d", DocumentKind.TEXT, 0, sandbox.probe(path, "a.csv").units, "a.csv"), options
    )
    assert [line.strip() for unit in units for line in unit.text.split("\n")] == shown
    for unit in units:
        page = sandbox.page_text(path, DocumentKind.TEXT, unit.locator, options, format_="table")
        assert page.text == unit.text


def shown(sandbox, put, options, name: str, text: str) -> list[str]:
    (unit,) = decoded(sandbox, put(name, text.encode()), WorkItem("d", DocumentKind.TEXT, 0, 1, name), options)
    return unit.text.splitlines()


@pytest.mark.parametrize(
    ("name", "text", "rows"),
    [
        (
            "dump.csv",
            'crane,remark,tonnes\nOdin,"the \\"old\\" one, by the quay",73\nFreya,"\\"new\\"",41\n',
            ['crane: Odin, remark: the "old" one, by the quay, tonnes: 73', 'crane: Freya, remark: "new", tonnes: 41'],
        ),
        (
            "parts.tsv",
            'part\tsize\tprice\nbend\t"elbow\t9.90\ncap\t4" iron\t6.20\nring\t"steel, 2"""\t1.10\n',
            [
                "part: bend, size: \u2033elbow, price: 9.90",
                "part: cap, size: 4\u2033 iron, price: 6.20",
                'part: ring, size: steel, 2", price: 1.10',
            ],
        ),
        (
            "depots.csv",
            'id,name,zip\n="00123",North,="04109"\n"=""00124""",West,="01067"\n',
            ["id: 00123, name: North, zip: 04109", "id: 00124, name: West, zip: 01067"],
        ),
    ],
)
def test_quotes_that_programs_write_otherwise_part_no_cells(sandbox, put, options, name, text, rows):
    assert shown(sandbox, put, options, name, text)[1:] == rows


def test_labels_and_values_of_several_kinds_have_no_header(sandbox, put, options):
    rows = ["Station,Bergsund", "Height,112 m", "Keeper,Lisa Moen", "Built,1987"]
    assert shown(sandbox, put, options, "a.csv", "\n".join(rows)) == [row.replace(",", ": ") for row in rows]
    assert shown(sandbox, put, options, "b.csv", "crane,tonnes\nOdin,73\nFreya,n/a\nBalder,none\nThor,88")[1] == (
        "crane: Odin, tonnes: 73"
    )


def test_a_sentence_alone_in_a_row_is_no_name_of_it(sandbox, put, options):
    text = "crane;load;year\nOdin;73;1998\nFreya;41;2004\nThor;;\n1) measured in May;;\n"
    assert shown(sandbox, put, options, "a.csv", text)[3:] == ["crane: Thor", "1) measured in May"]
