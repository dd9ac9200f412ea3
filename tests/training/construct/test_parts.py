"""The parts of trajectory construction without Ray: whose turn it is, which runs are stored, and how."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.agent_pages import Shelf, library
from tests.support.evidence_stub import paper
from tests.support.scripted_agent import Watcher, ticking
from vrag_ray.agent.actions import Action, AddAnswerNode, AddSearchNode, Crop, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.driver import Run
from vrag_ray.agent.events import CropEvent, RunStatus
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.agent.protocols.tags import TagsProtocol
from vrag_ray.agent.record import RunRecord
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.config import AgentConfig
from vrag_ray.imaging.coordinates import FAMILIES, ModelFamily, View, with_margin
from vrag_ray.imaging.fitting import size_of
from vrag_ray.questions.examples import Corners, Example
from vrag_ray.questions.gold_places import GoldPlace
from vrag_ray.training.construct.experts import Turns, TwoExperts, plain_form
from vrag_ray.training.construct.filters import Shape, StructureLimits, balanced, refusal, shape_of
from vrag_ray.training.construct.store import Constructed, ConstructStore, export_sharegpt
from vrag_ray.training.rewards.reward import Reward
from vrag_ray.types import FULL_PAGE, HYBRID, Box, FamilyName, Query, SearchAnswer, VragError
from vrag_ray.types.filters import SearchFilter

TAGS, GRAPH = TagsProtocol(), GraphProtocol()
PIXELS, PER_MILLE = FAMILIES[FamilyName.QWEN2_5_VL], FAMILIES[FamilyName.QWEN3_VL]
SALES = AddSearchNode(id="a", parent_ids=("root",), query="units sold by region")
MUSEUM = AddSearchNode(id="b", parent_ids=("root",), query="visitors of the museum")
SALES_AGAIN = tuple(
    SALES.model_copy(update={"query": words}) for words in ("region units sold by", "sold units by region")
)
LOOK = Crop(bbox=(60.0, 80.0, 260.0, 200.0))
LOOK_AT = Crop(information_id="Picture 1", bbox=(100.0, 100.0, 400.0, 300.0))
KEEP = SummarizeAndMemorize(
    summarize="North", memorize=(MemorizeEntry(information_id="Picture 1", is_useful=True, priority_score=4),)
)
DONE = AddAnswerNode(parent_ids=("root",), answer="15")
EXAMPLE = Example(uid="q/1 ü", question="What was North in 2022?", answers=("15",))
GOOD = Reward(1.0, 1.0, 1.0, 1.0, success=True)


def run_of(
    policy: Watcher | TwoExperts, protocol: WireProtocol, source: Shelf | None = None, steps: int = 12
) -> RunRecord:
    run = Run(
        "r1",
        EXAMPLE.question,
        policy=policy,
        protocol=protocol,
        source=(source or paper()).source,
        config=AgentConfig(max_steps=steps),
        clock=ticking(),
    )
    return asyncio.run(run.finish())


def experts(
    protocol: WireProtocol,
    planner: Sequence[Action | str],
    grounder: Sequence[Action | str],
    frame: ModelFamily | None = None,
) -> tuple[TwoExperts, Watcher, Watcher]:
    plans, looks = Watcher(*planner, protocol=protocol), Watcher(*grounder, protocol=protocol)
    return TwoExperts(plans, looks, protocol, frame or protocol.family), plans, looks


# Whose turn it is ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "planner", "look"),
    [(TAGS, (SALES, MUSEUM, DONE), LOOK), (GRAPH, (SALES, KEEP, MUSEUM, KEEP, DONE), LOOK_AT)],
    ids=["tags", "graph"],
)
def test_the_turn_right_after_a_search_is_the_grounding_experts_and_all_others_the_planners(
    protocol: WireProtocol, planner: Sequence[Action], look: Crop
) -> None:
    policy, plans, looks = experts(protocol, planner, [look])
    record = run_of(policy, protocol)
    assert (record.status, record.corrections) == (RunStatus.ANSWERED, 0)
    assert (len(plans.prompts), len(looks.prompts)) == (len(planner), 2)
    kinds = [type(protocol.parse(exchange.reply).action) for exchange in policy.exchanges]
    after = [kinds[number + 1] for number, kind in enumerate(kinds) if kind is AddSearchNode]
    assert after == [Crop, Crop]
    assert policy.turns == Turns(planned=len(planner), grounded=2)


@pytest.mark.parametrize(("protocol", "look"), [(TAGS, LOOK), (GRAPH, LOOK_AT)], ids=["tags", "graph"])
def test_the_order_to_crop_reaches_the_grounding_expert_alone_and_is_not_learnt(
    protocol: WireProtocol, look: Crop
) -> None:
    policy, plans, looks = experts(protocol, (SALES, DONE), [look], PER_MILLE)
    run_of(policy, protocol)
    [chat] = looks.chats
    assert "look closer at what decides the question" in chat[-1].text
    assert "in thousandths of the picture" in chat[-1].text
    others = [message.text for chat in plans.chats for message in chat]
    learnt = [message.text for exchange in policy.exchanges for message in exchange.messages]
    assert not any("look closer at what decides" in text for text in others + learnt)
    # What is learnt is otherwise what was seen: the same pictures in the same places.
    assert [len(message.parts) for message in policy.exchanges[1].messages][:-1] == [len(m.parts) for m in chat][:-1]


@pytest.mark.parametrize("protocol", [TAGS, GRAPH], ids=["tags", "graph"])
@pytest.mark.parametrize("frame", [PIXELS, PER_MILLE], ids=["pixels", "per-mille"])
def test_a_box_is_understood_in_the_grounding_experts_frame_and_kept_in_the_protocols(
    protocol: WireProtocol, frame: ModelFamily
) -> None:
    target = Box(0.30, 0.40, 0.55, 0.62)
    probe, _, _ = experts(protocol, (SALES, DONE), ["no crop"])
    run_of(probe, protocol)
    shown = next(part.png for message in probe.exchanges[1].messages for part in message.parts if hasattr(part, "png"))
    view = View(FULL_PAGE, size_of(shown))
    look = Crop(information_id="Picture 1" if protocol is GRAPH else "", bbox=frame.codec.encode(target, view))
    policy, _, _ = experts(protocol, (SALES, DONE), [look], frame)
    record = run_of(policy, protocol)
    [crop] = [event for event in record.events if isinstance(event, CropEvent)]
    assert crop.place.bbox == pytest.approx(with_margin(target).as_tuple(), abs=0.004)
    action = protocol.parse(policy.exchanges[1].reply).action
    assert isinstance(action, Crop)
    assert protocol.family.codec.decode(action.bbox, view).as_tuple() == pytest.approx(target.as_tuple(), abs=0.004)


@pytest.mark.parametrize(
    "reply",
    ["no crop", "", "<search>something else</search>", "<bbox>[5, 5, 5, 5]</bbox>", '{"bbox_2d": [1, 2, 3, 4]}'],
)
def test_a_turn_that_the_grounding_expert_leaves_is_the_planners(reply: str) -> None:
    policy, plans, _ = experts(TAGS, (SALES, DONE), [reply])
    record = run_of(policy, TAGS)
    assert (record.status, record.corrections, len(plans.prompts)) == (RunStatus.ANSWERED, 0, 2)
    assert policy.turns == Turns(planned=2, passed=1)
    assert len(policy.exchanges) == 2
    # The tokens of the turn that was left have been paid for too.
    assert record.usage["completion_tokens"] == 3 * 2


def test_nobody_is_sent_to_look_at_nothing() -> None:
    again = AddSearchNode(id="c", parent_ids=("root",), query="units sold by region again")
    shelf = paper()
    shelf.hits = shelf.hits[:1]
    policy, _, looks = experts(TAGS, (SALES, again, DONE), [LOOK])
    run_of(policy, TAGS, shelf)
    assert len(looks.prompts) == 1
    texts = library()
    texts.hits = texts.hits[-1:]
    policy, _, looks = experts(TAGS, (AddSearchNode(id="", parent_ids=(), query="oak hulls oiled"), DONE), [LOOK])
    run_of(policy, TAGS, texts)
    assert looks.prompts == []


def test_the_last_step_is_left_for_the_answer() -> None:
    policy, _, looks = experts(TAGS, (SALES, DONE), [LOOK])
    assert run_of(policy, TAGS, steps=2).status is RunStatus.ANSWERED
    assert looks.prompts == []


@pytest.mark.parametrize(
    ("protocol", "reply", "reasoning", "expected"),
    [
        (TAGS, "Sure! <think> a\nb </think> so <search> x </search> ok", "", "<think>a\nb</think>\n<search>x</search>"),
        (TAGS, "<answer>7</answer>", "it says 7", "<think>it says 7</think>\n<answer>7</answer>"),
        (TAGS, "<think>own</think><answer>7</answer>", "other", "<think>own</think>\n<answer>7</answer>"),
        (TAGS, "<answer>7</answer>", "", "<think></think>\n<answer>7</answer>"),
        (TAGS, "<answer>7</answer>", "try <search>x</search>", "<answer>7</answer>"),
        (TAGS, "no action at all", "why", "no action at all"),
        (TAGS, "lone \ud800<answer>7</answer>", "", "<think></think>\n<answer>7</answer>"),
        (
            GRAPH,
            'hm. <tool_call>{"name": "add_answer_node", "arguments": {"parent_ids": "root", "answer": "7"}}',
            "",
            '<think>hm.</think>\n<tool_call>{"name": "add_answer_node", "arguments": '
            '{"parent_ids": ["root"], "answer": "7"}}</tool_call>',
        ),
    ],
)
def test_a_reply_is_kept_in_the_protocols_plain_form(
    protocol: WireProtocol, reply: str, reasoning: str, expected: str
) -> None:
    assert plain_form(protocol, reply, reasoning) == expected


pieces = st.lists(
    st.sampled_from(
        [
            "<think>",
            "</think>",
            "<search>",
            "</search>",
            "<bbox>",
            "[1, 2, 30, 40.5]",
            "</bbox>",
            "<answer>",
            "</answer>",
            "<tool_call>",
            '{"name": "crop", "arguments": {"bbox": [1, 2, 3, 4]}}',
            "</tool_call>",
            "a",
            " ",
            "\n",
            "\ud800",
        ]
    ),
    max_size=10,
).map("".join)


@settings(deadline=None)
@given(pieces, pieces, st.sampled_from([TAGS, GRAPH]))
def test_the_plain_form_means_the_same_as_the_reply(reply: str, reasoning: str, protocol: WireProtocol) -> None:
    meant = protocol.parse(reply.encode("utf-8", "replace").decode()).action
    assert protocol.parse(plain_form(protocol, reply, reasoning)).action == meant


# What is kept -------------------------------------------------------------------------------------------------


def refused(protocol: WireProtocol, *actions: Action | str, steps: int = 12, **limits: float) -> str:
    record = run_of(Watcher(*actions, protocol=protocol), protocol, steps=steps)
    return refusal(record, StructureLimits.model_validate(limits))


@pytest.mark.parametrize(
    ("protocol", "actions"),
    [
        (TAGS, (SALES, DONE)),
        (TAGS, (SALES, LOOK, LOOK, MUSEUM, LOOK, DONE)),
        (GRAPH, (SALES, LOOK_AT, KEEP, DONE)),
        (GRAPH, (SALES, KEEP, Crop(information_id="a#1", bbox=LOOK_AT.bbox), DONE)),
        (GRAPH, (SALES, KEEP, MUSEUM, Crop(information_id="a#1", bbox=LOOK_AT.bbox), KEEP, DONE)),
    ],
)
def test_a_run_in_order_is_not_refused(protocol: WireProtocol, actions: Sequence[Action]) -> None:
    assert refused(protocol, *actions) == ""


@pytest.mark.parametrize(
    ("protocol", "actions", "reason"),
    [
        (TAGS, (DONE,), "not a search and an answer of its own: answered"),
        (TAGS, (SALES, "hm", DONE), "a reply was refused"),
        (TAGS, (SALES, Crop(bbox=(5.0, 5.0, 5.0, 5.0)), DONE), "a reply was refused"),
        (TAGS, (SALES, Crop(bbox=(0.0, 0.0, 5000.0, 5000.0)), DONE), "a crop of nearly everything"),
        (TAGS, (SALES, *SALES_AGAIN, LOOK, DONE), "a crop of what was not in view"),
    ],
)
def test_a_run_out_of_order_is_refused_with_the_reason(
    protocol: WireProtocol, actions: Sequence[Action | str], reason: str
) -> None:
    assert refused(protocol, *actions) == reason


def test_a_run_cut_short_is_refused() -> None:
    assert refused(TAGS, SALES, MUSEUM, steps=2) == "not a search and an answer of its own: max_steps"


@pytest.mark.parametrize(("limits", "reason"), [({"min_steps": 3}, "2 steps"), ({"max_steps": 1}, "2 steps"), ({}, "")])
def test_a_run_of_another_length_is_refused(limits: dict[str, float], reason: str) -> None:
    assert refused(TAGS, SALES, DONE, **limits) == reason


def test_a_speck_is_no_crop() -> None:
    speck = Crop(bbox=(60.0, 80.0, 61.0, 81.0))
    assert refused(TAGS, SALES, speck, DONE, min_crop_area=0.0) == ""
    assert refused(TAGS, SALES, speck, DONE, min_crop_area=0.05) == "a crop of nearly nothing"


@pytest.mark.parametrize(
    ("least", "boxes", "reason"),
    [
        (0.0, ((0.0, 0.9, 1.0, 1.0),), ""),
        (0.5, ((0.0, 0.9, 1.0, 1.0),), "too few gold boxes cited"),
        (0.5, (None, (0.0, 0.9, 1.0, 1.0)), "too few gold boxes cited"),
        (0.5, ("cropped", (0.0, 0.9, 1.0, 1.0)), ""),
        (0.6, ("cropped", (0.0, 0.9, 1.0, 1.0)), "too few gold boxes cited"),
        (1.0, ("cropped",), ""),
        # Without a gold box there is nothing to demand.
        (1.0, (None,), ""),
        (1.0, (), ""),
    ],
)
def test_an_answer_must_cite_as_many_gold_boxes_as_the_limits_demand(
    least: float, boxes: Sequence[Corners | str | None], reason: str
) -> None:
    record = run_of(Watcher(SALES, LOOK, DONE, protocol=TAGS), TAGS)
    [crop] = [event.place for event in record.events if isinstance(event, CropEvent)]
    gold = [GoldPlace("report", crop.doc_id, page=1, box=crop.bbox if isinstance(box, str) else box) for box in boxes]
    assert refusal(record, StructureLimits(min_box_recall=least), gold) == reason


class Flickering(Shelf):
    """Its first search fails."""

    async def search(
        self,
        queries: Sequence[str | Query],
        *,
        top_k: int = 3,
        mode: str = HYBRID,
        filter: SearchFilter | None = None,
    ) -> SearchAnswer:
        self.broken_search = "" if self.queries else "the index is gone"
        return await super().search(queries, top_k=top_k, mode=mode, filter=filter)


def test_a_run_whose_search_failed_is_refused() -> None:
    shelf = Flickering(hits=paper().hits, pages=paper().pages)
    record = run_of(Watcher(SALES, MUSEUM, DONE, protocol=TAGS), TAGS, shelf)
    assert record.status is RunStatus.ANSWERED
    assert refusal(record, StructureLimits()) == "something failed on the way"


def test_a_shape_is_the_length_and_the_kinds_of_action() -> None:
    record = run_of(Watcher(SALES, LOOK, DONE, protocol=TAGS), TAGS)
    assert shape_of("u", record) == Shape("u", 3, ("crop", "search"))
    assert shape_of("u", run_of(Watcher(SALES, DONE, protocol=TAGS), TAGS)) == Shape("u", 2, ("search",))


mixes = st.sampled_from([("search",), ("crop", "search"), ("crop", "memorize", "search")])
shapes = st.lists(
    st.builds(Shape, st.text(min_size=1, max_size=6), st.integers(2, 5), mixes),
    max_size=40,
    unique_by=lambda example: example.uid,
)


@settings(deadline=None)
@given(shapes, st.integers(0, 45), st.randoms(use_true_random=False))
def test_the_mix_is_even_and_does_not_depend_on_the_order(made: list[Shape], total: int, order: object) -> None:
    chosen = balanced(made, total)
    shuffled = list(made)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    assert balanced(shuffled, total) == chosen
    assert len(set(chosen)) == len(chosen) == min(total, len(made))
    by_uid = {shape.uid: shape for shape in made}
    check_even(Counter(by_uid[uid].steps for uid in chosen), Counter(shape.steps for shape in made))
    for steps in {shape.steps for shape in made}:
        check_even(
            Counter(by_uid[uid].actions for uid in chosen if by_uid[uid].steps == steps),
            Counter(shape.actions for shape in made if shape.steps == steps),
        )


def check_even(taken: Counter[object], there: Counter[object]) -> None:
    """None is more than one ahead of another that had more to give."""
    most = max(taken.values(), default=0)
    assert all(taken[kind] >= min(count, most - 1) for kind, count in there.items())


def test_all_runs_are_taken_where_no_number_is_stated() -> None:
    made = [Shape(str(number), 2, ("search",)) for number in range(5)]
    assert sorted(balanced(made)) == ["0", "1", "2", "3", "4"]
    assert balanced([]) == ()


# How it is stored ---------------------------------------------------------------------------------------------


def constructed(protocol: WireProtocol, *planner: Action, uid: str = EXAMPLE.uid, refused: str = "") -> Constructed:
    policy, _, _ = experts(protocol, planner, [LOOK if protocol is TAGS else LOOK_AT])
    record = run_of(policy, protocol)
    example = EXAMPLE.model_copy(update={"uid": uid})
    reward = None if refused else GOOD
    return Constructed(example, record, tuple(policy.exchanges), refused, reward, policy.turns, {"planner": "p"})


@pytest.mark.parametrize(
    ("protocol", "planner"),
    [(TAGS, (SALES, MUSEUM, DONE)), (GRAPH, (SALES, KEEP, MUSEUM, DONE))],
    ids=["tags", "graph"],
)
def test_a_run_comes_back_as_it_was_stored(protocol: WireProtocol, planner: Sequence[Action], tmp_path: Path) -> None:
    store = ConstructStore(str(tmp_path))
    run = constructed(protocol, *planner)
    store.put(run)
    assert store.get(EXAMPLE.uid) == run
    assert store.finished([EXAMPLE.uid, "other"]) == {EXAMPLE.uid}


def test_refused_runs_are_kept_with_the_reason_and_not_learnt_from(tmp_path: Path) -> None:
    store = ConstructStore(str(tmp_path))
    store.put(constructed(TAGS, SALES, DONE, uid="good"))
    bad = constructed(TAGS, SALES, DONE, uid="bad", refused="judged wrong")
    store.put(bad)
    assert store.get("bad") == bad
    assert [(summary.shape.uid, summary.refused) for summary in store.summaries()] == [
        ("bad", "judged wrong"),
        ("good", ""),
    ]
    assert store.chosen() == ("good",)
    exported = export_sharegpt(store, tmp_path / "sft")
    assert (exported.conversations, exported.images) == (1, 2)


def test_what_was_not_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(VragError, match="holds no run of example 'nobody'"):
        ConstructStore(str(tmp_path)).get("nobody")
