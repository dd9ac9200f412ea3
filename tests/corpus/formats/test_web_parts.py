"""What stands in parts of web pages that MuPDF does not draw is read in its place."""

from pathlib import Path

import pytest

from vrag_ray.corpus.formats.laid_out import laid_out
from vrag_ray.corpus.sniff import Format

FRAME = "&lt;style&gt;p{display:none}&lt;/style&gt;&lt;p&gt;27 turbines&lt;/p&gt;"


def lines(html: str, tmp_path: Path) -> list[str]:
    path = tmp_path / "page.html"
    path.write_text(html if html.startswith("<html") else f"<html><body>{html}</body></html>", encoding="utf-8")
    [part], _ = laid_out(path, Format.HTML)
    with part.open() as document:
        text = "\n".join(page.get_text() for page in document)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize(
    ("html", "read"),
    [
        (
            "<svg><text x='99' y='20'>140</text><text x='9' y='20'>Anchors &amp; chains</text>"
            "<g transform='translate(0 50)'><text x='9' y='20'>Oa<tspan>rs</tspan> 15</text></g></svg><p>End.</p>",
            ["Anchors & chains 140", "Oars 15", "End."],
        ),
        ("<p>Now<svg><svg><text y='9'>in</text></svg></svg></p><svg><path d=''/></svg>", ["Now", "in"]),
        ("<svg><foreignObject><div>Start <b>here</b></div></foreignObject></svg>", ["Start here"]),
        ("<svg style='display:none'><text y='9'>no</text></svg><p>Seen</p>", ["Seen"]),
        ("<svg><text y='9' style='display:none'>no</text></svg><p>Seen</p>", ["Seen"]),
        (
            "<p>Berth <select><optgroup label=o><option>North 7<option selected value='s'>South 8</option></optgroup>"
            "<option>West</select>, now</p>",
            ["Berth South 8 , now"],
        ),
        ("<p><select><option>North</option> <option>South</option></select></p>", ["North South"]),
        ("<p><select size=2><option selected>North</option> <option>South</option></select></p>", ["North South"]),
        (f'<iframe srcdoc="{FRAME}"></iframe><p>End.</p>', ["27 turbines", "End."]),
        (f'<iframe hidden srcdoc="{FRAME}"></iframe><p>End.</p>', ["End."]),
        (
            "<x-a><template shadowrootmode=open><style>p{display:none}</style><p>Shown</p><x-b><template "
            "shadowrootmode='open'><p>Deep</p></template></x-b></template><p>Own</p></x-a><template>no</template>",
            ["Shown", "Deep", "Own"],
        ),
        ("<table><caption>Tides of May</caption><tr><td>Low</td></tr></table>", ["Tides of May", "Low"]),
        (
            "<style>.r{display:table-row}.c{display:table-cell}</style>"
            "<div style=display:table><div class=r><div class=c>Lock</div><div class=c>Rise</div></div></div>"
            '<div class=r><b style="display:table-cell">Ted</b><b style="color:red;display:table-cell">2 m</b></div>',
            ["Lock", "Rise", "Ted", "2 m"],
        ),
        ("<p>Name <input value='Edda &amp; Co'>!</p>", ["Name Edda & Co !"]),
        ("<p>a<input type=hidden value=b><input type=password value=c><input type=checkbox value=d></p>", ["a☐"]),
        ("<p>See <img src=a.png alt='the &quot;Quay&quot;'><img src=b.png alt=now></p>", ['See the "Quay" now']),
        ("<ol type=a><li>x<li>y</ol><ol type=I style='color:#333'><li>z</ol>", ["a. x", "b. y", "I. z"]),
        ("<ol><li>x</li><li value=12>y<ul><li value=7>u</ul></li><li>z</li></ol>", ["1. x", "12. y", "• u", "13. z"]),
        ("<p><ruby>東<rp>(</rp><rt>とう</rt><rp>)</rp>京<rt>きょう</ruby>湾です。</p>", ["東京湾です。"]),
        ("<p>In <ruby>尾道<rt>おのみち</rt></ruby>, once.</p>", ["In 尾道(おのみち), once."]),
        (
            "<html><frameset cols='1,1'><frame src=a><noframes><body>No frames</body></noframes></frameset></html>",
            ["No frames"],
        ),
    ],
)
def test_what_a_browser_shows_is_read_in_its_place(html: str, read: list[str], tmp_path: Path) -> None:
    assert lines(html, tmp_path) == read
