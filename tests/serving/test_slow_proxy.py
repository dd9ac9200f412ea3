"""A start of Serve that gives its HTTP proxy up, as happens on a busy machine, is tried again.

How slow a machine must be for it cannot be arranged, so the fault itself is put into Ray's place.
"""

from __future__ import annotations

import logging

import pytest
from ray import serve
from ray.exceptions import ActorDiedError

from vrag_ray.serving import local
from vrag_ray.types import VragError


@pytest.mark.parametrize("fault", [ActorDiedError(), TimeoutError("HTTP proxies not available after 60s.")])
def test_a_slow_proxy_is_tried_again_and_in_the_end_reported(fault, monkeypatch, caplog):
    faults: list[Exception] = [fault]
    started: list[dict[str, object]] = []

    def start(**options: object) -> None:
        started.append(options)
        if faults:
            raise faults.pop()

    monkeypatch.setattr(serve, "start", start)
    with caplog.at_level(logging.WARNING):
        local._start_serve("127.0.0.1", 8123)
    assert len(started) == 2
    assert started[0] == started[1]
    assert "did not start in time; it is tried again" in caplog.text
    faults.extend([fault] * local.SERVE_STARTS)
    with pytest.raises(VragError, match="did not start, 3 times: start the service when the machine is less busy"):
        local._start_serve("127.0.0.1", 8123)
