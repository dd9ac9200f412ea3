"""Functions of the user's own, named by a setting."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from vrag_ray.types import VragError
from vrag_ray.types.dotted_path import load_object


def test_what_a_path_names_is_found():
    assert load_object("math:sqrt", "reward.scorer") is math.sqrt
    assert load_object("pathlib:Path", "embedder.name") is Path


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("sqrt", r"^a\.b is 'sqrt'; use one, two or package\.module:function$"),
        ("math:", r"^a\.b is 'math:'; use one, two or package\.module:function$"),
        (":sqrt", r"use one, two or package"),
        (
            "no.such:thing",
            r"^a\.b is 'no\.such:thing', but no\.such does not import: No module named 'no'\. Install it, or put its",
        ),
        ("math:cube", r"^a\.b is 'math:cube', but math has no cube$"),
        ("math:pi", r"^a\.b is 'math:pi', but pi cannot be called$"),
    ],
)
def test_a_path_that_cannot_be_imported_is_reported_with_the_setting_and_the_reason(path: str, problem: str):
    with pytest.raises(VragError, match=problem):
        load_object(path, "a.b", ("one", "two"))


def test_a_setting_that_takes_paths_alone_names_no_others():
    with pytest.raises(VragError, match=r"; use package\.module:function$"):
        load_object("sqrt", "a.b")
    with pytest.raises(VragError, match=r"; use none or package\.module:factory$"):
        load_object("sqrt", "a.b", ("none",), "factory")
