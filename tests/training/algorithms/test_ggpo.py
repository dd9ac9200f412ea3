"""GGPO from graphs to the loss, and the energy of its memory; ``test_properties.py`` lists all that it promises."""

from __future__ import annotations

import io
import math
import random

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.support.agent_pages import library
from tests.support.golden_losses import GOLDEN_LOSSES, golden_batch
from tests.support.loss_batches import RATIOS, outcome, random_batch, wide
from tests.support.memory_graphs import GOLDEN_GRAPH, graph_of
from tests.support.scripted_agent import Watcher, run_to_end
from vrag_ray.agent.actions import AddAnswerNode, AddSearchNode, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.images.remembered import remembered_views
from vrag_ray.agent.memory.energy import ItemEnergy, energies, pixel_budgets, strongest
from vrag_ray.agent.memory.graph import MemoryGraph
from vrag_ray.agent.record import RunRecord
from vrag_ray.config import AgentConfig
from vrag_ray.imaging.coordinates import FAMILIES, Size, model_size
from vrag_ray.imaging.fitting import fitted, size_of
from vrag_ray.training.advantages import ancestors, ggpo_keep, group_advantages
from vrag_ray.training.algorithms.credit_assignment import ALGORITHMS
from vrag_ray.training.algorithms.loss import Counts, loss
from vrag_ray.training.losses import Denominator, policy_loss
from vrag_ray.training.rewards.reward import RewardWeights, mixed, places_by_node
from vrag_ray.types import FamilyName

Graph = dict[str, list[str]]
NAMES = "abcdefgh"
names = st.sampled_from(NAMES)
graphs = st.dictionaries(names, st.lists(names, max_size=4), min_size=1, max_size=8)


# The mask is invariant to the order of segments and to edges that are none; cycles end.
@settings(deadline=None)
@given(graphs, st.booleans(), st.sets(names), st.randoms())
def test_edges_that_are_none_and_the_order_of_segments_change_nothing(
    graph: Graph, success: bool, valuable: set[str], dice: random.Random
):
    nodes, answer = list(graph), list(graph)[-1]
    odd = {
        node: [*parents, *parents, node, "nobody", *nodes[place:]]
        for place, (node, parents) in enumerate(graph.items())
    }
    keep = dict(zip(nodes, ggpo_keep(graph, answer, success, valuable, nodes), strict=True))
    assert dict(zip(nodes, ggpo_keep(odd, answer, success, valuable, nodes), strict=True)) == keep
    shuffled = dice.sample(nodes, len(nodes))
    assert dict(zip(shuffled, ggpo_keep(graph, answer, success, valuable, shuffled), strict=True)) == keep
    assert ancestors(dict.fromkeys(nodes, nodes), answer) == set(nodes)


# An edge into the answer's ancestors adds its parent's ancestors and nothing else; no edge changes a failure's mask.
@settings(deadline=None)
@given(graphs, st.integers(0, 7), st.integers(0, 7), st.sets(names))
def test_an_edge_can_only_shrink_the_mask_of_a_success(graph: Graph, first: int, second: int, valuable: set[str]):
    nodes, answer = list(graph), list(graph)[-1]
    places = sorted((first % len(nodes), second % len(nodes)))
    assume(places[0] != places[1])
    parent, child = (nodes[place] for place in places)
    more = {**graph, child: [*graph[child], parent]}
    before = ancestors(graph, answer)
    assert ancestors(more, answer) == before | (ancestors(graph, parent) if child in before else set())
    assert ggpo_keep(more, answer, False, valuable, nodes) == ggpo_keep(graph, answer, False, valuable, nodes)


# A chain masks nothing of a success.
@settings(deadline=None)
@given(st.integers(1, 8))
def test_a_chain_that_succeeded_is_learnt_whole(length: int):
    chain = {"root": []} | {f"n{place}": [f"n{place - 1}" if place else "root"] for place in range(length)}
    chain["answer"] = [f"n{length - 1}"]
    assert all(ggpo_keep(chain, "answer", True, set(), list(chain)[1:]))


