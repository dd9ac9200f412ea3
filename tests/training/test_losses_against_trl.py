"""GRPO, Dr.GRPO, DAPO and GSPO against TRL's own trainer: the same loss and gradient on the same log-probabilities.

TRL's ``GRPOTrainer`` is built as its users build it, on a tiny random model, and its ``_compute_loss`` is called. Where
normalisers differ by name, here is what is equal: TRL's Dr.GRPO divides by responses times ``max_completion_length``,
which is our ``budget``; its DAPO by ``num_items_in_batch``, the tokens of the whole batch, which is ``Counts.tokens``;
its GSPO is the loss type ``grpo`` with ``importance_sampling_level="sequence"``, divided by the responses. The KL is
GRPO's k3 as published: TRL's ``use_bias_correction_kl``, which weighs k3 by the ratio, is off. TRL's advantages are
not compared: it adds 1e-4 to a group's deviation where VRAG-RL and we add 1e-6.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
import torch

from vrag_ray.training.advantages import group_advantages
from vrag_ray.training.algorithms.algorithm import Algorithm
from vrag_ray.training.algorithms.credit_assignment import ALGORITHMS
from vrag_ray.training.algorithms.loss import Counts, LossParts, loss
from vrag_ray.training.rewards.reward import overlong_penalty

if TYPE_CHECKING:
    from trl import GRPOTrainer

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("trl") is None,
        reason="TRL is not installed, so NO loss was compared with its peer's: pip install -e .[dev]",
    ),
    # It looks at vLLM when it is imported; no test here samples.
    pytest.mark.filterwarnings("ignore:TRL currently supports vLLM:UserWarning"),
    pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning"),
]

RESPONSES, TOKENS, GROUPS = 12, 7, 3
LONGEST = 9
"""What sampling would allow a reply."""
LOSS_TYPE = {"grpo": "grpo", "dr_grpo": "dr_grpo", "dapo": "dapo", "gspo": "grpo"}
Batch = dict[str, torch.Tensor]
Build = Callable[..., "GRPOTrainer"]


@pytest.fixture(scope="module")
def trainer_for(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Builds TRL's trainer for one of our algorithms; ``steps`` are the micro-batches of one optimiser step."""
    from datasets import Dataset
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
    from trl import GRPOConfig, GRPOTrainer

    folder = tmp_path_factory.mktemp("trl")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({"<end>": 0, "a": 1}, unk_token="a")), eos_token="<end>"
    )
    size = {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(Qwen2Config(vocab_size=16, num_key_value_heads=1, max_position_embeddings=64, **size))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)

    def no_reward(completions: list[str], **_: object) -> list[float]:
        return [0.0] * len(completions)

    def build(name: str, algorithm: Algorithm, steps: int = 1) -> GRPOTrainer:
        settings = GRPOConfig(
            output_dir=str(folder / "out"),
            loss_type=LOSS_TYPE[name],
            importance_sampling_level="sequence" if name == "gspo" else "token",
            epsilon=algorithm.clip_low,
            epsilon_high=algorithm.clip_high,
            beta=algorithm.kl,
            use_bias_correction_kl=False,
            max_completion_length=LONGEST,
            num_generations=RESPONSES // GROUPS,
            per_device_train_batch_size=RESPONSES // steps,
            gradient_accumulation_steps=steps,
            gradient_checkpointing=False,
            use_cpu=True,
            bf16=False,
            report_to=[],
        )
        data = Dataset.from_dict({"prompt": ["a"] * RESPONSES})
        trainer = GRPOTrainer(str(folder), no_reward, settings, data, processing_class=tokenizer)
        trainer.model.train()
        # Trainer.train sets it before each optimiser step.
        trainer.current_gradient_accumulation_steps = steps
        return trainer

    return build


def preset(name: str, kl: float) -> Algorithm:
    algorithm = ALGORITHMS[name].model_copy(update={"kl": kl})
    return algorithm.model_copy(update={"budget": LONGEST}) if algorithm.budget else algorithm


