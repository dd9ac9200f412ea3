"""A stand-in for what is behind the gateway, and a client of the gateway over it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.support.http_gateway import http
from tests.support.stand_in import StandIn


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def backend(tmp_path: Path) -> StandIn:
    return StandIn(tmp_path / "runs")


@pytest.fixture
async def client(backend: StandIn, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with http(backend, tmp_path) as connected:
        yield connected
