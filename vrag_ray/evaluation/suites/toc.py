"""A retrieval test that any PDF carries in itself: its outline's titles are the queries, their pages the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vrag_ray.corpus.model import OutlineEntry

BACK_MATTER = ("index", "contents", "table of contents", "list of figures", "list of tables")


@dataclass(frozen=True, slots=True)
class TocQuery:
    """A section title and the pages it may be found on, 1-based and inclusive."""

    title: str
    first_page: int
    last_page: int


def toc_queries(outline: Sequence[OutlineEntry], pages: int) -> tuple[list[TocQuery], range]:
    """The queries of a PDF with ``pages`` pages, and its body: the pages without contents and index.

    A section runs to the page before the next entry of its own level or above, and is at least its first page.
    The body starts at the first entry and ends before the trailing index entries.
    """
    entries = [entry for entry in outline if not _is_back_matter(entry.title)]
    if not entries:
        return [], range(0)
    trailing = [e.page for e in outline if _is_back_matter(e.title) and e.page > entries[-1].page]
    last_body = min(trailing, default=pages + 1) - 1
    queries = []
    for number, entry in enumerate(entries):
        following = (later.page for later in entries[number + 1 :] if later.level <= entry.level)
        last = max(entry.page, next(following, last_body + 1) - 1)
        queries.append(TocQuery(entry.title, entry.page, min(last, last_body)))
    return queries, range(entries[0].page, last_body + 1)


def _is_back_matter(title: str) -> bool:
    return title.lower().endswith(BACK_MATTER)
