"""Style sheets beside a saved web page hold for it, and are read again when they change."""

from __future__ import annotations

import asyncio
import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.ingest_material import settings_for
from vrag_ray.corpus.model import DecodeError, DecodeOptions, Probe
from vrag_ray.corpus.sandbox.sandbox import Sandbox
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.verify import verify
from vrag_ray.ingest import ingest
from vrag_ray.ingest.plan import Committed, DocumentPlan, task_from_json
from vrag_ray.ingest.progress import INGEST_STAGES, MovingBoard
from vrag_ray.ingest.register import Register, group_json
from vrag_ray.ingest.sources import list_sources
from vrag_ray.ingest.web_styles import MOST_SHEET_BYTES, applicable, with_local_sheets, without_comments
from vrag_ray.library.library import Library
from vrag_ray.types import Locator

NOTHING = Committed(finished=frozenset(), units={}, counted={})


def saved_page(
    folder: Path, head: str = '<link rel="stylesheet" href="./page_files/style.css">', **sheets: str
) -> Path:
    """A page as a browser saves it; ``sheets`` are files of its folder by name, ``style.css`` if none are given."""
    (folder / "page_files").mkdir(parents=True)
    for name, sheet in (sheets or {"style": ".gone{display:none} .dark{background:#000}"}).items():
        (folder / "page_files" / f"{name}.css").write_text(sheet)
    page = folder / "page.html"
    body = '<p>The ferry sails at nine.</p><p class="gone">Draft of June.</p><p class="a b c l p"></p>'
    page.write_text(
        f"<!DOCTYPE html><html><head>{head}<title>Times</title></head><body>{body}"
        '<p class="dark" style="color:#fff">Bring a lamp.</p></body></html>'
    )
    return page


def rules_of(page: Path) -> str:
    """The head of the saved page before its title, with the rules of its sheets, without blanks between these."""
    styled, _, _ = with_local_sheets(page, page.parent)
    return re.sub(r"(?<=[>{};]) ", "", styled.decode().partition("<head>")[2].partition("<title>")[0])


def test_a_saved_page_is_read_with_the_style_sheet_beside_it(tmp_path: Path) -> None:
    page = saved_page(tmp_path / "in")
    settings = settings_for(tmp_path / "c")
    ingest([page], settings)
    collection = Collection.open(tmp_path / "c")
    [passage] = collection.first_windows()
    assert "sails at nine" in passage.text
    assert "lamp" in passage.text
    assert "Draft" not in passage.text
    assert verify(tmp_path / "c").is_sound
    assert collection.blob_path(passage.doc_id).read_bytes() == page.read_bytes()
    with closing(Library(settings)) as library:
        shown = asyncio.run(library.page_text(passage.doc_id, Locator(page=1)))
    assert "Draft" not in shown.text


def planned(root: Path, given: Path, committed: Committed = NOTHING) -> DocumentPlan:
    register = Register(str(root), settings_for(root), committed, MovingBoard(INGEST_STAGES, by_file=True))
    with closing(register):
        made = register({"sources": [group_json(list_sources([given]).sources, {})]})
        [plan] = [part.plan for rows in made for task in rows["task"] for part in task_from_json(task)]
    return plan


