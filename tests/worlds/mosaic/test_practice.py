"""Practice runs teach what the agent will be asked, in pictures and words of no world."""

from __future__ import annotations

import re
from itertools import islice

from vrag_ray.agent.chat import ImagePart
from vrag_ray.worlds.mosaic.agent import mosaic_protocol
from vrag_ray.worlds.mosaic.practice import BOTH, from_memory, practice
from vrag_ray.worlds.mosaic.questions import Kind, understood


def test_the_same_seed_gives_the_same_calls_and_another_one_others():
    assert list(islice(practice(seed=3, noise=0.3), 60)) == list(islice(practice(seed=3, noise=0.3), 60))
    assert list(islice(practice(seed=3), 8)) != list(islice(practice(seed=4), 8))


def test_all_kinds_of_questions_are_practised_in_ever_new_worlds():
    tasks = [understood(call.prompt.question) for call in islice(practice(seed=0), 400)]
    assert {task.kind for task in tasks} == set(Kind)
    assert len({task.page for task in tasks}) > 40


def test_a_decision_from_memory_shows_no_picture():
    protocol = mosaic_protocol()
    calls = list(islice(from_memory(practice(seed=0)), 40))
    parts = [part for call in calls for message in protocol.messages(call.prompt) for part in message.parts]
    assert not any(isinstance(part, ImagePart) for part in parts)
    assert {re.findall(r'"name": "(\w+)"', call.reply)[0] for call in calls} == {"add_search_node", "add_answer_node"}


def test_easy_decisions_can_be_thinned_out_and_those_that_a_note_leads_to_all_stay():
    calls = list(islice(from_memory(practice(seed=2, size=BOTH)), 200))
    thinned = list(from_memory(calls, every=4))
    led = [call for call in calls if len(call.prompt.graph.nodes) > 1 and '"add_search_node"' in call.reply]
    assert [call for call in thinned if call in led] == led
    assert len(thinned) - len(led) == (len(calls) - len(led)) // 4


def test_without_noise_every_practice_run_answers_with_what_its_last_note_says():
    answers = 0
    for call in islice(practice(seed=1), 300):
        if found := re.search(r'"answer": "(\w+)"', call.reply):
            answers += 1
            assert call.prompt.graph.nodes[-1].summary.endswith(f" {found[1]}")
    assert answers > 50
