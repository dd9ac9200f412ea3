"""What GGPO promises of its mask, its loss and its memory: each property with the tests that show it."""

from __future__ import annotations

from tests.support.paths import ROOT

ADVANTAGES = "training/test_advantages.py"
CREDIT = "training/algorithms/test_credit_assignment.py"
ENERGY = "agent/memory/test_energy.py"
GGPO = "training/algorithms/test_ggpo.py"
LEARNER = "training/trainer/test_learner.py"
LOSS = "training/algorithms/test_loss.py"
LOSSES = "training/test_losses.py"

PROPERTIES = {
    "the answer rests on all its ancestors and on nothing else": [
        f"{ADVANTAGES}::test_the_answer_rests_on_all_its_ancestors_and_on_nothing_else"
    ],
    "names, the order of segments and edges that are none change no mask": [
        f"{ADVANTAGES}::test_renaming_nodes_and_ordering_parents_change_nothing",
        f"{ADVANTAGES}::test_parents_that_are_none_have_no_effect",
        f"{GGPO}::test_edges_that_are_none_and_the_order_of_segments_change_nothing",
    ],
    "an edge can only shrink the mask of a success": [f"{GGPO}::test_an_edge_can_only_shrink_the_mask_of_a_success"],
    "a chain masks nothing of a success, an answer on the root alone masks all but itself": [
        f"{ADVANTAGES}::test_an_answer_on_the_root_alone_keeps_only_itself",
        f"{GGPO}::test_a_chain_that_succeeded_is_learnt_whole",
    ],
    "the answer is never masked, and a mask takes whole segments": [
        f"{GGPO}::test_the_answer_is_always_learnt",
        f"{GGPO}::test_a_masked_segment_is_masked_in_every_token_and_a_kept_one_in_none",
    ],
    "a success is judged by its graph alone, a failure by what it found": [
        f"{GGPO}::test_a_success_is_judged_by_its_graph_and_a_failure_by_what_it_found"
    ],
    "a failure's mask is node by node": [
        f"{GGPO}::test_masking_a_search_leaves_its_parents_and_children_alone",
    ],
    "the verdict decides the mask, not the shaped reward": [
        f"{GGPO}::test_other_weights_of_the_reward_leave_the_mask",
    ],
    "a mask is a pure function of what is stored, without a gradient": [
        f"{GGPO}::test_the_mask_is_recomputed_from_a_stored_run",
        f"{CREDIT}::test_lessons_can_be_made_again_from_what_was_stored",
    ],
    "with a mask that takes nothing the loss is the segment-level baseline": [
        f"{GGPO}::test_without_anything_to_mask_ggpo_is_gspo_over_segments"
    ],
    "with one segment a trajectory the loss is that of GSPO or GRPO": [
        f"{GGPO}::test_without_graph_and_mask_the_plain_algorithms_are_left"
    ],
    "what a masked segment holds is nothing to the loss": [
        f"{GGPO}::test_a_masked_segment_may_be_of_any_length",
        f"{LOSSES}::test_what_is_masked_is_inert",
        f"{LEARNER}::test_what_a_masked_segment_holds_changes_nothing",
    ],
    "advantages are of trajectories, however they are cut": [
        f"{GGPO}::test_advantages_are_of_trajectories_however_they_are_cut",
        f"{CREDIT}::test_an_advantage_does_not_depend_on_how_many_segments_a_run_has",
    ],
    "the denominator only rescales, and workers and micro-batches share it": [
        f"{LOSS}::test_dividing_by_kept_segments_only_rescales",
        f"{LOSS}::test_workers_that_share_their_counts_have_the_gradient_of_one",
    ],
    "on-policy no ratio differs and nothing is clipped": [
        f"{LOSS}::test_on_policy_no_ratio_differs_and_nothing_is_clipped",
        f"{LEARNER}::test_the_first_step_on_a_batch_is_on_policy",
    ],
    "clipping stops only what has gone far enough": [
        f"{LOSSES}::test_clipping_stops_only_what_has_gone_far_enough",
    ],
    "what the policy did not say is only the condition of what it said": [
        f"{GGPO}::test_tokens_of_others_are_nothing_to_the_loss",
        f"{GGPO}::test_a_prompt_does_not_change_when_the_run_goes_on",
        "training/trainer/test_batch.py::test_what_is_scored_are_the_samplers_tokens_and_no_others",
        "training/trainer/test_scorer.py::test_only_the_places_before_reply_tokens_carry_a_gradient",
    ],
    "the KL term is masked, never negative, and flat where policies agree": [
        f"{LOSS}::test_the_kl_term_is_masked_and_vanishes_where_policies_agree",
        f"{LOSSES}::test_k3_is_never_negative_and_flat_where_policies_agree",
        f"{LEARNER}::test_a_reference_of_the_same_weights_pulls_nowhere",
    ],
    "the order of trajectories and groups does not matter": [f"{LOSS}::test_the_order_of_a_batch_does_not_matter"],
    "for segments of one token the ratios are the same": [
        f"{LOSSES}::test_for_segments_of_one_token_the_ratios_are_the_same"
    ],
    "dead ends of winners are not reinforced, good searches of losers not punished": [
        f"{GGPO}::test_dead_ends_of_winners_are_not_reinforced_nor_good_searches_of_losers_punished"
    ],
    "energies and budgets of the golden graph are the golden ones": [
        f"{ENERGY}::test_intrinsic_and_reinforced_energies_match_the_golden_vectors",
        f"{ENERGY}::test_pixel_budgets_match_the_golden_vectors",
    ],
    "energy rises with score, with recency and with each child": [
        f"{ENERGY}::test_without_feedback_only_the_intrinsic_energy_is_left",
        f"{GGPO}::test_energy_rises_with_score_age_and_children",
    ],
    "budgets use up the total, and no energy gives none": [
        f"{ENERGY}::test_budgets_never_exceed_the_total_and_lose_less_than_a_pixel_an_item",
        f"{ENERGY}::test_nothing_remembered_means_no_budget",
        f"{GGPO}::test_one_picture_gets_all_pixels_and_no_energy_none",
    ],
    "budgets are shares, and equals keep the order of nodes and items": [
        f"{GGPO}::test_scaling_every_score_leaves_the_budgets",
        f"{GGPO}::test_of_equals_the_earlier_node_and_item_is_kept",
    ],
    "a picture that is sent has whole patches and at most its budget": [
        f"{GGPO}::test_the_pixels_that_are_sent_are_within_budget",
        "imaging/test_coordinates.py::test_a_model_size_is_whole_patches_within_the_budget",
        "agent/protocols/test_graph_chat.py::test_only_the_strongest_pictures_stay_in_view_each_within_its_share",
        "e2e/test_vimrag.py::test_a_whole_vimrag_run_searches_crops_memorises_prunes_and_answers_exactly",
    ],
}


def test_every_property_has_its_test():
    assert len(PROPERTIES) == 26
    for promise, places in PROPERTIES.items():
        assert places, promise
        for place in places:
            file, name = place.split("::")
            assert f"def {name}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), f"{place} is no more"
