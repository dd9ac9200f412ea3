"""The engine that lives in a training worker, in a process of its own. Whole runs are in ``tests/e2e/learning``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TypedDict

import pytest

from tests.support.paths import ROOT
from tests.support.tiny_vllm import VLLM_ENVIRONMENT, needs_vllm

# Quick form: ``tests/e2e/learning/test_rl``, whose rollouts are by such an engine.
pytestmark = [*needs_vllm, pytest.mark.exhaustive]


class Talks(TypedDict):
    alone: list[list[int]]
    crowd: list[list[int]]
    left: bool


class Fault(TypedDict):
    whole: int
    ends: list[str]


class Turns(TypedDict):
    done: list[str]
    refused: list[str]


class EngineReport(TypedDict):
    turns: Turns
    refused: str
    replies: list[list[float]]
    kept: dict[str, list[int]]
    words: list[tuple[str, str]]
    talks: Talks
    fault: Fault


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> EngineReport:
    """What ``run_colocated.py`` prints."""
    from tiny_model import save_tiny_model

    model = tmp_path_factory.mktemp("model")
    save_tiny_model(model, seed=0)
    script = ROOT / "tests/support/run_colocated.py"
    done = subprocess.run(
        [sys.executable, str(script), str(model)],
        env=os.environ | VLLM_ENVIRONMENT | {"PYTHONPATH": os.pathsep.join((str(ROOT), *sys.path))},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    printed: EngineReport = json.loads(done.stdout.splitlines()[-1])
    return printed


def test_the_pictures_of_a_refused_prompt_are_seen_in_the_next_one(report: EngineReport) -> None:
    assert "252 text tokens and 2 pictures" in report["refused"]
    seen, again, swapped, *_ = report["replies"]
    assert seen == pytest.approx(again, abs=1e-4)
    assert seen[0] != pytest.approx(swapped[0], abs=1e-3)


def test_a_prompt_that_was_kept_is_answered_the_same_when_vllm_has_forgotten_its_pictures(report: EngineReport) -> None:
    seen, _, _, forgotten, _ = report["replies"]
    assert forgotten == pytest.approx(seen, abs=1e-4)


def test_the_engine_takes_the_device_back_in_parts_each_after_the_trainer_gave_back_what_it_had_cached(
    report: EngineReport,
) -> None:
    assert report["turns"]["done"] == [
        "sleep 2",
        "release",
        "wake weights",
        "reload_weights",
        "release",
        "wake kv_cache, whole",
        # An engine that is awake takes new weights as it is.
        "reload_weights",
    ]
    without, early, half = report["turns"]["refused"]
    assert without == half == "the engine sleeps, or has no weights since it slept: wake it and load weights first"
    assert early == "the engine slept and has no weights: load weights before it wakes"
    seen, *_, woken = report["replies"]
    assert woken == pytest.approx(seen, abs=1e-4)


def test_a_prompt_is_rendered_once_for_the_samples_of_its_group_and_anew_with_other_pictures(
    report: EngineReport,
) -> None:
    assert report["kept"]["seen"] == [1, 1, 2, 3, 3, 3]
    assert report["kept"]["forgotten"] == [1, 1]


def test_prompts_are_kept_within_their_bound_and_the_last_one_always(report: EngineReport) -> None:
    assert report["kept"]["room for both"] == [1, 2, 2, 2]
    assert report["kept"]["room for one"] == [1, 2, 2, 3, 3]
    assert report["kept"]["room for none"] == [1, 1, 2, 2, 3]
    # Two prompts fit, of which the words were used last.
    assert report["kept"]["the longest unused goes"] == [1, 2, 2, 3, 3]


def test_a_reply_reads_as_if_vllm_had_put_its_words_together_token_by_token(report: EngineReport) -> None:
    by_vllm, by_engine = zip(*report["words"], strict=True)
    assert by_engine == by_vllm
    assert len(set(by_engine)) == len(by_engine)
    # Replies of random tokens, with characters that are not whole in them: those are where the two could differ.
    assert any("\ufffd" in words for words in by_engine)


def test_runs_that_wait_for_a_place_say_what_they_say_alone_also_when_one_of_them_leaves(report: EngineReport) -> None:
    talks = report["talks"]
    assert talks["left"]
    assert talks["crowd"] == talks["alone"]
    assert len({tuple(tokens[:5]) for tokens in talks["crowd"]}) > 1


def test_an_engine_that_fails_takes_with_it_only_the_replies_that_are_not_whole(report: EngineReport) -> None:
    ends = report["fault"]["ends"]
    assert 0 < report["fault"]["whole"] < len(ends)
    assert ends.count("") == report["fault"]["whole"]
    assert set(ends) == {"", "the engine failed: out of memory"}