# The answer is never masked, and a mask takes whole segments.
@settings(deadline=None)
@given(graphs, st.booleans(), st.sets(names))
def test_the_answer_is_always_learnt(graph: Graph, success: bool, valuable: set[str]):
    answer = list(graph)[-1]
    assert ggpo_keep(graph, answer, success, valuable | {answer}, [answer, None, answer])[::2] == [True, True]


# A mask takes whole segments.
def test_a_masked_segment_is_masked_in_every_token_and_a_kept_one_in_none():
    batch = random_batch()
    _, gradient = outcome(batch, wide(clip_low=0.99, clip_high=9.0))
    assert torch.equal(gradient != 0, batch["token_mask"] & batch["keep"].bool().unsqueeze(1))


# The two terms of VimRAG's eq. 11 are each of them blind to what the other looks at.
@settings(deadline=None)
@given(graphs, graphs, st.sets(names), st.sets(names))
def test_a_success_is_judged_by_its_graph_and_a_failure_by_what_it_found(
    graph: Graph, other: Graph, valuable: set[str], more: set[str]
):
    nodes, answer = list(graph), list(graph)[-1]
    path = ancestors(graph, answer)
    masked = {r: [not keep for keep in ggpo_keep(graph, answer, r, valuable, nodes)] for r in (True, False)}
    assert masked[True] == [node not in path for node in nodes]
    assert masked[False] == [node in valuable and node != answer for node in nodes]
    assert ggpo_keep(graph, answer, True, more, nodes) == [not is_masked for is_masked in masked[True]]
    assert ggpo_keep(other, answer, False, valuable, nodes) == [not is_masked for is_masked in masked[False]]


# A failure's mask is node by node.
@settings(deadline=None)
@given(graphs, st.sets(names), names)
def test_masking_a_search_leaves_its_parents_and_children_alone(graph: Graph, valuable: set[str], node: str):
    nodes, answer = list(graph), list(graph)[-1]
    assume(node != answer)
    with_it, without = (
        ggpo_keep(graph, answer, False, finds, nodes) for finds in (valuable | {node}, valuable - {node})
    )
    assert {name for name, before, after in zip(nodes, with_it, without, strict=True) if before != after} == {
        node
    } & set(nodes)


# The verdict decides the mask, not the shaped reward.
def test_other_weights_of_the_reward_leave_the_mask():
    graph = {"root": [], "a": ["root"], "b": ["root"], "answer": ["a"]}
    weights = [RewardWeights(), RewardWeights(0.1, 0.8, 0.1), RewardWeights(0.0, 0.0, 1.0)]
    for answer, expected in ((1.0, (True, False, True)), (0.0, (False, True, True))):
        rewards = [mixed(answer, 0.4, well_formed, weight) for weight in weights for well_formed in (True, False)]
        assert len({reward.total for reward in rewards}) > 2
        assert {tuple(ggpo_keep(graph, "answer", reward.success, {"a"}, list(graph)[1:])) for reward in rewards} == {
            expected
        }


# The mask is a pure function of what the log of the rollout holds, without a gradient.
@pytest.mark.parametrize("success", [True, False])
def test_the_mask_is_recomputed_from_a_stored_run(success: bool):
    policy = Watcher(
        AddSearchNode(id="a", parent_ids=("root",), query="units sold by region"),
        SummarizeAndMemorize(summarize=""),
        AddSearchNode(id="b", parent_ids=("root",), query="visitors of the museum"),
        SummarizeAndMemorize(summarize=""),
        AddAnswerNode(parent_ids=("b",), answer="15"),
    )
    record = run_to_end(policy, library(), config=AgentConfig(search_top_k=1))[0].record()

    def keep(run: RunRecord) -> list[bool]:
        graph = {node.id: list(node.parents) for node in run.graph.nodes}
        gold = places_by_node(run)["a"][0]
        valuable = {node for node, pages in places_by_node(run).items() if gold in pages}
        return ggpo_keep(graph, "answer", success, valuable, ["a", "b", None, "answer"])

    assert keep(record) == keep(RunRecord.from_json(record.to_json())) == [False, True, not success, True]
    batch = random_batch()
    flags = batch["keep"].double().requires_grad_()
    assert loss(**(batch | {"keep": flags}), algorithm=wide(), counts=Counts(9, 7, 20)).total.grad_fn is None
    assert flags.grad is None


