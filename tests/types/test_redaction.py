"""What messages and records show of paths and URIs."""

from __future__ import annotations

import pytest

from vrag_ray.types.redaction import public_uri, scrub


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("cannot read /srv/data/blobs/abc: gone", "cannot read abc: gone"),
        ("no collection at '/srv/my data/c': run vrag ingest", "no collection at 'c': run vrag ingest"),
        ("file:///srv/a/b.pdf is broken", "b.pdf is broken"),
        (
            "see https://example.org/a/b and GET /v1/documents/{id}",
            "see https://example.org/a/b and GET /v1/documents/{id}",
        ),
        ("hit 3/4 of s3://bucket/key/x", "hit 3/4 of s3://bucket/key/x"),
    ],
)
def test_messages_lose_paths_and_keep_urls(message: str, shown: str):
    assert scrub(message) == shown


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("file:///srv/private/a%20b.pdf", "a b.pdf"),
        ("/srv/private/a.pdf", "a.pdf"),
        ("C:\\private\\a.pdf", "a.pdf"),
        ("s3://key:secret@bucket/x/a.pdf?token=1", "s3://bucket/x/a.pdf"),
        ("upload:1234-0/a.pdf", "upload:1234-0/a.pdf"),
    ],
)
def test_a_documents_uri_is_shown_without_folders_and_secrets(uri: str, shown: str):
    assert public_uri(uri) == shown
