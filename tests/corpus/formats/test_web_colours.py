"""Words of web pages on grounds that MuPDF does not draw as a browser does are read; hidden ones are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from vrag_ray.corpus.formats.laid_out import laid_out
from vrag_ray.corpus.formats.pdf_text import read_page
from vrag_ray.corpus.formats.web_colours import with_drawn_colours
from vrag_ray.corpus.sniff import Format

HEAD = "Tolls of the lock"
TABLE = f"<table><thead><tr><th>{HEAD}</th></tr></thead><tbody><tr><td>4,20 a boat</td></tr></tbody></table>"
WHITE = f"<font color=white>{HEAD}<br>{HEAD}</font>"
HERO = f"<div class='hero'><h1>{HEAD}</h1></div>"


def words(html: str, tmp_path: Path) -> str:
    path = tmp_path / "page.html"
    path.write_text(f"<html>{html}</html>", encoding="utf-8")
    [part], _ = laid_out(path, Format.HTML)
    with part.open() as document:
        return " ".join(read_page(document[0], min_chars=1, ocr=None, believed=set()).text.split())


@pytest.mark.parametrize(
    "html",
    [
        f"<style>thead{{background-color:#036;color:#fff}}</style>{TABLE}",
        f"<style>thead, tfoot{{background:#036}} th{{color:white}}</style>{TABLE}",
        f"<style>.hero{{background:linear-gradient(90deg,#003,#336);color:#fff}}</style>{HERO}",
        f"<style>.hero{{background-image:linear-gradient(to right, navy 0%, rgba(0,0,0,.1));color:#fff}}</style>{HERO}",
        f"<style>.hero{{background:url(sea.jpg) center/cover no-repeat;color:#fff}}</style>{HERO}",
        f"<style>:root{{--sea:#036;--deep:var(--sea)}} .hero{{background:var(--deep);color:white}}</style>{HERO}",
        f"<style>.hero{{background:var(--unset, #036);color:white}}</style>{HERO}",
        f"<style>.hero{{background:hsl(210deg 100% 20%);color:hsl(0,0%,100%)}}</style>{HERO}",
        f"<div style='background:linear-gradient(#003,#336);color:white'>{HEAD}</div>",
        f"<style>body{{color:rgba(0,0,0,.87)}}</style>{HERO}",
        f"<style>h1{{color:rgb(0 0 0 / 60%)}}</style>{HERO}",
        f"<style>:root{{--c:33,37,41;--o:.75}} h1{{color:rgba(var(--c),var(--o))}}</style>{HERO}",
        f"<style>h1{{color:rgba(var(--unset),.5)}}</style>{HERO}",
        f"<style>h1{{color:rgba(10%,0%,0%,1.0)}}</style>{HERO}",
        f"<style>h1{{color:rgba(1.2.3,0,0,1)}}</style><p>{HEAD}</p>",
        f"<div style='background:rgba(0,0,0,.8);color:#fff'>{HEAD}</div>",
        f"<div style='background:#000;color:rgba(255,255,255,.9)'>{HEAD}</div>",
        f"<div style='background:hsla(0,0%,0%,0)'>{HEAD}</div>",
        f"<div style='background:linear-gradient(rgba(0,0,0,.6),rgba(0,0,0,.6)),url(a.png);color:#fff'>{HEAD}</div>",
        f"<h1 style='color:transparent;background-clip:text;background-image:linear-gradient(red,blue)'>{HEAD}</h1>",
        f"<style>.c{{background:linear-gradient(red,blue);-webkit-background-clip:text;"
        f"-webkit-text-fill-color:transparent}}</style><h1 class=c>{HEAD}</h1>",
        f"<style>.c{{-webkit-background-clip:text}}.t{{color:transparent}}.g{{background:linear-gradient(#808080,#000)}}"
        f"</style><h1 class='c t g'>{HEAD}</h1>",
        f'<body bgcolor="#000033" text="#ffffff"><p>{HEAD}</p></body>',
        f"<table bgcolor='black' cellspacing='1'><tr bgcolor='white'><td>{HEAD}</td></tr></table>",
        f"<table bgcolor=navy><tr><td><font color=white>{HEAD}</font></td></tr></table>",
        f"<table bgcolor='1'><tr bgcolor='#C6E2FF'><td>{HEAD}</td></tr></table>",
        f"<tr bgcolor='#036'></tr><table><tr bgcolor='#036'><td style='color:#fff'>{HEAD}</td></tr></table>",
        f"<table bgcolor=black><tr><td>{WHITE}<td>{WHITE}<br>x</table>",
        f"<table><tr bgcolor=black><td>{WHITE}<td>{WHITE}<br>x</table>",
        f"<table><tr><td bgcolor=black>{WHITE}<td>And<br>more<br>lines</table>",
    ],
)
def test_words_on_a_ground_that_browsers_draw_are_read(html: str, tmp_path: Path) -> None:
    assert HEAD in words(html, tmp_path)


@pytest.mark.parametrize(
    "html",
    [
        f"<p style='color:#fff'>{HEAD}</p>",
        f"<p><font color='#ffffff'>{HEAD}</font></p>",
        f"<p style='color:rgba(255,255,255,.9)'>{HEAD}</p>",
        f"<p style='color:rgba(0,0,0,0)'>{HEAD}</p>",
        f"<p style='color:transparent'>{HEAD}</p>",
        f"<style>:root{{--paper:#fff}} h1{{color:var(--paper)}}</style>{HERO}",
        f"<body bgcolor='black' text='white'><p style='color:#000'>{HEAD}</p>",
        f"<style>.hero{{background:linear-gradient(#fff,#eee)}} h1{{color:hsl(0,0%,100%)}}</style>{HERO}",
    ],
)
def test_words_in_the_colour_of_their_ground_are_not_read(html: str, tmp_path: Path) -> None:
    assert words(html + "<p>Open all day.</p>", tmp_path) == "Open all day."


@pytest.mark.parametrize(
    "html",
    [
        "<a style='background:url(link.png) no-repeat right'>the harbour</a>",
        '<p title="a color: red; background: blue">5 &lt; 6</p>',
        "<style>p{margin:0} a:hover{color:#036}</style><p>Open</p>",
    ],
)
def test_pages_that_are_drawn_right_stay_as_they_are(html: str) -> None:
    assert with_drawn_colours(html) == html
