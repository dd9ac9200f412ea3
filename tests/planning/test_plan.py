import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vrag_ray.cli.main import main
from vrag_ray.planning.plan import USABLE_CORES, USABLE_MEMORY, Need, plan
from vrag_ray.planning.units import SPACES, Figure, Units, read_units
from vrag_ray.training.model_shapes import EMBEDDERS
from vrag_ray.types import VragError

SMALL = Need(pages=10_000, space=SPACES["text-384"], qps=1)
MEASURED = Units()


def test_the_measured_case_comes_out_as_measured():
    """Ten million rows of 256 dimensions on two cores: what the units were taken from."""
    space = SPACES["qwen3-vl-2b"].model_copy(update={"dims": 256})
    made = plan(Need(1e7, space, qps=0.1, shard_cores=2, node_cores=4, node_memory_bytes=24e9), MEASURED)
    assert (made.shards, made.nodes) == (1, 1)
    assert made.memory_bytes == pytest.approx(13.9e9, rel=0.01)
    assert made.scan_s == pytest.approx(0.16, rel=0.01)
    assert made.load_s == pytest.approx(55, rel=0.02)


def test_an_inverted_file_is_trained_whenever_a_shard_starts():
    """100,000 rows of 1,024 dimensions on two cores: 4.0 s of training, as measured."""
    space = SPACES["qwen3-vl-2b"].model_copy(update={"dims": 1024})
    need = Need(1e5, space, qps=0.1, scanned=0.05, shard_cores=2, node_cores=4)
    made = plan(need, MEASURED)
    assert (made.shards, made.training_s) == (1, pytest.approx(4.0, rel=0.1))
    exact = plan(dataclasses.replace(need, scanned=1.0), MEASURED)
    assert exact.training_s == 0 and made.load_s == pytest.approx(exact.load_s + made.training_s)
    late = plan(dataclasses.replace(need, space=SPACES["colqwen2"]), MEASURED)
    assert late.training_s == 0, "late interaction has no inverted file"


def test_the_command_says_what_training_an_inverted_file_takes(capsys: pytest.CaptureFixture[str]):
    assert main(["plan", "--pages", "1e8", "--space", "qwen3-vl-2b", "--scanned", "0.02"]) == 0
    start = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("start "))
    assert "of it to train its inverted file (ivf_sq, computed)" in start
    assert main(["plan", "--pages", "1e6"]) == 0
    assert "inverted file" not in capsys.readouterr().out


def test_a_small_collection_needs_one_node():
    made = plan(SMALL, MEASURED)
    assert (made.shards, made.nodes) == (1, 1)
    assert made.rows == pytest.approx(26_700)


@given(
    pages=st.floats(1, 1e9),
    qps=st.floats(0.1, 1000),
    name=st.sampled_from(sorted(SPACES)),
    scanned=st.floats(0.001, 1),
    latency=st.floats(0.01, 2),
)
def test_a_plan_keeps_what_it_promises(pages: float, qps: float, name: str, scanned: float, latency: float):
    need = Need(pages, SPACES[name], qps, latency, scanned)
    made = plan(need, MEASURED)
    assert made.scan_s <= latency * 1.0001
    assert made.memory_bytes <= made.nodes * need.node_memory_bytes * USABLE_MEMORY * 1.0001
    assert made.shards * need.shard_cores <= made.nodes * need.node_cores
    # A shard is not busier than it may be.
    assert qps * made.scan_s <= USABLE_CORES * 1.0001
    twice = plan(dataclasses.replace(need, replicas=2), MEASURED)
    assert twice.memory_bytes == pytest.approx(2 * made.memory_bytes) and twice.nodes >= made.nodes
    doubled = plan(dataclasses.replace(need, pages=2 * pages), MEASURED)
    assert doubled.nodes >= made.nodes and doubled.memory_bytes > made.memory_bytes


def test_every_worker_of_a_reinforcement_run_has_a_copy_of_the_collection():
    alone = plan(SMALL, MEASURED)
    trained = plan(dataclasses.replace(SMALL, replicas=2, rl_workers=8), MEASURED)
    assert alone.rl_memory_bytes == 0
    assert trained.rl_memory_bytes == pytest.approx(8 * alone.memory_bytes), "one copy a worker, not one a replica"


def test_the_command_says_what_training_takes_beside_the_service(capsys: pytest.CaptureFixture[str]):
    options = ["plan", "--pages", "10000", "--space", "qwen3-vl-2b", "--scanned", "0.5", "--rl-workers", "8"]
    assert main(options) == 0
    lines = capsys.readouterr().out.splitlines()
    line = next(line for line in lines if line.startswith("training "))
    assert line.endswith(
        "GB of main memory for 8 copies, one a worker, beside the above, and on each worker's GPU 4.3 GB of "
        "Qwen/Qwen3-VL-Embedding-2B (computed)"
    )
    assert next(line for line in lines if line.startswith("embedder ")).endswith(
        "GB of a GPU for 8 pages of Qwen/Qwen3-VL-Embedding-2B at once (computed)"
    )
    assert main([*options, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["rl_gpu_bytes"] == 2 * EMBEDDERS["Qwen/Qwen3-VL-Embedding-2B"].parameters
    assert made["rl_memory_bytes"] == pytest.approx(8 * made["memory_bytes"])


@pytest.mark.parametrize("name", sorted(SPACES))
def test_a_space_names_an_embedder_of_known_size_or_none(name: str):
    assert SPACES[name].embedder in ("", *EMBEDDERS)


def test_a_space_whose_embedder_was_not_measured_on_cores_gives_no_hours():
    assert plan(dataclasses.replace(SMALL, space=SPACES["colqwen2"]), MEASURED).ingest_s is None


def test_a_gpu_whose_speed_nobody_measured_gives_no_hours():
    with_gpus = dataclasses.replace(SMALL, gpus=2)
    assert plan(with_gpus, MEASURED).ingest_s is None
    known = Units(pages_per_gpu_s=Figure(value=25, source="test"))
    assert plan(with_gpus, known).ingest_s == pytest.approx(200)


def test_an_embedder_that_was_measured_on_a_card_gives_hours_until_the_caller_knows_better():
    pages = dataclasses.replace(SMALL, space=SPACES["qwen3-vl-2b"], gpus=2)
    assert plan(pages, MEASURED).ingest_s == pytest.approx(10_000 / 2 / 14.3)
    assert plan(pages, Units(pages_per_gpu_s=Figure(value=25, source="test"))).ingest_s == pytest.approx(200)


@pytest.mark.parametrize(
    ("field", "value"),
    [("rl_workers", -1), ("pages", 0), ("qps", -1), ("scanned", 0), ("scanned", 1.5), ("shard_cores", 99)],
)
def test_numbers_that_mean_nothing_are_refused(field: str, value: float):
    with pytest.raises(VragError):
        plan(dataclasses.replace(SMALL, **{field: value}), MEASURED)


def test_units_are_read_with_their_sources(tmp_path: Path):
    file = tmp_path / "units.json"
    file.write_text(json.dumps({"request_core_s": {"value": 0.01, "source": "our machine"}}))
    assert read_units(file).request_core_s.source == "our machine"
    assert read_units(file).rows_loaded_s == MEASURED.rows_loaded_s
    for wrong in ('{"request_core_s": 0.01}', '{"requests": {"value": 1, "source": "x"}}', "nothing"):
        file.write_text(wrong)
        with pytest.raises(VragError, match="holds no unit figures"):
            read_units(file)
