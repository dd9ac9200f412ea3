"""Numbers that cannot fit a model are refused with their sum, and runs of fitting ones never exceed it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
import yaml

from tests.support.agent_pages import Shelf, library
from tests.support.harbour_films import films, keep, search
from tests.support.openai_stub import Body, images_of, openai_stub, texts_of
from tests.support.paths import ROOT
from vrag_ray.agent.actions import AddAnswerNode
from vrag_ray.agent.driver import Run
from vrag_ray.agent.events import CropEvent
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.client.schemas import RunRequest
from vrag_ray.compat.agents import VimRAG
from vrag_ray.config import (
    AgentConfig,
    AgentName,
    Auth,
    CorpusConfig,
    EvidenceForm,
    Marks,
    OpenAiConfig,
    ServingConfig,
    Settings,
    VllmConfig,
)
from vrag_ray.policies.llm.openai_api import OpenAiModel
from vrag_ray.policies.llm.prompt_limits import ModelLimits, PromptBudgetError, fitted, limits_of
from vrag_ray.policies.registry import offered, ready_settings, starting_agent, wire_protocol
from vrag_ray.serving.runs.factory import make_run
from vrag_ray.types import FamilyName, InvalidError, VragError

CONFIGS = sorted((ROOT / "serve_configs").glob("*.yaml"))
GRAPH = GraphProtocol()


def endpoint(base_url: str = "http://127.0.0.1:9/v1", **agent: object) -> Settings:
    return Settings(openai=OpenAiConfig(base_url=base_url, model="stub"), agent=AgentConfig.model_validate(agent))


def run_of(settings: Settings, shelf: Shelf, agent: str, **fields: object) -> Run:
    assert settings.openai is not None
    request = RunRequest.model_validate({"question": "What is in the harbour?", "agent": agent, **fields})
    return make_run("r1", request, settings, shelf.source, OpenAiModel(settings.openai))


def test_remembered_frames_reach_the_endpoint_when_videos_are_found() -> None:
    lines = [GRAPH.render(action) for action in (search("a"), keep(10.0, 50.0), search("b", "a"))]
    lines.append(GRAPH.render(AddAnswerNode(parent_ids=("b",), answer="boats")))
    with openai_stub(lambda _, number: lines[number]) as stub:
        record = asyncio.run(run_of(endpoint(stub.base_url), films(3), "vimrag").finish())
    assert (record.status, record.error) == ("answered", "")
    assert [len(images_of(body)) for body in stub.requests] == [0, 25, 2, 2 + 25]
    assert not any("left out" in text for body in stub.requests for text in texts_of(body))


def test_tags_of_a_qwen3_model_count_in_thousandths_whatever_the_pictures_size() -> None:
    lines = ["<search>units sold by region</search>", "<bbox>[0, 0, 500, 500]</bbox>", "<answer>15</answer>"]
    with openai_stub(lambda _, number: lines[number]) as stub:
        run = run_of(endpoint(stub.base_url, family=FamilyName.QWEN3_VL), library(), "vrag")
        record = asyncio.run(run.finish())
    [crop] = [event for event in record.events if isinstance(event, CropEvent)]
    # The margin of every crop, and words that are not cut.
    assert crop.place.bbox == pytest.approx((0, 0, 0.5, 0.5), abs=0.06)
    assert "thousandths of that picture's width and height, 0 to 1000" in texts_of(stub.requests[0])[0]


def instruction(body: Body) -> str:
    return texts_of(body)[0]


def test_tags_begin_with_the_instruction_and_a_fault_of_a_bbox_is_reported_once() -> None:
    lines = ["<search>units sold by region</search>", "<bbox>[1, 2, 3]</bbox>", "<answer>15</answer>"]
    with openai_stub(lambda _, number: lines[number]) as stub:
        asyncio.run(run_of(endpoint(stub.base_url), library(), "vrag").finish())
    assert instruction(stub.requests[0]).startswith("Answer the question from pages of a document collection.")
    assert instruction(stub.requests[0]).endswith("\nQuestion: What is in the harbour?")
    assert texts_of(stub.requests[2])[-1].endswith(
        "a bbox is four numbers, <bbox>[x1, y1, x2, y2]</bbox>, in pixels of the last picture."
    )


@pytest.mark.parametrize("agent", ["vimrag", "vrag"])
def test_an_endpoint_without_eyes_is_given_words_and_sent_no_picture(agent: str) -> None:
    lines = {
        "vimrag": [GRAPH.render(search("a")), GRAPH.render(AddAnswerNode(parent_ids=("a",), answer="boats"))],
        "vrag": ["<search>harbour</search>", "<answer>boats</answer>"],
    }
    shelf = films(2)
    with openai_stub(lambda _, number: lines[agent][number]) as stub:
        blind = OpenAiConfig(base_url=stub.base_url, model="stub", max_images=0)
        settings = ready_settings(Settings(openai=blind, agent=AgentConfig(evidence=EvidenceForm.TEXT)))
        record = asyncio.run(run_of(settings, shelf, agent).finish())
    assert (record.status, record.answer) == ("answered", "boats")
    assert [images_of(body) for body in stub.requests] == [[], []]
    assert shelf.drawn == [], "nothing is drawn that nobody looks at"
    assert "<evidence>\nharbour film" in texts_of(stub.requests[1])[-1]


@pytest.mark.parametrize("evidence", [EvidenceForm.PICTURE, EvidenceForm.BOTH])
def test_pictures_for_a_model_without_eyes_are_refused_at_start_with_the_remedy(evidence: EvidenceForm) -> None:
    blind = OpenAiConfig(base_url="http://127.0.0.1:9/v1", model="stub", max_images=0)
    refusal = (
        rf"the agent vimrag cannot be served: agent\.evidence {evidence} shows pictures, but openai\.max_images 0 says "
        r"that the model has no eyes: set agent\.evidence to text, or raise openai\.max_images"
    )
    with pytest.raises(PromptBudgetError, match=refusal):
        ready_settings(Settings(openai=blind, agent=AgentConfig(evidence=evidence)))


def test_a_request_may_ask_for_another_form_of_evidence_as_far_as_the_model_can_take_it() -> None:
    blind = OpenAiConfig(base_url="http://127.0.0.1:9/v1", model="stub", max_images=0)
    settings = Settings(openai=blind, agent=AgentConfig(evidence=EvidenceForm.TEXT))
    with pytest.raises(InvalidError, match=r"evidence: agent\.evidence both shows pictures"):
        run_of(settings, library(), "vimrag", evidence="both")
    assert run_of(endpoint(), library(), "vimrag", evidence="text")


def test_words_that_cannot_fit_the_context_are_refused_with_their_sum(tmp_path: Path) -> None:
    model = VllmConfig(model=folder(tmp_path, "qwen3_vl"), max_model_len=12_000)
    with pytest.raises(
        PromptBudgetError,
        match=r"words of pages 8000 \(agent\.prompt_chars / 3\) \+ reply 2048 .* \+ text 3000 .* = 13048 tokens > "
        r"vllm\.max_model_len 12000",
    ):
        ready_settings(Settings(vllm=model, agent=AgentConfig(evidence=EvidenceForm.TEXT)))
    fits = AgentConfig(evidence=EvidenceForm.TEXT, prompt_chars=18_000)
    assert ready_settings(Settings(vllm=model, agent=fits)).agent.prompt_chars == 18_000
    with pytest.raises(PromptBudgetError, match=r"crops x 980 \+ words of pages 6000 .* > vllm\.max_model_len 12000"):
        ready_settings(Settings(vllm=model, agent=fits.model_copy(update={"evidence": EvidenceForm.BOTH})))


def test_the_picture_of_a_question_counts_as_one_of_those_the_model_takes() -> None:
    assert limits_of(endpoint()) == ModelLimits(32, model="openai")
    made = wire_protocol(AgentName.VIMRAG, AgentConfig(), CorpusConfig(), ModelLimits(32), with_picture=True)
    assert made.limits is not None
    assert made.limits.results == 24, "of the 25 without one"
    with pytest.raises(PromptBudgetError, match=r"question 1 \+ memory 5 .* \+ crops 2 \+ results 3 .* = 11 pictures"):
        wire_protocol(AgentName.VIMRAG, AgentConfig(), CorpusConfig(), ModelLimits(10), with_picture=True)


def test_more_words_of_one_result_and_of_the_memory_than_a_prompt_holds_are_a_wrong_setting() -> None:
    with pytest.raises(ValueError, match=r"result_chars 4000 \+ memory_chars 6000 > prompt_chars 9000"):
        AgentConfig(prompt_chars=9_000)


def test_pictures_that_cannot_fit_are_refused_with_their_sum() -> None:
    settings = endpoint(search_top_k=26)
    with pytest.raises(
        PromptBudgetError,
        match=r"the agent vimrag cannot be served: memory 5 \(agent\.memory_top_k\) \+ crops 2 \+ results 26 "
        r"\(agent\.search_top_k\) = 33 pictures in a prompt > openai\.max_images 32: raise openai\.max_images or lower",
    ):
        ready_settings(settings)
    assert ready_settings(endpoint(search_top_k=25)).agent.search_top_k == 25


def test_tokens_that_cannot_fit_are_refused_with_their_sum(tmp_path: Path) -> None:
    model = folder(tmp_path, "qwen3_vl")
    with pytest.raises(
        PromptBudgetError,
        match=r"agent\.search_top_k 3: memory 1280 \(agent\.memory_pixels\) \+ 2 pages x 980 \(agent\.picture_pixels\)"
        r" \+ 23 frames x 128 \(agent\.frame_pixels\) \+ 2 crops x 980 \+ reply 2048 \(agent\.max_reply_tokens\)"
        r" \+ text 1024 \(1/4 of the context\) = 11216 tokens > vllm\.max_model_len 4096: raise vllm\.max_model_len",
    ):
        ready_settings(Settings(vllm=VllmConfig(model=model, max_model_len=4096)))
    assert ready_settings(Settings(vllm=VllmConfig(model=model))).agent.family is FamilyName.QWEN3_VL
    with pytest.raises(PromptBudgetError, match=r"max_model_len 4096"):
        ready_settings(Settings(vllm=VllmConfig(model=model, engine_args={"max_model_len": 4096})))


def test_vrag_whose_pictures_have_a_size_of_their_own_is_not_offered_where_they_cannot_fit(tmp_path: Path) -> None:
    small = AgentConfig(picture_pixels=12544, frame_pixels=12544, memory_pixels=0, max_reply_tokens=48)
    settings = Settings(vllm=VllmConfig(model=folder(tmp_path, "qwen2_5_vl"), max_model_len=1024), agent=small)
    assert offered(ready_settings(settings), has_model=True) == ("extractive", "vimrag")
    assert offered(Settings(), has_model=False) == ("extractive",)
    request = RunRequest(question="What?", agent="vrag")
    model = OpenAiModel(OpenAiConfig(base_url="http://127.0.0.1:9/v1", model="stub"))
    with pytest.raises(
        InvalidError,
        match=r"agent: agent\.tags_results 1: 1 pages x 512 \(of a fixed size\) .* > vllm\.max_model_len 1024",
    ):
        make_run("r1", request, ready_settings(settings), library().source, model)


def test_a_request_for_more_results_than_fit_is_refused() -> None:
    with pytest.raises(InvalidError, match=r"top_k: .*results 40 .*> openai\.max_images 32"):
        run_of(endpoint(), library(), "vimrag", top_k=40)
    assert run_of(endpoint(), library(), "extractive", top_k=40)


def test_a_program_is_refused_where_it_makes_its_agent() -> None:
    with pytest.raises(PromptBudgetError, match=r"results 30 \(agent\.search_top_k\) = 37 pictures"):
        VimRAG("http://127.0.0.1:9/v1", "http://127.0.0.1:8", "a-model", search_top_k=30)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_the_shipped_configurations_fit(path: Path, tmp_path: Path) -> None:
    [application] = yaml.safe_load(path.read_text(encoding="utf-8"))["applications"]
    settings = Settings.model_validate(application["args"])
    if path.stem == "tiny-cpu":
        assert settings.vllm is not None
        tiny = settings.vllm.model_copy(update={"model": folder(tmp_path, "qwen2_5_vl")})
        settings = settings.model_copy(update={"vllm": tiny})
    ready = ready_settings(settings)
    has_model = ready.openai is not None or ready.vllm is not None
    for agent in (AgentName.VIMRAG, AgentName.VRAG) if has_model else ():
        made = wire_protocol(agent, ready.agent, ready.corpus, limits_of(ready))
        assert (made.limits is not None) is ready.agent.evidence.has_pictures


def folder(root: Path, model_type: str, **more: object) -> str:
    (root / "config.json").write_text(json.dumps({"model_type": model_type} | more), encoding="utf-8")
    return str(root)


@pytest.mark.parametrize(
    ("model_type", "family"),
    [("qwen2_5_vl", "qwen2_5_vl"), ("qwen3_vl", "qwen3_vl"), ("qwen3_vl_moe", "qwen3_vl")],
)
def test_the_family_is_that_of_the_served_model_for_every_agent(model_type: str, family: str, tmp_path: Path) -> None:
    settings = ready_settings(Settings(vllm=VllmConfig(model=folder(tmp_path, model_type))))
    assert settings.agent.family == family
    for agent in (AgentName.VIMRAG, AgentName.VRAG):
        assert wire_protocol(agent, settings.agent, settings.corpus, None).family.name == family


def test_a_family_that_is_not_the_served_models_is_refused_with_both_names(tmp_path: Path) -> None:
    from vrag_ray.serving.app import build

    model = VllmConfig(model=folder(tmp_path, "qwen3_vl"))
    with pytest.raises(VragError, match=r"agent\.family is qwen2_5_vl, but vllm\.model .* of the family qwen3_vl"):
        build(
            Settings(
                collection=str(tmp_path),
                serving=ServingConfig(auth=Auth.LOOPBACK),
                vllm=model,
                agent=AgentConfig(family=FamilyName.QWEN2_5_VL),
            )
        )


def test_a_model_of_no_known_family_needs_a_configured_one(tmp_path: Path) -> None:
    model = VllmConfig(model=folder(tmp_path, "llava", vision_config={}))
    with pytest.raises(VragError, match=r"model_type is 'llava'.*set agent\.family to qwen2_5_vl or qwen3_vl"):
        ready_settings(Settings(vllm=model))
    ready = ready_settings(Settings(vllm=model, agent=AgentConfig(family=FamilyName.QWEN3_VL)))
    assert ready.agent.family is FamilyName.QWEN3_VL
    nowhere = VllmConfig(model="nobody/no-such-model")
    with pytest.raises(
        VragError, match=r"there is no such folder in .* its config\.json cannot be read here.*set agent\.family"
    ):
        ready_settings(Settings(vllm=nowhere))
    assert ready_settings(Settings(vllm=nowhere, agent=ready.agent)).agent == ready.agent


@pytest.mark.parametrize("model_type", ["qwen2", "llama", "qwen3_moe"])
def test_a_model_without_eyes_is_served_words_whatever_its_family(model_type: str, tmp_path: Path) -> None:
    model = VllmConfig(model=folder(tmp_path, model_type))
    ready = ready_settings(Settings(vllm=model))
    assert (ready.agent.evidence, ready.agent.family) == (EvidenceForm.TEXT, None)
    assert ready.vllm is not None and ready.vllm.max_images == 0
    assert offered(ready, has_model=True) == tuple(AgentName)
    with pytest.raises(VragError, match=r"agent\.evidence both shows pictures, but the model .* has no eyes"):
        ready_settings(Settings(vllm=model, agent=AgentConfig(evidence=EvidenceForm.BOTH)))
    marked = ready_settings(Settings(vllm=model).model_copy(update={"agent": AgentConfig(marks=Marks.MARGIN)}))
    assert marked.agent.marks is Marks.WORDS, "numbers stand before its words, as no picture is shown"
    assert AgentConfig.model_validate(marked.agent.model_dump()) == marked.agent


def test_budgets_that_nobody_has_set_are_lowered_to_what_a_model_takes() -> None:
    limits = ModelLimits(10, tokens=4096)

    def check(config: AgentConfig) -> object:
        return wire_protocol(AgentName.VIMRAG, config, CorpusConfig(), limits)

    lowered = fitted(AgentConfig(), 4096, check)
    assert lowered.max_reply_tokens == 512 and lowered.picture_pixels < AgentConfig().picture_pixels
    assert check(lowered)
    words = fitted(AgentConfig(evidence=EvidenceForm.TEXT, max_reply_tokens=100), 4096, check)
    assert (words.max_reply_tokens, words.picture_pixels) == (100, AgentConfig().picture_pixels)
    with pytest.raises(PromptBudgetError, match=r"agent\.memory_pixels"):
        fitted(AgentConfig(memory_pixels=5 * 2**20), 4096, check)


def test_behind_an_endpoint_each_agent_has_the_family_that_it_was_made_for() -> None:
    config, limits = AgentConfig(), ModelLimits(32)
    assert wire_protocol(AgentName.VIMRAG, config, CorpusConfig(), limits).family.name is FamilyName.QWEN3_VL
    assert wire_protocol(AgentName.VRAG, config, CorpusConfig(), limits).family.name is FamilyName.QWEN2_5_VL


def test_the_agent_that_a_service_begins_with_is_one_that_it_serves() -> None:
    with_model, served = endpoint(), ServingConfig(agent=AgentName.VRAG)
    assert [starting_agent(settings) for settings in (Settings(), with_model)] == ["extractive", "vimrag"]
    assert starting_agent(ready_settings(with_model.model_copy(update={"serving": served}))) == "vrag"
    with pytest.raises(VragError, match=r"serving\.agent vrag needs a language model: set vllm or openai"):
        ready_settings(Settings(serving=served))
    large = endpoint(tags_results=40).model_copy(update={"serving": served})
    with pytest.raises(PromptBudgetError, match=r"serving\.agent vrag cannot be served: .*results 40"):
        ready_settings(large)
