"""Uploads and searches of a real service, as tests write them."""

from __future__ import annotations

import time

import httpx

from tests.support.patience import HANGS_AFTER_S


def upload(
    http: httpx.Client, files: dict[str, bytes], *, params: dict[str, str] | None = None, **form: str
) -> dict[str, object]:
    """Upload and wait for the end of the job."""
    reply = http.post("/v1/documents", files=[("files", item) for item in files.items()], data=form, params=params)
    assert reply.status_code == 202
    deadline = time.monotonic() + HANGS_AFTER_S
    while time.monotonic() < deadline:
        job = http.get(reply.headers["location"]).json()
        if job["state"] in ("done", "failed"):
            return dict(job)
        time.sleep(0.1)
    raise AssertionError(f"the job did not end: {job}")


def search(http: httpx.Client, query: str, **more: object) -> list[dict[str, object]]:
    reply = http.post("/v1/search", json={"query": query, **more})
    assert reply.status_code == 200, reply.text
    return list(reply.json()["results"][0])
