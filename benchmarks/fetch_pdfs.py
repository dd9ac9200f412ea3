"""Fetch the manuals the benchmarks read, from Debian's packages.

    python benchmarks/fetch_pdfs.py [NAME …]   (all by default)

They land in `benchmarks/data/`, which git ignores. Needs Debian or Ubuntu (`apt-get`, `dpkg-deb`); elsewhere put any
PDF with an outline there or name one on the benchmark's command line.
"""

from __future__ import annotations

import argparse
import gzip
import subprocess
import sys
import tempfile
from pathlib import Path

DATA = Path(__file__).parent / "data"
PDFS = {
    "octave": ("octave-doc", "octave.pdf"),
    "asymptote": ("asymptote-doc", "asymptote.pdf"),
    "bash": ("bash-doc", "bashref.pdf"),
    "ddd": ("ddd-doc", "ddd.pdf.gz"),
    "gnuplot": ("gnuplot-doc", "gnuplot.pdf"),
    "lilypond-contributor": ("lilypond-doc-pdf", "contributor.pdf"),
    "lilypond-learning": ("lilypond-doc-pdf", "learning.pdf"),
    "mit-scheme-user": ("mit-scheme-doc", "mit-scheme-user.pdf.gz"),
    "nut": ("nut-doc", "user-manual.pdf"),
    "r-exts": ("r-doc-pdf", "R-exts.pdf"),
    "r-intro": ("r-doc-pdf", "R-intro.pdf"),
    "debian-reference-zh-cn": ("debian-reference-zh-cn", "debian-reference.zh-cn.pdf"),
}
"""By the name of the file in `benchmarks/data/`: the Debian package and the file's name in it."""


def fetch(name: str) -> Path:
    """The PDF `name` out of its Debian package, downloaded once."""
    target = DATA / f"{name}.pdf"
    if target.exists():
        return target
    package, inside = PDFS[name]
    DATA.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        # The sandbox user of apt cannot write into a private folder.
        command = ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", package]
        subprocess.run(command, cwd=folder, check=True, stdout=sys.stderr)
        archive = next(Path(folder).glob("*.deb"))
        subprocess.run(["dpkg-deb", "-x", archive, "files"], cwd=folder, check=True)
        # Some packages link the file from a second folder, by an absolute path that leads nowhere here.
        files = [path for path in Path(folder, "files").rglob(inside) if path.is_file()]
        content = max(files, key=lambda path: path.stat().st_size).read_bytes()
        target.write_bytes(gzip.decompress(content) if inside.endswith(".gz") else content)
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PDFS)}")
    names = parser.parse_args().names or list(PDFS)
    if unknown := set(names) - set(PDFS):
        parser.error(f"no manual is named {sorted(unknown)[0]!r}: choose from {', '.join(PDFS)}")
    for name in names:
        try:
            print(fetch(name))
        except (OSError, subprocess.CalledProcessError) as error:
            package, _ = PDFS[name]
            sys.exit(f"cannot fetch {name} from the Debian package {package}: {error}; try `apt-get update` first")


if __name__ == "__main__":
    main()
