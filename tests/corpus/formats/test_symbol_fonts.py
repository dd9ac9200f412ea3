"""Fonts of signs: what they draw, in files that name the font of each run."""

from __future__ import annotations

import pytest

from vrag_ray.corpus.formats.symbol_fonts import signs_of, with_written_signs
from vrag_ray.corpus.formats.web_text import text_of_html


@pytest.mark.parametrize(
    ("font", "text", "signs"),
    [
        ("SymbolMT", "\uf0b7 5 \uf06dm \uf0b3 4", "• 5 μm ≥ 4"),
        ("Wingdings", "\uf0e0 ✓ \uf020", "→ ✓ \uf020"),
        ("Symbol", "αβ", "αβ"),
        ("Symbola", "\uf0b7", "\uf0b7"),
        ("FontAwesome", "\uf055", "\uf055"),
    ],
)
def test_codes_for_private_use_are_signs_in_the_fonts_that_have_them(font: str, text: str, signs: str) -> None:
    assert signs_of(font, text) == signs


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ('<p>Approved: <span style="font-family:Wingdings">\u00fe</span> yes', "Approved: ☑ yes"),
        ("<p>A <font face=Wingdings>&#224;</font> B", "A → B"),
        ("<p>5 <span style='font-family:Symbol'>m</span>m", "5 μm"),
        ("<p><span style='font-family:\"Wingdings 2\",serif'>P</span> done", "✓ done"),
        ("<p style='font-family: &quot;Webdings&quot;'><b>a</b></p>", "✔"),
        ("<p><span style='font-family:Symbol'><i style='mso-list:Ignore'>\u00b7</i></span>item", "•item"),
        ("<p><span style='font-family:Symbol'><i style='font:7pt Arial'>a</i></span>item", "aitem"),
        ("<p><span style='font-family:Symbola'>a</span> <span title='Wingdings'>J</span>", "a J"),
        ("<p><span style='font-family:Wingdings'>&lt;</span>", "🖫"),
    ],
)
def test_runs_of_web_pages_in_a_font_of_signs_are_written_as_signs(markup: str, text: str) -> None:
    assert text_of_html(markup) == text


def test_what_a_sign_is_written_for_is_no_markup() -> None:
    page = "<p><span style='font-family:Wingdings'>&lt;b&gt;</span>"
    assert with_written_signs(page).count("<") == page.count("<")


def test_a_page_without_such_fonts_stays_as_it_is() -> None:
    page = "<p style='font-family:Arial'>Wingdings: J &amp; m</p>"
    assert with_written_signs(page) is page
