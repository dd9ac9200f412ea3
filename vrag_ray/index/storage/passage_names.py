"""Ids of passages by Lance's row id: a search for words that returns row ids alone takes a quarter of the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import lance

MOST_ROWS = 500_000
"""Passages of one collection whose names are held in memory: 60 MB. Names of larger ones are read for each search."""


class PassageNames:
    """The names of all rows of one version of ``passages``. Thread-safe."""

    def __init__(self, table: lance.LanceDataset) -> None:
        """Blocking: reads two columns."""
        rows = table.scanner(columns=["id", "doc_id"], with_row_id=True).to_table().combine_chunks()
        row_ids = rows["_rowid"].to_numpy()
        order = np.argsort(row_ids)
        self._row_ids = row_ids[order]
        # Objects: looking up a hundred rows of an Arrow array takes ten times as long.
        self._ids = rows["id"].to_numpy()[order]
        documents = rows["doc_id"].combine_chunks().dictionary_encode()
        self._doc_ids = documents.dictionary.to_numpy(zero_copy_only=False)[documents.indices.to_numpy()][order]

    def of(self, row_ids: NDArray[np.uint64]) -> list[tuple[str, str]]:
        """Passage id and document id of each row."""
        places = np.searchsorted(self._row_ids, row_ids)
        return list(zip(self._ids[places].tolist(), self._doc_ids[places].tolist(), strict=True))