def test_a_changed_style_sheet_is_read_again_and_the_same_is_not(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    saved_page(folder)
    first = planned(tmp_path / "c", folder)
    mark = str(first.meta["style_files"])
    assert mark.startswith("style.css (")
    known = replace(NOTHING, finished=frozenset([first.doc_id]), sidecars={first.doc_id: mark})
    assert planned(tmp_path / "c", folder, known).skipped
    (folder / "page_files" / "style.css").write_text("p{color:red}")
    assert not planned(tmp_path / "c", folder, known).skipped
    (folder / "page_files" / "style.css").unlink()
    without = planned(tmp_path / "c", folder, known)
    assert (without.skipped, without.pages, "style_files" in without.meta) == (False, "", False)


def test_a_page_that_cannot_be_read_with_its_style_sheets_is_read_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = saved_page(tmp_path / "in")
    probe = Sandbox.probe

    def probe_of_plain_pages(
        self: Sandbox, path: Path, name: str, options: DecodeOptions | None = None, *more: object
    ) -> Probe:
        if b"<style>" in path.read_bytes():
            raise DecodeError("takes too long")
        return probe(self, path, name, options)

    monkeypatch.setattr(Sandbox, "probe", probe_of_plain_pages)
    plan = planned(tmp_path / "c", page)
    assert (plan.units, plan.error, plan.pages) == (1, "", "")
    assert "its style sheets are left out: it cannot be read with them" in plan.notices


def test_pages_of_a_saved_page_that_its_new_style_sheet_hides_are_gone(tmp_path: Path) -> None:
    page = saved_page(tmp_path / "in", "<title>x</title>")
    lines = "".join(f"<p class='old'>Line {number}</p>" for number in range(200))
    page.write_text(f"<html><link rel=stylesheet href=page_files/late.css><body><p>Ferry</p>{lines}</body></html>")
    settings = settings_for(tmp_path / "c")
    ingest([page], settings)
    assert len(Collection.open(tmp_path / "c").first_windows()) > 1
    (page.parent / "page_files" / "late.css").write_text(".old{display:none}")
    ingest([page], settings)
    [left] = Collection.open(tmp_path / "c").first_windows()
    assert left.text == "Ferry"


def test_links_that_are_not_shown_or_lead_elsewhere_name_no_sheet(tmp_path: Path) -> None:
    (tmp_path / "secret.css").write_text(".secret{x:1}")
    head = """
        <!-- <link rel="stylesheet" href="page_files/a.css"> -->
        <noscript><link rel="stylesheet" href="page_files/a.css"></noscript>
        <link rel="alternate stylesheet" href="page_files/a.css"><link rel="icon" href="page_files/a.css">
        <link rel="stylesheet" href="https://example.org/a.css"><link rel="stylesheet" href="//example.org/a.css">
        <link rel="stylesheet" href="../secret.css"><link rel="stylesheet" href="page_files/link.css">
        <link rel="stylesheet" href="page_files/lost.css"><link rel="stylesheet" href="page_files/large.css">
        <link rel="stylesheet" href="page_files/binary.css">
        <link rel="stylesheet" href="/etc/hostname"><link rel="stylesheet" href="file:///etc/hostname">
    """
    page = saved_page(tmp_path / "in", head, a=".a{x:1}", large=" " * (MOST_SHEET_BYTES + 1))
    (page.parent / "page_files" / "link.css").symlink_to(tmp_path / "secret.css")
    (page.parent / "page_files" / "binary.css").write_bytes(b"\0\1")
    styled, mark, notices = with_local_sheets(page, page.parent)
    assert (styled, mark) == (b"", "")
    assert [notice.partition(":")[0] for notice in notices] == [
        "the style sheet page_files/large.css is left out (sheets of more than 2 MB, or 4 MB a page)",
        "the style sheet page_files/binary.css is left out (it is no text)",
    ]


def test_a_sheet_that_cannot_be_read_is_a_notice_of_its_page(tmp_path: Path) -> None:
    page = saved_page(tmp_path / "in", large=" " * (MOST_SHEET_BYTES + 1))
    page.write_text(page.read_text().replace("style.css", "large.css"))
    report = ingest([page], settings_for(tmp_path / "c"))
    assert any("large.css is left out" in entry.notice for entry in report.file_notices)


@pytest.mark.parametrize(
    ("head", "rules"),
    [
        ("<LINK REL=stylesheet HREF=page_files/a.css>", "<style>.a{x:1}</style>"),
        (
            '<link href="page_files/a.css?v=2" media="screen and (min-width:9px)" rel="preload stylesheet">',
            '<style media="screen and (min-width:9px)">.a{x:1}</style>',
        ),
        ('<link rel="stylesheet" href="page_files/b.css">', "<style>@media print{.a{x:1}}.b{x:2}</style>"),
        ('<link rel="stylesheet" href="page_files/c.css">', "<style>@layer base{.a{x:1}}.c{x:3}</style>"),
        ('<link rel="stylesheet" href="page_files/loop.css">', "<style>.l{x:4}.l{x:4}.l{x:4}.l{x:4}</style>"),
        ("<style>@import 'page_files/a.css'; .p{x:5}</style>", "<style>.a{x:1}.p{x:5}</style>"),
        (
            '<link rel="stylesheet" href="page_files/odd.css"><meta charset=utf-8>',
            '<meta charset="utf-8"><style>.a{w:"\\e9 ";x:"<\\/style>";y:url(held:png,A)}</style><meta charset=utf-8>',
        ),
    ],
)
def test_sheets_stand_where_they_are_linked_with_what_they_import(tmp_path: Path, head: str, rules: str) -> None:
    page = saved_page(
        tmp_path,
        head,
        a="/* @import 'c.css'; */.a{x:1}",
        b='@charset "utf-8";@import url("a.css") print;@import url(https://example.org/x.css);.b{x:2}',
        c="@import url(a.css) layer(base); .c{x:3}",
        loop="@import 'loop.css';.l{x:4}",
        odd='<!--.a{w:"é";x:"</style>";y:url(data:image/png,A)}-->',
    )
    assert rules_of(page) == rules


def test_a_comment_that_does_not_end_hides_the_rest_of_a_sheet() -> None:
    assert without_comments("a/*b*/c/*d").split() == ["a", "c"]


@pytest.mark.parametrize(
    ("sheet", "left"),
    [
        (".a{x:1}.b{x:2}p{x:3}", ".a{x:1}p{x:3}"),
        (".a .b,.a #c{x:1}.b>p{x:2}", ".a .b,.a #c{x:1}"),
        ("p:not(.b)[href$='.d']{x:1}", "p:not(.b)[href$='.d']{x:1}"),
        ("@media screen{.b{x:1}.a{x:2}}.b{x:3;&:hover{x:4}}.a{x:5}", "@media screen{.a{x:2}}.a{x:5}"),
        (r".md\:a{x:1}.md\:b{x:2}.w-\31 0{x:3}", r".md\:a{x:1}.w-\31 0{x:3}"),
        ("@layer x,y;.b{x:1}.a{x:2}", "@layer x,y;.a{x:2}"),
        (".a{x:1}.b{x:2", ".a{x:1}"),
    ],
)
def test_rules_for_names_that_a_page_lacks_are_left_out(sheet: str, left: str) -> None:
    assert applicable(sheet, {"a", "c", "md:a"}) == left


def test_what_a_script_fades_in_is_read(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text('<link rel="stylesheet" href="a.css"><p class="reveal">Open since 1966</p>')
    (tmp_path / "a.css").write_text(".reveal{color:red;opacity:0;transition:1s}.reveal{opacity:0.5}")
    page, names, _ = with_local_sheets(tmp_path / "page.html", tmp_path)
    assert names == "a.css"
    assert b"opacity:0;" not in page and b"color:red" in page and b"opacity:0.5" in page
