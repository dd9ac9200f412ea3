import pytest

from vrag_ray.index.object_store.location import Location
from vrag_ray.types import VragError
from vrag_ray.types.collection_names import own_name


def test_options_behind_the_uri_are_no_part_of_a_files_name_and_reach_lance():
    here = Location.parse("s3://bucket/some/folder/?endpoint_override=127.0.0.1:9000&scheme=http&region=eu-north-1")
    assert here.base == "s3://bucket/some/folder"
    assert here.lance_options == {
        "endpoint": "http://127.0.0.1:9000",
        "allow_http": "true",
        "virtual_hosted_style_request": "false",
        "region": "eu-north-1",
    }
    assert Location.parse("gs://bucket/folder").lance_options == {}


def test_a_key_in_the_uri_is_refused_and_not_repeated():
    with pytest.raises(VragError, match="s3://bucket/folder holds a key: set it in the environment") as refused:
        Location.parse("s3://AKIA123:secret@bucket/folder")
    assert "secret" not in str(refused.value) and "AKIA123" not in str(refused.value)


def test_a_collection_is_not_called_after_its_options():
    assert own_name("s3://bucket/papers?region=eu-north-1") == "papers"
