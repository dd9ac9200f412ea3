"""Several collections searched as one: the same results as one collection with all of it, or a clear refusal."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.patience import HANGS_AFTER_S
from tests.support.planted import doc_id_of, plant
from tests.support.planted_spaces import LATE, PLANTED, fill, picture_of
from vrag_ray.config import IndexConfig, Settings, SpaceConfig
from vrag_ray.index.search.federated import FederatedRetriever
from vrag_ray.index.search.leg_loader import LegLoader
from vrag_ray.index.search.modes import DisagreeingSpacesError
from vrag_ray.index.search.retriever import ShardedRetriever
from vrag_ray.index.search.snapshot import Snapshot
from vrag_ray.index.search.vector_leg import VectorLeg
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.rows import CorruptionError
from vrag_ray.index.storage.writer import CollectionWriter
from vrag_ray.types import (
    HYBRID,
    LEXICAL,
    TEXT,
    Hit,
    Locator,
    NotFoundError,
    Passage,
    Query,
    SearchAnswer,
    VragError,
    passage_id,
)
from vrag_ray.types.collection_names import UnknownCollectionError
from vrag_ray.types.filters import SearchFilter

NOTES = {f"d{n}": [f"{a} {b}", f"{b} {c}"] for n, (a, b, c) in enumerate(
    [("red", "apple", "pie"), ("green", "pear", "tart"), ("blue", "plum", "jam"), ("red", "plum", "cake"),
     ("green", "apple", "juice"), ("blue", "pear", "salad")]
)}  # fmt: skip


def settings_for(main: Path, embedder: SpaceConfig = PLANTED, **others: Path) -> Settings:
    collections = {name: str(root) for name, root in others.items()}
    return Settings(
        collection=str(main),
        collections=collections,
        spaces={"text": embedder},
        index=IndexConfig(threads=1, candidates=4),
    )


class LocalMember:
    """A ``Member`` in this process, opened when it is first searched."""

    def __init__(self, settings: Settings, name: str, loader: LegLoader) -> None:
        self._settings, self._name, self._loader = settings, name, loader
        self._retriever: ShardedRetriever | None = None
        self._opening = asyncio.Lock()

    async def retriever(self) -> ShardedRetriever:
        """Raises NotFoundError where there is no collection."""
        async with self._opening:
            if self._retriever is None:
                self._retriever = await ShardedRetriever.start_local(
                    self._settings, name=self._name, loader=self._loader
                )
            return self._retriever

    async def close(self) -> None:
        if self._retriever is not None:
            await self._retriever.close()


def local_members(settings: Settings) -> dict[str, LocalMember]:
    """``settings.served`` in this process. Their embedders are loaded once."""
    loader = LegLoader()
    return {
        name: LocalMember(settings.model_copy(update={"collection": root, "collections": {}}), name, loader)
        for name, root in settings.served.items()
    }


@asynccontextmanager
async def side_by_side(settings: Settings) -> AsyncIterator[FederatedRetriever]:
    members = local_members(settings)
    try:
        yield FederatedRetriever(members, settings.index)
    finally:
        for member in members.values():
            await member.close()


def search(settings: Settings, names: Iterable[str], *queries: str | Query, **more: object) -> SearchAnswer:
    async def run() -> SearchAnswer:
        async with side_by_side(settings) as federated:
            return await federated.choose(tuple(names)).search(list(queries), **more)  # type: ignore[arg-type]

    return asyncio.run(run())


def places(hits: Iterable[Hit]) -> list[tuple[str, float]]:
    return [(hit.passage.id, hit.score) for hit in hits]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``whole`` has what ``left`` and ``right`` have together, and the coloured pages likewise."""
    root = tmp_path_factory.mktemp("collections")
    plant(root / "whole", NOTES)
    plant(root / "copy", NOTES)
    plant(root / "left", {name: NOTES[name] for name in ("d0", "d1", "d2", "d5")})
    plant(root / "right", {name: NOTES[name] for name in ("d3", "d4", "d5")})
    fill(root / "colours")
    fill(root / "some-colours", names="ab", planted="ab")
    fill(root / "other-colours", names="cd", planted="cd")
    fill(root / "late-colours", ("late",), names="cd", planted="cd")
    return root


