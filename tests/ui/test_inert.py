"""Text that is data stays text: checked with a real Markdown parser set up to be as permissive as any."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from ui.inert import inert, plain

ALIVE = {"link_open", "image", "html_inline", "html_block", "code_inline", "code_block", "fence", "math_inline"}


def tokens(text: str) -> list[Token]:
    parser = MarkdownIt("gfm-like", {"html": True, "linkify": False})
    collected: list[Token] = []
    for token in parser.parse(text):
        collected += [token, *(token.children or [])]
    return collected


def shown(text: str) -> str:
    return "".join(token.content for token in tokens(text) if token.type == "text").replace("\N{WORD JOINER}", "")


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "![x](http://evil/pixel.png)",
        "[click](javascript:alert(1))",
        "<img src=x onerror=alert(1)>",
        "see http://evil.example and www.evil.example or a@evil.example",
        "[ref]: http://evil.example\n[ref]",
        "$x^2$ and $$y$$",
        ":red[danger] :material/delete: :smile:",
        "&lt;b&gt; &#x3C;",
        "`code` and ```\nfence\n```",
        "<!-- hidden -->",
    ],
)
def test_nothing_of_it_is_loaded_linked_or_run(text: str):
    for output in (inert(text), plain(text)):
        assert not ALIVE & {token.type for token in tokens(output)}
        assert "://" not in output.replace("\\", "") and "www." not in output.replace("\\", "")
        assert ":red[" not in output and "$x" not in output.replace("\\$", "")


def test_emphasis_lists_tables_and_quotes_stay():
    text = "**Bold**\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> quoted"
    types = {token.type for token in tokens(inert(text))}
    assert {"strong_open", "bullet_list_open", "table_open", "blockquote_open"} <= types


def test_a_plain_label_shows_exactly_its_words():
    assert shown(plain("a *b* [c](d) #1 _x_ 1. <i>\n- y")) == "a *b* [c](d) #1 _x_ 1. <i> - y"


@given(st.text(alphabet="ab <>[]()!`*_#:$&\\\n|~-=.@\"'1", max_size=60))
def test_no_text_comes_alive(text: str):
    assert not ALIVE & {token.type for token in tokens(inert(text))}
    assert not ALIVE & {token.type for token in tokens(plain(text))}
    assert shown(plain(text)).strip() == " ".join(text.split())
