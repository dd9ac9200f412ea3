"""Fetch the two manuals the benchmarks read, from Debian's packages: octave.pdf and asymptote.pdf.

    python benchmarks/fetch_pdfs.py

They land in `benchmarks/data/`, which git ignores. Needs Debian or Ubuntu (`apt-get`, `dpkg-deb`); elsewhere put any
PDF with an outline there or name one on the benchmark's command line.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DATA = Path(__file__).parent / "data"
PDFS = {"octave-doc": "octave.pdf", "asymptote-doc": "asymptote.pdf"}


def fetch(package: str, name: str) -> Path:
    """The PDF ``name`` out of a Debian package, downloaded once."""
    target = DATA / name
    if target.exists():
        return target
    DATA.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        # The sandbox user of apt cannot write into a private folder.
        command = ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", package]
        subprocess.run(command, cwd=folder, check=True, stdout=sys.stderr)
        archive = next(Path(folder).glob("*.deb"))
        subprocess.run(["dpkg-deb", "-x", archive, "files"], cwd=folder, check=True)
        found = max(Path(folder, "files").rglob(name), key=lambda path: path.stat().st_size)
        shutil.copyfile(found.resolve(), target)
    return target


def main() -> None:
    for package, name in PDFS.items():
        try:
            print(fetch(package, name))
        except (OSError, subprocess.CalledProcessError) as error:
            sys.exit(f"cannot fetch {name} from the Debian package {package}: {error}; try `apt-get update` first")


if __name__ == "__main__":
    main()
