"""The living processes below the tests' own; one that ends while it is looked at does not count."""

from __future__ import annotations

from collections.abc import Iterator

import psutil


def children_called(command: str) -> list[psutil.Process]:
    """Those whose command line or name contains ``command``."""

    def matching() -> Iterator[psutil.Process]:
        for child in psutil.Process().children(recursive=True):
            try:
                if command in " ".join(child.cmdline()) or command in child.name():
                    yield child
            except psutil.NoSuchProcess:  # A zombie is one, too.
                continue

    return list(matching())
