"""The citations of an answer as OpenAI's annotations, and as evidence with all that is known of each. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from vrag_ray.agent.citations import Citation
from vrag_ray.agent.support import MARK
from vrag_ray.serving.openai.responses import Annotation, Evidence, UrlCitation
from vrag_ray.types import PassageKind, named_page


def marked(answer: str, citations: Sequence[Citation], base_url: str) -> tuple[Annotation, ...]:
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
            url_citation=UrlCitation(
                url=url_of(citation, base_url), title=_titled(citation), start_index=start, end_index=stop
            )
        )
        for start, stop, citation in places
    )


def evidence_of(citations: Sequence[Citation], base_url: str) -> tuple[Evidence, ...]:
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
            score=citation.score,
            node=citation.node_id,
            quote=citation.quote,
            url=url_of(citation, base_url),
            collection=citation.collection,
        )
        for citation in citations
    )


def url_of(citation: Citation, base_url: str) -> str:
    """The picture of what is cited: the box of the page, the frame of the moment; plain text as a whole."""
    document = f"{base_url}/v1/documents/{citation.doc_id}"
    if citation.kind is PassageKind.CLIP and citation.t_start is not None:
        return f"{document}/frames/{citation.t_start:.3f}.png"
    if citation.kind is PassageKind.TEXT or citation.page is None:
        return f"{document}/original"
    box = f"?bbox={','.join(f'{edge:g}' for edge in citation.bbox)}" if citation.bbox is not None else ""
    return f"{document}/pages/{citation.page}.png{box}"


def _titled(citation: Citation) -> str:
    if citation.page is not None and citation.kind is PassageKind.PAGE:
        return f"{citation.title}, {named_page(citation.page, citation.label, citation.pages)}"
    if citation.t_start is not None:
        return f"{citation.title}, {citation.t_start:.1f} s"
    return citation.title
