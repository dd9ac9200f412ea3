"""Make ``import torchvision`` work in this environment, and change nothing where it works already.

Run it with the environment's own Python: ``.venv/bin/python tools/torchvision_cpu_fix.py``. Exit codes: 0 where
torchvision imports (or is not installed), 1 where it does not and this tool could not change that.
"""

import subprocess
import sys
import sysconfig
from enum import StrEnum
from pathlib import Path

SHIM = Path(__file__).with_name("torchvision_schema_shim.py")
# Installed under a name of its own, so that it can never hide, or be hidden by, a module of a package.
INSTALLED_NAME = "_vrag_torchvision_schema_shim"
# Runs at every start of Python. Should the module be gone, site.py reports this line and the start goes on.
PTH_LINE = f"import {INSTALLED_NAME}; {INSTALLED_NAME}.install()\n"


class ImportOutcome(StrEnum):
    """What ``import torchvision`` does in a fresh process."""

    WORKS = "works"
    NOT_INSTALLED = "not installed"
    SCHEMA_MISSING = "operator schema missing"
    OTHER_FAILURE = "other failure"


def classify(returncode: int, stderr: str) -> ImportOutcome:
    """Read the outcome off the exit status and the traceback of ``python -c 'import torchvision'``."""
    if returncode == 0:
        return ImportOutcome.WORKS
    if "No module named 'torchvision'" in stderr:
        return ImportOutcome.NOT_INSTALLED
    if "operator torchvision::nms does not exist" in stderr:
        return ImportOutcome.SCHEMA_MISSING
    return ImportOutcome.OTHER_FAILURE


def try_import() -> tuple[ImportOutcome, str]:
    """Import torchvision in a child of this interpreter: the outcome and the last line the child wrote."""
    child = subprocess.run(
        [sys.executable, "-c", "import torchvision"], capture_output=True, text=True, timeout=300, check=False
    )
    lines = child.stderr.strip().splitlines()
    return classify(child.returncode, child.stderr), lines[-1] if lines else ""


def install_shim(site_packages: Path) -> None:
    """Copy the shim and the line that starts it; the line goes last, so that no start sees it alone."""
    (site_packages / f"{INSTALLED_NAME}.py").write_bytes(SHIM.read_bytes())
    (site_packages / f"{INSTALLED_NAME}.pth").write_text(PTH_LINE)


def main() -> int:
    outcome, detail = try_import()
    if outcome in (ImportOutcome.WORKS, ImportOutcome.NOT_INSTALLED):
        print(f"torchvision: {outcome}, nothing to fix")
        return 0
    if outcome is ImportOutcome.SCHEMA_MISSING:
        site_packages = Path(sysconfig.get_paths()["purelib"])
        install_shim(site_packages)
        outcome, detail = try_import()
        if outcome is ImportOutcome.WORKS:
            print(
                f"torchvision: built for CUDA beside a CPU torch; operator schemas added, see {site_packages.name}"
                f"/{INSTALLED_NAME}.py; it imports now"
            )
            return 0
    print(f"torchvision: import fails and this tool cannot fix it: {detail}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
