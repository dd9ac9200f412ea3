"""Log-probs of a packed batch against a plain forward pass of the same model, one call at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.support.model_calls import call, calls_of
from tests.support.mosaic_runs import pad_of, pixels_of, played, processor_of, scorer_of
from tests.support.pictures import noise_png
from vrag_ray.policies.llm.vllm_prompt import pictures
from vrag_ray.training.config import ModelConfig
from vrag_ray.training.trainer import scorer as module
from vrag_ray.training.trainer.batch import collate
from vrag_ray.training.trainer.scorer import Scorer, Scores, load_model
from vrag_ray.training.trajectory import Call
from vrag_ray.types import FamilyName, VragError

NEAR = 1e-5


def logps(scorer: Scorer, folder: Path, scored_call: Call, temperature: float = 1.0) -> torch.Tensor:
    """[reply, vocabulary], as transformers alone computes them with the pixels of each picture where it is shown."""
    model, processor = scorer.model, processor_of(folder)
    ids = torch.tensor([[*scored_call.prompt_ids, *scored_call.completion_ids]])
    shown: dict[str, torch.Tensor] = {}
    if scored_call.images:
        seen = processor.image_processor(images=list(pictures(scored_call.images)), return_tensors="pt")
        shown = {"pixel_values": seen["pixel_values"], "image_grid_thw": seen["image_grid_thw"]}
    is_image = (ids == processor.image_token_id).long()
    logits = model(input_ids=ids, attention_mask=torch.ones_like(ids), mm_token_type_ids=is_image, **shown).logits
    # The sampler's bias: nobody says a token that stands for a picture.
    bias = torch.zeros(logits.shape[-1])
    bias[[model.config.image_token_id, model.config.video_token_id]] = -100.0
    return torch.log_softmax((logits[0, len(scored_call.prompt_ids) - 1 : -1] + bias) / temperature, dim=-1)


def plain(scorer: Scorer, folder: Path, scored_call: Call, temperature: float = 1.0) -> Scores:
    with torch.no_grad():
        every = logps(scorer, folder, scored_call, temperature)
    labels = torch.tensor(scored_call.completion_ids)
    return Scores(every[torch.arange(len(labels)), labels], -(every.exp() * every).sum(dim=-1))


def scores(scorer: Scorer, folder: Path, calls: Sequence[Call]) -> Scores:
    with torch.no_grad():
        return scorer(collate(calls, pixels_of(folder), pad_of(folder)))


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_a_batch_scores_every_token_as_a_plain_forward_pass_of_its_call_alone(folder: Path, temperature: float):
    scorer, calls = scorer_of(folder, temperature), calls_of(folder)
    actual = scores(scorer, folder, calls)
    expected = [plain(scorer, folder, scored_call, temperature) for scored_call in calls]
    torch.testing.assert_close(actual.logp, torch.cat([score.logp for score in expected]), atol=NEAR, rtol=0)
    torch.testing.assert_close(actual.entropy, torch.cat([score.entropy for score in expected]), atol=NEAR, rtol=0)


def test_runs_of_an_expert_are_scored_alike_too(folder: Path):
    family = FamilyName.QWEN3_VL if "qwen3" in folder.name else FamilyName.QWEN2_5_VL
    runs = played(folder, questions=4, group=1, noise=0.0, family=family)
    calls = [scored_call for [run] in runs for scored_call in run.calls]
    assert max(len(scored_call.images) for scored_call in calls) == 3, "a crop is shown beside both results"
    scorer = scorer_of(folder)
    expected = torch.cat([plain(scorer, folder, scored_call).logp for scored_call in calls])
    torch.testing.assert_close(scores(scorer, folder, calls).logp, expected, atol=NEAR, rtol=0)


def test_what_a_picture_shows_is_felt_in_the_reply(folder: Path):
    scorer = scorer_of(folder)
    first, second = (call(folder, noise_png(112, 112, seed), "What colour?") for seed in (1, 2))
    assert (scores(scorer, folder, [first]).logp - scores(scorer, folder, [second]).logp).abs().max() > 100 * NEAR


def test_the_order_of_calls_and_of_their_pictures_goes_with_them(folder: Path):
    scorer, calls = scorer_of(folder), calls_of(folder)
    turned = scores(scorer, folder, calls[::-1]).logp.split(
        [len(scored_call.completion_ids) for scored_call in calls[::-1]]
    )
    torch.testing.assert_close(torch.cat(turned[::-1]), scores(scorer, folder, calls).logp, atol=NEAR, rtol=0)


def test_a_picture_is_computed_once_however_often_it_is_shown(folder: Path, monkeypatch: pytest.MonkeyPatch):
    scorer, calls = scorer_of(folder), calls_of(folder)
    read: list[int] = []
    scorer.model.model.visual.register_forward_hook(lambda _, given, __: read.append(len(given[0])))
    scores(scorer, folder, calls)
    different = dict.fromkeys(shown for scored_call in calls for shown in scored_call.images)
    assert len(different) == 3
    assert sum(read) == sum(len(pixels_of(folder).patches([shown])[0].values) for shown in different)


def test_padding_does_not_matter(folder: Path):
    scorer, calls = scorer_of(folder), calls_of(folder)
    alone = torch.cat([scores(scorer, folder, [scored_call]).logp for scored_call in calls])
    torch.testing.assert_close(scores(scorer, folder, calls).logp, alone, atol=NEAR, rtol=0)


def test_the_tokens_of_pictures_are_never_expected(model: Path):
    scorer = scorer_of(model)
    scored_call = call(model, "What?")
    picture, video = scorer.model.config.image_token_id, scorer.model.config.video_token_id
    for token in (video, picture):
        assert float(scorer(replace_labels(model, scored_call, token)).logp.detach().max()) < -90
    assert float(scorer(replace_labels(model, scored_call, 5)).logp.detach().min()) > -30


def replace_labels(model: Path, scored_call: Call, token: int) -> module.Batch:
    """The batch of ``one`` as if ``token`` were to be scored at each place of its reply."""
    batch = collate([scored_call], pixels_of(model), pad_of(model))
    return replace(batch, labels=torch.full_like(batch.labels, token))


# What is not the policy's own has no part in a loss but as the condition of what is.
def test_only_the_places_before_reply_tokens_carry_a_gradient(folder: Path):
    scorer = scorer_of(folder)
    batch = collate(calls_of(folder), pixels_of(folder), pad_of(folder))
    states: list[torch.Tensor] = []

    def keep(_: object, __: object, output: object) -> None:
        hidden = getattr(output, "last_hidden_state")  # noqa: B009
        hidden.retain_grad()
        states.append(hidden)

    scorer.model.model.register_forward_hook(keep)
    torch.autograd.backward(scorer(batch).logp.sum())
    [hidden] = states
    assert hidden.grad is not None
    felt = hidden.grad.abs().sum(dim=-1) > 0
    expected = torch.zeros_like(felt)
    expected[batch.rows, batch.columns - 1] = True
    assert torch.equal(felt, expected)


def test_the_vision_tower_learns_unless_it_is_frozen(folder: Path):
    def learnt(freeze: bool) -> dict[str, bool]:
        scorer = scorer_of(folder, freeze_vision=freeze)
        torch.autograd.backward(scorer(collate(calls_of(folder), pixels_of(folder), pad_of(folder))).logp.sum())
        named = scorer.model.named_parameters()
        return {name: parameter.grad is not None and bool(parameter.grad.abs().sum() > 0) for name, parameter in named}

    frozen, free = learnt(freeze=True), learnt(freeze=False)
    tower = {name for name in free if ".visual." in name}
    assert len(tower) > 5
    assert {name for name in tower if frozen[name]} == set()
    assert {name for name in free if not free[name]} == set()
    assert {name for name in frozen if not frozen[name]} == tower


def test_gradients_are_those_of_a_plain_forward_pass(folder: Path):
    calls = calls_of(folder)
    packed, alone = scorer_of(folder), scorer_of(folder)
    torch.autograd.backward(packed(collate(calls, pixels_of(folder), pad_of(folder))).logp.sum())
    for scored_call in calls:
        logp = logps(alone, folder, scored_call).gather(1, torch.tensor(scored_call.completion_ids).unsqueeze(1))
        torch.autograd.backward(logp.sum())
    for (name, mine), theirs in zip(packed.model.named_parameters(), alone.model.parameters(), strict=True):
        assert mine.grad is not None and theirs.grad is not None
        assert float((mine.grad - theirs.grad).norm()) <= NEAR * float(theirs.grad.norm()), name


def test_entropy_carries_a_gradient_only_on_request(model: Path):
    batch = collate(calls_of(model), pixels_of(model), pad_of(model))
    plain_model = scorer_of(model).model
    assert not Scorer(plain_model)(batch).entropy.requires_grad
    learnt = Scorer(plain_model, entropy_learns=True)(batch).entropy
    assert learnt.requires_grad
    torch.testing.assert_close(learnt.detach(), Scorer(plain_model)(batch).entropy)


def test_logits_in_pieces_and_computed_again_are_the_same(model: Path, monkeypatch: pytest.MonkeyPatch):
    """As with a large vocabulary, where logits of all tokens at once would not fit."""
    batch = collate(calls_of(model), pixels_of(model), pad_of(model))
    whole, pieces = scorer_of(model), scorer_of(model)
    expected = whole(batch)
    torch.autograd.backward(expected.logp.sum())
    monkeypatch.setattr(module, "CHUNK", 3)
    actual = pieces(batch)
    torch.autograd.backward(actual.logp.sum())
    torch.testing.assert_close(actual.logp, expected.logp)
    torch.testing.assert_close(actual.entropy, expected.entropy)
    for mine, theirs in zip(pieces.model.parameters(), whole.model.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, atol=1e-4, rtol=1e-4)


def test_activations_that_are_computed_again_change_no_gradient(folder: Path):
    batch = collate(calls_of(folder), pixels_of(folder), pad_of(folder))

    def gradients(again: bool) -> list[torch.Tensor | None]:
        config = ModelConfig(path=str(folder), freeze_vision=False, gradient_checkpointing=again)
        scorer = Scorer(load_model(config, str(folder)))
        assert scorer.model.is_gradient_checkpointing is again
        torch.autograd.backward(scorer(batch).logp.sum())
        return [parameter.grad for parameter in scorer.model.parameters()]

    for mine, theirs in zip(gradients(again=True), gradients(again=False), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("again", [False, True])
def test_a_frozen_vision_tower_keeps_nothing_for_a_backward_pass(folder: Path, again: bool):
    """Its memory and its time would be spent for gradients that nothing takes."""
    batch = collate(calls_of(folder), pixels_of(folder), pad_of(folder))
    config = ModelConfig(path=str(folder), freeze_vision=True, gradient_checkpointing=again)
    scorer = Scorer(load_model(config, str(folder)))
    learns: list[bool] = []
    for block in scorer.model.model.visual.blocks:
        block.register_forward_hook(
            lambda _, inputs, output: learns.append(inputs[0].requires_grad or output.requires_grad)
        )
    torch.autograd.backward(scorer(batch).logp.sum())
    assert learns and not any(learns)
    assert any(weight.grad is not None for weight in scorer.model.parameters())


def test_a_model_with_dropout_is_refused(model: Path, tmp_path: Path):
    loaded = load_model(ModelConfig(path=str(model)), str(model))
    loaded.config.get_text_config().attention_dropout = 0.1
    loaded.save_pretrained(tmp_path)
    with pytest.raises(VragError, match="has attention_dropout: set it to 0"):
        load_model(ModelConfig(path=str(tmp_path)), str(tmp_path))
