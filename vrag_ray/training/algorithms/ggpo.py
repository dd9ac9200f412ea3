"""GGPO: the segments that the memory graph denies a share in the outcome are masked (VimRAG, arXiv 2602.12735, eq. 11).

The mask itself is ``advantages.ggpo_keep``; its halves and ``ggpo_first_find`` are variants (docs/research/ggpo.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from vrag_ray.training.advantages import ggpo_keep
from vrag_ray.training.algorithms.algorithm import Algorithm, Credit, SegmentCredit, run_advantages
from vrag_ray.training.algorithms.gspo import of_sequences
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.trajectory import Trajectory

PRESETS = {
    # VimRAG's eq. 12, divided by all segments; it states neither ratio nor clip, so those of its baseline.
    "ggpo": of_sequences(Credit.GGPO),
    # Ours: the mask spares searches whose elements the answer cites, where they meet gold boxes.
    "ggpo_cited": of_sequences(Credit.GGPO, cited_elements=True),
    # Ours (docs/research/ggpo.md): the mask without its cost.
    "ggpo_first_find": of_sequences(Credit.GGPO_FIRST_FIND),
}


def assign(
    groups: Sequence[Sequence[Trajectory]], algorithm: Algorithm, _ranks: Collectives
) -> list[list[SegmentCredit]]:
    """The run's advantage for each of its segments; those that the mask takes out are not kept."""
    runs = [run for group in groups for run in group]
    return [
        [SegmentCredit(advantage, keep) for keep in mask(run, algorithm)]
        for run, advantage in zip(runs, run_advantages(groups, algorithm), strict=True)
    ]


def mask(run: Trajectory, algorithm: Algorithm) -> list[bool]:
    """Which segments of a run keep their gradient; all of them, for a credit that masks none of its kind.

    With ``algorithm.cited_elements`` a search from which the answer cites an element that meets a gold box
    (``run.cited``) is no dead end. In a success the citation is an edge to the answer, beside the parents that the
    policy declared: ``P_ans`` gains the search and its ancestors. In a failure ``R_val`` is ``run.found`` and
    ``run.cited`` together, so the search is spared even where its results hold no gold page by their keys.
    """
    nodes = [segment.node for segment in run.segments]
    if not masks(algorithm.credit, run.reward.success):
        return [True] * len(nodes)
    parents, gold_by_node = run.parents, run.found
    if algorithm.cited_elements:
        gold_by_node = {
            node: run.found.get(node, frozenset()) | run.cited.get(node, frozenset())
            for node in (*run.found, *run.cited)
        }
        if run.answer_id is not None:
            parents = {**parents, run.answer_id: [*parents[run.answer_id], *run.cited]}
    valuable = (
        first_finds(gold_by_node, nodes) if algorithm.credit is Credit.GGPO_FIRST_FIND else frozenset(gold_by_node)
    )
    return ggpo_keep(parents, run.answer_id, run.reward.success, valuable, nodes)


def masks(credit: Credit | str, success: bool) -> bool:
    """Whether the mask applies to a trajectory of this verdict; else all its segments are kept."""
    if credit in (Credit.GGPO, Credit.GGPO_FIRST_FIND):
        return True
    return credit is (Credit.GGPO_POSITIVE if success else Credit.GGPO_NEGATIVE)


def first_finds(gold_by_node: Mapping[str, Set[int]], segment_nodes: Sequence[str | None]) -> frozenset[str]:
    """The nodes whose search brought a gold page that no node before them had brought.

    ``gold_by_node`` holds the gold pages by node. As ``valuable`` of ``advantages.ggpo_keep`` it spares, in a failure,
    the find and not its repetition: searching again for what is there already keeps its price.
    """
    known: set[int] = set()
    first: set[str] = set()
    for node in segment_nodes:
        new = set(gold_by_node.get(node, ())) - known if node is not None else set()
        if new and node is not None:
            first.add(node)
        known |= new
    return frozenset(first)
