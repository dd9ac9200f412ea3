"""Sheets as web pages: merged cells, formulas without values, comments."""

from __future__ import annotations

import io
import re
import zipfile

import pytest

from tests.support.office import archive, relations, xlsx
from vrag_ray.corpus.formats.laid_out import laid_out
from vrag_ray.corpus.formats.office.workbook import sheet_page, styles_of
from vrag_ray.corpus.sniff import Format, sniff

PLAIN = styles_of(None, from_1904=False)


def table(rows: str, *merged: str) -> list[list[str]]:
    """The cells of a sheet's rows, one row a line, ``-`` for an empty cell; ``_`` stands for a blank."""
    lines = [
        "".join("<c/>" if text == "-" else f'<c t="str"><v>{text.replace("_", " ")}</v></c>' for text in line.split())
        for line in rows.strip().splitlines()
    ]
    data = "".join(f'<row r="{number}">{line}</row>' for number, line in enumerate(lines, 1))
    cells = "".join(f'<mergeCell ref="{place}"/>' for place in merged)
    xml = f'<worksheet xmlns="x"><sheetData>{data}</sheetData><mergeCells>{cells}</mergeCells></worksheet>'
    page = sheet_page(xml.encode(), "S", [], PLAIN)
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", page.markup)]


def test_a_name_merged_over_rows_stands_in_each_and_adds_no_row():
    read = table("Quay Berth Depth\nNorth B1 5.5\n- B2 6.25\nLime B4 8.1", "A2:A3", "A4:A900000")
    assert read == [["Quay", "Berth", "Depth"], ["North", "B1", "5.5"], ["North", "B2", "6.25"], ["Lime", "B4", "8.1"]]


def test_heads_in_three_rows_stand_over_each_of_their_columns_and_not_in_the_rows_below():
    rows = "Port Fish - - - Crew\n- 2023 - 2024 - -\n- Cod Ling Cod Ling -\nNorth 1 2 3 4 5"
    assert table(rows, "A1:A3", "B1:E1", "B2:C2", "D2:E2", "F1:F3") == [
        ["Port", "Fish", "Fish", "Fish", "Fish", "Crew"],
        ["", "2023", "2023", "2024", "2024", ""],
        ["", "Cod", "Ling", "Cod", "Ling", ""],
        ["North", "1", "2", "3", "4", "5"],
    ]


@pytest.mark.parametrize(
    ("rows", "merged", "row", "read"),
    [
        ("Fish_of_the_port - -\nPort Cod Ling\nNorth 1 2", "A1:C1", 0, ["Fish of the port"]),
        ("Port Cod Ling\nNorth 1 2\nTotal - 3\nSouth 4 5", "A3:B3", 2, ["Total", "3"]),
        ("Port Cod Ling\nNorth 7 -\nSouth 4 5", "B2:C2", 1, ["North", "7"]),
    ],
)
def test_other_cells_merged_over_columns_stand_once_across_them(rows, merged, row, read):
    assert table(rows, merged)[row] == read


def test_formulas_without_values_are_counted_and_those_with_an_empty_text_are_not():
    cells = (
        '<c><v>1</v></c><c><f>A1+1</f><v/></c><c><f>A1+2</f></c><c t="str"><f>""</f><v/></c><c><f>A1</f><v>1</v></c>'
    )
    page = sheet_page(f'<w xmlns="x"><row>{cells}</row></w>'.encode(), "S", [], PLAIN)
    assert (page.unknown, page.unseen) == (2, 0)