# With a mask that takes nothing the loss is the segment-level baseline bit for bit.
def test_without_anything_to_mask_ggpo_is_gspo_over_segments():
    chain = {"root": [], "a": ["root"], "b": ["a"], "answer": ["b"]}
    segments = ["a", "b", "answer"]
    keep = [is_kept for r in (True, False, False) for is_kept in ggpo_keep(chain, "answer", r, set(), segments)]
    batch = random_batch()
    mine = outcome(batch | {"keep": torch.tensor(keep)}, ALGORITHMS["ggpo"])
    baseline = outcome(batch | {"keep": torch.ones(9)}, ALGORITHMS["gspo_segments"])
    assert mine[0] == baseline[0]
    assert torch.equal(mine[1], baseline[1])
    assert outcome(batch, ALGORITHMS["ggpo"])[0] != baseline[0]


# With one segment a trajectory the loss is GSPO's eq. 5 and, with a token's ratio, GRPO, k3 included.
@pytest.mark.parametrize(("ratio", "kl"), [("geo", 0.0), ("token", 0.0), ("token", 0.04), ("geo", 0.04)])
def test_without_graph_and_mask_the_plain_algorithms_are_left(ratio: str, kl: float):
    batch = random_batch() | {"keep": torch.ones(9)}
    new = batch["logp_new"].clone().requires_grad_()
    objective = torch.zeros((), dtype=torch.float64)
    for row, advantage in enumerate(batch["advantages"]):
        spoken = batch["token_mask"][row]
        delta = (new[row] - batch["logp_old"][row])[spoken]
        weight = delta.mean().exp() if ratio == "geo" else delta.exp()
        term = torch.minimum(weight * advantage, weight.clamp(0.8, 1.2) * advantage)
        gap = (batch["logp_reference"][row] - new[row])[spoken]
        objective = objective + (term - kl * (gap.exp() - gap - 1)).mean() / 9
    objective.backward()
    value, gradient = outcome(batch, wide(ratio, kl=kl))
    assert new.grad is not None
    assert value == pytest.approx(-objective.item(), abs=1e-12)
    assert torch.allclose(gradient, -new.grad, rtol=0, atol=1e-12)


# Tokens, log-probs and length of a masked segment are nothing to the loss.
@pytest.mark.parametrize("denominator", list(Denominator))
@pytest.mark.parametrize("ratio", RATIOS)
def test_a_masked_segment_may_be_of_any_length(ratio: str, denominator: Denominator):
    batch, algorithm = random_batch(), wide(ratio, denominator=denominator, kl=0.1)
    masked = ~batch["keep"].bool()
    longer = {key: torch.nn.functional.pad(batch[key], (0, 4)) for key in batch if batch[key].dim() == 2}
    for key, value in longer.items():
        value[masked] = True if key == "token_mask" else math.nan
    value, gradient = outcome(batch, algorithm)
    other, wider = outcome(batch | longer, algorithm)
    assert other == value
    assert torch.equal(wider[:, :5], gradient)
    assert not wider[:, 5:].any()


# Cutting a trajectory into more segments changes no advantage; equal rewards move nothing.
def test_advantages_are_of_trajectories_however_they_are_cut():
    rewards = torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64)
    for cuts in ([1, 1, 1], [5, 1, 2]):
        spread = group_advantages(rewards)[0].repeat_interleave(torch.tensor(cuts))
        of_each = [part[0].item() for part in spread.split(cuts)]
        assert of_each == pytest.approx([1.1546985, -0.5773493, -0.5773493], abs=1e-6)
    for equal in (torch.full((3, 3), 0.7, dtype=torch.float64), torch.rand((9, 1), dtype=torch.float64)):
        batch = random_batch() | {"advantages": group_advantages(equal).flatten()}
        value, gradient = outcome(batch, wide())
        assert value == 0
        assert not gradient.any()


