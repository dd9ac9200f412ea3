"""The presets fit the hardware they name, by figures that are held against what torch itself counts. No GPU is used."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker

from vrag_ray.cli.main import main
from vrag_ray.config import SpaceConfig
from vrag_ray.planning import memory_plan as module
from vrag_ray.planning.memory_plan import (
    CARDS,
    FORWARD,
    GIB,
    SCORED,
    WORKING,
    embedding_phase,
    layer_bytes,
    memory_plan,
    preset_plan,
)
from vrag_ray.training.config import RLConfig, preset_values, presets
from vrag_ray.training.model_shapes import EMBEDDERS, SHAPES, TEXT_EMBEDDERS, ModelShape
from vrag_ray.training.trainer.scorer import Scorer
from vrag_ray.types import VragError
from vrag_ray.types.copies import with_changes

transformers = pytest.importorskip("transformers", reason="NO TRANSFORMERS: the memory plan is not checked here")

ON_GPUS = [name for name in presets() if name != "mosaic-cpu"]
TOKENS = 4096
"""Enough that the one weight gradient on its way, which torch counts as temporary, does not matter."""


@pytest.mark.parametrize("name", ON_GPUS)
def test_a_preset_fits_the_hardware_it_names(name: str) -> None:
    plan = preset_plan(name)
    assert plan is not None
    assert plan.fits, f"{plan.peak.name} takes {plan.peak.total / GIB:.1f} GiB: {dict(plan.peak.parts)}"
    engine = preset_values(name)["rollout"]["engine"]  # type: ignore[index]
    # vLLM refuses to start where its cache does not hold one prompt of full length.
    assert plan.kv_tokens >= engine["max_model_len"]
    assert plan.capacity * engine["gpu_memory_utilization"] < plan.capacity - plan.phases[0].parts["weights"]


def test_a_preset_without_a_gpu_has_no_plan() -> None:
    assert preset_plan("mosaic-cpu") is None


def changed(name: str, **changes: dict[str, object]) -> RLConfig:
    """A preset on other settings; sections of a section are replaced as a whole."""
    values: dict[str, Any] = preset_values(name) | {"name": "x", "examples": "-", "steps": 1}
    values["environment"] = {"collection": "-"} | values["environment"]
    for section, own in changes.items():
        values[section] = values[section] | own
    return RLConfig.model_validate(values)


def test_a_plan_that_does_not_fit_names_its_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = memory_plan(changed("lora-24gb", model={"lora_rank": 0}), CARDS[24])
    assert not whole.fits and whole.peak.name == "update"
    greedy = {"gpu": True, "dtype": "bfloat16", "max_model_len": 6144, "gpu_memory_utilization": 0.6}
    plan = memory_plan(changed("lora-24gb", rollout={"engine": greedy}), CARDS[24])
    assert not plan.fits and plan.peak.name == "rollout"
    # As it was: the logits of 4,096 tokens at once.
    monkeypatch.setattr(module, "CHUNK", 4096)
    plan = memory_plan(changed("lora-24gb"), CARDS[24])
    assert not plan.fits and plan.peak.name == "update"


def test_figures_are_those_of_the_books() -> None:
    """By hand: 4,437,815,808 parameters of which 415,347,712 are frozen, in float32 on four GPUs."""
    plan = memory_plan(changed("vimrag-ggpo-4b"), CARDS[80])
    update = {phase.name: phase for phase in plan.phases}["update"].parts
    assert update["weights"] == 4_437_815_808 * 4 / 4
    assert update["gradients"] == (4_437_815_808 - 415_347_712) * 4 / 4
    assert update["AdamW's state"] == 2 * update["gradients"]
    # 36 layers, 8 heads of 128, keys and values, two bytes each: 144 KiB a token.
    assert plan.kv_tokens * 144 * 1024 < 0.6 * CARDS[80] - 2 * 4_437_815_808
    assert plan.sample_tokens == 3 * 16_384
    assert "reference model" not in update
    assert "reference model" in dict(preset_plan("vrag-7b-grpo").phases[0].parts)  # type: ignore[union-attr]


def test_a_model_of_unknown_size_is_refused() -> None:
    with pytest.raises(VragError, match="the sizes of mine are not known: choose from Qwen"):
        memory_plan(changed("lora-24gb", model={"path": "mine"}), CARDS[24])


def test_every_worker_has_its_own_embedders_of_searches_on_its_gpu() -> None:
    """They were not counted: a plan that just fits without them must not say that it fits."""
    config = changed("lora-24gb")
    plain = memory_plan(config, CARDS[24])
    weights = 2 * EMBEDDERS["Qwen/Qwen3-VL-Embedding-8B"].parameters
    searching = memory_plan(config, CARDS[24], ["Qwen/Qwen3-VL-Embedding-8B"])
    assert plain.fits and not searching.fits
    for plain_phase, searching_phase in zip(plain.phases, searching.phases, strict=True):
        more = 0 if searching_phase.name == "start" else weights
        assert searching_phase.total - plain_phase.total == pytest.approx(more, abs=1), searching_phase.name
    environment = with_changes(config.environment, {"spaces": {"text": SpaceConfig(model="BAAI/bge-m3")}})
    of_texts = memory_plan(config.model_copy(update={"environment": environment}), CARDS[24])
    assert of_texts.peak.total - plain.peak.total == pytest.approx(2 * TEXT_EMBEDDERS["BAAI/bge-m3"], abs=1)


def test_an_embedder_of_unknown_size_is_refused() -> None:
    with pytest.raises(VragError, match="the size of the embedder mine is not known: choose from Qwen"):
        memory_plan(changed("lora-24gb"), CARDS[24], ["mine"])
    with pytest.raises(VragError, match="the size of the embedder BAAI/bge-m3 is not known: choose from Qwen"):
        embedding_phase("BAAI/bge-m3", 8)


def test_the_command_prints_the_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "presets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name in ON_GPUS:
        place = next(number for number, line in enumerate(lines) if line.startswith(f"{name}: "))
        assert lines[place + 1].strip() == str(preset_plan(name))


@cache
def config_of(name: str) -> Any:
    """The published configuration, as far as it decides sizes."""
    shape = SHAPES[name]
    text = {
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_size,
        "vocab_size": shape.vocabulary,
        "tie_word_embeddings": shape.tied,
    }
    vision = {
        "depth": shape.vision.depth,
        "hidden_size": shape.vision.hidden,
        "intermediate_size": shape.vision.intermediate,
        "num_heads": 16,
        "out_hidden_size": shape.hidden,
    }
    if "Qwen2-VL" in name:
        config = transformers.Qwen2VLConfig
        vision = {"depth": shape.vision.depth, "embed_dim": shape.vision.hidden, "num_heads": 16, "patch_size": 14}
        vision |= {"mlp_ratio": shape.vision.intermediate // shape.vision.hidden, "hidden_size": shape.hidden}
    elif "Qwen2.5" in name:
        config = transformers.Qwen2_5_VLConfig
        vision |= {"patch_size": 14}
    else:
        config = transformers.Qwen3VLConfig
        deep = {24: [5, 11, 17], 27: [8, 16, 24]}[shape.vision.depth]
        vision |= {"patch_size": 16, "num_position_embeddings": 2304, "deepstack_visual_indexes": deep}
    return config(text_config=text, vision_config=vision, tie_word_embeddings=shape.tied)


def count(part: nn.Module) -> int:
    return sum(parameter.numel() for parameter in part.parameters())


@pytest.mark.parametrize("name", SHAPES)
def test_the_sizes_of_a_model_are_those_that_transformers_counts(name: str) -> None:
    shape = SHAPES[name]
    with torch.device("meta"):
        model = transformers.AutoModelForImageTextToText.from_config(config_of(name))
    inner = model.model
    assert count(model) == shape.parameters
    assert count(inner.visual) == shape.vision.parameters
    assert {count(block) for block in inner.language_model.layers} == {shape.block_parameters}
    assert {count(block) for block in inner.visual.blocks} == {shape.vision.block_parameters}


@pytest.mark.parametrize("name", EMBEDDERS)
def test_an_embedder_loads_as_many_parameters_as_planned(name: str) -> None:
    """Of the class that the product loads."""
    embedder = EMBEDDERS[name]
    base = next(known for known, shape in SHAPES.items() if shape is embedder.shape)
    with torch.device("meta"):
        if "colqwen2" in name:
            vlm = config_of(base).to_dict()
            model = transformers.ColQwen2ForRetrieval(transformers.ColQwen2Config(vlm_config=vlm, embedding_dim=128))
        else:
            model = transformers.AutoModel.from_config(config_of(base))
    assert count(model) == embedder.parameters


def language_layers(name: str, layers: int) -> nn.Module:
    """Of the published width, in bfloat16, with a small vocabulary: its rows do not count here."""
    text = config_of(name).get_text_config()
    values = {key: value for key, value in text.to_dict().items() if key != "layer_types"}
    short = type(text)(**(values | {"num_hidden_layers": layers, "vocab_size": 8, "pad_token_id": None}))
    made: nn.Module = transformers.AutoModel.from_config(short, dtype=torch.bfloat16)
    return made


def peak_of(part: nn.Module, run: Callable[[], Tensor]) -> float:
    """Bytes beside weights and their gradients, at the largest moment of a pass (backwards too, where it has one)."""
    tracker = MemTracker()
    tracker.track_external(part)
    with tracker:
        made = run()
        if made.requires_grad:
            torch.autograd.backward(made.sum())
    (sizes,) = tracker.get_tracker_snapshot("peak").values()
    kinds = {str(kind).rpartition(".")[2]: size for kind, size in sizes.items()}
    return float(kinds["Total"] - kinds["PARAM"] - kinds["GRAD"])


def pass_over(name: str, layers: int, *, learns: bool, checkpointed: bool) -> float:
    """Bytes a token of a pass over ``layers`` of the language model."""
    with FakeTensorMode(), torch.set_grad_enabled(learns):
        part = language_layers(name, layers)
        if checkpointed:
            part.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})  # type: ignore[operator]
        part.train(checkpointed)
        inputs = torch.zeros(1, TOKENS, SHAPES[name].hidden, dtype=torch.bfloat16)
        positions = torch.zeros(3, 1, TOKENS, dtype=torch.long)
        run = lambda: part(inputs_embeds=inputs, position_ids=positions, use_cache=False).last_hidden_state  # noqa: E731
        return peak_of(part, run) / TOKENS


# One family normalises heads, the other does not.
@pytest.mark.parametrize("name", ["Qwen/Qwen3-VL-4B-Instruct", "Qwen/Qwen2.5-VL-7B-Instruct"])
def test_what_a_pass_keeps_is_what_torch_counts(name: str) -> None:
    """Never less than torch, and not much more."""
    planned = layer_bytes(SHAPES[name], 2)
    single, double = (pass_over(name, layers, learns=True, checkpointed=False) for layers in (1, 2))
    assert 0.7 * planned < double - single <= planned, "what the backward pass of a layer keeps"
    inputs = 2 * SHAPES[name].hidden
    assert 0.7 * planned < pass_over(name, 2, learns=True, checkpointed=True) - 2 * inputs <= WORKING * planned
    assert 0.3 * planned < pass_over(name, 2, learns=False, checkpointed=False) <= FORWARD * planned


@pytest.mark.parametrize("learns", [False, True])
def test_scores_take_as_many_bytes_as_planned(learns: bool) -> None:
    shape: ModelShape = SHAPES["Qwen/Qwen3-VL-4B-Instruct"]
    with FakeTensorMode(), torch.set_grad_enabled(learns):
        head = nn.Linear(shape.hidden, shape.vocabulary, bias=False, dtype=torch.bfloat16)
        scorer = Scorer.__new__(Scorer)
        config = SimpleNamespace(get_text_config=lambda: SimpleNamespace(vocab_size=shape.vocabulary))
        scorer.model = SimpleNamespace(lm_head=head, config=config)  # type: ignore[assignment]
        scorer._temperature, scorer._entropy_learns, scorer._bias = 1.0, False, torch.zeros(shape.vocabulary)
        hidden = torch.zeros(TOKENS, shape.hidden, dtype=torch.bfloat16, requires_grad=learns)
        labels = torch.zeros(TOKENS, dtype=torch.long)
        peak = peak_of(head, lambda: scorer._chunk(hidden, labels).logp)
    assert peak / TOKENS / shape.vocabulary == pytest.approx(SCORED, rel=0.02)
