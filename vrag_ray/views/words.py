"""What happens in a run, in words: lines for a terminal or a tool's progress, and the story of its thoughts. Pure.

The web interface shows events as pictures and blocks; its few words are in ``ui/words.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from vrag_ray.agent.citations import Citation
from vrag_ray.agent.events import (
    AnswerEvent,
    CorrectionEvent,
    CropEvent,
    ErrorEvent,
    Event,
    MaxStepsEvent,
    MemorizeEvent,
    Place,
    PruneEvent,
    ReadEvent,
    ReadPage,
    SearchDoneEvent,
    SearchEvent,
    StartEvent,
    ThinkEvent,
)
from vrag_ray.agent.support import CheckedSentence
from vrag_ray.client.schemas import SearchHit
from vrag_ray.types import named_page

EXTRACTIVE_NOTES = (
    "(no language model configured: extractive answer)",
    "(extractive answer: the configured language model was not asked)",
)
"""The last line of an answer by rules: where there is no model, and where there is a model that was not used."""
QUOTE_CHARS = 160
MOST_RESULTS = 5
"""Of one search, in a narration."""
Corners = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class EventText:
    """An event in words: ``verb`` names it, ``text`` says what it was about, ``details`` are lines below."""

    verb: str
    text: str
    details: tuple[str, ...] = ()


def event_text(event: Event) -> EventText | None:
    """What happened, for people; None for events of bookkeeping."""
    words: EventText | None = None
    match event:
        case StartEvent():
            words = EventText("start", f"{event.agent} agent, at most {event.max_steps} steps")
        case ThinkEvent():
            words = EventText("think", event.content)
        case SearchEvent():
            words = EventText("search", event.query)
        case SearchDoneEvent():
            text = f"{counted(len(event.results), 'passage')}, {event.shards_ok} of {event.shards_total} shards"
            words = EventText("found", text, tuple(map(titled, event.results)))
        case ReadEvent():
            words = EventText("read", counted(len(event.pages), "page"), tuple(map(_page_text, event.pages)))
        case CropEvent():
            words = EventText("look", f"{event.place.title}, {place(event.place)}", (f'"{shortened(event.text)}"',))
        case MemorizeEvent():
            items = counted(len(event.items), "item")
            text = f"{event.summary} ({items})" if event.summary else items
            words = EventText("remember", text, tuple(f"note: {note}" for note in event.notes))
        case PruneEvent():
            words = EventText("prune", f"{counted(len(event.dropped), 'picture')} out of view")
        case CorrectionEvent():
            words = EventText("refused", event.message)
        case ErrorEvent():
            words = EventText("error", event.message)
        case MaxStepsEvent():
            words = EventText("limit", f"all {event.max_steps} steps are used up")
        case AnswerEvent():
            words = EventText("answer", event.status)
    return words


def event_lines(event: Event) -> Iterator[str]:
    """``event_text`` for a terminal: the time and the text on one line, then the details.

    What a model writes at length is shortened; queries and errors are whole.
    """
    words = event_text(event)
    if words is None:
        return
    is_long = isinstance(event, ThinkEvent | MemorizeEvent | CorrectionEvent)
    stamp = f"{event.t:6.2f} s  "
    yield f"{stamp}{words.verb:<9} {shortened(words.text) if is_long else words.text}"
    for detail in words.details:
        yield f"{' ' * len(stamp)}{'':9} {detail}"


def _page_text(page: ReadPage) -> str:
    if page.error:
        return f"{titled(page)}: cannot be read: {page.error}"
    read = counted(page.words, "word") if page.words else counted(page.characters, "character")
    return f"{titled(page)}: {read}"


def unsupported_lines(answer: str, sentences: Iterable[CheckedSentence]) -> Iterator[str]:
    """What of an answer stands in none of its sources, and its sentence."""
    for sentence in sentences:
        if sentence.missing:
            facts = ", ".join(f'"{fact}"' for fact in sentence.missing)
            where = (
                "its source" if len(sentence.citations) == 1 else "its sources" if sentence.citations else "any source"
            )
            yield f"not in {where}: {facts} ({shortened(' '.join(answer[sentence.start : sentence.end].split()))})"
        elif sentence.entailed is False:
            words = shortened(" ".join(answer[sentence.start : sentence.end].split()))
            yield f"the model finds that its sources do not say: {words}"


def computed_lines(sentences: Iterable[CheckedSentence]) -> Iterator[str]:
    """How figures of an answer follow from those of its sources."""
    for sentence in sentences:
        yield from (f"computed: {formula}" for formula in sentence.computed)


def titled(where: Place) -> str:
    """Title, and the page or the seconds."""
    if where.page is None and (where.t_start is None or where.t_end is None):
        return where.title
    text = where_text(where.page, where.t_start, where.t_end, (None, None), where.label, where.pages)
    return f"{where.title}, {text}"


def place(where: Place | Citation | SearchHit) -> str:
    """``page 4, box 0.10 0.31 0.90 0.35`` or ``60.0-70.0 s``."""
    span = (where.span_start, where.span_end) if isinstance(where, Citation) else (None, None)
    text = where_text(where.page, where.t_start, where.t_end, span, where.label, where.pages)
    return f"{text}, box {box_text(where.bbox)}" if where.bbox is not None else text


def where_text(
    page: int | None,
    t_start: float | None,
    t_end: float | None,
    span: tuple[int | None, int | None],
    label: str = "",
    pages: int = 0,
) -> str:
    if page is not None:
        return named_page(page, label, pages)
    if t_start is not None and t_end is not None:
        return f"{t_start:.1f}-{t_end:.1f} s"
    if span[0] is not None and span[1] is not None:
        return f"characters {span[0]}-{span[1]}"
    return "the text"


def box_text(box: Corners) -> str:
    return " ".join(f"{edge:.2f}" for edge in box)


def picture_path(citation: Citation) -> str | None:
    """The path at the gateway that shows what is cited; None for plain text."""
    if citation.page is not None:
        path = f"/v1/documents/{citation.doc_id}/pages/{citation.page}.png"
        return path if citation.bbox is None else f"{path}?bbox=" + ",".join(f"{edge:.4f}" for edge in citation.bbox)
    if citation.moment is not None:
        return f"/v1/documents/{citation.doc_id}/frames/{citation.moment:.1f}.png"
    return None


def without_note(answer: str) -> str:
    """``answer`` without the line that says how it was made."""
    for note in EXTRACTIVE_NOTES:
        answer = answer.replace(note, "")
    return answer.strip()


def counted(number: int, thing: str) -> str:
    """``1 picture``, ``2 pictures``."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def size_in_words(size: int) -> str:
    """``3.4 MB`` or ``12 kB``, of bytes."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{max(1, round(size / 1e3))} kB"


def shortened(text: str, limit: int = QUOTE_CHARS) -> str:
    """On one line, cut at a space where it is longer than ``limit``."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[:limit].rsplit(" ", 1)[0] + " …"


class Narrator:
    """Thoughts as they are; everything else on a line of its own. Replies in the making are left out: they may fail."""

    def __init__(self) -> None:
        self._in_line = False
        self._step = 0

    def text(self, event: Event) -> str:
        """What to add to the reasoning; empty for an event without a word for the reader."""
        if isinstance(event, ThinkEvent):
            begin = "\n" if self._in_line and event.step != self._step else ""
            self._in_line, self._step = not event.content.endswith("\n"), event.step
            return begin + event.content
        words = event_text(event)
        if words is None or isinstance(event, StartEvent | ReadEvent | AnswerEvent):
            return ""
        text = words.text
        if isinstance(event, SearchDoneEvent):
            text = "; ".join(words.details[:MOST_RESULTS]) or "nothing"
        begin = "\n" if self._in_line else ""
        self._in_line = False
        return f"{begin}{words.verb.capitalize()}: {text}\n"
