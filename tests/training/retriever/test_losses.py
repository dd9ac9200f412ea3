"""The contrastive losses: against numbers worked out by hand, and against loops over single tokens."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from vrag_ray.training.retriever import losses
from vrag_ray.training.retriever.losses import (
    Vectors,
    contrastive,
    info_nce,
    maxsim,
    truncated,
    without_likely_answers,
)


def unit(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.nn.functional.normalize(torch.randn(*shape, generator=generator, dtype=torch.float64), dim=-1)


def some(contents: int, tokens: int, dim: int, seed: int) -> Vectors:
    lengths = torch.arange(contents) % tokens + 1
    return Vectors(unit(contents, tokens, dim, seed=seed), torch.arange(tokens)[None] < lengths[:, None])


def by_hand(queries: Vectors, passages: Vectors) -> Tensor:
    rows = [
        [
            sum(max(float(q @ p) for p in page[shown]) for q in query[mask]) / int(mask.sum())
            for page, shown in zip(*passages, strict=True)
        ]
        for query, mask in zip(*queries, strict=True)
    ]
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize("at_once", [1, 1 << 24])
def test_maxsim_is_the_mean_of_each_tokens_best(at_once: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(losses, "SIMILARITIES_AT_ONCE", at_once)
    queries, passages = some(5, 4, 8, seed=1), some(7, 6, 8, seed=2)
    assert torch.allclose(maxsim(queries, passages), by_hand(queries, passages), atol=1e-12)


def test_padding_is_no_match_for_a_token_whose_every_similarity_is_negative():
    query = Vectors(torch.tensor([[[1.0, 0.0]]]), torch.tensor([[True]]))
    values = torch.tensor([[[-0.6, 0.8], [0.0, 0.0]]])
    assert maxsim(query, Vectors(values, torch.tensor([[True, False]]))).item() == pytest.approx(-0.6)
    assert maxsim(query, Vectors(values, torch.tensor([[True, True]]))).item() == 0.0


def test_padding_of_a_query_does_not_thin_out_its_mean():
    passage = Vectors(torch.tensor([[[1.0, 0.0]]]), torch.tensor([[True]]))
    query = Vectors(torch.tensor([[[1.0, 0.0], [0.0, 0.0]]]), torch.tensor([[True, False]]))
    assert maxsim(query, passage).item() == 1.0


def test_info_nce_is_the_log_share_of_the_target_among_what_is_allowed():
    scores = torch.tensor([[0.5, 0.25, 1.0], [0.0, 0.75, 0.5]], dtype=torch.float64)
    allowed = torch.tensor([[True, True, False], [True, True, True]])
    first = -math.log(math.exp(0.5 / 0.5) / (math.exp(0.5 / 0.5) + math.exp(0.25 / 0.5)))
    second = -math.log(math.exp(1.5) / (1 + math.exp(1.5) + math.exp(1.0)))
    loss = info_nce(scores, torch.tensor([0, 1]), allowed, 0.5)
    assert loss.item() == pytest.approx((first + second) / 2, abs=1e-12)


def test_a_passage_that_is_no_negative_gets_no_gradient():
    scores = torch.tensor([[0.1, 0.9, 0.2]], requires_grad=True)
    torch.autograd.backward(info_nce(scores, torch.tensor([0]), torch.tensor([[True, False, True]]), 0.02))
    assert scores.grad is not None
    assert scores.grad[0, 1] == 0
    assert scores.grad[0, 0] < 0 < scores.grad[0, 2]


def test_a_likely_answer_is_left_out_but_never_the_target():
    scores = torch.tensor([[0.5, 0.55, 0.65, 0.1], [0.2, 0.9, 0.3, 0.9]])
    everything = torch.ones_like(scores, dtype=torch.bool)
    candidates = without_likely_answers(scores, torch.tensor([0, 1]), everything, margin=0.1)
    assert candidates.tolist() == [[True, True, False, True], [True, True, True, True]]
    nothing = torch.zeros_like(everything)
    assert without_likely_answers(scores, torch.tensor([0, 1]), nothing, 0.0).tolist() == [
        [True, False, False, False],
        [False, True, False, False],
    ]


def test_truncated_vectors_have_length_one_again():
    vectors = some(3, 2, 8, seed=3)
    cut = truncated(vectors, 3)
    assert cut.values.shape == (3, 2, 3)
    assert torch.allclose(cut.values.norm(dim=-1), torch.ones(3, 2, dtype=torch.float64))
    assert torch.allclose(cut.values[1, 1], vectors.values[1, 1, :3] / vectors.values[1, 1, :3].norm())


def test_matryoshka_is_the_mean_of_the_losses_at_each_size():
    queries, passages = some(4, 3, 8, seed=4), some(4, 5, 8, seed=5)
    targets, allowed = torch.arange(4), torch.ones(4, 4, dtype=torch.bool)

    def at(*dims: int) -> Tensor:
        return contrastive(queries, passages, targets, allowed, temperature=0.1, dims=dims)[0]

    assert at().item() == at(8).item()
    assert at(2, 8).item() == pytest.approx((at(2).item() + at(8).item()) / 2)
    assert at(2).item() != pytest.approx(at(8).item(), rel=1e-3)
    # What is reported is in full dimension, whichever were trained.
    scores = contrastive(queries, passages, targets, allowed, temperature=0.1, dims=(2,))[1]
    assert torch.allclose(scores, by_hand(queries, passages))