def test_comments_are_notes_of_their_sheet_and_a_discussion_stands_there_once(tmp_path):
    book = zipfile.ZipFile(io.BytesIO(xlsx(Costs=[["Paint", "120"], ["Rope", "80"]])))
    files: dict[str, str | bytes] = {name: book.read(name) for name in book.namelist()}
    files["xl/worksheets/_rels/sheet1.xml.rels"] = (
        '<Relationships xmlns="r"><Relationship Id="c" Target="/xl/comments1.xml"/>'
        '<Relationship Id="t" Target="../threadedComments/threadedComment1.xml"/></Relationships>'
    )
    files["xl/comments1.xml"] = (
        '<comments xmlns="x"><commentList><comment ref="B1"><text><t>[Threaded comment] Jotun?</t></text></comment>'
        '<comment ref="B2"><text><r><t>of </t></r><r><t>hemp</t></r></text></comment></commentList></comments>'
    )
    files["xl/threadedComments/threadedComment1.xml"] = (
        '<T xmlns="x"><threadedComment ref="B1"><text>Who sells it?</text></threadedComment>'
        '<threadedComment ref="B1"><text>Jotun.</text></threadedComment></T>'
    )
    (tmp_path / "a.xlsx").write_bytes(archive(files))
    ((part,), notices) = laid_out(tmp_path / "a.xlsx", Format.XLSX)
    assert (part.notes, notices) == ("B1: Who sells it? / Jotun.\nB2: of hemp", [])


def test_parts_are_found_by_their_relations_whatever_they_are_called_and_in_utf_16(tmp_path):
    rows = '<row r="1"><c t="s"><v>0</v></c><c><v>42</v></c><c t="s"><v>7</v></c></row>'
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    related = "".join(
        f'<Relationship Id="{id_}" Type="{kind}/{name}" Target="{target}"/>'
        for id_, name, target in (
            ("w1", "worksheet", "Tabs/Costs%20of%20all.xml"),
            ("s1", "sharedStrings", "/Book/TEXTS.xml"),
        )
    )
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    book = f'<workbook {main} xmlns:r="{kind}"><sheets><sheet name="Costs" sheetId="1" r:id="w1"/></sheets></workbook>'
    texts = f'<?xml version="1.0" encoding="UTF-16"?><sst {main}><si><t>Paint &amp; Öl</t></si></sst>'
    files: dict[str, str | bytes] = {
        "[Content_Types].xml": '<Types><Override PartName="/Book/main.xml" ContentType="application/'
        'vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/></Types>',
        "_rels/.rels": relations(r1="book/Main.xml"),
        "Book/main.xml": book,
        "Book/_rels/main.xml.rels": f'<Relationships xmlns="r">{related}</Relationships>',
        "Book/tabs/Costs of all.xml": f"<worksheet {main}><sheetData>{rows}</sheetData></worksheet>",
        "Book/Texts.xml": texts.encode("utf-16"),
    }
    path = tmp_path / "a.xlsx"
    path.write_bytes(archive(files))
    assert sniff(path, path.name).format is Format.XLSX
    ((part,), notices) = laid_out(path, Format.XLSX)
    with part.open() as document:
        assert document[0].get_text().split() == ["Costs", "Paint", "&", "Öl", "42"]
    (notice,) = notices
    assert "the sheet Costs 1 cells are left out: the file does not hold their texts" in notice


def test_escaped_characters_are_themselves():
    cells = (
        '<c t="inlineStr"><is><t>Wet_x000D_\ndock</t></is></c><c t="str"><v>10_x005F_x0041_</v></c>'
        '<c t="inlineStr"><is><t>_xD83D__xDE00_ top_xx_</t></is></c>'
    )
    page = sheet_page(f'<w xmlns="x"><row>{cells}</row></w>'.encode(), "S", [], PLAIN)
    read = re.findall(r"<td[^>]*>(.*?)</td>", page.markup, re.DOTALL)
    assert [" ".join(cell.split()) for cell in read] == ["Wet dock", "10_x0041_", "😀 top_xx_"]


@pytest.mark.parametrize(
    "rows",
    [
        [["Open sheet: Ulm 17 casks"]],
        [["Fish caught in the port of Bergen in 2023"], ["Cod", "12"], ["Ling", "7"]],
        [["Port", "Catch of the year 2023 in thousand tonnes"], ["Bergen", "12"]],
    ],
)
def test_titles_and_heads_have_a_line_each_where_the_page_is_broad_enough(tmp_path, rows):
    path = tmp_path / "a.xlsx"
    path.write_bytes(xlsx(S=rows))
    ((part,), _) = laid_out(path, Format.XLSX)
    with part.open() as document:
        assert document[0].get_text().splitlines() == ["S", *(cell for row in rows for cell in row)]
