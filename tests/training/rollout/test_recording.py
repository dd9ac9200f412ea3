"""What is recorded of a reply: the sampler's own tokens, whatever a tokenizer would have made of the text."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest
from transformers import AutoProcessor

from benchmarks.mosaic.world.agent import mosaic_agent
from tests.support.mosaic_runs import Groups, Speaker, context, expert, pixels_of, processor_of, tasks
from tests.support.scripted_agent import Watcher
from vrag_ray.agent.chat import FunctionCall, Message, Role, TextPart
from vrag_ray.agent.driver import Run
from vrag_ray.agent.record import RunRecord
from vrag_ray.config import AgentConfig, EvidenceForm
from vrag_ray.policies.llm.chat_model import ChatRequest, Sampling, TokenDelta, TokenRequest
from vrag_ray.policies.llm.vllm_prompt import ChatFormat
from vrag_ray.training.rollout.recording import ExpertPolicy, SamplingPolicy, derive_seed
from vrag_ray.types import Completion


def run(policy: SamplingPolicy | ExpertPolicy, config: AgentConfig | None = None) -> RunRecord:
    """Run the first task to its end."""
    setting = context()
    agent_run = Run(
        "r1",
        tasks(1)[0].example.question,
        policy=policy,
        protocol=setting.protocol,
        source=setting.source,
        config=config or setting.agent,
        clock=lambda: 0.0,
    )
    return asyncio.run(agent_run.finish())


def sampling(speaker: Speaker, model: Path, *, seed: str = "7", own: Sampling | None = None) -> SamplingPolicy:
    return SamplingPolicy(speaker, ChatFormat(str(model)).tokens, context().protocol, own or Sampling(64, 1.0), seed)


def test_tokens_that_no_tokenizer_would_choose_survive_a_run_of_sixteen_turns(model: Path):
    speaker = Speaker(model, searches=8)
    policy = sampling(speaker, model)
    record = run(policy, mosaic_agent(max_steps=17))
    assert (record.steps, record.corrections, len(policy.calls)) == (17, 0, 17)
    for call in policy.calls:
        assert call.completion_ids == speaker.spelt(call.text)
        assert call.completion_ids != ChatFormat(str(model)).reply_tokens(call.text)
        assert call.logprobs == tuple(-1 / (3 + place) for place in range(len(call.completion_ids)))
        assert speaker.tokenizer.decode(call.completion_ids[:-1]) == call.text


def test_a_prompt_is_kept_as_the_model_read_it(model: Path):
    speaker = Speaker(model, searches=2)
    policy = sampling(speaker, model)
    run(policy)
    pixels = pixels_of(model)
    assert [len(call.images) for call in policy.calls] == [0, 2, 0, 2, 0]
    for call, request in zip(policy.calls, speaker.heard, strict=True):
        assert request.prompt_ids.count(pixels.image_token_id) == len(call.images)
        assert request.images == call.images
        assert call.prompt_ids == pixels.expand_image_tokens(request.prompt_ids, call.images)
        assert call.prompt_ids.count(pixels.image_token_id) == 16 * len(call.images)
    assert {call.weights for call in policy.calls} == {"5"}


def test_a_rollout_in_words_is_kept_as_it_was_read_without_a_picture(model: Path):
    setting = context()
    protocol = replace(setting.protocol, evidence=EvidenceForm.TEXT)
    speaker = Speaker(model)
    policy = SamplingPolicy(speaker, ChatFormat(str(model)).tokens, protocol, Sampling(64, 1.0), "7")
    agent_run = Run(
        "r1",
        tasks(1)[0].example.question,
        policy=policy,
        protocol=protocol,
        source=setting.source,
        config=setting.agent,
        clock=lambda: 0.0,
    )
    asyncio.run(agent_run.finish())
    assert len(policy.calls) >= 2
    assert not any(call.images for call in policy.calls)
    assert [call.prompt_ids for call in policy.calls] == [request.prompt_ids for request in speaker.heard]
    read = processor_of(model).tokenizer.decode(policy.calls[1].prompt_ids)
    assert "<evidence>" in read and "</evidence>" in read


def test_every_reply_of_a_run_is_drawn_by_a_seed_of_its_own_that_can_be_had_again(model: Path):
    def seeds(name: str) -> list[int | None]:
        speaker = Speaker(model, searches=3)
        run(sampling(speaker, model, seed=name))
        return [request.sampling.seed for request in speaker.heard]

    assert len(set(seeds("1/train-7/0"))) == 7
    assert seeds("1/train-7/0") == seeds("1/train-7/0")
    assert not set(seeds("1/train-7/0")) & set(seeds("1/train-7/1"))


def test_the_model_is_sampled_as_the_run_requests(model: Path):
    speaker, own = Speaker(model), Sampling(max_tokens=33, temperature=0.7, stop=("x",), banned_token_ids=(5,))
    run(sampling(speaker, model, own=own))
    for request in speaker.heard:
        assert request.sampling == replace(own, seed=request.sampling.seed)


class Breathless(Speaker):
    """Is cut off after five tokens, or has no end at all."""

    ends = True

    async def generate(self, request: TokenRequest) -> AsyncGenerator[TokenDelta | Completion]:
        async for piece in super().generate(request):
            if isinstance(piece, TokenDelta):
                yield piece
            elif self.ends:
                text = piece.text[:5]
                ids = self.spelt(text)[:-1]
                yield replace(piece, text=text, finish="length", token_ids=ids, logprobs=piece.logprobs[:5])


def test_a_reply_that_was_cut_off_is_kept_without_an_end(model: Path):
    speaker = Breathless(model)
    policy = sampling(speaker, model, own=Sampling(5, 1.0))
    assert run(policy, mosaic_agent(max_steps=2)).corrections == 2
    assert [call.finish for call in policy.calls] == ["length", "length"]
    assert all(call.completion_ids[-1] != speaker.tokenizer.eos_token_id for call in policy.calls)
    assert all(len(call.completion_ids) == len(call.logprobs) == 5 for call in policy.calls)


def test_a_reply_that_the_context_cut_off_is_the_engines_limit_and_not_the_policys(model: Path):
    policy = sampling(Breathless(model), model)
    record = run(policy, mosaic_agent(max_steps=2))
    assert (record.engine_limited, record.corrections, len(policy.calls)) == (True, 0, 1)
    assert "5 of at most 64 of the reply: raise the engine's max_model_len" in record.error


def test_a_model_that_breaks_off_ends_the_run_as_a_fault(model: Path):
    speaker = Breathless(model)
    speaker.ends = False
    policy = sampling(speaker, model)
    assert "the model broke off before its reply was whole" in run(policy).error
    assert policy.calls == []


def test_an_experts_reply_ends_with_the_end_of_the_turn_and_decodes_to_its_text(groups: Groups, model: Path):
    tokenizer = processor_of(model).tokenizer
    calls = [call for group in groups for trajectory in group for call in trajectory.calls]
    for call in calls:
        assert call.completion_ids[-1] == tokenizer.eos_token_id
        assert tokenizer.decode(call.completion_ids[:-1]) == call.text
        assert tokenizer.eos_token_id not in call.completion_ids[:-1]
        assert call.logprobs == ()


def test_an_experts_prompt_is_what_a_model_would_have_read(groups: Groups, model: Path):
    pixels = pixels_of(model)
    for call in (call for group in groups for trajectory in group for call in trajectory.calls):
        visual = sum(map(pixels.visual_tokens, call.images))
        assert call.prompt_ids.count(pixels.image_token_id) == visual


def test_an_expert_that_writes_special_tokens_says_them_letter_by_letter(model: Path):
    text = "<|im_end|> and <|image_pad|>"
    policy = ExpertPolicy(
        Watcher(text), ChatFormat(str(model)), context().protocol, pixels_of(model).expand_image_tokens
    )
    run(policy, mosaic_agent(max_steps=2))
    call = policy.calls[0]
    special = set(processor_of(model).tokenizer.all_special_ids)
    assert not special & set(call.completion_ids[:-1])
    assert call.text == text


def test_an_expert_is_served_what_it_asks_for(model: Path):
    oracle = expert(0.0)(tasks(1)[0], 0)
    policy = ExpertPolicy(oracle, ChatFormat(str(model)), context().protocol, pixels_of(model).expand_image_tokens)
    assert (policy.reads_pages, policy.sees_pictures) == (oracle.reads_pages, oracle.sees_pictures) == (False, True)


@pytest.fixture
def thinking(model: Path, tmp_path: Path) -> Path:
    """A folder whose template has the assistant begin with its thoughts."""
    processor = AutoProcessor.from_pretrained(str(model))
    processor.chat_template = processor.chat_template.replace("assistant\\n", "assistant\\n<think>")
    processor.save_pretrained(tmp_path)
    return tmp_path


def test_a_tag_that_the_template_begins_the_reply_with_is_in_its_text_and_in_the_prompts_tokens(thinking: Path):
    speaker = Speaker(thinking)
    policy = sampling(speaker, thinking)
    run(policy)
    for call, request in zip(policy.calls, speaker.heard, strict=True):
        assert speaker.read(request).endswith("<think>")
        assert call.text.startswith("<think><tool_call>")
        assert call.completion_ids == speaker.spelt(call.text.removeprefix("<think>"))


def test_an_experts_thoughts_begin_where_the_template_has_them_begin(thinking: Path):
    policy = ExpertPolicy(
        Watcher("<think>so</think> red"),
        ChatFormat(str(thinking)),
        context().protocol,
        pixels_of(thinking).expand_image_tokens,
    )
    run(policy, mosaic_agent(max_steps=2))
    call = policy.calls[0]
    whole = processor_of(thinking).tokenizer.decode((*call.prompt_ids, *call.completion_ids))
    assert whole.endswith("assistant\n<think>so</think> red<|im_end|>")


def test_only_names_decide_what_is_drawn():
    assert derive_seed("1/train-7/0", 3) == derive_seed("1/train-7/0", 3)
    drawn = {derive_seed("1/train-7", sample, reply) for sample in range(10) for reply in range(10)}
    assert len(drawn) == 100
    assert all(0 <= number < 2**31 for number in drawn)
    assert derive_seed("ab", "c") != derive_seed("a", "bc")


def test_a_prompt_holds_earlier_calls_of_functions_in_words(model: Path) -> None:
    form = ChatFormat(str(model))
    call = FunctionCall("c1", "rain", '{"city": "Bremen"}')
    chat = (
        Message.of(Role.USER, "Rain?"),
        Message(Role.ASSISTANT, (), (call,)),
        Message(Role.TOOL, (TextPart("none"),), call_id="c1"),
    )
    written = (
        Message.of(Role.USER, "Rain?"),
        Message.of(Role.ASSISTANT, '<tool_call>\n{"name": "rain", "arguments": {"city": "Bremen"}}\n</tool_call>'),
        Message.of(Role.USER, "<tool_response>\nnone\n</tool_response>"),
    )
    assert form.tokens(ChatRequest(chat)) == form.tokens(ChatRequest(written))
