"""Names of collections that were given none: what a request can name, whatever the folder is called."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter

from vrag_ray.config.settings import CollectionName
from vrag_ray.types.collection_names import free_name


@pytest.mark.parametrize(
    ("root", "name"),
    [
        ("/data/papers", "papers"),
        ("/data/notes #1, drafts?", "notes -1- drafts-"),
        ("s3://bucket/C&A*?region=x", "C-A-"),
        ("/data/" + "x" * 200, "x" * 60),
        ("/", "collection"),
    ],
)
def test_a_folder_of_any_name_gives_a_name_that_requests_can_use(root: str, name: str) -> None:
    assert free_name(root, []) == TypeAdapter(CollectionName).validate_python(name) == name


def test_a_taken_name_takes_that_of_the_folder_above_or_a_number() -> None:
    assert free_name("/b/papers", ["papers"]) == "b-papers"
    assert free_name("/b/papers", ["papers", "b-papers"]) == "b-papers-2"
