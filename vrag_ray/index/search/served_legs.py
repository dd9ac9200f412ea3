"""The vector legs of a collection that can be asked, and in words why others cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from vrag_ray.config import EmbedderConfig, Settings, SpaceConfig
from vrag_ray.embedding.base import Modality
from vrag_ray.index.search.leg_loader import LegLoader
from vrag_ray.index.search.vector_leg import VectorLeg
from vrag_ray.index.shards.shard_index import SpaceSpec
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.spaces import SpaceRecord
from vrag_ray.types import LEXICAL, TEXT, DocumentKind, DocumentStatus, VragError
from vrag_ray.types.copies import with_changes
from vrag_ray.types.errors import validation_message


@dataclass(frozen=True)
class ServedLegs:
    """``by_name`` in the order in which they are asked: the texts first. ``missing`` says why a space is no leg."""

    by_name: Mapping[str, VectorLeg]
    text_notice: str = ""
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
    text, text_notice = loader.text(settings.text_embedder)
    legs: dict[str, VectorLeg] = {TEXT: text} if text is not None else {}
    missing: dict[str, str] = {}
    lagging: list[str] = []
    for record in collection.spaces:
        try:
            named = settings.spaces.get(record.name)
            config = named.with_absolute_model() if named is not None else _recorded(record)
            device = settings.device_of(config.device)
            legs[record.name] = loader.space(record, with_changes(config, {"device": device}))
        except VragError as error:
            missing[record.name] = str(error)
            continue
        lagging += _lagging(collection, record)
    for name in settings.spaces:
        if collection.record is not None and collection.record.space(name) is None:
            missing[name] = f"this collection has no such vectors yet: `vrag embed --space {name}` makes them"
    searched = [record for record in collection.spaces if record.name in legs]
    text_notice = notice_of_texts(text_notice, settings.embedder, searched)
    notices = [text_notice] if text_notice else []
    notices += _state(collection, text)
    notices += [f"the vector space {name} is not searched: {why}" for name, why in missing.items()]
    return ServedLegs(legs, text_notice, missing, (*notices, *lagging))


def notice_of_texts(notice: str, embedder: EmbedderConfig, spaces: Sequence[SpaceRecord]) -> str:
    """Why texts have no vectors of their own, where these ``spaces`` are searched; "" where that was chosen and one of
    them has vectors of texts. Weights that are missing are always named."""
    if embedder.name == "none" and any(Modality.TEXT in modalities_of(record) for record in spaces):
        return ""
    return notice.replace("lexical search only", "texts are searched by their words only") if spaces else notice


def _recorded(record: SpaceRecord) -> SpaceConfig:
    """The settings that a space was made with."""
    try:
        return SpaceConfig.from_record(record.config)
    except ValidationError as error:
        problem = validation_message(error.errors()[0])
        raise VragError(f"its recorded settings cannot be read ({problem}): set spaces.{record.name}") from error


def _state(collection: Collection, text: VectorLeg | None) -> list[str]:
    if collection.version == 0:
        return ["the collection is empty: ingest documents to search them"]
    # Read here, and not on the event loop at the first search.
    documents = collection.documents()
    text_embedder_id = text.embedder.id if text is not None else ""
    others = sum(1 for d in documents if d.embedder_id != text_embedder_id and not d.error) if text_embedder_id else 0
    if not others:
        return []
    return [f"{others} documents were embedded by another model and are found by words only: ingest them again"]


def modalities_of(record: SpaceRecord) -> frozenset[str]:
    """What the space's embedder takes; all, where that was not recorded."""
    known = record.traits.get("modalities")
    return frozenset(map(str, known)) if isinstance(known, list) else frozenset(Modality)


def _lagging(collection: Collection, record: SpaceRecord) -> list[str]:
    import pyarrow.compute as pc

    takes_words = Modality.TEXT in modalities_of(record)
    known = set(pc.unique(collection.space_table(record.name).to_table(columns=["doc_id"])["doc_id"]).to_pylist())
    waiting = sum(
        1
        for d in collection.documents()
        if d.doc_id not in known
        and d.status is not DocumentStatus.ERROR
        and d.units
        and (takes_words or d.kind is not DocumentKind.TEXT)
    )
    if not waiting:
        return []
    documents = "1 document is" if waiting == 1 else f"{waiting} documents are"
    return [f"{documents} not in the vector space {record.name} yet: `vrag embed --space {record.name}` adds them"]
