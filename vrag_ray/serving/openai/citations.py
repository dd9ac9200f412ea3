"""The citations of an answer as OpenAI's annotations, and as evidence with all that is known of each. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vrag_ray.agent.citations import Citation
from vrag_ray.agent.support import MARK
from vrag_ray.serving.openai.responses import Annotation, Evidence, UrlCitation
from vrag_ray.types import PassageKind, named_page


@dataclass(frozen=True, slots=True)
class Links:
    """The addresses of what is cited, on the server at ``base_url``.

    ``signature`` gives the query that lets a browser without a key see a path, "" where none is needed. ``footnotes``:
    the answer ends with its sources as links, for clients that show no annotations.
    """

    base_url: str
    signature: Callable[[str], str] | None = None
    footnotes: bool = False

    def of(self, citation: Citation) -> str:
        """The picture of what is cited: the box of the page, the frame of the moment; plain text as a whole."""
        path, query = f"/v1/documents/{citation.doc_id}", ""
        if citation.kind is PassageKind.CLIP and citation.t_start is not None:
            path += f"/frames/{citation.t_start:.3f}.png"
        elif citation.kind is PassageKind.TEXT or citation.page is None:
            path += "/original"
        else:
            path += f"/pages/{citation.page}.png"
            query = f"bbox={','.join(f'{edge:g}' for edge in citation.bbox)}" if citation.bbox is not None else ""
        queries = [query, self.signature(path) if self.signature is not None else ""]
        whole = "&".join(filter(None, queries))
        return f"{self.base_url}{path}{'?' if whole else ''}{whole}"


def with_footnotes(answer: str, citations: Sequence[Citation], links: Links) -> str:
    """``answer`` with one line a source below it: its number and its title, as a Markdown link."""
    lines = [f"[{citation.number}] [{_title_in_link(citation)}]({links.of(citation)})" for citation in citations]
    return "\n\n".join([answer, "  \n".join(lines)]) if lines else answer


def _title_in_link(citation: Citation) -> str:
    return _titled(citation).replace("[", "(").replace("]", ")")


def marked(answer: str, citations: Sequence[Citation], links: Links) -> tuple[Annotation, ...]:
    """One for each number of each mark in ``answer``; a citation without a mark stands at its end, zero long."""
    known = {citation.number: citation for citation in citations}
    places: list[tuple[int, int, Citation]] = []
    for mark in MARK.finditer(answer):
        numbers = dict.fromkeys(int(number) for number in mark[1].split(","))
        places.extend((mark.start(), mark.end(), known[number]) for number in numbers if number in known)
    numbered = {citation.number for _, _, citation in places}
    end = len(answer)
    places.extend((end, end, citation) for citation in citations if citation.number not in numbered)
    return tuple(
        Annotation(
            url_citation=UrlCitation(url=links.of(citation), title=_titled(citation), start_index=start, end_index=stop)
        )
        for start, stop, citation in places
    )


def evidence_of(citations: Sequence[Citation], links: Links) -> tuple[Evidence, ...]:
    """In the order of their numbers."""
    return tuple(
        Evidence(
            number=citation.number,
            document=citation.doc_id,
            title=citation.title,
            kind=citation.kind,
            page=citation.page,
            t_start=citation.t_start,
            t_end=citation.t_end,
            box=citation.bbox,
            element=citation.element,
            value_box=citation.value_bbox,
            score=citation.score,
            node=citation.node_id,
            quote=citation.quote,
            url=links.of(citation),
            collection=citation.collection,
        )
        for citation in citations
    )


def _titled(citation: Citation) -> str:
    if citation.page is not None and citation.kind is PassageKind.PAGE:
        return f"{citation.title}, {named_page(citation.page, citation.label, citation.pages)}"
    if citation.t_start is not None:
        return f"{citation.title}, {citation.t_start:.1f} s"
    return citation.title
