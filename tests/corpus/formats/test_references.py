"""What the pictures of Markdown and HTML are named by."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest

from tests.support.documents import decoded, image_bytes, picture_of
from vrag_ray.corpus.formats.references import hidden_spans, picture_targets
from vrag_ray.corpus.model import WorkItem
from vrag_ray.types import DocumentKind

POINT = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
"""A picture of a single pixel."""
MARKDOWN = """
# Quays
![Crane](img/odin.png "lifts") and ![a [b]](<two words.png>) ![](x_(1).jpg)
![By name][fig] ![fig][] ![fig]
<p><IMG alt="a>b" width=3 src='c&amp;d.gif'></p>
[no picture](page.html) \\
`![code](code.png)` <!-- ![gone](gone.png) -->
~~~
![fenced](fenced.png)
~~~
[FIG]: <http://example.org/fig one.png> "title"
"""


def test_pictures_are_found_however_they_are_written_and_not_in_code_or_comments() -> None:
    assert picture_targets(MARKDOWN, markdown=True) == [
        "img/odin.png",
        "two words.png",
        "x_(1).jpg",
        "http://example.org/fig one.png",
        "c&d.gif",
    ]


def test_a_web_page_shows_its_tags_alone() -> None:
    page = '<img src=a.png><img data-src="no.png" src="b.png"><img src="a.png"> ![no](c.png)'
    page += "<script>write('<img src=\"no.gif\">')</script>"
    assert picture_targets(page, markdown=False) == ["a.png", "b.png"]


@pytest.mark.parametrize(
    "text",
    [
        "![" * 50_000,
        "<img " * 50_000,
        "`" * 50_000 + "a",
        "<!-- " * 50_000,
        "<p hidden>" * 50_000,
        "<img " + 'a="' * 99_999 + "'" * 99_999,
        "![a](" + "(" * 50_000,
    ],
)
def test_hostile_texts_take_no_long_time(text: str) -> None:
    assert picture_targets(text, markdown=True) == []
    hidden_spans(text)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("The fee is 9. %%Ask Ida first.%% It rises.", ["%%Ask Ida first.%%"]),
        ("Open.\n%%\nSecret\n\nplan\n%%\nShown.", ["%%\nSecret\n\nplan\n%%"]),
        ("Rates of 5%% and 6%% rise.\n\n`%%time%%` and\n\n```\n%%\ngraph\n%%\n```\n100%% sure.", []),
    ],
)
def test_comments_of_obsidian_are_hidden_and_percents_are_not(text: str, hidden: list[str]) -> None:
    assert [text[start:end] for start, end in hidden_spans(text)[0]] == hidden


def test_the_pictures_that_a_web_page_holds_are_attachments_without_its_points(sandbox, put, no_ocr):
    # As large as a photograph: none is left out for its size.
    picture = image_bytes(picture_of(["Odin"]), "PNG") + b"." * 60_000
    drawing = '<svg xmlns="http://www.w3.org/2000/svg"><text y="9">Hugin</text></svg>'
    page = f"""<p>Before</p><!-- <img src="data:image/png;base64,{POINT}AA"> -->
    <img src="data:image/png;base64,{base64.b64encode(picture).decode()}"><img src="data:image/gif;base64,{POINT}">
    <img src='data:image/svg+xml,{quote(drawing)}'>"""
    path = put("a.html", page.encode())
    probe = sandbox.probe(path, "a.html", no_ocr)
    assert (probe.meta["attachments"], probe.pictures) == (2, ())
    attached = dict(sandbox.attachments(path, "a.html"))
    assert attached == {"picture 1.png": picture, "picture 3.svg": drawing.encode()}


def test_the_bytes_of_a_picture_in_a_text_are_a_picture_and_no_words(sandbox, put, no_ocr):
    picture = image_bytes(picture_of(["Odin"]), "PNG")
    held = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
    path = put("a.md", f"# Cranes\n\nBefore ![Odin]({held}) after ![b](b.png).\n".encode())
    probe = sandbox.probe(path, "a.md")
    assert (probe.meta["attachments"], probe.pictures, probe.notices) == (1, ("b.png",), ())
    assert list(sandbox.attachments(path, "a.md")) == [("picture 1.png", picture)]
    (unit,) = decoded(sandbox, path, WorkItem("d", DocumentKind.TEXT, 0, 1, "a.md"), no_ocr)
    assert unit.text == "# Cranes\n\nBefore ![Odin](data:image/png;base64) after ![b](b.png)."
    page = sandbox.page_text(path, DocumentKind.TEXT, unit.locator, no_ocr)
    assert page.text == unit.text