def test_a_leg_over_several_collections_finds_what_it_finds_in_one_with_all_documents(folder: Path) -> None:
    both = settings_for(folder / "left", right=folder / "right")
    chosen = SearchFilter(doc_ids=[doc_id_of("d2")[:12], doc_id_of("d4"), doc_id_of("d5")])
    for doc_filter in (None, chosen):
        for top_k in (1, 3, 12):
            queries = ["red plum", "pear", "jam juice"]
            together = search(both, ["left", "right"], *queries, mode=TEXT, top_k=top_k, filter=doc_filter)
            whole = search(settings_for(folder / "whole"), [], *queries, mode=TEXT, top_k=top_k, filter=doc_filter)
            assert list(map(places, together.results)) == list(map(places, whole.results))


def test_spaces_of_several_collections_are_searched_as_one_with_regions_and_duplicates(folder: Path) -> None:
    both = settings_for(folder / "some-colours", other=folder / "other-colours")
    queries = ("red", "green", "blue", Query(picture=picture_of("b")))
    for mode in ("late", "mean"):
        together = search(both, ["*"], *queries, mode=mode, top_k=4)
        whole = search(settings_for(folder / "colours"), [], *queries, mode=mode, top_k=4)
        for mine, theirs in zip(together.results, whole.results, strict=True):
            assert places(mine) == places(theirs)
            assert [(hit.region, hit.duplicate_of) for hit in mine] == [(h.region, h.duplicate_of) for h in theirs]


def test_hits_name_their_collection_and_a_document_in_both_is_found_once_in_the_first_that_is_named(
    folder: Path,
) -> None:
    both = settings_for(folder / "left", right=folder / "right")
    for names in (("left", "right"), ("right", "left")):
        answer = search(both, names, "pear salad", top_k=12)
        ids = [hit.passage.id for hit in answer.results[0]]
        assert len(ids) == len(set(ids)) == 12
        where = {hit.title: hit.collection for hit in answer.results[0]}
        assert where == {"d0": "left", "d1": "left", "d2": "left", "d3": "right", "d4": "right", "d5": names[0]}
        assert answer.collections == names
        assert (answer.shards_ok, answer.shards_total) == (2, 2)


def test_a_copy_beside_a_collection_changes_no_result(folder: Path) -> None:
    both = settings_for(folder / "whole", copy=folder / "copy")
    queries = ("red plum", "pear", "apple pie jam")
    for top_k in (1, 3, 12):
        together = search(both, ["*"], *queries, top_k=top_k)
        whole = search(settings_for(folder / "whole"), [], *queries, top_k=top_k)
        for mine, theirs in zip(together.results, whole.results, strict=True):
            assert [hit.passage.id for hit in mine] == [hit.passage.id for hit in theirs]
            assert [hit.score for hit in mine] == pytest.approx([hit.score for hit in theirs])


def test_a_document_of_two_collections_is_shown_as_the_one_has_it_that_the_filter_lets_through(tmp_path: Path) -> None:
    for name, year in (("old", 2020), ("new", 2021)):
        plant(tmp_path / name, {"d": ["tidal lagoon"]}, year=year)
    settings = settings_for(tmp_path / "old", new=tmp_path / "new")
    answer = search(settings, ["*"], "lagoon", filter=SearchFilter(meta={"year": 2021}))
    [hit] = answer.results[0]
    assert (hit.passage.meta["year"], hit.collection) == (2021, "new")


def test_words_of_several_collections_are_weighed_by_how_much_of_the_query_a_page_covers(tmp_path: Path) -> None:
    # "battery" is in every page of one collection and rare in the other: BM25 alone would put the other's first.
    plant(tmp_path / "cells", {f"c{n}": [f"battery {word}"] for n, word in enumerate(["cost", "life", "size", "heat"])})
    plant(tmp_path / "mixed", {f"m{n}": [word] for n, word in enumerate(["battery", "tent", "stove", "rope"])})
    settings = settings_for(tmp_path / "cells", mixed=tmp_path / "mixed")
    answer = search(settings, ["*"], "battery cost", mode=LEXICAL, top_k=8)
    best = answer.results[0][0]
    assert (best.title, best.score) == ("c0", pytest.approx(1.0))
    assert all(0 < hit.score <= 1 for hit in answer.results[0])
    assert {hit.title for hit in answer.results[0]} == {"c0", "c1", "c2", "c3", "m0"}


