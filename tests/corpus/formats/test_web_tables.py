"""Tables of web pages: each row on a line, each head over its columns."""

from __future__ import annotations

import pytest

from tests.support.documents import decoded
from vrag_ray.corpus.formats.web_tables import with_drawn_tables
from vrag_ray.corpus.model import WorkItem
from vrag_ray.types import DocumentKind, Locator

SPANS = (
    '<table><tr><th rowspan="2">Lock</th><th colspan="2">Level (m)</th></tr><tr><th>Spring tide</th>'
    "<th>Neap tide</th></tr><tr><td>Lock A</td><td>6.0</td><td>4.2</td></tr><tr><td>Lock C</td><td>5.2</td>"
    "<td>3.1</td></tr></table>"
)
PLAIN = (
    "<h2>Rents</h2><table><tr><th></th><th>Bergen</th><th>Molde</th></tr><tr><th>Boathouse</th><td>301</td>"
    "<td>288</td></tr><tr><th>Shed</th><td>110</td><td>95</td></tr></table>"
)


def test_two_tables_of_a_web_page_have_their_own_heads_and_those_in_two_rows(sandbox, put, no_ocr):
    path = put("harbour.html", f"<html><body><h1>Harbour</h1>{SPANS}{PLAIN}</body></html>".encode())
    text = sandbox.page_text(path, DocumentKind.PDF, Locator(page=1), no_ocr).text
    assert text.splitlines() == [
        "Harbour",
        "| Lock | Level (m) Spring tide | Level (m) Neap tide |",
        "| --- | --- | --- |",
        "| Lock A | 6.0 | 4.2 |",
        "| Lock C | 5.2 | 3.1 |",
        "Rents",
        "|  | Bergen | Molde |",
        "| --- | --- | --- |",
        "| Boathouse | 301 | 288 |",
        "| Shed | 110 | 95 |",
    ]


def test_running_text_takes_the_room_that_short_cells_leave(sandbox, put, no_ocr):
    prose = "waiting for the permit of the county"
    rows = [
        ("Project", "Lead", "Cost", "Due", "State"),
        *(
            (f"Project {name}", "Ola Moe", "1,250,000", "14 May 2022", f"{prose} of {name}")
            for name in ("Fjell", "Hav")
        ),
    ]
    table = "".join(f"<tr>{''.join(f'<td>{text}</td>' for text in row)}</tr>" for row in rows)
    path = put("projects.html", f"<html><body><table>{table}</table></body></html>".encode())
    (unit,) = decoded(sandbox, path, WorkItem("d", DocumentKind.PDF, 0, 1, "projects.html"), no_ocr)
    lines = [line for line in unit.text.splitlines() if line.startswith("Project ")]
    assert lines == [
        "Project Lead Cost Due State",
        f"Project Fjell Ola Moe 1,250,000 14 May 2022 {prose} of Fjell",
        f"Project Hav Ola Moe 1,250,000 14 May 2022 {prose} of Hav",
    ]


@pytest.mark.parametrize(
    "table",
    [
        f"<table><tr><td>{'text ' * 9}</td><td>{'more ' * 20}</td></tr><tr><td>{'a ' * 20}</td><td>b</td></tr></table>",
        "<table><tr><td>Home</td><td>Contact</td></tr></table>",
    ],
)
def test_a_layout_of_running_text_and_a_single_row_are_left_as_they_are(table):
    assert with_drawn_tables(table, 500) == table


def test_a_name_merged_over_two_values_is_no_head():
    rows = "<tr><td>Name</td><td colspan=2>Siri Moe</td></tr><tr><td>Born</td><td>Molde</td><td>May</td></tr>"
    assert with_drawn_tables(f"<table>{rows}</table>", 500).count("Siri Moe") == 1


@pytest.mark.parametrize(
    ("table", "lines"),
    [
        (
            "<tr><td>The ropewalk of Sund was<br>roofed in 1845 by the<br>master of Kiel.</td>"
            "<td>The tannery was<br>closed in 1899<br>because of its smell.</td></tr>",
            "The ropewalk of Sund was/roofed in 1845 by the/master of Kiel./The tannery was/closed in 1899/"
            "because of its smell.",
        ),
        (
            "<tr><td colspan=2>Lock news</td></tr><tr><td>Home<br>Hours<br>Boats</td><td><b>Lock</b><br>It is the "
            "longest lock of the land.</td></tr><tr><td>Editor</td><td>Ole Brandt</td></tr>",
            "Lock news/Home/Hours/Boats/Lock/It is the longest lock of the land./Editor Ole Brandt",
        ),
        (
            "<tr><td><b>Bergen</b><br>Quay 18<br>Tel. 5531</td><td><b>Oslo</b><br>Karl Gate 7<br>Tel. 2241</td></tr>",
            "Bergen/Quay 18/Tel. 5531/Oslo/Karl Gate 7/Tel. 2241",
        ),
        (
            "<tr><td><table><tr><td>Home<br>Shop</td></tr></table></td><td><table><tr><td>The museum is open."
            "</td></tr><tr><td>It holds nine boats.</td></tr></table></td></tr>",
            "Home/Shop/The museum is open./It holds nine boats.",
        ),
    ],
    ids=["columns", "newsletter", "addresses", "tables in a table"],
)
def test_texts_that_a_table_sets_side_by_side_are_read_one_after_the_other(sandbox, put, options, table, lines):
    path = put("page.html", f"<html><body><table>{table}</table></body></html>".encode())
    (unit,) = decoded(sandbox, path, WorkItem("d", DocumentKind.PDF, 0, 1, "page.html"), options)
    assert unit.text.splitlines() == lines.split("/")


@pytest.mark.parametrize(
    ("table", "lines"),
    [
        ("<tr><td>Name<br>Built<br>Yard</td><td>Thekla<br>1874<br>Burmeister and sons of the old town of Ry</td></tr>",
         "Name Thekla/Built 1874/Yard Burmeister and sons of the old town of Ry"),
        ("<tr><td><b>Month</b><br>January<br>March</td><td><b>Rain</b><br>12 mm<br>31 mm</td></tr>",
         "Month Rain/January 12 mm/March 31 mm"),
        ("<tr><th>Task</th><th>Who</th></tr><tr><td>Paint<br>the hull</td><td>Ole<br>Per</td></tr>",
         "Task Who/Paint Ole/the hull Per"),
        ("<tr><td>-</td><td>Brinell<br>HBW</td><td>Vickers<br>HV</td></tr><tr><td>Steel</td><td>293</td><td>310</td>"
         "</tr>",
         "- Brinell Vickers/HBW HV/Steel 293 310"),
    ],
)  # fmt: skip
def test_labels_beside_their_values_stay_rows(sandbox, put, options, table, lines):
    path = put("page.html", f"<html><body><table>{table}</table></body></html>".encode())
    (unit,) = decoded(sandbox, path, WorkItem("d", DocumentKind.PDF, 0, 1, "page.html"), options)
    assert unit.text.splitlines() == lines.split("/")


def test_a_page_with_the_remark_that_stands_for_a_table_is_read() -> None:
    page = "<table><tr><td>Mast</td><td>Oak <!--table 0--></td></tr></table><p>Tar<!--table 7--></p>"
    drawn = with_drawn_tables(page, 400)
    assert "Oak" in drawn and "Tar" in drawn and "<!--table" not in drawn
