"""Names of files that are not UTF-8, as texts."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.planted import document
from vrag_ray.types.file_names import distinct_titles, expanded, names_of, path_of, shown_name


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"plain 100%.txt", "plain 100%.txt"),
        ("größe 漢字.pdf".encode(), "größe 漢字.pdf"),
        (b"caf\xe9.txt", "caf%E9.txt"),
        (b"a\nb\x1b[31m.txt", "a%0Ab%1B[31m.txt"),
        ("c1\x9b.txt".encode(), "c1%C2%9B.txt"),
    ],
)
def test_only_what_cannot_be_shown_is_percent_encoded(raw: bytes, shown: str) -> None:
    assert shown_name(os.fsdecode(raw)) == shown


@given(st.text(st.characters(), max_size=20))
def test_every_name_can_be_stored_and_printed_on_one_line(name: str) -> None:
    shown = shown_name(name)
    assert (shown.encode() and "\n" not in shown) or not name
    assert shown_name(shown) == shown


@given(st.binary(min_size=1, max_size=20).filter(lambda name: not {0, ord("/")} & set(name)))
def test_a_uri_names_the_very_file(name: bytes) -> None:
    path = Path("/folder") / os.fsdecode(name)
    assert path_of(path.as_uri()) == path


def test_names_have_the_folders_in_which_they_differ() -> None:
    assert names_of(["file:///a/b/x.txt", "file:///a/c/y.txt"]) == ["x.txt", "y.txt"]
    assert names_of(["file:///a/b/x.txt", "file:///a/c/x.txt", "file:///a/c/y.txt"]) == ["b/x.txt", "c/x.txt", "y.txt"]
    assert names_of(["file:///b/x.txt", "file:///a/b/x.txt", "s3://b/c/x.txt"]) == ["b/x.txt", "a/b/x.txt", "c/x.txt"]
    assert names_of(["file:///a%20b/caf%E9.parquet#row=2"]) == ["caf%E9.parquet#row=2"]
    assert names_of(["file:///a%20b/%23.txt", "file:///b/%23.txt"]) == ["a b/#.txt", "b/#.txt"]
    assert names_of(["upload:1/x.txt", "upload:2/x.txt"]) == ["x.txt", "x.txt"]
    assert names_of(["upload:1/x.txt", "file:///a/x.txt"]) == ["x.txt", "a/x.txt"]
    assert names_of([]) == []


@pytest.mark.parametrize(
    ("uris", "titles"),
    [
        (["file:///a/2023/r.pdf", "file:///a/2024/r.pdf"], ["r (2023)", "r (2024)"]),
        (["file:///a/1/q/r.pdf", "file:///a/2/q/r.pdf", "file:///p/r.pdf"], ["r (1/q)", "r (2/q)", "r (p)"]),
        (["file:///a/x.pdf", "file:///a/y.pdf"], ["r (x.pdf)", "r (y.pdf)"]),
        (["file:///a/m.eml#attachment=r.pdf", "file:///b/m.eml#attachment=r.pdf"], ["r (a)", "r (b)"]),
        (["upload:1-0/r.pdf", "upload:2-0/r.pdf"], ["r", "r"]),
        (["upload:1-0/r.pdf", "file:///a/r.pdf"], ["r", "r (a)"]),
        (["file:///r.pdf", "file:///a/r.pdf"], ["r", "r (a)"]),
    ],
)
def test_documents_of_the_same_title_show_the_folder_or_the_name_that_differs(
    uris: list[str], titles: list[str]
) -> None:
    documents = [replace(document(uri, uri), title="r") for uri in uris]
    assert list(distinct_titles(documents).values()) == titles


def test_a_name_that_begins_with_a_tilde_is_a_home_only_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", "/home/anna")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "~$lock.txt").touch()
    names = ("~$lock.txt", "~nobody-has-this-name/a.txt", "~/a.txt", "~", "a/~b", "/~x")
    expected = ["~$lock.txt", "~nobody-has-this-name/a.txt", "/home/anna/a.txt", "/home/anna", "a/~b", "/~x"]
    assert [str(expanded(name)) for name in names] == expected
    assert [str(path_of(name)) for name in names] == expected