def test_without_a_name_the_main_collection_is_searched(folder: Path) -> None:
    both = settings_for(folder / "left", right=folder / "right")
    answer = search(both, [], "plum cake", top_k=12)
    assert answer.collections == ("left",)
    assert {hit.title for hit in answer.results[0]} == {"d0", "d1", "d2", "d5"}
    alone = search(both, ["right"], "plum cake", top_k=1)
    assert [hit.title for hit in alone.results[0]] == ["d3"]


def test_collections_whose_vectors_do_not_compare_are_refused_with_what_can_be_done(folder: Path) -> None:
    settings = settings_for(folder / "some-colours", late=folder / "late-colours")
    with pytest.raises(DisagreeingSpacesError) as refusal:
        search(settings, ["*"], "one", mode=HYBRID)
    text = str(refusal.value)
    assert "some-colours has late of colours/1, mean of mean-colours/1, text of planted/1" in text
    assert "late has late of colours/1, text of planted/1" in text
    assert "in mode lexical or text or late" in text
    for mode in (LEXICAL, TEXT, "late"):
        assert search(settings, ["*"], "blue", mode=mode).mode == mode
    with pytest.raises(Exception, match=r"^late: .*mean"):
        search(settings, ["*"], "blue", mode="mean")


def test_one_bit_vectors_and_floats_do_not_compare(folder: Path, tmp_path: Path) -> None:
    plant(tmp_path / "c", {"a": ["one"]})
    other = folder / "other-colours"
    settings = settings_for(folder / "some-colours", other=other)
    assert search(settings, ["*"], "blue", mode="late").mode == "late"
    # As `vrag embed --rebuild` with another precision leaves it: the record has the settings that it was made with.
    with CollectionWriter(tmp_path / "c") as writer:
        writer.spaces.create(
            "late", embedder_id="colours/1", dim=4, multi_vector=True,
            config=LATE.model_copy(update={"binary": True}).model_dump(mode="json"),
        )  # fmt: skip
        writer.publish("vectors")
    settings = settings_for(folder / "some-colours", other=tmp_path / "c")
    with pytest.raises(DisagreeingSpacesError, match="cannot be compared in mode late"):
        search(settings, ["*"], "blue", mode="late")


def test_an_empty_collection_beside_others_says_that_it_is_empty(folder: Path, tmp_path: Path) -> None:
    Collection.open_or_create(tmp_path / "new")
    answer = search(settings_for(folder / "colours", new=tmp_path / "new"), ["*"], "one", top_k=1)
    assert [hit.title for hit in answer.results[0]] == ["a"]
    assert answer.notices[0] == "new: the collection is empty: ingest documents to search them"


def test_names_that_are_not_served_and_documents_that_nobody_has_are_refused(folder: Path) -> None:
    settings = settings_for(folder / "left", right=folder / "right")
    with pytest.raises(UnknownCollectionError, match=r"no collection 'top' here: use left, right, or \* for all"):
        search(settings, ["left", "top"], "plum")
    with pytest.raises(NotFoundError, match="document ffffffffffff is not in left and right: where another collection"):
        search(settings, ["*"], "plum", filter=SearchFilter(doc_ids=["f" * 12]))


def test_a_heat_map_is_of_the_collection_that_has_the_page(folder: Path) -> None:
    async def heat_of(name: str) -> tuple[int, ...]:
        settings = settings_for(folder / "left", colours=folder / "colours")
        async with side_by_side(settings) as federated:
            return tuple((await federated.heat("red", doc_id_of(name), 1)).shape)

    assert asyncio.run(heat_of("a")) == (4, 4)
    with pytest.raises(NotFoundError, match="has no heat map"):
        asyncio.run(heat_of("d0"))
    with pytest.raises(NotFoundError, match="is not in this collection"):
        asyncio.run(heat_of("nobody"))


