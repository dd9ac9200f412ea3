"""A suite of any PDFs: the titles of their own outlines are the queries, the pages of the sections the answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from vrag_ray.client.schemas import SearchHit
from vrag_ray.corpus.model import Probe
from vrag_ray.evaluation.suites.suite import RetrievalQuery, RetrievalSuite
from vrag_ray.evaluation.suites.toc import TocQuery, toc_queries
from vrag_ray.types import VragError

Paraphrases = Mapping[str, Sequence[TocQuery]]
"""By a question in words of its own, the sections that answer it."""


def outline_suite(pdfs: Mapping[str, tuple[str, Probe]], paraphrases: Mapping[str, Path]) -> RetrievalSuite:
    """``pdfs`` has, by the name of a PDF, the id of its document and its probe; ``paraphrases`` a file of them, by the
    same name. Each title is looked for in its own document, in its body: contents and index repeat all titles.

    Raises VragError for a PDF without an outline, and for a paraphrase of a title that is not there.
    """
    queries: list[RetrievalQuery] = []
    bodies: dict[str, range] = {}
    names: dict[str, str] = {}
    for name, (doc_id, probe) in pdfs.items():
        sections, body = toc_queries(probe.outline, probe.units)
        if not sections:
            raise VragError(f"{name} has no outline (bookmarks), so nothing says what is on which page")
        bodies[doc_id], names[doc_id] = body, name
        labelled = [(section.title, [section], "title") for section in sections]
        if name in paraphrases:
            paraphrased = read_paraphrases(paraphrases[name], sections)
            labelled += [(text, list(right), "paraphrase") for text, right in paraphrased.items()]
        for number, (text, right, wording) in enumerate(labelled):
            pages = (page for section in right for page in range(section.first_page, section.last_page + 1))
            groups = {"wording": (wording,)} | ({"document": (name,)} if len(pdfs) > 1 else {})
            grades = {_item(name, page): 1 for page in pages}
            queries.append(RetrievalQuery(f"{name}:{number}", text, grades, groups, doc_id))

    def items_of(_query: RetrievalQuery, hit: SearchHit) -> Sequence[str]:
        if hit.page is None or hit.page not in bodies.get(hit.doc_id, ()):
            return ()
        return (_item(names[hit.doc_id], hit.page),)

    return RetrievalSuite("outline of " + ", ".join(pdfs), queries, items_of, depth=100)


def read_paraphrases(path: Path, sections: Sequence[TocQuery]) -> Paraphrases:
    """A JSON object of questions, each with the title of the section that answers it, or a list of titles.

    Raises VragError, naming the file, for what is not of the form and for a title that is not there.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise VragError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise VragError(f"{path} is no JSON object of questions, each with the title of the section that answers it")
    titles_of = {text: [titles] if isinstance(titles, str) else list(titles) for text, titles in content.items()}
    return {
        text: [query for title in titles for query in _titled(title, sections, path)]
        for text, titles in titles_of.items()
    }


def _titled(title: str, sections: Sequence[TocQuery], path: Path) -> list[TocQuery]:
    """The sections with this title; where there is none, those with it in theirs."""
    exactly = [section for section in sections if section.title.lower() == title.lower()]
    matches = exactly or [section for section in sections if title.lower() in section.title.lower()]
    if not matches:
        raise VragError(f"{path}: no section is titled {title!r}")
    return matches


def _item(name: str, page: int) -> str:
    return f"{name}#p{page}"
