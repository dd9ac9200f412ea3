"""Qwen3-VL-Reranker against one forward of the whole model and the logits of its two answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from tests.support.embedding_material import BROKEN, clip_content, clip_frames, picture, picture_content
from tests.support.qwen_vl_inputs import Tensors, clip_inputs, picture_inputs, token_inputs
from tests.support.tiny_embedders import tiny_bge_m3, tiny_qwen3_vl_embedding, tiny_qwen3_vl_reranker
from vrag_ray.config import RerankerConfig
from vrag_ray.embedding.base import Content, EmbedError
from vrag_ray.embedding.reranker import Reranker, load_reranker
from vrag_ray.types import VragError

if TYPE_CHECKING:
    from transformers import Qwen3VLForConditionalGeneration, Qwen3VLProcessor

TURN = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
    'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
    "<Instruct>: Given a search query, retrieve relevant candidates that answer the query."
    "<Query>:{query}\n<Document>:{document}<|im_end|>\n<|im_start|>assistant\n"
)
LIMITS = (4096, 1843200)


class Reference:
    def __init__(self, folder: Path) -> None:
        import torch
        from transformers import AutoProcessor, Qwen3VLForConditionalGeneration

        load: Callable[..., Qwen3VLProcessor] = AutoProcessor.from_pretrained
        self.processor = load(folder)
        self.model: Qwen3VLForConditionalGeneration = Qwen3VLForConditionalGeneration.from_pretrained(
            folder, dtype=torch.float32
        )

    def score(self, query: str, document: str, images: Sequence[Image.Image] = (), clip: int = 0) -> float:
        """``[image]`` and ``[clip]`` in the texts stand for pictures in order, and for frames a second apart."""
        import torch

        prompt = TURN.format(query=query, document=document)
        more: Tensors = {}
        for image in images:
            read, shown = picture_inputs(self.processor, image, LIMITS)
            prompt = prompt.replace("[image]", shown, 1)
            for name, tensor in read.items():
                more[name] = torch.cat([more[name], tensor]) if name in more else tensor
        if clip:
            read = clip_inputs(self.processor, clip_frames(clip))
            each = "<|video_pad|>" * (int(read["video_grid_thw"][0, 1:].prod()) // 4)
            steps = [f"<{2 * step + 0.5:.1f} seconds><|vision_start|>{each}<|vision_end|>" for step in range(clip // 2)]
            prompt = prompt.replace("[clip]", "".join(steps))
            more |= read
        tokenizer = self.processor.tokenizer
        with torch.inference_mode():
            logits = self.model(**token_inputs(self.processor, self.model, prompt), **more).logits[0, -1]
        yes, no = (logits[tokenizer.convert_tokens_to_ids(word)] for word in ("yes", "no"))
        return float(torch.sigmoid(yes - no))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_qwen3_vl_reranker(tmp_path_factory.mktemp("rerankers") / "tiny-qwen3-vl-reranker")


@pytest.fixture(scope="module")
def reference(folder: Path) -> Reference:
    return Reference(folder)


@pytest.fixture(scope="module")
def reranker(folder: Path) -> Reranker:
    return load_reranker(RerankerConfig(model=str(folder), device="cpu", batch=3))


def test_scores_are_the_plain_forwards_in_order_over_batches(reranker: Reranker, reference: Reference) -> None:
    passages = [
        Content("a table of revenue in the second quarter"),
        picture_content(96, 64, 1),
        picture_content(64, 160, 2, "page"),
        clip_content((0.0, 1.0, 2.0, 3.0), "red"),
        Content(),
    ]
    expected = [
        reference.score("what colour", "a table of revenue in the second quarter"),
        reference.score("what colour", "[image]", [picture(96, 64, 1)]),
        reference.score("what colour", "[image]page", [picture(64, 160, 2)]),
        reference.score("what colour", "[clip]red", clip=4),
        reference.score("what colour", "NULL"),
    ]
    scores = reranker.score(Content("what colour"), passages)
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    assert len({round(score, 4) for score in scores}) == len(scores)


def test_a_query_may_be_a_picture_with_words(reranker: Reranker, reference: Reference) -> None:
    images = [picture(64, 64, 5), picture(96, 64, 1)]
    expected = reference.score("[image]red", "[image]", images)
    scores = reranker.score(picture_content(64, 64, 5, "red"), [picture_content(96, 64, 1)])
    np.testing.assert_allclose(scores, [expected], atol=1e-5)


def test_no_passages_have_no_scores(reranker: Reranker) -> None:
    assert reranker.score(Content("red"), []) == []


def test_a_passage_that_cannot_be_read_is_named(reranker: Reranker) -> None:
    with pytest.raises(EmbedError, match="passage 1 cannot be read"):
        reranker.score(Content("red"), [Content("a"), BROKEN])


def test_a_model_that_cannot_answer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VragError, match="xlm-roberta, which is no reranker known here"):
        load_reranker(RerankerConfig(model=str(tiny_bge_m3(tmp_path / "bge")), device="cpu"))
    with pytest.raises(VragError, match='no token "yes"'):
        load_reranker(RerankerConfig(model=str(tiny_qwen3_vl_embedding(tmp_path / "qwen")), device="cpu"))
