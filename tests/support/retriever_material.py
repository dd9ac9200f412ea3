"""A few mosaics and descriptions of them, and a tiny retriever of random weights that has never seen one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import torch
from transformers import AutoConfig

from benchmarks.mosaic.reading_warmup import PROMPT
from benchmarks.mosaic.retrieval_task import described, random_pages, shown
from benchmarks.mosaic.world.page import CELLS
from vrag_ray.embedding.base import Content
from vrag_ray.training.config import ModelConfig
from vrag_ray.training.retriever.config import LateConfig, RetrieverConfig, Scored
from vrag_ray.training.retriever.inputs import Form
from vrag_ray.training.retriever.model import Retriever, load_processor, load_retriever
from vrag_ray.training.retriever.pairs import Item
from vrag_ray.training.retriever.recipe import form_of

LATE = LateConfig(dims=16, score=Scored.BODY, page_prompt=PROMPT, query_prefix="<|im_start|>user\n")


@cache
def pages(count: int) -> tuple[bytes, ...]:
    """PNGs of mosaics."""
    return tuple(shown(page) for page in random_pages("test", count, 0))


@cache
def questions(count: int) -> tuple[str, ...]:
    """A description of each of these mosaics, of two to four cells."""
    return tuple(
        described(page, CELLS[number % 5 : number % 5 + 2 + number % 3])
        for number, page in enumerate(random_pages("test", count, 0))
    )


def contents_of(count: int) -> list[Content]:
    return [Content(text=text) for text in questions(count)]


def seen(count: int) -> list[Content]:
    return [Content(picture=png) for png in pages(count)]


def config_of(folder: Path, /, **values: object) -> RetrieverConfig:
    """Nothing is frozen."""
    given: dict[str, object] = {
        "name": "run",
        "pairs": "pairs.jsonl",
        "model": ModelConfig(path=str(folder), freeze_vision=False),
        "late": LATE,
    }
    return RetrieverConfig.model_validate(given | values)


def retriever_of(config: RetrieverConfig) -> tuple[Retriever, Form]:
    """The same weights for the same configuration."""
    folder = config.model.path
    torch.manual_seed(config.seed)
    model = load_retriever(config, folder, given=folder)
    processor = load_processor(config, folder, given=folder)
    return Retriever(model, config), form_of(AutoConfig.from_pretrained(folder), processor, config, folder)


def read(items: Sequence[Item]) -> list[Content]:
    """Pictures as they are: these have the right size."""
    return [Content(item.text, Path(item.picture).read_bytes() if item.picture else None) for item in items]


def written_pairs(folder: Path, count: int, negatives: Sequence[int] = ()) -> Path:
    """``pairs.jsonl`` of a page and its description each, with the pages of these numbers as everyone's negatives."""
    import json

    for number, png in enumerate(pages(count)):
        (folder / f"{number}.png").write_bytes(png)
    rows = [
        {
            "query": text,
            "positive": {"picture": f"{number}.png"},
            "negatives": [{"picture": f"{other}.png"} for other in negatives if other != number],
        }
        for number, text in enumerate(questions(count))
    ]
    path = folder / "pairs.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path
