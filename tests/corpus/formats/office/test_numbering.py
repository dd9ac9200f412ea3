import re
from xml.etree import ElementTree

import pytest

from tests.corpus.formats.office.test_word import body_of, docx_of, words_of
from tests.support.office import WORD_SPACES
from vrag_ray.corpus.formats.numerals import formatted
from vrag_ray.corpus.formats.office.numbering import Numbering


def level(number: int, text: str, *, format_: str = "decimal", start: int = 1, more: str = "") -> str:
    return (
        f'<w:lvl w:ilvl="{number}"><w:start w:val="{start}"/><w:numFmt w:val="{format_}"/>{more}'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
    )


def tree(tag: str, content: str) -> ElementTree.Element:
    return ElementTree.fromstring(f"<w:{tag} {WORD_SPACES}>{content}</w:{tag}>")


def abstract(number: int, *levels: str) -> str:
    return f'<w:abstractNum w:abstractNumId="{number}">{"".join(levels)}</w:abstractNum>'


def num(number: int, of: int, more: str = "") -> str:
    return f'<w:num w:numId="{number}"><w:abstractNumId w:val="{of}"/>{more}</w:num>'


def style(name: str, properties: str, base: str = "") -> str:
    based = f'<w:basedOn w:val="{base}"/>' if base else ""
    return f'<w:style w:type="paragraph" w:styleId="{name}">{based}<w:pPr>{properties}</w:pPr></w:style>'


def place(list_: int | None, level_: int | None = None) -> str:
    stated = f'<w:ilvl w:val="{level_}"/>' if level_ is not None else ""
    return f"<w:numPr>{stated}" + (f'<w:numId w:val="{list_}"/></w:numPr>' if list_ is not None else "</w:numPr>")


def numbers(lists: str, paragraphs: list[str], styles: str = "") -> list[str]:
    counting = Numbering.of(tree("numbering", lists), tree("styles", styles))
    return [counting.number_of(tree("p", f"<w:pPr>{properties}</w:pPr>")) for properties in paragraphs]


OUTLINE = abstract(1, level(0, "%1."), level(1, "%1.%2"), level(2, "(%3)", format_="lowerLetter"))


def test_levels_count_within_those_above_them_and_begin_anew_behind_these():
    places = [(1, 0), (1, 1), (1, 2), (1, 2), (1, 1), (1, 2), (1, 0), (1, 1)]
    assert numbers(OUTLINE + num(1, 1), [place(*at) for at in places]) == [
        "1. ", "1.1 ", "(a) ", "(b) ", "1.2 ", "(a) ", "2. ", "2.1 "
    ]  # fmt: skip


def test_a_list_begins_where_it_says_and_goes_on_behind_other_paragraphs():
    lists = abstract(1, level(0, "Clause %1.", start=7)) + num(1, 1)
    assert numbers(lists, [place(1, 0), "", place(0, 0), place(1, 0)]) == ["Clause 7. ", "", "", "Clause 8. "]


def test_two_lists_of_one_kind_are_counted_together_unless_one_begins_anew():
    anew = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride>'
    lists = OUTLINE + num(1, 1) + num(2, 1) + num(3, 1, anew)
    places = [place(1, 0), place(2, 0), place(3, 0), place(3, 0), place(1, 0)]
    assert numbers(lists, places) == ["1. ", "2. ", "1. ", "2. ", "3. "]


def test_a_list_may_have_a_level_of_its_own():
    own = f'<w:lvlOverride w:ilvl="0">{level(0, "%1)", format_="upperRoman", start=4)}</w:lvlOverride>'
    assert numbers(OUTLINE + num(1, 1, own), [place(1, 0), place(1, 0)]) == ["IV) ", "V) "]


