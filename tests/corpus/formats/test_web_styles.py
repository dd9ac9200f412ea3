from __future__ import annotations

import re
import time

import pytest

from tests.support.documents import decoded
from vrag_ray.corpus.formats import web_styles
from vrag_ray.corpus.formats.mail import read_eml
from vrag_ray.corpus.formats.web_styles import with_written_styles
from vrag_ray.corpus.formats.web_text import text_of_html
from vrag_ray.corpus.model import WorkItem
from vrag_ray.types import DocumentKind

FLEX = ".f{display:flex}"


@pytest.fixture
def lines(sandbox, put, no_ocr):
    def read(sheet: str, body: str) -> list[str]:
        page = f"<html><head><style>{sheet}</style></head><body>{body}</body></html>"
        path = put("page.html", page.encode())
        [unit] = decoded(sandbox, path, WorkItem("d", DocumentKind.PDF, 0, 1, "page.html"), no_ocr)
        return [" ".join(line.split()) for line in unit.text.split("\n")]

    return read


def test_headings_and_items_have_the_numbers_of_their_counters(lines):
    sheet = """
    body { counter-reset: part } h2 { counter-reset: point } li::before { content: "*" }
    h2::before { counter-increment: part; content: counter(part, upper-roman) ". " }
    h3:before { counter-increment: point 2; content: counter(part) "." counter(point) "\\a0" }
    ol.law { counter-reset: item; list-style: none } .law > li { counter-increment: item }
    .law > li::before { content: counters(item, ".") ") " }
    """
    body = (
        "<h2>Berths</h2><h2 hidden>Gone</h2><h2>Fees</h2><h3>Day</h3><h3>Night</h3>"
        "<ol class=law><li>Pay.<ol class=law><li>In cash<li>By card</ol><li>Leave.</ol>"
    )
    read = ["I. Berths", "II. Fees", "2.2 Day", "2.4 Night", "1) Pay.", "1.1) In cash", "1.2) By card", "2) Leave."]
    assert lines(sheet, body) == read


def test_values_of_attributes_stand_where_a_style_writes_them(lines):
    sheet = (
        ".w::after{content:' ' attr(data-unit)} .n::before{content:attr(data-none)}"
        ".o::after{content:attr(x);display:none}"
    )
    assert lines(sheet, "<p class=w data-unit=kg>61</p><p class=n>a</p><p class=o x=SECRET>b</p>") == [
        "61 kg",
        "a",
        "b",
    ]


ROWS = "<div {0}><{1}>Coast</{1}><{1}>71</{1}></div><div {0}><{1}>Inland</{1}><{1}>22</{1}></div>"


@pytest.mark.parametrize(
    ("sheet", "body"),
    [
        (FLEX, ROWS.format("class=f", "div")),
        (FLEX, ROWS.format("class=f", "span")),
        ("ul li{display:flex;flex-flow:row nowrap}",
         "<ul><li><p>Coast</p><p>71</p></li><li><p>Inland</p><p>22</p></li></ul>"),
        (".g{display:grid;grid-template-columns:[a] 2fr minmax(0, 1fr)}",
         "<div class=g><div>Coast</div><div>71</div><div>Inland</div><div>22</div></div>"),
        (".g{display:grid;grid-template:none / auto auto}",
         "<div class=g><b>Coast</b><b>71</b><b>Inland</b><b>22</b></div>"),
        (".f{display:flex;flex-wrap:wrap}", ROWS.format("class=f", "div")),
        (".g{display:grid;grid-template-columns:repeat(2,1fr)}",
         "<dl class=g><dt>Coast<dd>71<dt>Inland<dd>22</dl>"),
        (".g{display:grid;grid-template-columns:auto auto}.r{display:contents}",
         f"<div class=g>{ROWS.format('class=r', 'div')}</div>"),
    ],
)  # fmt: skip
def test_short_children_of_grids_and_flex_containers_are_rows(lines, sheet, body):
    assert lines(sheet, body) == ["Coast 71", "Inland 22"]


