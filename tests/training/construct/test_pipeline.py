"""Construction on real Ray Data against real HTTP: scripted experts, a scripted judge and a small gateway."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from tests.support.evidence_stub import evidence_stub
from tests.support.judge_stub import JudgeStub, case_of, judge_stub
from tests.support.openai_stub import Body, Say, Stub, openai_stub, texts_of
from tests.support.paths import ROOT
from tests.support.patience import HANGS_AFTER_S
from tests.support.train_double import TrainDouble
from vrag_ray.agent.events import CropEvent
from vrag_ray.agent.protocols.tags import TagsProtocol
from vrag_ray.cli.main import main, make_app
from vrag_ray.policies.llm.vllm_prompt import ChatFormat
from vrag_ray.questions.examples import Example, GoldPage
from vrag_ray.questions.files import load_examples, save_examples
from vrag_ray.training.construct.config import ConstructConfig
from vrag_ray.training.construct.experts import Turns
from vrag_ray.training.construct.pipeline import ConstructReport, Outcome, construct
from vrag_ray.training.construct.store import ConstructStore
from vrag_ray.training.sft_replies import read_replies
from vrag_ray.training.trainer.image_processing import Pixels
from vrag_ray.types import VragError

pytestmark = pytest.mark.usefixtures("local_ray")
PLANNER, GROUNDER = "planner-72b", "grounder-72b"


def example(uid: str) -> Example:
    return Example(uid=uid, question=f"How many units did North sell in 2022? ({uid})", answers=("15",))


@dataclass
class Minds:
    """The experts, who answer by the uid in the question. ``asked`` counts calls by uid and model."""

    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    refuses: bool = True
    together: threading.Barrier | None = None
    held: threading.Event | None = None

    def __call__(self, body: Body, _: int) -> Say | str:
        texts = texts_of(body)
        uid = texts[0].rpartition("(")[2].partition(")")[0]
        self.requests[uid, body["model"]] += 1
        if body["model"] == GROUNDER:
            return "<think>The table.</think><bbox>[40, 80, 300, 240]</bbox>"
        if any(text.endswith("</search>") for text in texts):
            return f"<think>It says so.</think><answer>{16 if uid == 'wrong' else 15}</answer>"
        if uid == "outage" and self.refuses:
            return Say(status=401)
        if self.held is not None and uid == "held":
            self.held.wait(HANGS_AFTER_S)
        if self.together is not None:
            self.together.wait()
        if uid == "careless" and self.requests[uid, PLANNER] == 1:
            return "I shall search."
        return "<think>Search.</think><search>units sold by region</search>"


def verdict(body: Body, _: int) -> str:
    case = case_of(body)
    return "perhaps" if "(unclear)" in case["question"] else f"<judge>{case['answer'] in case['references']}</judge>"


@dataclass
class Scene:
    minds: Minds
    experts: Stub
    judge: JudgeStub
    config: ConstructConfig

    def run(self, *uids: str) -> tuple[ConstructReport, list[Outcome]]:
        seen: list[Outcome] = []
        return construct([example(uid) for uid in uids], self.config, seen.append), seen


@contextmanager
def scene(folder: Path, minds: Minds, **more: object) -> Iterator[Scene]:
    with openai_stub(minds) as experts, judge_stub(verdict) as judge, evidence_stub() as gateway:
        config = ConstructConfig.model_validate(
            {
                "examples": str(folder / "examples.jsonl"),
                "output": str(folder / "out"),
                "gateway": gateway,
                "planner": {"base_url": experts.base_url, "model": PLANNER, "retries": 0},
                "grounding": {"base_url": experts.base_url, "model": GROUNDER, "retries": 0},
                "judge": {"base_url": judge.base_url, "model": "judge", "retries": 0},
                "judge_cache": str(folder / "verdicts"),
                "concurrency": 8,
            }
            | more
        )
        yield Scene(minds, experts, judge, config)


def test_stored_runs_are_well_formed_and_judged_right_and_no_request_is_sent_twice(tmp_path: Path) -> None:
    uids = ("right", "wrong", "careless", "unclear", "outage", "also right")
    with scene(tmp_path, Minds()) as at:
        report, seen = at.run(*uids)
        assert (report.kept, report.skipped) == (2, 0)
        assert report.refused == {"a reply was refused": 1, "judged wrong": 1, "no verdict": 1}
        assert list(report.failed) == ["outage"] and "refuses (401)" in report.failed["outage"]
        assert {result.uid for result in seen if not result.error and not result.refused} == {"right", "also right"}
        # The judge judges well-formed runs only.
        assert {case_of(body)["question"].rpartition("(")[2][:-1] for body in at.judge.requests} == {
            "right",
            "wrong",
            "unclear",
            "also right",
        }
        first = Counter(at.minds.requests)
        assert first["right", PLANNER] == 2 and first["right", GROUNDER] == 1
        assert first["outage", PLANNER] == 1

        at.minds.refuses = False
        mended, seen = at.run(*uids)
        assert (mended.kept, mended.skipped, mended.failed) == (1, 5, {})
        assert [result.uid for result in seen] == ["outage"]
        assert at.minds.requests - first == Counter({("outage", PLANNER): 2, ("outage", GROUNDER): 1})
        done, _ = at.run(*uids)
        assert (done.kept, done.skipped) == (0, 6)

    store = ConstructStore(at.config.output)
    assert json.loads((tmp_path / "out" / "failures.json").read_text()) == {}
    assert set(store.chosen()) == {"right", "also right", "outage"}
    run = store.get("right")
    assert (run.example, run.turns, run.reward and run.reward.success) == (example("right"), Turns(2, 1), True)
    assert run.experts == {"planner": PLANNER, "grounding": GROUNDER, "scorer": "judge", "judge": "judge"}
    kinds = [TagsProtocol().parse(exchange.reply).action for exchange in run.exchanges]
    assert [kind.name for kind in kinds if kind is not None] == ["add_search_node", "crop", "add_answer_node"]
    assert store.get("wrong").refused == "judged wrong"


def test_runs_that_cite_too_few_gold_boxes_are_refused_before_they_are_judged(tmp_path: Path) -> None:
    with scene(tmp_path, Minds()) as at:
        at.run("right")
    cropped = next(
        event.place.bbox
        for event in ConstructStore(at.config.output).get("right").record.events
        if isinstance(event, CropEvent)
    )
    with scene(tmp_path, Minds(), output=str(tmp_path / "boxes"), limits={"min_box_recall": 1.0}) as at:
        boxed = [
            example(uid).model_copy(update={"gold": (GoldPage(file_name="Annual report.pdf", box=box),)})
            for uid, box in (("at the box", cropped), ("elsewhere", (0.6, 0.9, 0.9, 1.0)), ("no box", None))
        ]
        report = construct(boxed, at.config)
        assert (report.kept, report.refused, report.failed) == (2, {"too few gold boxes cited": 1}, {})
        assert set(ConstructStore(at.config.output).chosen()) == {"at the box", "no box"}
        assert len(at.judge.requests) == 2
    with scene(tmp_path, Minds(), output=str(tmp_path / "none"), limits={"min_box_recall": 1.0}) as at:
        with pytest.raises(VragError, match=r"min_box_recall is 1, but no question of .* has a gold box"):
            construct([example("right")], at.config)
        assert at.experts.requests == []


@pytest.mark.exhaustive
def test_runs_are_under_way_at_once_in_one_actor(tmp_path: Path) -> None:
    # Each first turn waits for those of three other runs: one after the other would never end.
    minds = Minds(together=threading.Barrier(4, timeout=HANGS_AFTER_S))
    with scene(tmp_path, minds, concurrency=4, scorer="exact_match", judge=None) as at:
        report, _ = at.run("a", "b", "c", "d")
        assert (report.kept, report.failed, at.judge.requests) == (4, {}, [])


@pytest.mark.exhaustive
def test_killed_and_started_again_it_asks_nothing_of_what_was_finished(tmp_path: Path) -> None:
    import ray

    held = threading.Event()
    with scene(tmp_path, Minds(held=held)) as at:
        examples = [example(uid) for uid in ("one", "two", "held", "three")]
        save_examples(at.config.examples, examples)
        path = tmp_path / "config.yaml"
        path.write_text(yaml.safe_dump(at.config.model_dump(mode="json")))
        address = ray.get_runtime_context().gcs_address
        driver = subprocess.Popen(
            [sys.executable, "-m", "tests.support.construct_driver", address, str(path)],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        assert driver.stdout is not None
        finished = {driver.stdout.readline().strip() for _ in range(3)}
        driver.send_signal(signal.SIGKILL)
        driver.wait(timeout=HANGS_AFTER_S)
        held.set()
        assert finished == {"one", "two", "three"}
        before = Counter(at.minds.requests)
        assert before["held", PLANNER] == 1

        report = construct(load_examples(at.config.examples), at.config)
        assert (report.kept, report.skipped) == (1, 3)
        assert {uid for uid, _ in at.minds.requests - before} == {"held"}
        assert set(ConstructStore(at.config.output).chosen()) == {"one", "two", "held", "three"}


def test_an_unknown_scorer_is_refused_before_the_first_request(tmp_path: Path) -> None:
    with scene(tmp_path, Minds(), scorer="no.such:function") as at:
        with pytest.raises(VragError, match=r"no\.such does not import"):
            at.run("right")
        assert at.experts.requests == []


def test_a_check_calls_the_gateway_and_each_endpoint_once_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.yaml"
    command = ["train", "construct", "--config", str(path)]
    with scene(tmp_path, Minds()) as at:
        save_examples(at.config.examples, [example("right"), example("wrong")])
        path.write_text(yaml.safe_dump(at.config.model_dump(mode="json")))
        assert main([*command, "--check"]) == 0
        shown = capsys.readouterr().out
        assert "# 2 questions, 0 of them finished; " in shown
        assert f"the planner {PLANNER} at {at.experts.base_url} replies" in shown
        assert f"the grounding {GROUNDER} at {at.experts.base_url} replies" in shown
        assert f"the judge judge at {at.judge.base_url} gives verdicts" in shown
        assert (len(at.experts.requests), len(at.judge.requests)) == (2, 1)
        assert sorted(file.name for file in tmp_path.iterdir()) == ["config.yaml", "examples.jsonl"]
        assert main(command) == 2
        assert "--export" in capsys.readouterr().err
        gone = at.config.model_dump(mode="json") | {"grounding": {"base_url": "http://127.0.0.1:9/v1", "model": "m"}}
        path.write_text(yaml.safe_dump(gone))
        assert main([*command, "--check"]) == 1
        shown = " ".join(capsys.readouterr().err.split())
        assert "grounding m at http://127.0.0.1:9/v1 cannot be called" in shown
        assert "correct grounding.base_url" in shown


def test_the_job_constructs_and_exports_what_vrag_train_sft_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    with scene(tmp_path, Minds()) as at:
        save_examples(at.config.examples, [example("right"), example("wrong")])
        path = tmp_path / "config.yaml"
        path.write_text(yaml.safe_dump(at.config.model_dump(mode="json")))
        command = [sys.executable, "jobs/construct.py", "--config", str(path), "--export", str(tmp_path / "sft")]
        environment = os.environ | {"RAY_ADDRESS": ray.get_runtime_context().gcs_address, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=HANGS_AFTER_S, env=environment, check=False
        )
    assert done.returncode == 0, done.stderr
    assert "right: kept" in done.stdout and "wrong: judged wrong" in done.stdout
    assert "1 conversations, 2 pictures" in done.stdout
    [row] = json.loads((tmp_path / "sft" / "sft.json").read_text())
    assert [message["role"] for message in row["messages"]] == ["user", "assistant"] * 3
    assert f"trajectories: {tmp_path / 'sft'}" in done.stdout
    check_that_sft_reads(tmp_path, monkeypatch)


def check_that_sft_reads(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """``vrag train sft`` on the export ``folder/sft``, up to what every worker reads before it learns."""
    pytest.importorskip("transformers", reason="NO TRANSFORMERS: constructed runs are not read here")
    from tiny_model import save_tiny_model

    save_tiny_model(folder / "model")
    workers = TrainDouble()
    workers.install(patch)
    own = {"name": "imitation", "storage": str(folder / "runs"), "model": {"path": str(folder / "model")}}
    config = folder / "sft.yaml"
    config.write_text(yaml.safe_dump(own | {"trajectories": str(folder / "sft")}), encoding="utf-8")
    done = CliRunner().invoke(make_app(), ["train", "sft", "--config", str(config)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1] == f"trained model: {folder / 'runs/imitation/final'}"
    form = ChatFormat(workers.config["model"]["path"])
    read = read_replies(Path(workers.config["trajectories"]), form, Pixels(form.processor).expand_image_tokens, 100_000)
    assert len(read.calls) == 3, "a search, a crop and an answer of the run that was judged right"


# Quick form: ``test_the_job_constructs_and_exports_what_vrag_train_sft_reads`` above, up to the learning.
@pytest.mark.exhaustive
def test_the_model_learns_from_what_the_command_line_constructed(tmp_path: Path) -> None:
    """``vrag train construct``, then ``vrag train sft`` on what it exported: no line of Python between them."""
    pytest.importorskip("transformers", reason="NO TRANSFORMERS: constructed runs are not learnt here")
    import ray
    from safetensors import safe_open
    from tiny_model import save_tiny_model

    save_tiny_model(tmp_path / "model")
    environment = os.environ | {
        "RAY_ADDRESS": ray.get_runtime_context().gcs_address,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join((str(ROOT), *sys.path)),
    }

    def vrag(*arguments: str) -> str:
        command = [sys.executable, "-m", "vrag_ray.cli", "train", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    with scene(tmp_path, Minds()) as at:
        save_examples(at.config.examples, [example("right"), example("wrong")])
        constructing = tmp_path / "construct.yaml"
        constructing.write_text(yaml.safe_dump(at.config.model_dump(mode="json")))
        output = vrag("construct", "--config", str(constructing), "--export", str(tmp_path / "sft"))
    assert f"trajectories: {tmp_path / 'sft'}" in output

    form = ChatFormat(str(tmp_path / "model"))
    replies = read_replies(tmp_path / "sft", form, Pixels(form.processor).expand_image_tokens, 100_000).calls
    assert len(replies) == 3, "a search, a crop and an answer of the run that was judged right"
    shorter = sorted(call.tokens for call in replies)[1]
    learning = tmp_path / "sft.yaml"
    values = {
        "name": "imitation",
        "storage": str(tmp_path / "runs"),
        "model": {"path": str(tmp_path / "model")},
        "optimizer": {"lr": 1e-3},
        "trajectories": str(tmp_path / "sft"),
        "max_length": shorter,
        "batch": 2,
        "epochs": 2,
    }
    learning.write_text(yaml.safe_dump(values))
    output = vrag("sft", "--config", str(learning))
    assert (
        f"2 replies to learn from; 1 are left out, because with their prompts they have more than {shorter} t" in output
    )
    final = tmp_path / "runs/imitation/final"
    assert output.splitlines()[-1] == f"trained model: {final}"
    [line] = [json.loads(line) for line in (final.parent / "metrics.jsonl").read_text().splitlines()]
    # The loss is on the tokens of the replies alone.
    assert line["sft/tokens"] == sum(len(call.completion_ids) for call in replies if call.tokens <= shorter)
    with (
        safe_open(tmp_path / "model/model.safetensors", "pt") as before,
        safe_open(final / "model.safetensors", "pt") as after,
    ):
        changed = [name for name in before.keys() if not before.get_tensor(name).equal(after.get_tensor(name))]  # noqa: SIM118
    assert changed


@pytest.mark.parametrize(
    ("change", "problem"),
    [({"agent_name": "extractive"}, "asks no model"), ({"judge": None}, "scorer is judge"), ({"actors": 2}, "Extra")],
)
def test_a_configuration_that_cannot_work_is_refused(change: dict[str, object], problem: str) -> None:
    endpoint = {"base_url": "http://127.0.0.1:9/v1", "model": "m"}
    values = {"examples": "a", "output": "b", "gateway": "c", "planner": endpoint, "grounding": endpoint}
    with pytest.raises(ValueError, match=problem):
        ConstructConfig.model_validate(values | {"judge": endpoint} | change)