@pytest.mark.parametrize("linked", [True, False])
def test_headings_are_numbered_by_their_styles(linked):
    lists = abstract(
        1,
        level(0, "%1", more='<w:pStyle w:val="Heading1"/>' if linked else ""),
        level(1, "%1.%2", more='<w:pStyle w:val="Heading2"/>' if linked else ""),
    )
    styles = style("Heading1", place(1)) + style(
        "Heading2", place(None if not linked else 1, None if linked else 1), "Heading1"
    )
    styles += style("Own", "", "Heading2") + style("Plain", place(0), "Heading1")
    named = ["Heading1", "Heading2", "Own", "Plain", "Heading1"]
    paragraphs = [f'<w:pStyle w:val="{name}"/>' for name in named]
    assert numbers(lists + num(1, 1), paragraphs, styles) == ["1 ", "1.1 ", "1.2 ", "", "2 "]


def test_a_list_may_take_its_levels_from_a_style():
    lists = OUTLINE + '<w:abstractNum w:abstractNumId="2"><w:numStyleLink w:val="Legal"/></w:abstractNum>'
    assert numbers(lists + num(1, 1) + num(2, 2), [place(2, 0)], style("Legal", place(1))) == ["1. "]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ('<w:lvlRestart w:val="0"/>', ["I ", "I.1 ", "II ", "II.2 "]),
        ("<w:isLgl/>", ["I ", "1.1 ", "II ", "2.1 "]),
        ('<w:suff w:val="nothing"/>', ["I ", "I.1", "II ", "II.1"]),
    ],
)
def test_a_level_that_goes_on_that_is_decimal_and_that_has_no_gap(more, expected):
    lists = abstract(1, level(0, "%1", format_="upperRoman"), level(1, "%1.%2", more=more)) + num(1, 1)
    assert numbers(lists, [place(1, 0), place(1, 1), place(1, 0), place(1, 1)]) == expected


def test_paragraphs_whose_end_is_deleted_or_hidden_and_bullets_have_no_number():
    lists = abstract(1, level(0, "%1."), level(1, "\uf0b7", format_="bullet")) + num(1, 1)
    gone = [f"{place(1, 0)}<w:rPr><w:{mark}/></w:rPr>" for mark in ("del", "vanish")]
    assert numbers(lists, [place(1, 0), *gone, place(1, 1), place(1, 0)]) == ["1. ", "", "", "", "2. "]


@pytest.mark.parametrize(
    ("number", "format_", "text"),
    [
        (28, "lowerLetter", "bb"), (3, "upperLetter", "C"), (1994, "upperRoman", "MCMXCIV"), (7, "decimalZero", "07"),
        (12, "ordinal", "12th"), (22, "ordinal", "22nd"), (3, "decimalEnclosedCircle", "③"), (0, "lowerRoman", "0"),
        (21, "chineseCounting", "二十一"), (10, "chineseCounting", "十"), (4, "none", ""), (5, "unknown", "5"),
    ],
)  # fmt: skip
def test_numbers_in_each_format(number, format_, text):
    assert formatted(number, format_) == text


def test_numbers_stand_before_their_paragraphs_and_in_no_other_place():
    heads = '<w:style w:type="paragraph" w:styleId="H1"><w:name w:val="heading 1"/></w:style>'
    lists = abstract(1, level(0, "%1."), level(1, "(%2)", format_="lowerLetter")) + num(1, 1)
    paragraphs = "".join(
        f"<w:p><w:pPr>{style_}{place(1, at)}</w:pPr>{text and f'<w:r><w:t>{text}</w:t></w:r>'}</w:p>"
        for style_, at, text in [
            ('<w:pStyle w:val="H1"/>', 0, "Scope"), ("", 1, "Flood"), ("", 1, ""), ("", 1, "Strike"),
        ]
    )  # fmt: skip
    parts = {
        "word/numbering.xml": f"<w:numbering {WORD_SPACES}>{lists}</w:numbering>",
        "word/styles.xml": f"<w:styles {WORD_SPACES}>{heads}</w:styles>",
    }
    data = docx_of(paragraphs, parts)
    assert words_of(data).replace("1.Scope", "1. Scope") == "1. Scope (a) Flood (c) Strike"
    html = body_of(data)
    assert re.search(r"<h1>1\. Scope</h1>", html)
    assert "<ol>" not in html