def test_a_heat_map_goes_on_while_a_newer_version_comes_into_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "c")
    embedded = VectorLeg.read

    async def check() -> None:
        async with side_by_side(settings_for(tmp_path / "c")) as federated:
            retriever = await federated.member()
            refreshing: list[asyncio.Task[int]] = []
            waiting, unused = asyncio.Event(), Snapshot.unused

            async def announced(snapshot: Snapshot) -> None:
                waiting.set()
                await unused(snapshot)

            async def published_meanwhile(leg: VectorLeg, queries: Sequence[Query]) -> object:
                plant(tmp_path / "c", {"e": ["five"]})
                refreshing.append(asyncio.create_task(retriever.refresh()))
                await asyncio.wait_for(waiting.wait(), HANGS_AFTER_S)
                return await embedded(leg, queries)

            monkeypatch.setattr(Snapshot, "unused", announced)
            monkeypatch.setattr(VectorLeg, "read", published_meanwhile)
            assert (await federated.heat("red", doc_id_of("a"), 1)).shape == (4, 4)
            assert await refreshing[0] == 3

    asyncio.run(check())


def test_one_collection_that_is_not_ready_keeps_no_other_from_its_heat_maps(folder: Path) -> None:
    class Starting:
        async def retriever(self) -> ShardedRetriever:
            raise VragError("starting")

    async def check() -> None:
        members = local_members(settings_for(folder / "colours"))
        federated = FederatedRetriever({"starting": Starting(), **members}, IndexConfig(candidates=4))
        assert (await federated.heat("red", doc_id_of("a"), 1)).shape == (4, 4)
        with pytest.raises(VragError, match="starting"):
            await federated.heat("red", doc_id_of("nobody"), 1)
        await members["colours"].close()

    asyncio.run(check())


def test_embedders_are_loaded_once_for_all_collections(folder: Path) -> None:
    settings = settings_for(folder / "some-colours", other=folder / "other-colours")

    async def embedders() -> list[set[int]]:
        async with side_by_side(settings) as federated:
            retrievers = [await federated.member(name) for name in settings.served]
            return [{id(leg.embedder) for leg in retriever.snapshot.legs.by_name.values()} for retriever in retrievers]

    first, second = asyncio.run(embedders())
    assert first == second
    assert len(first) == 3


def test_a_model_is_let_go_of_with_the_last_leg_that_has_it(folder: Path) -> None:
    loader, record = LegLoader(), Collection.open(folder / "colours").space("late")
    leg = loader.space(record, LATE)
    other = loader.space(record, LATE.model_copy(update={"actors": 4, "weight": 0.5}))
    assert (other.embedder is leg.embedder, other.weight) == (True, 0.5)
    embedder = weakref.ref(leg.embedder)
    del leg, other
    gc.collect()
    assert embedder() is None


@pytest.mark.parametrize("mode", [HYBRID, TEXT, LEXICAL])
def test_several_who_ask_at_once_get_what_each_gets_alone_and_hear_of_their_own_queries_only(
    tmp_path: Path, mode: str
) -> None:
    plant(tmp_path / "all", NOTES)
    groups = [["red apple", "plum"], ["zeppelin"], [], ["green pear"]]

    async def run() -> tuple[list[SearchAnswer], list[SearchAnswer]]:
        async with side_by_side(settings_for(tmp_path / "all")) as federated:
            chosen = federated.choose()
            together = await chosen.search_each(groups, top_k=3, mode=mode)
            return together, [await chosen.search(group, top_k=3, mode=mode) for group in groups]

    together, alone = asyncio.run(run())
    assert together == alone
    assert [len(answer.results) for answer in together] == [2, 1, 0, 1]
    quoting = [any("zeppelin" in notice for notice in answer.notices) for answer in together]
    assert quoting == [False, mode == HYBRID, False, False]


def test_a_damaged_passage_is_reported_to_the_callers_it_would_have_reached(tmp_path: Path) -> None:
    plant(tmp_path / "all", NOTES)
    torn = passage_id(doc_id_of("d2"), Locator(page=2), 0)

    def damaged(self: Collection, ids: Sequence[str]) -> dict[str, Passage]:
        if torn in ids:
            raise CorruptionError("a passage of d2 is damaged")
        return read(self, ids)

    read = Collection.passages

    async def run() -> list[SearchAnswer]:
        async with side_by_side(settings_for(tmp_path / "all")) as federated:
            return await federated.choose().search_each([["green pear tart"], ["plum jam"]], top_k=1, mode=LEXICAL)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Collection, "passages", damaged)
        good, bad = asyncio.run(run())
    assert (len(good.results[0]), good.notices) == (1, ())
    assert (len(bad.results[0]), bad.notices) == (0, ("a passage of d2 is damaged",))
