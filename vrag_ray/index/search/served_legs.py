"""The vector legs of a collection that can be searched, and in words why others cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from vrag_ray.config import Settings, SpaceConfig
from vrag_ray.embedding.base import Modality
from vrag_ray.index.search.leg_loader import LegLoader
from vrag_ray.index.search.vector_leg import VectorLeg
from vrag_ray.index.shards.shard_index import SpaceSpec
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.spaces import SpaceRecord
from vrag_ray.types import LEXICAL, TEXT, DocumentKind, DocumentStatus, VragError
from vrag_ray.types.copies import with_changes
from vrag_ray.types.errors import validation_message

NOT_EMBEDDED = "spaces.text.model is none"
"""Why there are no vectors of texts, where that was chosen."""


@dataclass(frozen=True)
class ServedLegs:
    """``by_name`` in the order in which they are searched: the texts first. ``missing`` says why a space is no leg."""

    by_name: Mapping[str, VectorLeg]
    missing: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()

    @property
    def specs(self) -> tuple[SpaceSpec, ...]:
        return tuple(leg.spec for leg in self.by_name.values())

    @property
    def profile(self) -> str:
        """In words, what searches: ``lexical``, ``embedded`` (text vectors) or the vector legs by name."""
        names = tuple(self.by_name)
        return LEXICAL if not names else "embedded" if names == (TEXT,) else " + ".join(names)


def load_legs(settings: Settings, collection: Collection, loader: LegLoader) -> ServedLegs:
    """What ``collection`` and ``settings`` have together. Blocking."""
    if collection.version == 0:
        return _legs_of_nothing(settings, loader)
    legs: dict[str, VectorLeg] = {}
    missing = {} if settings.texts_are_embedded else {TEXT: NOT_EMBEDDED}
    lagging: list[str] = []
    for record in collection.spaces:
        if record.name in missing:
            continue
        try:
            legs[record.name] = loader.space(record, _config(settings, record))
        except VragError as error:
            missing[record.name] = str(error)
            continue
        lagging += _lagging(collection, record)
    for name in settings.filled_spaces:
        if collection.find_space(name) is None:
            missing[name] = f"this collection has no such vectors yet: `vrag embed --space {name}` makes them"
    searched = [record for record in collection.spaces if record.name in legs]
    return ServedLegs(legs, missing, (*notices_of_missing(missing, searched), *lagging))


def _legs_of_nothing(settings: Settings, loader: LegLoader) -> ServedLegs:
    """Of an empty collection: the leg of the texts, so that a service is ready for the first document."""
    legs: dict[str, VectorLeg] = {}
    missing = {name: "the collection is empty" for name in settings.filled_spaces if name != TEXT}
    if not settings.texts_are_embedded:
        missing[TEXT] = NOT_EMBEDDED
    else:
        config = settings.filled_spaces[TEXT].with_absolute_model()
        try:
            legs[TEXT] = loader.unfilled(TEXT, with_changes(config, {"device": settings.device_of(config.device)}))
        except VragError as error:
            missing[TEXT] = str(error)
    empty = "the collection is empty: ingest documents to search them"
    return ServedLegs(legs, missing, (*notices_of_missing(missing, ()), empty))


def notices_of_missing(missing: Mapping[str, str], searched: Sequence[SpaceRecord]) -> list[str]:
    """Why spaces are not searched, where the spaces ``searched`` are. For texts there is none where it was chosen to
    embed none, and one of those has vectors of texts."""
    notices: list[str] = []
    for name, why in missing.items():
        if name != TEXT:
            notices.append(f"the vector space {name} is not searched: {why}")
        elif not searched:
            notices.insert(0, f"lexical search only: {why}")
        elif why != NOT_EMBEDDED or not any(Modality.TEXT in modalities_of(record) for record in searched):
            notices.insert(0, f"texts are searched by their words only: {why}")
    return notices


def _config(settings: Settings, record: SpaceRecord) -> SpaceConfig:
    """As configured, else as the space was made; on the device that ``gpus`` leaves it."""
    configured = settings.spaces.get(record.name)
    config = _recorded(record) if configured is None else configured.with_absolute_model()
    return with_changes(config, {"device": settings.device_of(config.device)})


def _recorded(record: SpaceRecord) -> SpaceConfig:
    """The settings that a space was made with."""
    try:
        return SpaceConfig.from_record(record.config)
    except ValidationError as error:
        problem = validation_message(error.errors()[0])
        raise VragError(f"its recorded settings cannot be read ({problem}): set spaces.{record.name}") from error


def modalities_of(record: SpaceRecord) -> frozenset[str]:
    """What the space's embedder takes; all, where that was not recorded."""
    known = record.traits.get("modalities")
    return frozenset(map(str, known)) if isinstance(known, list) else frozenset(Modality)


def _lagging(collection: Collection, record: SpaceRecord) -> list[str]:
    import pyarrow.compute as pc

    modalities = modalities_of(record)
    known = set(pc.unique(collection.space_table(record.name).to_table(columns=["doc_id"])["doc_id"]).to_pylist())
    waiting = [
        d.doc_id
        for d in collection.documents()
        if d.doc_id not in known
        and d.status is not DocumentStatus.ERROR
        and d.units
        and (Modality.TEXT in modalities or d.kind is not DocumentKind.TEXT)
    ]
    if waiting and modalities == {Modality.TEXT}:
        waiting = collection.with_words(waiting)
    if not waiting:
        return []
    documents = "1 document is" if len(waiting) == 1 else f"{len(waiting)} documents are"
    return [f"{documents} not in the vector space {record.name} yet: `vrag embed --space {record.name}` adds them"]
