"""What the service, and searching without one, computes on GPUs: the parts of ``vrag_ray.placement``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from vrag_ray.config import Settings, SpaceConfig
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.spaces import SpaceRecord
from vrag_ray.placement import Part, Placement, local_cards, place, ray_cards
from vrag_ray.types import TEXT, VragError

RETRIEVER = "query embedding"
SHARDS = "search"
MOST_OF_A_CARD = 0.5
"""That the service takes by default: ingest of uploads, which shares the card, takes what is left."""
_NO_MODEL = "the text embedder has no GPU code"


def served_placement(settings: Settings) -> Placement:
    """What the service asks Ray for. Raises VragError for a share that cannot be used or given.

    It is decided by the GPUs that the cluster has, not by those that are free: a service that is deployed again, over
    the one that runs, must not find its own GPU taken.
    """
    records = _records(settings)
    model = _model(settings, records)
    late = any(record.multi_vector for record in records)
    index, vllm = settings.index, settings.vllm
    parts = [
        Part(
            name=_reader_name(settings),
            setting="serving.num_gpus",
            share=settings.serving.num_gpus,
            most=MOST_OF_A_CARD,
            cannot="" if model else _NO_MODEL,
        ),
        Part(
            name=SHARDS,
            setting="index.num_gpus",
            share=index.num_gpus,
            processes=index.shards * index.replicas * len(settings.served),
            most=MOST_OF_A_CARD,
            unless_set="" if late else "single vectors are searched on a GPU where index.num_gpus is set",
        ),
    ]
    if vllm is not None:
        refuse_model_on_gpu(settings)
        processes = vllm.replicas * vllm.tensor_parallel
        parts.append(Part("the language model", "vllm.num_gpus", share=vllm.num_gpus, processes=processes))
    cards = ray_cards(settings.gpus)
    return place(parts, replace(cards, free=(1.0,) * cards.total))


def refuse_model_on_gpu(settings: Settings) -> None:
    """Raise VragError where ``gpus`` is 0 and the served language model is set to a GPU."""
    if settings.gpus == 0 and settings.vllm is not None and settings.vllm.num_gpus:
        raise VragError(
            f"gpus is 0 and vllm.num_gpus is {settings.vllm.num_gpus:g}: set vllm.num_gpus to 0, which serves the "
            "model on the CPU, or leave gpus out"
        )


def local_placement(settings: Settings) -> Placement:
    """What searching in this process uses: all that it sees, since nobody else is given a part of it."""
    records = _records(settings)
    model = _model(settings, records)
    names = [_reader_name(settings)] if model else []
    names += [SHARDS] if any(record.multi_vector for record in records) else []
    part = Part(" and ".join(names) or RETRIEVER, "gpus", cannot="" if names else _NO_MODEL)
    # torch takes seconds to import, which a search by words and minilm need not wait for.
    return place([part], local_cards(settings.gpus if names else 0))


def _reader_name(settings: Settings) -> str:
    return f"{RETRIEVER} and reranking" if settings.reranker is not None else RETRIEVER


def _records(settings: Settings) -> list[SpaceRecord]:
    return [record for root in settings.served.values() for record in Collection.open(root).spaces]


def _model(settings: Settings, records: Iterable[SpaceRecord]) -> bool:
    """Whether something embeds queries or reads results that can use a GPU."""
    spaces = {TEXT: settings.filled_spaces[TEXT]} if settings.texts_are_embedded else {}
    for record in records:
        if "model" in record.config and record.name not in settings.spaces:
            spaces[record.name] = SpaceConfig.from_record(record.config)
        elif record.name in settings.spaces:
            spaces[record.name] = settings.spaces[record.name]
    embeds = any(not (config.without_gpu_code or config.is_factory) for config in spaces.values())
    return settings.reranker is not None or embeds
