import re

import pytest

from tests.support.documents import decoded
from vrag_ray.corpus.formats.web_formulas import formula_text, with_written_formulas
from vrag_ray.corpus.formats.web_text import text_of_html
from vrag_ray.corpus.model import WorkItem
from vrag_ray.types import DocumentKind

SUM = "<munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover>"
MATRIX = (
    "<mo>[</mo><mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr><mtr><mtd><mn>3</mn></mtd><mtd><mn>4</mn>"
    "</mtd></mtr></mtable><mo>]</mo>"
)


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<mfrac><mn>3</mn><mn>8</mn></mfrac>", "3/8"),
        ("<mn>2</mn><mfrac><mn>1</mn><mn>2</mn></mfrac><mi>x</mi>", "2 1/2 x"),
        ("<mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><msup><mi>c</mi><mn>2</mn></msup></mfrac>", "(a + b)/c²"),
        ("<mfrac linethickness='0'><mi>n</mi><mi>k</mi></mfrac>", "(n choose k)"),
        ("<mi>E</mi><mo>=</mo><mi>m</mi><msup><mi>c</mi><mn>2</mn></msup>", "E = mc²"),
        (
            "<mo>-</mo><mn>4</mn><mo>&times;</mo><msup><mn>10</mn><mrow><mo>-</mo><mn>4</mn></mrow></msup>",
            "-4 \u00d7 10⁻⁴",
        ),
        ("<msup><mrow><mo>(</mo><mi>a</mi><mo>+</mo><mi>b</mi><mo>)</mo></mrow><mn>2</mn></msup>", "(a + b)²"),
        ("<msup><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mi>n</mi></msup><mi>c</mi>", "(a + b)^n c"),
        ("<msup><mn>2</mn><mrow><mi>n</mi><mo>+</mo><mn>1</mn></mrow></msup>", "2^(n + 1)"),
        ("<msubsup><mi>c</mi><mn>0</mn><mn>2</mn></msubsup>", "c₀²"),
        ("<msub><mi>v</mi><mtext>max</mtext></msub><mi>t</mi>", "v_max t"),
        (f"{SUM}<msub><mi>x</mi><mi>i</mi></msub>", "∑_(i = 1)^n x_i"),
        ("<msqrt><mi>x</mi><mo>+</mo><mn>1</mn></msqrt><mroot><mn>27</mn><mn>3</mn></mroot>", "√(x + 1) ∛27"),
        ("<mroot><mi>x</mi><mn>5</mn></mroot>", "x^(1/5)"),
        ("<msup><mn>25</mn><mo>∘</mo></msup><mi mathvariant='normal'>C</mi>", "25°C"),
        ("<mmultiscripts><mi>C</mi><mprescripts/><none/><mn>14</mn></mmultiscripts>", "¹⁴C"),
        (MATRIX, "[1 2; 3 4]"),
        ("<mover accent='true'><mi>x</mi><mo>¯</mo></mover>", "x\u0304"),
        ("<mi>sin</mi><mo>&#x2061;</mo><mi>\U0001d465</mi>", "sin x"),
        ("<mi>f</mi><mo>&#x2061;</mo><mfenced><mi>x</mi><mi>y</mi></mfenced>", "f(x,y)"),
        ("<semantics><mi>x</mi><annotation encoding='application/x-tex'>x</annotation></semantics>", "x"),
        ("<mn>12</mn><mo>,</mo><mn>000</mn><mo>,</mo><mn>250.5</mn><mi>m</mi>", "12,000,250.5m"),
        ("<mrow><mi>n</mi><mo>=</mo><mn>1</mn><mo>,</mo><mn>000</mn></mrow><mo>,</mo><mn>200</mn>", "n = 1,000, 200"),
        (
            "<mo>[</mo><mn>1</mn><mo>,</mo><mn>100</mn><mo>]</mo><mo>,</mo><mn>20</mn><mo>,</mo><mn>300</mn>",
            "[1, 100], 20, 300",
        ),
        ("<mn>0</mn><mo>,</mo><mn>100</mn><mo>,</mo><mn>2000</mn>", "0, 100, 2000"),
        ("<m:mfrac><m:mn>1</m:mn><m:mn>2</m:mn></m:mfrac>", "1/2"),
    ],
)
def test_a_formula_is_one_line(markup, text):
    assert formula_text(markup) == text


def words_of(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", "", with_written_formulas(html)).split())


MATH = "<math xmlns='http://www.w3.org/1998/Math/MathML'><msup><mi>x</mi><mn>2</mn></msup></math>"


@pytest.mark.parametrize(
    "formula",
    [
        f'<span class="katex"><span class="katex-mathml">{MATH}</span><span class="katex-html" aria-hidden="true">'
        "<span>x</span><span>2</span></span></span>",
        '<span class="MathJax"><nobr aria-hidden="true"><span>x<span>2</span></span></nobr><span role="presentation">'
        f"{MATH}</span></span>",
        f'<mjx-container><svg aria-hidden="true"><text>x2</text></svg><mjx-assistive-mml>{MATH}</mjx-assistive-mml>'
        "</mjx-container>",
        '<math alttext="x²"></math>',
        MATH,
    ],
)
def test_a_formula_that_is_drawn_by_letters_too_is_read_once(formula):
    page = f'<p>So <i aria-hidden="true">star</i> {formula} is <span aria-hidden="true">seen</span>.</p>'
    assert words_of(page) == "So star x² is seen."


def test_the_formula_of_a_wiki_is_shown_though_its_picture_stands_for_it():
    shown = with_written_formulas(
        f'<span class="mwe-math-mathml-inline" style="display: none;">{MATH}</span><img src="a" aria-hidden="true">'
    )
    assert "none" not in shown


def test_a_page_and_a_mail_have_their_formulas_in_their_lines(sandbox, put, options):
    html = f"<p>Take <math><mfrac><mn>1</mn><mn>2</mn></mfrac></math> tablet &lt; {MATH}.</p><p>No <math>end</p>"
    path = put("a.html", f"<html><body>{html}</body></html>".encode())
    (unit,) = decoded(sandbox, path, WorkItem("d", DocumentKind.PDF, 0, 1, "a.html"), options)
    assert unit.text.split("\n")[0] == "Take 1/2 tablet < x²."
    assert text_of_html(html).split("\n")[0] == "Take 1/2 tablet < x²."
