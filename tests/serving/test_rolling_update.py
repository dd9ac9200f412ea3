"""A service that is deployed anew answers all the while: the new replicas take over before the old ones stop."""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest

from tests.support.patience import HANGS_AFTER_S
from tests.support.planted import plant
from vrag_ray.config import Settings
from vrag_ray.serving.app import APP_NAME, application
from vrag_ray.serving.http.security import Security
from vrag_ray.serving.local import start_serving


def replicas() -> dict[str, frozenset[str]]:
    """The running replicas of each part."""
    from ray import serve
    from ray.serve.context import _get_global_client

    names = serve.status().applications[APP_NAME].deployments
    details = _get_global_client().get_serve_details()["applications"][APP_NAME]["deployments"]
    return {
        name: frozenset(replica["replica_id"] for replica in details[name]["replicas"] if replica["state"] == "RUNNING")
        for name in names
    }


@pytest.mark.exhaustive
def test_no_request_is_refused_while_every_part_is_replaced(local_ray: None, tmp_path: Path):
    from ray import serve

    plant(tmp_path / "c", {"a": ["red apple"], "b": ["blue plum"]})
    settings = Settings.model_validate({"collection": str(tmp_path / "c"), "spaces": {"text": {"model": "none"}}})
    service = start_serving(settings, 0)
    try:
        before, statuses, over = replicas(), Counter[str](), threading.Event()

        def search() -> None:
            with httpx.Client(base_url=service.base_url, timeout=HANGS_AFTER_S) as http:
                while not over.is_set():
                    try:
                        reply = http.post("/v1/search", json={"query": "apple"})
                        statuses[f"{reply.status_code} {'' if reply.is_success else reply.text[:200]}"] += 1
                    except httpx.HTTPError as error:
                        statuses[repr(error)] += 1

        searcher = threading.Thread(target=search)
        searcher.start()
        changed = settings.model_copy(update={"serving": settings.serving.model_copy(update={"refresh_s": 7.0})})
        target = serve.RunTarget(application(changed, Security(), drain_check_s=0.1), name=APP_NAME, route_prefix="/")
        serve.run_many([target])
        deadline = time.monotonic() + HANGS_AFTER_S
        while any(not now or now & before[name] for name, now in replicas().items()):
            assert time.monotonic() < deadline, (before, replicas())
            time.sleep(0.2)
        over.set()
        searcher.join()
        assert list(statuses) == ["200 "], statuses
    finally:
        service.stop()
