"""Ask a folder of documents: python examples/ask_a_folder.py papers/ "When was crane 2 inspected?"

The collection is made beside the folder; a second call reads only what is new.
"""

from __future__ import annotations

import sys
from pathlib import Path

import vrag_ray as vrag


def main(folder: Path, question: str) -> None:
    collection = folder.with_name(f"{folder.name}-collection")
    report = vrag.ingest_files([folder], collection)
    for problem in report.failed:
        print(f"left out: {problem.error}")
    with vrag.open(collection) as system:
        record = system.ask(question)
        print(record.answer)
        for citation in record.citations:
            print(f"[{citation.number}] {citation.title}, page {citation.page}, box {citation.bbox}: {citation.quote}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), sys.argv[2])
