"""The torchvision step: what it concludes, and that the line it writes costs a start of Python nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from torchvision_cpu_fix import INSTALLED_NAME, ImportOutcome, classify, install_shim
from torchvision_schema_shim import SchemaFinder


@pytest.mark.parametrize(
    ("returncode", "stderr", "expected"),
    [
        (0, "a warning", ImportOutcome.WORKS),
        (1, "ModuleNotFoundError: No module named 'torchvision'", ImportOutcome.NOT_INSTALLED),
        (1, "RuntimeError: operator torchvision::nms does not exist", ImportOutcome.SCHEMA_MISSING),
        (1, "ModuleNotFoundError: No module named 'torch'", ImportOutcome.OTHER_FAILURE),
        (-11, "", ImportOutcome.OTHER_FAILURE),
    ],
)
def test_the_outcome_is_read_off_the_import_of_torchvision(
    returncode: int, stderr: str, expected: ImportOutcome
) -> None:
    assert classify(returncode, stderr) is expected


def run_python(site: Path, code: str) -> str:
    """Run ``code`` in a bare Python that treats ``site`` as a site-packages folder."""
    program = f"import site; site.addsitedir({str(site)!r})\n{code}"
    done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def fake_torch(site: Path, cuda: str | None) -> None:
    """A torch that prints what is declared, and a torchvision that imports."""
    (site / "torch").mkdir()
    (site / "torch/__init__.py").write_text(
        "from types import SimpleNamespace as N\n"
        f"version = N(cuda={cuda!r})\nlibrary = N(define=lambda name, schema: print(name))\n"
    )
    (site / "torchvision").mkdir()
    (site / "torchvision/__init__.py").write_text("")


def test_a_start_of_python_with_the_shim_imports_neither_torch_nor_torchvision(tmp_path: Path) -> None:
    fake_torch(tmp_path, cuda=None)
    install_shim(tmp_path)
    names = run_python(tmp_path, "import sys; print(*(n for n in sys.modules if 'torch' in n))")
    assert names == INSTALLED_NAME


def test_beside_a_cpu_torch_the_schemas_are_declared_once(tmp_path: Path) -> None:
    fake_torch(tmp_path, cuda=None)
    install_shim(tmp_path)
    code = "import sys, torchvision; sys.modules.pop('torchvision'); import torchvision"
    assert run_python(tmp_path, code).splitlines() == ["torchvision::nms", "torchvision::qnms"]


def test_beside_a_cuda_torch_nothing_is_declared(tmp_path: Path) -> None:
    fake_torch(tmp_path, cuda="13.0")
    install_shim(tmp_path)
    assert run_python(tmp_path, "import torchvision") == ""


def test_the_finder_ignores_every_other_module() -> None:
    assert SchemaFinder().find_spec("json") is None
