"""What supervised fine-tuning reads: the tokens that serving would ask with, whatever the form of the data."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.support.agent_pages import library
from tests.support.mosaic_runs import Groups
from tests.support.object_store import Bucket
from tests.support.scripted_agent import Watcher, run_to_end
from vrag_ray.agent.actions import Action, AddAnswerNode, AddSearchNode, Crop, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.chat import ImagePart, Message, Role
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.agent.protocols.tags import TagsProtocol
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.cli.main import main
from vrag_ray.imaging.coordinates import FAMILIES
from vrag_ray.imaging.fitting import size_of
from vrag_ray.policies.llm.chat_model import ChatRequest
from vrag_ray.training.rollout.trajectory_store import write_calls, write_trajectories
from vrag_ray.training.sft_replies import Replies, read_replies, within
from vrag_ray.training.sharegpt.read import read_conversations
from vrag_ray.training.sharegpt.write import Exchange, write_sharegpt
from vrag_ray.training.trajectory import Call
from vrag_ray.types import FamilyName, VragError

pytest.importorskip("transformers", reason="NO TRANSFORMERS: what fine-tuning reads is not tested here")
from vrag_ray.policies.llm.vllm_prompt import ChatFormat
from vrag_ray.training.trainer.image_processing import Pixels

SEARCH = AddSearchNode(id="a", parent_ids=("root",), query="units sold by region")
ANSWER = AddAnswerNode(parent_ids=("a",), answer="15")
KEEP = SummarizeAndMemorize(
    summarize="North sold 15", memorize=(MemorizeEntry(information_id="Picture 1", is_useful=True, priority_score=4),)
)
LONG = 100_000


@pytest.fixture(scope="module", params=FamilyName, ids=str)
def form(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ChatFormat:
    from tiny_model import Family, save_tiny_model

    folder = tmp_path_factory.mktemp("model")
    save_tiny_model(folder, Family(request.param.value))
    form = ChatFormat(str(folder))
    # As in the published models: no picture of the agent is too large.
    edges = form.processor.image_processor.size
    form.processor.image_processor.size = {"shortest_edge": edges["shortest_edge"], "longest_edge": 1 << 24}
    return form


def family_of(form: ChatFormat) -> FamilyName:
    return FamilyName.QWEN2_5_VL if form.processor.image_processor.patch_size == 14 else FamilyName.QWEN3_VL


def exchanges_of(protocol: WireProtocol, *actions: Action) -> list[Exchange]:
    policy = Watcher(*actions, protocol=protocol)
    run_to_end(policy, library())
    return [Exchange(chat, policy.lines[place]) for place, chat in enumerate(policy.chats)]


@pytest.mark.parametrize("agent", ["tags", "graph"])
def test_an_exported_run_is_learnt_in_the_tokens_and_pictures_of_serving(
    agent: str, form: ChatFormat, tmp_path: Path
) -> None:
    family, expand_image_tokens = FAMILIES[family_of(form)], Pixels(form.processor).expand_image_tokens
    if agent == "tags":
        exchanges = exchanges_of(TagsProtocol(family=family), SEARCH, Crop(bbox=(10, 20, 300, 200)), ANSWER)
    else:
        crop = Crop(information_id="Picture 1", bbox=(0, 0, 500, 500))
        exchanges = exchanges_of(GraphProtocol(family=family), SEARCH, crop, KEEP, ANSWER)
    write_sharegpt(tmp_path, [exchanges])
    replies = read_replies(tmp_path, form, expand_image_tokens, LONG)
    assert [call.text for call in replies.calls] == [exchange.reply for exchange in exchanges]
    assert any(call.images for call in replies.calls)
    for call, exchange in zip(replies.calls, exchanges, strict=True):
        shown = [part.png for message in exchange.messages for part in message.parts if isinstance(part, ImagePart)]
        served = form.prompt(ChatRequest(exchange.messages))
        assert call.images == tuple(shown)
        assert call.prompt_ids == expand_image_tokens(served.ids, call.images)
        # Nothing is resized on the way: a visual token is a patch of the picture that the agent was shown.
        assert call.prompt_ids.count(form.picture_tokens[0]) == sum(family.tokens(size_of(png).pixels) for png in shown)
        assert call.completion_ids == form.reply_tokens(exchange.reply)
        assert call.logprobs == ()


def test_a_folder_of_recorded_runs_is_read_as_before(form: ChatFormat, tmp_path: Path) -> None:
    calls = [Call((1, 2), (), (3,)), Call((1,), (), (2, 3))]
    write_calls(tmp_path / "runs.parquet", calls)
    expand_image_tokens = Pixels(form.processor).expand_image_tokens
    for path in (tmp_path, tmp_path / "runs.parquet"):
        assert read_replies(path, form, expand_image_tokens, 3) == Replies(tuple(calls), 3, left_out=0, longest=3)
    write_sharegpt(tmp_path, [])
    with pytest.raises(VragError, match=r"holds recorded runs \(\*\.parquet\) and conversations \(sft\.json\)"):
        read_replies(tmp_path, form, expand_image_tokens, 3)


def test_what_is_too_long_is_left_out_whole_and_counted() -> None:
    calls = [Call((1,) * prompt, (), (2, 3)) for prompt in (6, 9, 8, 20)]
    replies = within(of_one_question(calls), 10)
    assert replies == Replies((calls[0], calls[2]), 10, left_out=2, longest=22)
    assert str(replies) == (
        "2 replies to learn from; 2 are left out, because with their prompts they have more than 10 tokens "
        "(the longest 22)"
    )
    assert str(within(of_one_question(calls), 22)) == "4 replies to learn from"


@pytest.mark.parametrize(
    ("share", "questions", "expected"), [(0.3, 10, 3), (0.1, 20, 2), (0.01, 5, 1), (0.99, 5, 4), (0.5, 2, 1)]
)
def test_the_share_of_the_questions_is_held_out_exactly(share: float, questions: int, expected: int) -> None:
    calls = [(f"How many units did shop {shop} sell?", Call((shop,), (), (1,))) for shop in range(questions)]
    held_out = within(calls * 3, 10, share).held_out
    assert len(set(held_out)) == expected and len(held_out) == 3 * expected


def test_a_question_more_changes_at_most_two_of_those_that_are_held_out() -> None:
    calls = [(f"How many units did shop {shop} sell?", Call((shop,), (), (1,))) for shop in range(41)]
    before = set(within(calls[:1], 10, 0.3).held_out)
    for count in range(2, len(calls) + 1):
        now = set(within(calls[:count], 10, 0.3).held_out)
        assert len(before ^ now) <= 2
        before = now


def of_one_question(calls: list[Call]) -> list[tuple[str, Call]]:
    return [("How many units were sold?", call) for call in calls]


def test_all_runs_of_a_question_are_learnt_or_held_out_together(form: ChatFormat, runs: Groups, tmp_path: Path) -> None:
    expand_image_tokens = Pixels(form.processor).expand_image_tokens
    recorded = [run for group in runs for run in group]
    write_trajectories(tmp_path / "runs.parquet", recorded)
    read = read_replies(tmp_path, form, expand_image_tokens, LONG, share=0.5)
    of = {call: run.record.question for run in recorded for call in run.calls}
    learnt, held_out = ({of[call] for call in part} for part in (read.calls, read.held_out))
    assert learnt and held_out and not learnt & held_out
    assert len(read.calls) + len(read.held_out) == sum(len(run.calls) for run in recorded)
    assert f"{len(read.calls)} replies to learn from, {len(read.held_out)} held out" in str(read)
    write_trajectories(tmp_path / "runs.parquet", runs[0])
    with pytest.raises(VragError, match=r"are of one question, and validation_share 0.5 holds out whole questions"):
        read_replies(tmp_path, form, expand_image_tokens, LONG, share=0.5)


def test_the_conversations_of_an_exported_run_are_of_one_question(form: ChatFormat, tmp_path: Path) -> None:
    family, expand_image_tokens = FAMILIES[family_of(form)], Pixels(form.processor).expand_image_tokens
    run = exchanges_of(GraphProtocol(family=family), SEARCH, KEEP, ANSWER)
    others = [[Exchange((Message.of(Role.USER, f"question {number}"),), "a")] for number in range(12)]
    write_sharegpt(tmp_path, [run, *others, run])
    questions = [conversation.question for conversation in read_conversations(tmp_path / "sft.json")]
    of_run = len(questions) - len(others)
    assert of_run > 2, "the context of a run of this agent is built anew after a memorise"
    assert len(set(questions)) == 1 + len(others)
    read = read_replies(tmp_path, form, expand_image_tokens, LONG, share=0.5)
    assert {call.text for call in read.calls}.isdisjoint(exchange.reply for exchange in run) or {
        call.text for call in read.held_out
    }.isdisjoint(exchange.reply for exchange in run)


def test_where_nothing_is_left_to_learn_it_says_why(form: ChatFormat, tmp_path: Path) -> None:
    expand_image_tokens = Pixels(form.processor).expand_image_tokens
    write_calls(tmp_path / "runs.parquet", [Call((1,) * 20, (), (2,))])
    with pytest.raises(VragError, match=r"all 1 replies have more than 10 tokens .* \(the longest 21\)"):
        read_replies(tmp_path, form, expand_image_tokens, 10)
    write_sharegpt(tmp_path / "none", [])
    with pytest.raises(VragError, match="none holds no replies to learn from"):
        read_replies(tmp_path / "none", form, expand_image_tokens, 10)
    with pytest.raises(VragError, match=r"missing.* holds no trajectories"):
        read_replies(tmp_path / "missing", form, expand_image_tokens, 10)


def test_a_constructions_own_folder_is_refused_because_wrong_runs_are_in_it(form: ChatFormat, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "failures.json").write_text("{}")
    for path in (tmp_path, tmp_path / "runs"):
        with pytest.raises(VragError, match="give the folder of its --export"):
            read_replies(path, form, Pixels(form.processor).expand_image_tokens, LONG)


def test_a_reply_that_the_model_cannot_generate_is_named_with_its_row(tmp_path: Path) -> None:
    from tiny_model import save_tiny_model

    save_tiny_model(tmp_path / "model")
    form = ChatFormat(str(tmp_path / "model"))
    form.processor.chat_template = "{{ raise_exception('no system prompt') }}"
    write_sharegpt(tmp_path / "sft", [[Exchange((Message.of(Role.USER, "q"),), "a")]])
    with pytest.raises(VragError, match=r"sft\.json: row 1: the reply in message 2: .*no system prompt"):
        read_replies(tmp_path / "sft", form, Pixels(form.processor).expand_image_tokens, LONG)


@pytest.mark.parametrize("at_uri", [False, True], ids=["folder", "uri"])
def test_a_check_of_imitation_reads_the_trajectories_and_starts_nothing(
    at_uri: bool, model: Path, tmp_path: Path, bucket: Bucket, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = [Call((5,) * 7, (), (6, 7)), Call((5,) * 40, (), (6, 7, 8))]
    write_calls(tmp_path / "expert/calls.parquet", calls)
    config = tmp_path / "run.yaml"
    place = bucket.upload(model, "imitates") if at_uri else str(model)
    written = {"name": "mine", "storage": str(tmp_path), "model": {"path": place}, "max_length": 16}
    config.write_text(yaml.safe_dump(written | {"trajectories": str(tmp_path / "expert")}))
    assert main(["train", "sft", "--config", str(config), "--check"]) == 0
    shown = capsys.readouterr().out
    assert "# 1 replies to learn from; 1 are left out, because" in shown
    assert shown.rstrip().endswith("the longest that are learnt have 9 tokens")
    assert yaml.safe_load(shown)["epochs"] == 1
    assert not (tmp_path / "mine").exists()