def random_batch(algorithm: Algorithm, dtype: torch.dtype, seed: int) -> Batch:
    """Log-probabilities that lie inside and outside of the clips, replies of 1 to 7 tokens, and a tool's tokens."""
    made = torch.Generator().manual_seed(seed)
    shape = (RESPONSES, TOKENS)
    lengths = torch.randint(1, TOKENS + 1, (RESPONSES, 1), generator=made)
    spoken = torch.rand(shape, generator=made) > 0.2
    # A first token of the policy: TRL divides by max(tokens, 1), and logs a mean over tokens.
    spoken[:, 0] = True
    rewards = torch.rand((GROUPS, RESPONSES // GROUPS), generator=made, dtype=dtype)
    old = -3 * torch.rand(shape, generator=made, dtype=dtype)
    spread = 2 * algorithm.clip_high
    return {
        "prompt_ids": torch.ones(RESPONSES, 2, dtype=torch.long),
        "prompt_mask": torch.ones(RESPONSES, 2, dtype=torch.long),
        "completion_ids": torch.randint(1, 16, shape, generator=made),
        "completion_mask": (torch.arange(TOKENS) < lengths).long(),
        "tool_mask": spoken.long(),
        "advantages": group_advantages(rewards, normalize_std=algorithm.normalize_std).flatten(),
        "old_per_token_logps": old,
        "ref_per_token_logps": old + 0.3 * torch.randn(shape, generator=made, dtype=dtype),
        "new": old + spread * torch.randn(shape, generator=made, dtype=dtype),
        "sampler": old + 0.5 * torch.randn(shape, generator=made, dtype=dtype),
    }


def token_mask(batch: Batch) -> torch.Tensor:
    return batch["completion_mask"] * batch["tool_mask"]


def ours(batch: Batch, new: torch.Tensor, algorithm: Algorithm, rows: slice = slice(None)) -> LossParts:
    keep = torch.ones(RESPONSES)
    counts = Counts.of(token_mask(batch), keep)
    return loss(
        new[rows],
        batch["old_per_token_logps"][rows],
        batch["advantages"][rows],
        token_mask(batch)[rows],
        keep[rows],
        algorithm,
        counts=counts,
        logp_reference=batch["ref_per_token_logps"][rows],
        logp_sampler=batch["sampler"][rows],
    )


def theirs(trainer: GRPOTrainer, batch: Batch, new: torch.Tensor, rows: slice = slice(None)) -> torch.Tensor:
    """TRL's loss with ``new`` in place of the log-probabilities that it would ask its model for."""
    trainer._get_per_token_logps_and_entropies = lambda *_, **__: (new[rows], torch.zeros_like(new[rows]), None)
    inputs = {key: value[rows] for key, value in batch.items()}
    inputs["num_items_in_batch"] = token_mask(batch).sum()
    return trainer._compute_loss(trainer.model, inputs)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-6)])
@pytest.mark.parametrize("kl", [0.0, 0.04])
@pytest.mark.parametrize("name", LOSS_TYPE)
def test_loss_and_gradient_are_those_of_trl(
    trainer_for: Build, name: str, kl: float, dtype: torch.dtype, tolerance: float
):
    algorithm = preset(name, kl)
    trainer = trainer_for(name, algorithm)
    for seed in range(5):
        batch = random_batch(algorithm, dtype, seed)
        mine, peer = (batch["new"].clone().requires_grad_() for _ in range(2))
        parts, expected = ours(batch, mine, algorithm), theirs(trainer, batch, peer)
        parts.total.backward()
        expected.backward()
        assert mine.grad is not None and peer.grad is not None
        assert parts.total.item() == pytest.approx(expected.item(), abs=tolerance)
        assert torch.allclose(mine.grad, peer.grad, rtol=0, atol=tolerance)
        assert peer.grad.any()
        logged = {key: values[-1] for key, values in trainer._metrics["train"].items()}
        assert parts.clip_low.item() == pytest.approx(logged["clip_ratio/low_mean"], abs=1e-6)
        assert parts.clip_high.item() == pytest.approx(logged["clip_ratio/high_mean"], abs=1e-6)
        assert 0 < parts.clip_low + parts.clip_high < 1, "both sides of the clip are compared"