# What the policy did not say is nothing to the loss.
@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("junk", [3.0, math.nan, math.inf])
def test_tokens_of_others_are_nothing_to_the_loss(ratio: str, junk: float):
    batch, algorithm = random_batch(), wide(ratio, kl=0.1)
    spoilt = {key: batch[key].masked_fill(~batch["token_mask"], junk) for key in batch if key.startswith("logp")}
    (value, gradient), (other, spoilt_gradient) = outcome(batch, algorithm), outcome(batch | spoilt, algorithm)
    assert other == value
    assert torch.equal(spoilt_gradient, gradient)


# A prompt stays as it was at its step, graph and pictures included.
def test_a_prompt_does_not_change_when_the_run_goes_on():
    keep = MemorizeEntry(information_id="Picture 1", is_useful=True, priority_score=3)
    search = AddSearchNode(id="a", parent_ids=("root",), query="units sold by region")
    again = AddSearchNode(id="b", parent_ids=("a",), query="visitors of the museum")
    remember = SummarizeAndMemorize(summarize="15", memorize=(keep,))
    policy = Watcher(search, remember, again, remember, AddAnswerNode(parent_ids=("b",), answer="15"))
    run_to_end(policy, library())
    assert [policy.protocol.messages(prompt) for prompt in policy.prompts] == policy.chats
    assert [len(prompt.graph.nodes) for prompt in policy.prompts] == [1, 2, 2, 3, 3]
    assert len(set(map(repr, policy.chats))) == 5


# One step moves the log-prob neither of a winner's dead end nor of a loser's good search.
def test_dead_ends_of_winners_are_not_reinforced_nor_good_searches_of_losers_punished():
    winner = ({"root": [], "good": ["root"], "dead": ["root"], "answer": ["good"]}, True, ["good", "dead", "answer"])
    loser = ({"root": [], "vague": ["root"], "gold": ["vague"], "answer": ["gold"]}, False, ["vague", "gold", "answer"])
    states, actions = torch.tensor([0, 1, 2, 0, 1, 2]), torch.tensor([0, 1, 0, 1, 0, 1])
    dead, gold = (1, 1), (1, 0)
    advantage = group_advantages(torch.tensor([[1.0, 0.0]], dtype=torch.float64))[0].repeat_interleave(3)
    masks = [ggpo_keep(graph, "answer", success, {"gold"}, nodes) for graph, success, nodes in (winner, loser)]

    def change(keep: torch.Tensor) -> torch.Tensor:
        theta = torch.zeros(3, 2, dtype=torch.float64, requires_grad=True)
        logp = torch.log_softmax(theta, 1)
        chosen = logp[states, actions].unsqueeze(1)
        policy_loss(chosen, chosen.detach(), advantage, torch.ones(6, 1), keep, clip_low=0.2, clip_high=0.2).backward()
        assert theta.grad is not None
        return torch.log_softmax(theta.detach() - 0.5 * theta.grad, 1) - logp.detach()

    baseline, ggpo = change(torch.ones(6)), change(torch.tensor(masks[0] + masks[1]))
    assert baseline[dead] > 0 > baseline[gold]
    assert ggpo[dead] == ggpo[gold] == 0
    assert ggpo[0, 0] == baseline[0, 0] > 0


# The golden group, from graphs and verdicts to value and gradient.
@pytest.mark.parametrize(("masked", "ratio", "denominator"), GOLDEN_LOSSES)
def test_the_golden_group_from_its_graphs(masked: bool, ratio: str, denominator: str):
    runs = [
        ({"root": [], "a": ["root"], "b": ["root"], "answer": ["a"]}, True, ["a", "b", "answer"]),
        ({"root": [], "s": ["root"], "answer": ["s"]}, False, ["s", "answer"]),
        ({"root": [], "answer": ["root"]}, False, ["answer"]),
    ]
    keep = [
        not masked or is_kept for graph, r, nodes in runs for is_kept in ggpo_keep(graph, "answer", r, {"s"}, nodes)
    ]
    theta = torch.tensor([0.1, -0.1, 0.0], dtype=torch.float64, requires_grad=True)
    batch = golden_batch(theta) | {"keep": torch.tensor(keep)}
    counts = Counts.of(batch["token_mask"], batch["keep"])
    total = loss(**batch, algorithm=wide(ratio, denominator=denominator), counts=counts).total
    total.backward()
    value, gradient = GOLDEN_LOSSES[masked, ratio, denominator]
    assert -total.item() == pytest.approx(value, abs=1e-6)
    assert theta.grad is not None
    assert (-theta.grad).tolist() == pytest.approx(gradient, abs=1e-6)