@pytest.mark.parametrize(
    ("sheet", "body"),
    [
        (".f{display:flex;flex-direction:column}", ROWS.format("class=f", "div")),
        (FLEX, f"<div class=f><p>Coast</p><p>{'very long text ' * 9}</p></div>"),
        (FLEX, "<div class=f>Coast<p>71</p></div>"),
        (".g{display:grid;grid-template-columns:repeat(auto-fit,9em)}", "<div class=g><p>a</p><p>b</p><p>c</p></div>"),
        (".g{display:grid;grid-template-columns:1fr 1fr}.g p{order:2}", "<div class=g><p>a</p><p>b</p><p>c</p></div>"),
        (".f{display:flex;flex-wrap:wrap}.f>*{width:100%}", ROWS.format("class=f", "div")),
        (".f{display:flex;flex-wrap:wrap}", f"<div class=f>{'<p>a</p>' * 7}</div>"),
        ("@media print{.f{display:flex}}", ROWS.format("class=f", "div")),
        ("p{color:red}", "<p>a</p>"),
    ],
)
def test_what_is_no_row_stays_as_it_is(sheet, body):
    assert "<table" not in with_written_styles(f"<style>{sheet}</style>{body}")[0]


@pytest.mark.parametrize(
    ("sheet", "about"),
    [
        (f"{FLEX} .gone{{display:none}}", "class='f gone'"),
        (f"{FLEX} .box .f{{display:none}}", "class=f"),
        (f"{FLEX} .f[data-off]{{display:none}}", "class=f data-off=1"),
        (FLEX, "class=f style='display:none'"),
        (FLEX, "class=f hidden"),
    ],
)
def test_a_hidden_row_stays_hidden(lines, sheet, about):
    assert lines(sheet, f"<div class=box>{ROWS.format(about, 'p')}</div>seen") == ["seen"]


def test_signs_are_written_where_a_class_states_their_font(lines):
    sheet = ".s{font-family:Symbol}.w{font-family:Wingdings,serif}.n{font-family:Georgia}"
    body = "<p><i class=s>a</i> is 30, <i class=n>a</i> is not.</p><p><span class=w>o</span> no</p>"
    assert lines(sheet, body) == ["\N{GREEK SMALL LETTER ALPHA} is 30, a is not.", "☐ no"]


def test_no_words_are_lost_or_doubled_in_a_page_of_open_elements():
    body = "<div class=f><p>a<p>b<div class=f><b>c</b><i>d</div><span>e</div></div></p><!-- x <b>--><td>g<svg><text>h"
    written, _ = with_written_styles(f"<style>{FLEX}</style>{body}")
    assert re.findall(r">\s*(\w)", written) == re.findall(r">\s*(\w)", body.replace("</div></div>", "</div>"))


@pytest.mark.parametrize("part", ["<!--", "<svg ", "<script>", "<div class=f>", "</a ", "<p class=f>x"])
def test_a_hostile_page_takes_no_long_time(part):
    begin = time.process_time()
    with_written_styles(f"<style>.a .a .a .f{{display:flex}}</style>{part * 4_000}")
    assert time.process_time() - begin < 5


@pytest.mark.parametrize(
    "sheet",
    [
        ".gone:not(.open){display:none}",
        "p:nth-child(2){display:none}",
        ":is(p,li).gone{display:none}",
        "section:has(.gone) > p:last-child{display:none}",
        "p.gone{display:block!important}p.gone.gone{display:none!important}",
        "p.gone{display:none!important}section p.gone{display:block}",
        "@layer base{p.gone.gone.gone{display:block}}p.gone{display:none}",
        ":root{--state:none}.gone{display:var(--state)}",
        ".gone:focus-visible{display:block}.gone{visibility:hidden}",
        ":where(#a,#b) .gone{display:none}p{display:block}.gone{display:none}",
        "section{p{&.gone{display:none}color:red}}",
        "#a{& > p:last-child{display:none}}",
        "@layer low{.gone{display:none!important}}@layer high{.gone{display:block!important}}",
        "@layer low{.gone{display:none!important}}.gone{display:block!important}",
        ".gone:lang(nb){display:none}",
        ".gone:not(p:is(.open,.new)){display:none}",
        "@container (width > 20em){.gone{display:none}}",
    ],
)
def test_what_any_selector_hides_is_left_out(lines, sheet):
    assert lines(sheet, "<section id=a lang=nb-NO><p>Pier</p><p class=gone>Secret</p></section>") == ["Pier"]


