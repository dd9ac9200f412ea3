"""What the retriever deployment makes of faults of a search."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.planted import plant
from vrag_ray.config import EmbedderConfig, Settings
from vrag_ray.index.search.federated import FederatedRetriever, local_members
from vrag_ray.library.library import Library
from vrag_ray.serving.deployments.retriever import RetrieverService
from vrag_ray.serving.errors import InvalidError
from vrag_ray.serving.joined_searches import SearchScope


def test_a_leg_that_is_not_there_is_a_wrong_field_of_the_request(tmp_path: Path) -> None:
    plant(tmp_path / "c", {"a": ["one"]})
    settings = Settings(collection=str(tmp_path / "c"), embedder=EmbedderConfig(name="none"))

    async def check() -> None:
        service = RetrieverService.__new__(RetrieverService)
        service._settings, service._reranker, service._library = settings, None, Library(settings)
        members = local_members(settings)
        service._federated = FederatedRetriever(members, 100)
        with pytest.raises(InvalidError, match="mode 'psychic' is none of hybrid, lexical") as caught:
            await service.search_groups([["one"]], SearchScope(1, "psychic", None))
        assert (caught.value.param, caught.value.status) == ("mode", 422)
        with pytest.raises(InvalidError, match="there is no collection 'd' here: there is c alone") as caught:
            await service.search_groups([["one"]], SearchScope(1, "lexical", None, ("d",)))
        assert (caught.value.param, caught.value.status) == ("collection", 422)
        await members["c"].close()
        service._library.close()

    asyncio.run(check())