# Energy rises with score, with recency, and with each child, which need not hold a picture.
def test_energy_rises_with_score_age_and_children():
    def energy(memory: MemoryGraph, node: str = "a", **rates: float) -> float:
        items = energies(memory, **({"decay": 0.1, "feedback": 0.3} | rates))
        return next(item.energy for item in items if item.node_id == node)

    by_score = [energy(graph_of(("a", ("root",), (score,)), ("b", ("a",), (3,)))) for score in range(1, 6)]
    assert by_score == sorted(set(by_score))
    leaves = graph_of(*((name, ("root",), (3,)) for name in "abcd"))
    by_age = [energy(leaves, name) for name in "abcd"]
    assert by_age == sorted(set(by_age))
    assert len({energy(leaves, name, decay=0.0) for name in "abcd"}) == 1

    def family(*parents: str, held: tuple[int, ...]) -> float:
        return energy(graph_of(("a", ("root",), (3,)), *((f"c{n}", (up,), held) for n, up in enumerate(parents))))

    for held in ((), (2,)):
        by_children = [family(*("a",) * n, *("root",) * (3 - n), held=held) for n in range(4)]
        assert by_children == sorted(set(by_children))
    assert family("a", "a", held=(2,)) > family("a", "a", held=())


# One picture gets all pixels; no energy gives no budget.
def test_one_picture_gets_all_pixels_and_no_energy_none():
    assert [
        pixel_budget.pixels
        for pixel_budget in pixel_budgets(energies(graph_of(("a", ("root",), (1,))), decay=0.1, feedback=0.3), 999)
    ] == [999]
    assert pixel_budgets((ItemEnergy("a", 0, 0.0, 0.0), ItemEnergy("a", 1, 0.0, 0.0)), 999) == ()


# Budgets are shares, and equals keep the order of nodes and items.
@settings(deadline=None)
@given(st.lists(st.floats(0.01, 10.0), min_size=1, max_size=6), st.floats(0.1, 10.0))
def test_scaling_every_score_leaves_the_budgets(values: list[float], scale: float):
    plain, scaled = (
        pixel_budgets([ItemEnergy("a", n, value, value * by) for n, value in enumerate(values)], 10**6)
        for by in (1.0, scale)
    )
    assert all(abs(item.pixels - scaled_item.pixels) <= 1 for item, scaled_item in zip(plain, scaled, strict=True))


# Equals keep the order of nodes and items.
def test_of_equals_the_earlier_node_and_item_is_kept():
    memory = graph_of(("b", ("root",), (3, 3)), ("a", ("root",), (3, 3)))
    best = strongest(energies(memory, decay=0.0, feedback=0.3), 3)
    assert [(item.node_id, item.index) for item in best] == [("b", 0), ("b", 1), ("a", 0)]


# What is sent has whole patches and at most its budget; no minimum enlarges it after the cut.
@pytest.mark.parametrize("family", list(FamilyName))
@pytest.mark.parametrize("total", [0, 2_000, 30_000, 500_000])
def test_the_pixels_that_are_sent_are_within_budget(family: FamilyName, total: int):
    patch = FAMILIES[family].patch
    allotments = pixel_budgets(strongest(energies(GOLDEN_GRAPH, decay=0.1, feedback=0.3), 5), total)
    budgets = {f"{allotment.node_id}#{allotment.index + 1}": allotment.pixels for allotment in allotments}
    views = remembered_views(GOLDEN_GRAPH, allotments, FAMILIES[family])
    assert set(views) == {name for name, pixels in budgets.items() if pixels >= patch**2}
    for raw in ((40, 30), (700, 500), (90, 1500)):
        png = io.BytesIO()
        Image.new("RGB", raw).save(png, "PNG")
        for name, view in views.items():
            size = model_size(Size(*raw), patch=patch, min_pixels=view.min_pixels, max_pixels=view.max_pixels)
            sent = size_of(fitted(png.getvalue(), size))
            assert sent.pixels <= budgets[name]
            assert sent.width % patch == sent.height % patch == 0