def test_a_rule_holds_for_the_elements_that_it_selects_alone(lines):
    sheet = "p:not(.a){display:none}.b ~ .a{text-decoration:line-through}"
    assert lines(sheet, "<p class=a>Pier</p><p>no</p><p class=b>no</p><p class=a>struck</p>") == ["Pier"]


def test_rules_that_are_too_many_for_a_large_page_are_left_out_with_a_notice(monkeypatch):
    monkeypatch.setattr(web_styles, "MOST_CHECKS", 12)
    html = "<style>p{color:red}i{color:red}b{color:red}</style><p>a<i>b</i>"
    notice = "rules of its style sheets are left out: there are too many for so large a page"
    page, notices = with_written_styles(html)
    assert (page.count("color:red"), notices) == (2, [notice])
    assert with_written_styles(html, pages=2)[0].count("color:red") == 1
    assert read_eml(f"Content-Type: text/html\n\n{html}".encode()).notices == (notice,)


def test_a_message_has_its_neighbours_apart_and_its_quotes_are_not_doubled(lines):
    sheet = "nav{display:flex}.r{display:table-row}.r>*{display:table-cell}q::before{content:open-quote}"
    body = "<nav><a>Home</a><a>Fees</a></nav><div class=r><b>Low</b><b>1 m</b></div><p>The <q>Ane</q></p>"
    assert text_of_html(f"<style>{sheet}</style>{body}").split() == ["Home", "Fees", "Low", "1", "m", "The", "Ane"]
    assert lines(sheet, body)[-1] == "The \u201cAne\u201d"


@pytest.mark.parametrize("depth", [99, 600, 100_000])
def test_what_is_nested_too_deeply_to_be_drawn_is_read_with_a_notice(lines, depth):
    tags = "<div>" * depth, "</div>" * depth
    table = "<table><tr><th>berth<th>depth<tr><td>north<td>9 m</table>"
    body = f"<p>Above</p>{tags[0]}<p>The <b>lock</b>s open.</p><p class=h>Hidden</p>{table}{tags[1]}<p>After</p>"
    shown = " ".join(lines(".h{display:none}", body))
    assert shown == "Above The locks open. berth depth north 9 m After"


def test_a_page_that_is_nested_too_deeply_says_so():
    written, notices = with_written_styles("<div>" * 60_000 + "<p>Deep words.")
    assert notices == ["what is nested more than 90 elements deep in it is read as running text"]
    assert text_of_html("<div>" * 60_000 + "<p>Deep words.") == "Deep words."
    assert "Deep words." in written
    items = "".join(f"<li>Berth {number}<p>Free" for number in range(900))
    assert with_written_styles(f"<ul>{items}</ul><svg>{'<path/>' * 900}</svg>")[1] == []


def test_the_numbers_of_a_list_that_counts_down_fall(lines):
    items = "<li>Sleipner<li><p>Gullfaxi<li>Alma"
    assert lines("", f"<ol reversed>{items}</ol><ol reversed start=9 type=I>{items}</ol>") == [
        *("3. Sleipner", "2. Gullfaxi", "1. Alma"),
        *("IX. Sleipner", "VIII. Gullfaxi", "VII. Alma"),
    ]


def test_letters_that_are_set_from_the_right_are_read_as_they_stand(lines):
    sheet = ".o{unicode-bidi:bidi-override;direction:rtl}.i{unicode-bidi:isolate;direction:rtl}"
    body = (
        "<p>Call <span class=o>(31) 74+</span> or <bdo dir=rtl>gro.elpmaxe@adi</bdo>, <bdo dir=ltr>not 12</bdo>, "
        "<span class=i>Bill</span>.</p>"
    )
    assert lines(sheet, body) == ["Call +47 (13) or ida@example.org, not 12, Bill."]
    assert text_of_html("<p><bdo dir=rtl>gro.elpmaxe@adi</bdo>") == "ida@example.org"
