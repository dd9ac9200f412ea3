"""Comments and tables of texts in plain markup."""

from __future__ import annotations

import time

import pytest

from tests.support.documents import decoded
from vrag_ray.corpus.formats.named_rows import with_named_rows
from vrag_ray.corpus.formats.plain_markup import MARKUP_OF_SUFFIX, comment_spans, markup_tables
from vrag_ray.corpus.model import WorkItem
from vrag_ray.corpus.sniff import Format
from vrag_ray.types import DocumentKind, Locator

ADOC = """= Lock handbook

// the tunnel is secret
The lock opens at seven. https://example.org/a
////
It opened at nine.
////
----
// code
----
"""
RST = """Crane guide
===========

.. the key is under the mat

   and the mat is red
..
   Old hours

.. note:: Wear a helmet.
.. [1] A note
.. _place: a.html
.. |x| replace:: y

End.
"""
TEX = r"""\documentclass{article}
The gate weighs 14 tonnes.% or 19
It loses 3\% of \url{a%20b} and \verb|5%|.
\iffalse Of 1899. \fi
\begin{comment}
Green.
\end{comment}
\begin{verbatim}
% shown
\end{verbatim}
"""
ORG = """#+TITLE: Diary
# perhaps 25 m
The mast is 21 m high.
#+BEGIN_COMMENT
It was 19 m.
#+END_COMMENT
#+begin_src sh
# code
#+end_src
"""


@pytest.mark.parametrize(
    ("name", "text", "seen", "hidden"),
    [
        ("a.adoc", ADOC, ["opens at seven", "//example.org/a", "// code"], ["tunnel", "nine"]),
        ("a.rst", RST, ["Wear a helmet", "[1] A note", "_place", "replace", "End."], ["key", "red", "Old hours"]),
        ("a.tex", TEX, ["14 tonnes.", "3% of", "a%20b", "|5%|", "% shown"], ["19", "1899", "Green"]),
        ("a.org", ORG, ["21 m", "# code", "#+TITLE"], ["25 m", "19 m"]),
        ("a.mdx", "# Ferry\n\nAt six.\n\n{/* not\n at seven */}\n", ["At six."], ["seven"]),
    ],
)
def test_comments_are_left_out_and_counted(sandbox, put, options, name, text, seen, hidden):
    path = put(name, text.encode())
    probe = sandbox.probe(path, name)
    assert [notice.partition(" ")[2] for notice in probe.notices] == ["words that are hidden in it are left out"]
    (unit,) = decoded(sandbox, path, WorkItem("d", DocumentKind.TEXT, 0, 1, name), options)
    assert [part for part in seen if part not in unit.text] == []
    assert [part for part in hidden if part in unit.text] == []
    # A page is read again by the format that was stored.
    format_ = str(probe.meta["format"])
    page = sandbox.page_text(
        path, DocumentKind.TEXT, Locator(span_start=0, span_end=len(text)), options, format_=format_
    )
    assert [part for part in hidden if part in page.text] == []


HOSTILE = (
    "////\n",
    "//",
    "..\n ",
    ".. a\n",
    "%",
    r"\iffalse ",
    r"\begin{comment}",
    "#+begin_comment\n",
    "|===\n|a\n",
    "| ",
)


@pytest.mark.parametrize("format_", sorted({Format.TEXT, *MARKUP_OF_SUFFIX.values()}))
def test_hostile_markup_takes_no_long_time(format_):
    for part in HOSTILE:
        begun = time.process_time()
        list(comment_spans(part * 20_000, format_))
        markup_tables(part * 20_000, format_)
        assert time.process_time() - begun < 3, part


def rows(text: str, format_: Format) -> list[str]:
    shown = with_named_rows(text, markup_tables(text, format_), 0, len(text))
    return [line for line in shown.split("\n") if line]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            '.Gates\n[cols="1,2*",options="header"]\n|===\n|gate |width |built\n|north |7.2 m |1911\n|south\n|8.4 m\n'
            "|\n|===\nEnd.",
            [
                ".Gates",
                "gate width built",
                "gate: north, width: 7.2 m, built: 1911",
                "gate: south, width: 8.4 m",
                "End.",
            ],
        ),
        (
            "[%autowidth]\n|===\n|gate |note\n\n|north\na|Shut \\| barred\non Sundays\n|===",
            ["gate note", "gate: north, note: Shut | barred on Sundays"],
        ),
        ("|===\n|gate |width\n|north |7 m\n|===", ["|===", "|gate |width", "|north |7 m", "|==="]),
        ("|===\n|gate |width\n\n2+|closed\n|===", ["|===", "|gate |width", "2+|closed", "|==="]),
    ],
)
def test_rows_of_asciidoc_have_the_names_of_their_columns(text, shown):
    assert rows(text, Format.ASCIIDOC) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            ".. list-table:: Cranes\n   :header-rows: 1\n   :widths: 20 20\n\n   * - crane\n     - tonnes\n"
            "   * - Odin\n     - 73,\n       or less\n   * - Alma\n     - - 41\n       - 43\n\nEnd.",
            ["Cranes", "crane tonnes", "crane: Odin, tonnes: 73, or less", "crane: Alma, tonnes: - 41 - 43", "End."],
        ),
        (
            '.. csv-table::\n   :header: "hoist", "speed"\n\n   "Ran, old", 3 m/s\n   Lofn, 5 m/s\nEnd.',
            ["hoist speed", "hoist: Ran, old, speed: 3 m/s", "hoist: Lofn, speed: 5 m/s", "End."],
        ),
        (".. list-table::\n\n   * - Odin\n     - 73", [".. list-table::", "   * - Odin", "     - 73"]),
    ],
)
def test_rows_of_restructuredtext_have_the_names_of_their_columns(text, shown):
    assert rows(text, Format.RST) == shown


def test_a_table_that_is_drawn_in_a_terminal_has_the_names_of_its_columns():
    text = "┌──────┬─────┐\n│ item │ pcs │\n├──────┼─────┤\n│ ring │  38 │\n└──────┴─────┘\nEnd."
    assert rows(text, Format.TEXT) == ["item pcs", "item: ring, pcs: 38", "End."]


def test_letters_that_are_written_by_their_codes_are_letters(sandbox, put, options):
    path = put("a.properties", rb"mill=M\u00fchle \u2022 C:\users")
    (unit,) = decoded(sandbox, path, WorkItem("d", DocumentKind.TEXT, 0, 1, "a.properties"), options)
    assert unit.text == "mill=Mühle • C:\\users"
