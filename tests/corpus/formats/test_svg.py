"""Drawings as programs for diagrams write them: their words are those that a browser shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from vrag_ray.corpus.formats.laid_out import laid_out
from vrag_ray.corpus.formats.svg import plain_drawing
from vrag_ray.corpus.sniff import Format, sniff

SPACE = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="400" height="200"'
FOREIGN = (
    '<foreignObject x="9" y="9" width="200" height="40"><div xmlns="http://www.w3.org/1999/xhtml">{}</div>'
    "</foreignObject>"
)


def lines(svg: str | bytes, tmp_path: Path) -> tuple[list[str], list[str]]:
    """The lines on the drawing, and the notices."""
    path = tmp_path / "a.svg"
    path.write_bytes(svg.encode() if isinstance(svg, str) else svg)
    assert sniff(path, path.name).format is Format.SVG
    [part], notices = laid_out(path, Format.SVG)
    with part.open() as document:
        return [" ".join(line.split()) for line in document[0].get_text().splitlines() if line.strip()], notices


@pytest.mark.parametrize(
    ("drawing", "read"),
    [
        (FOREIGN.format("<p>Intake <b>17</b></p><p>Weir</p>"), ["Intake 17", "Weir"]),
        (f'<switch>{FOREIGN.format("Pump &amp; port 84")}<text x="80" y="34">L…</text></switch>', ["Pump & port 84"]),
        ('<switch><text systemLanguage="de" y="20">Pegel</text><text y="20">Gauge</text></switch>', ["Gauge"]),
        ('<switch><g/><a xlink:href="x"><text y="20">Old</text></a></switch><text y="40">Lock</text>', ["Lock"]),
        ('<path id="p" d="M10 80 L99 80"/><text><textPath xlink:href="#p">On it</textPath></text>', ["On it"]),
        ('<e:info xmlns:e="urn:editor">Own</e:info><text y="20">Dace</text>', ["Dace"]),
    ],
)  # fmt: skip
def test_the_words_of_labels_are_those_that_a_browser_shows(tmp_path, drawing, read):
    assert lines(f"<svg {SPACE}>{drawing}</svg>", tmp_path) == (read, [])


def test_hidden_words_are_left_out_and_counted_and_what_is_visible_in_them_is_read(tmp_path):
    drawing = (
        '<style>.h,.s i{display:none}</style><text class="h" y="20">One two</text><g visibility="hidden">'
        '<text y="40">three <tspan visibility="visible">seen</tspan> four</text></g><g style="display:none">'
        '<text y="60" visibility="visible">five</text></g><text y="80" opacity="0"><a>six</a></text><g class="h">'
        f"{FOREIGN.format('seven')}</g><g class='s'>{FOREIGN.format('Flow<i>eight</i>')}</g>"
    )
    read, notices = lines(f"<svg {SPACE}>{drawing}</svg>", tmp_path)
    assert (read, notices) == (["seen", "Flow"], ["7 words that are hidden in it are left out"])


@pytest.mark.parametrize(
    "sheet",
    [
        "<![CDATA[g > .h{display:none}]]>",
        "text:not(.k){visibility:hidden}",
        "svg{--o:none}@layer a{.h{display:var(--o)}}",
    ],
)
def test_any_selector_of_a_style_sheet_hides_words(tmp_path, sheet):
    body = "<g><text class='h' y='20'>One two</text><text class='k' y='40'>Gauge</text></g>"
    read, notices = lines(f"<svg {SPACE}><style>{sheet}</style>{body}</svg>", tmp_path)
    assert (read, notices) == (["Gauge"], ["2 words that are hidden in it are left out"])


def test_colours_of_a_style_sheet_are_drawn(tmp_path):
    body = "<rect class='box' width='400' height='200'/><text class='t' y='20'>Gauge</text>"
    (tmp_path / "a.svg").write_text(f"<svg {SPACE}><style>.box{{fill:#036}}.t{{fill:white}}</style>{body}</svg>")
    [part], _ = laid_out(tmp_path / "a.svg", Format.SVG)
    with part.open() as document:
        assert document[0].get_pixmap().color_topusage()[1] == b"\0\x33\x66"


@pytest.mark.parametrize(
    "svg",
    [
        '<s:svg xmlns:s="http://www.w3.org/2000/svg" width="500" height="99"><s:text y="50">Roach 508</s:text></s:svg>',
        f'<!DOCTYPE svg [<!ENTITY nm "Roach 508">]><svg {SPACE}><text y="50">&nm;</text></svg>',
        f'<?xml version="1.0" encoding="utf-16"?><svg {SPACE}><text y="50">Roach 508</text></svg>'.encode("utf-16"),
        '<svg width="500" height="99"><text y="50">Roach 508</text></svg>'.encode("utf-8-sig"),
    ],
)
def test_drawings_may_have_prefixes_entities_and_other_encodings(tmp_path, svg):
    assert lines(svg, tmp_path) == (["Roach 508"], [])


@pytest.mark.parametrize("svg", [f"<svg {SPACE}>{'<g>' * 5000}{'</g>' * 5000}</svg>", "<svg><text>Odin</svg>"])
def test_a_drawing_that_is_no_xml_or_too_deep_is_left_as_it_is(svg):
    assert plain_drawing(svg) == (svg, 0)
