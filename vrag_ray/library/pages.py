"""Pictures and words of single pages, drawn on demand from the stored originals, in killable children off the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from vrag_ray.caching import SingleFlight, SizedLRU
from vrag_ray.config import CorpusConfig, ServingConfig
from vrag_ray.corpus.elements import elements, elements_of_clip
from vrag_ray.corpus.tables import text_with_tables
from vrag_ray.types import Box, Cue, Document, Locator, PageText, Word
from vrag_ray.types.elements import ElementKind

if TYPE_CHECKING:
    from vrag_ray.corpus.sandbox.sandbox import Sandbox

T = TypeVar("T")
_CACHED_TEXTS = 512


@dataclass(frozen=True, slots=True)
class Stored:
    """What a collection keeps of a unit: the file that it is read from, the words that ingest read in its pixels, those
    of a clip with their times, its shots, and a file with the notes of slides.

    Reading pixels again would take seconds, and so would hearing.
    """

    path: Path
    ocr: tuple[Word, ...]
    cues: tuple[Cue, ...] = ()
    shots: tuple[tuple[float, float], ...] = ()
    notes: Path | None = None


class PageReader:
    """Draws and reads pages with a few threads, each with a sandbox of its own."""

    def __init__(self, corpus: CorpusConfig, serving: ServingConfig) -> None:
        self._corpus = corpus
        self._max_pixels = serving.max_render_pixels
        self._pngs: SizedLRU[str, bytes] = SizedLRU(serving.render_cache_mb << 20, len)
        self._drawing: SingleFlight[str, bytes] = SingleFlight()
        self._reading: SingleFlight[tuple[str, str], PageText] = SingleFlight()
        self._texts: SizedLRU[tuple[str, str], PageText] = SizedLRU(_CACHED_TEXTS)
        self._threads = ThreadPoolExecutor(serving.render_threads, thread_name_prefix="pages")
        self._local = threading.local()
        self._sandboxes: list[Sandbox] = []

    async def png(self, document: Document, path: Path, locator: Locator, dpi: float, box: Box | None) -> bytes:
        """PNG of a page, picture or frame, or of ``box`` of it. Raises DecodeError when it cannot be drawn.

        Requests for the same picture that come while it is being drawn wait for that one drawing.
        """
        key = f"{document.doc_id}|{locator.key}|{dpi:g}|{box}"
        cached = self._pngs.get(key)
        if cached is not None:
            return cached

        def draw(sandbox: Sandbox) -> bytes:
            return sandbox.render(path, document.kind, locator, dpi=dpi, box=box, max_pixels=self._max_pixels)

        png = await self._drawing.result(key, lambda: self._run(draw))
        self._pngs.put(key, png)
        return png

    async def text(self, document: Document, locator: Locator, find: Callable[[], Awaitable[Stored]]) -> PageText:
        """The words of one unit; ``find`` is called where the unit has not been read lately.

        Requests for the same unit that come while it is being read wait for that one reading.
        """
        key = (document.doc_id, locator.key)
        text = self._texts.get(key)
        if text is None:
            text = await self._reading.result(key, lambda: self._read(document, locator, find))
            self._texts.put(key, text)
        return text

    async def _read(self, document: Document, locator: Locator, find: Callable[[], Awaitable[Stored]]) -> PageText:
        stored = await find()

        def read(sandbox: Sandbox) -> PageText:
            from vrag_ray.corpus.model import DecodeOptions

            options = replace(DecodeOptions.from_config(self._corpus), ocr=self._corpus.ocr and not stored.ocr)
            format_ = str(document.meta.get("format", ""))
            notes = stored.notes
            return sandbox.page_text(stored.path, document.kind, locator, options, format_=format_, notes=notes)

        text = replace(await self._run(read), doc_id=document.doc_id)
        if stored.ocr:
            # Ingest took them for the page's text: a text layer, if any, has less.
            content = "\n".join(filter(None, (text_with_tables(stored.ocr, text.aspect), text.notes)))
            pictures = [part.box for part in text.elements if part.kind is ElementKind.PICTURE]
            parts = elements(stored.ocr, text.aspect, pictures=pictures)
            text = replace(text, words=stored.ocr, text=content, elements=parts)
        if stored.cues or stored.shots:
            spoken = "\n".join(map(str, stored.cues)) or text.text
            text = replace(text, text=spoken, elements=elements_of_clip(stored.cues, stored.shots))
        return text

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)
        for sandbox in self._sandboxes:
            sandbox.close()

    async def _run(self, work: Callable[[Sandbox], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: work(self._sandbox()))

    def _sandbox(self) -> Sandbox:
        from vrag_ray.corpus.sandbox.sandbox import Sandbox

        sandbox: Sandbox | None = getattr(self._local, "sandbox", None)
        if sandbox is None:
            sandbox = Sandbox(self._corpus.limits)
            self._local.sandbox = sandbox
            self._sandboxes.append(sandbox)
        return sandbox
