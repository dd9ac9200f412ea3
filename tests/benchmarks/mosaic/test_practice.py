"""Practice runs teach the questions that the agent will get, in pictures and words of no world."""

from __future__ import annotations

import re
from itertools import islice

from benchmarks.mosaic.practice import BOTH, before_its_eyes, from_memory, practice
from benchmarks.mosaic.world.agent import mosaic_protocol
from benchmarks.mosaic.world.questions import Kind, understood
from vrag_ray.agent.chat import ImagePart


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


def test_easy_decisions_are_thinned_out_by_kind_and_all_that_a_note_leads_to_stay():
    calls = list(islice(from_memory(practice(seed=2, size=BOTH)), 200))
    thinned = list(from_memory(calls, every=4))
    search = '"add_search_node"'
    kinds = (
        ("led", lambda call: search in call.reply and len(call.prompt.graph.nodes) > 1, 1),
        ("first", lambda call: search in call.reply and len(call.prompt.graph.nodes) == 1, 4),
        ("answer", lambda call: search not in call.reply, 4),
    )
    for name, belongs, every in kinds:
        before, after = sum(map(belongs, calls)), sum(map(belongs, thinned))
        assert before > 20, name
        assert after == before // every, name


def test_a_call_is_either_a_look_or_a_decision_from_memory():
    calls = list(islice(practice(seed=2), 60))
    looks, decisions = list(before_its_eyes(calls)), list(from_memory(calls))
    assert [call for call in calls if call in looks or call in decisions] == calls
    assert len(looks) + len(decisions) == len(calls)
    assert {re.findall(r'"name": "(\w+)"', call.reply)[0] for call in looks} == {"crop", "summarize_and_memorize"}


def test_without_noise_every_practice_run_answers_with_what_its_last_note_says():
    answers = 0
    for call in islice(practice(seed=1), 300):
        if match := re.search(r'"answer": "(\w+)"', call.reply):
            answers += 1
            assert call.prompt.graph.nodes[-1].summary.endswith(f" {match[1]}")
    assert answers > 50
