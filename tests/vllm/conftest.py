"""Ray Serve for the tests of models, without its HTTP proxy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="package")
def serving(local_ray: None) -> Iterator[None]:
    from ray import serve

    serve.start(proxy_location="Disabled")
    yield
    serve.shutdown()