@pytest.mark.parametrize("name", LOSS_TYPE)
def test_micro_batches_add_up_as_they_do_in_trl(trainer_for: Build, name: str):
    algorithm = preset(name, 0.04)
    trainer = trainer_for(name, algorithm, steps=3)
    batch = random_batch(algorithm, torch.float64, seed=7)
    mine, peer = (batch["new"].clone().requires_grad_() for _ in range(2))
    size = RESPONSES // 3
    for start in range(0, RESPONSES, size):
        rows = slice(start, start + size)
        ours(batch, mine, algorithm, rows).total.backward()
        theirs(trainer, batch, peer, rows).backward()
    assert mine.grad is not None and peer.grad is not None
    assert torch.allclose(mine.grad, peer.grad, rtol=0, atol=1e-9)


def capped(ratio: torch.Tensor) -> torch.Tensor:
    return ratio.clamp(max=1.2)


def banded(ratio: torch.Tensor) -> torch.Tensor:
    """As TRL's ``token_mask`` does, whose two bounds it names ``vllm_importance_sampling_clip_min`` and ``…_max``."""
    return ratio.masked_fill((ratio < 0.8) | (ratio > 1.25), 0.0)


@pytest.mark.parametrize(
    ("correction", "weights"), [({"truncate": 1.2}, capped), ({"band": (0.8, 1.25)}, banded)], ids=["cap", "band"]
)
@pytest.mark.parametrize("name", LOSS_TYPE)
def test_weights_for_the_sampler_enter_where_they_do_in_trl(
    trainer_for: Build,
    name: str,
    correction: dict[str, object],
    weights: Callable[[torch.Tensor], torch.Tensor],
):
    algorithm = preset(name, 0.04).model_copy(update=correction)
    trainer = trainer_for(name, algorithm)
    # Set by ``use_vllm``, with which the trainer would look for a server.
    trainer.use_vllm = trainer.vllm_importance_sampling_correction = True
    batch = random_batch(algorithm, torch.float64, seed=11)
    gap = batch["old_per_token_logps"] - batch["sampler"]
    batch["importance_sampling_ratio"] = weights(gap.exp())
    assert (batch["importance_sampling_ratio"] != gap.exp()).any()
    mine, peer = (batch["new"].clone().requires_grad_() for _ in range(2))
    ours(batch, mine, algorithm).total.backward()
    theirs(trainer, batch, peer).backward()
    assert mine.grad is not None and peer.grad is not None
    assert torch.allclose(mine.grad, peer.grad, rtol=0, atol=1e-9)


def test_length_costs_what_it_does_in_trl():
    from trl.rewards import get_soft_overlong_punishment

    peer = get_soft_overlong_punishment(max_completion_len=100, soft_punish_cache=30)
    lengths = range(0, 140, 7)
    expected = peer(completion_ids=[[1] * length for length in lengths])
    assert [overlong_penalty(length, 100, 30) for length in lengths] == pytest.approx(expected)


@pytest.mark.parametrize("name", LOSS_TYPE)
def test_the_gradient_that_reaches_a_model_is_trls(trainer_for: Build, name: str):
    """Nothing of TRL is replaced: its model speaks, its loss is called, and weights are what gradients arrive at."""
    algorithm = preset(name, 0.04)
    trainer = trainer_for(name, algorithm)
    model = trainer.model.double()
    batch = random_batch(algorithm, torch.float64, seed=3)
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
    attention = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
    new, *_ = trainer._get_per_token_logps_and_entropies(model, ids, attention, TOKENS)
    moved = new.detach() - batch["new"]
    for key in ("old_per_token_logps", "ref_per_token_logps"):
        batch[key] = batch[key] + moved
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    mine = torch.autograd.grad(ours(batch, new, algorithm).total, weights)
    inputs = batch | {"num_items_in_batch": token_mask(batch).sum()}
    peer = torch.autograd.grad(trainer._compute_loss(model, inputs), weights)
    assert any(gradient.abs().max() > 1e-3 for gradient in peer)
    assert all(torch.allclose(own, reference, rtol=0, atol=1e-6) for own, reference in zip(mine, peer, strict=True))
