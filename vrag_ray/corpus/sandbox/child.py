"""The process that touches untrusted bytes. Started by ``sandbox``; ends when its standard input is closed.

It limits itself before it reads anything: address space once, CPU seconds anew for every unit. What is printed by
libraries goes to standard error; the pipe that was standard output carries replies only.
"""

from __future__ import annotations

import gc
import importlib.util
import math
import os
import pkgutil
import resource
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, assert_never

from pydantic import BaseModel

import vrag_ray.corpus.formats
from vrag_ray.caching import BoundedDiskCache
from vrag_ray.config import DecodeLimits
from vrag_ray.corpus.formats.attachments import readable, with_attachments
from vrag_ray.corpus.formats.registry import open_container, open_source, open_video
from vrag_ray.corpus.formats.source import OpenContainer, OpenDocument, Opening, is_memory_error
from vrag_ray.corpus.model import NOTES_NAME, PASSAGE_KINDS, DecodedUnit, DecodeOptions, Sidecar
from vrag_ray.corpus.sandbox.wire import (
    AttachmentReply,
    AttachmentsRequest,
    DecodeRequest,
    DoneReply,
    ErrorReply,
    FormatReply,
    FormatRequest,
    FramesRequest,
    OcrNotice,
    PageTextReply,
    PageTextRequest,
    PictureReply,
    ProbeReply,
    ProbeRequest,
    ReadingReply,
    RenderRequest,
    Request,
    UnitReply,
    pack,
    read_request,
    read_start,
)
from vrag_ray.corpus.sniff import Format, sniff
from vrag_ray.types import DocumentKind, VragError

if TYPE_CHECKING:
    from vrag_ray.corpus.formats.media.speech import Model, Sound, Speech
    from vrag_ray.corpus.ocr import OcrEngine, OcrText, Picture

UNFORESEEN = (
    "is damaged, or of a kind that its decoder does not know: open it in the program that it was made with and save it "
    "anew, or export it as PDF"
)

Send = Callable[[bytes], None]
_Key = tuple[DocumentKind, Path, str, DecodeOptions, tuple[Sidecar, ...], Format | None]


class Child:
    """Answers requests. Keeps the last document open, since ranges of one document mostly follow each other."""

    def __init__(self, limits: DecodeLimits, send: Send) -> None:
        self._limits = limits
        self._send = send
        self._ocr: OcrEngine | None = None
        self._speech: Model | None = None
        self._open: tuple[_Key, OpenDocument] | None = None

    def answer(self, request: Request) -> None:
        """Send every reply to ``request``, the last one Done or Error."""
        self._grant_cpu(self._limits.cpu_seconds)
        match request:
            case ProbeRequest():
                self._probe(request)
            case FormatRequest():
                self._reply(FormatReply(format=sniff(request.path, request.name).format))
            case DecodeRequest():
                self._decode(request)
            case PageTextRequest():
                # Of others the content says it, and a drawing of the page is to find the same document open.
                format_ = _format(request.format) if request.kind is DocumentKind.TEXT else None
                notes = (Sidecar(request.notes, NOTES_NAME),) if request.notes is not None else ()
                source = self._source(request.kind, request.path, "", request.options, notes, format_)
                self._reply(PageTextReply(page_text=source.page_text(request.locator)))
            case RenderRequest():
                png = self._source(request.kind, request.path, "", request.options).render(
                    request.locator, dpi=request.dpi, box=request.box, max_pixels=request.max_pixels
                )
                self._reply(PictureReply(), png)
            case FramesRequest():
                self._frames(request)
            case AttachmentsRequest():
                self._attachments(request)
            case _:
                assert_never(request)
        self._reply(DoneReply())

    def _probe(self, request: ProbeRequest) -> None:
        sniffed = sniff(request.path, request.name)
        # Opened apart from the kept document: a cautious opening must not serve other requests.
        opening = self._opening(request.path, request.name, request.options, request.sidecars, sniffed.format)
        if request.pages is not None:
            opening = replace(opening, path=request.pages, original=request.path)
        opening = replace(opening, cautious=request.cautious)
        with closing(open_source(sniffed.kind, opening)) as source:
            probe = source.probe()
            if isinstance(source, OpenContainer) and not request.cautious:
                probe = with_attachments(probe, source, self._limits)
            self._reply(ProbeReply(probe=probe))

    def _attachments(self, request: AttachmentsRequest) -> None:
        sniffed = sniff(request.path, request.name)
        opening = self._opening(request.path, request.name, request.options, format_=sniffed.format)
        with closing(open_container(sniffed, opening)) as source:
            if isinstance(source, OpenContainer):
                for attachment in readable(source, self._limits):
                    self._reply(AttachmentReply(name=attachment.name), attachment.data)

    def _decode(self, request: DecodeRequest) -> None:
        item = request.item
        source = self._source(item.kind, request.path, item.name, request.options, item.sidecars)
        for unit in range(item.start, item.stop):
            self._grant_cpu(self._limits.cpu_seconds)
            locator, detail = source.locator(unit), ""
            try:
                decoded = source.unit(unit)
            except Exception as error:
                # Decoders raise anything; one page's fault must not cost the next.
                if is_memory_error(error):
                    raise
                message, detail = describe(error)
                decoded = DecodedUnit(unit, PASSAGE_KINDS[item.kind], locator, error=message)
            self._reply(UnitReply(unit=decoded, detail=detail))

    def _frames(self, request: FramesRequest) -> None:
        with closing(open_video(self._opening(request.path, "", request.options))) as source:
            for frame in source.frames(request.locator, request.max_pixels):
                self._reply(PictureReply(t=frame.t), frame.png)

    def _source(
        self,
        kind: DocumentKind,
        path: Path,
        name: str,
        options: DecodeOptions,
        sidecars: tuple[Sidecar, ...] = (),
        format_: Format | None = None,
    ) -> OpenDocument:
        key = (kind, path, name, options, sidecars, format_)
        if self._open is not None and self._open[0] == key:
            return self._open[1]
        if self._open is not None:
            self._open[1].close()
            self._open = None
        source = open_source(kind, self._opening(path, name, options, sidecars, format_))
        self._open = (key, source)
        return source

    def _opening(
        self,
        path: Path,
        name: str,
        options: DecodeOptions,
        sidecars: tuple[Sidecar, ...] = (),
        format_: Format | None = None,
    ) -> Opening:
        hear = partial(self._hear, options.speech_model) if options.speech_model else None
        read = partial(self._read, options)
        return Opening(path, name, options, self._limits, read, format=format_, sidecars=sidecars, hear=hear)

    def _read(self, options: DecodeOptions, picture: Picture) -> OcrText:
        """OCR, granted time of its own for every strip: its cost is bounded by the picture's size, not chosen by the
        file.

        What was read before is taken from the cache; what is read now the parent puts there.
        """
        from vrag_ray.corpus.ocr import OcrEngine, Reading, picture_key, strips_of

        key = picture_key(picture) if options.ocr_cache else ""
        if key:
            stored = BoundedDiskCache(Path(options.ocr_cache), options.ocr_cache_mb << 20).get(key)
            reading = Reading.from_bytes(stored) if stored is not None else None
            if reading is not None:
                return reading.ordered()
        self._ocr = self._ocr or OcrEngine()
        strips = len(strips_of(picture))
        for _ in range(strips):
            self._reply(OcrNotice())
        self._grant_cpu(self._limits.cpu_seconds + strips * self._limits.ocr_seconds)
        reading = self._ocr.reading(picture)
        if key:
            self._reply(ReadingReply(key=key), reading.to_bytes())
        return reading.ordered()

    def _hear(self, folder: str, sound: Sound) -> Speech:
        """Speech, granted time of its own for every half minute, which is what the model takes at once."""
        from vrag_ray.corpus.formats.media.speech import RATE, load_model, transcribed

        windows = max(1, math.ceil(len(sound) / (30 * RATE)))
        for _ in range(windows):
            self._reply(OcrNotice())
        self._grant_cpu(self._limits.cpu_seconds + windows * self._limits.ocr_seconds)
        if self._speech is None:
            self._speech = load_model(folder)
        return transcribed(self._speech, sound)

    def _reply(self, message: BaseModel, attachment: bytes = b"") -> None:
        self._send(pack(message, attachment))

    def _grant_cpu(self, seconds: int) -> None:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(usage.ru_utime + usage.ru_stime) + seconds, hard))


def _format(name: str) -> Format | None:
    """What a document's metadata calls its format; None for a text without, or for what a user wrote there."""
    return Format(name) if name in frozenset(Format) else None


def describe(error: Exception) -> tuple[str, str]:
    """For the reader of an error list, what is wrong and what to do; for a log, the library's message."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    detail = "" if isinstance(cause, VragError) else f"{type(cause).__name__}: {' '.join(str(cause).split())[:500]}"
    return (" ".join(str(error).split())[:500] if isinstance(error, VragError) else UNFORESEEN), detail


def store_bytecode() -> bool:
    """Import the decoders where they were installed without bytecode, as uv does it; whether that is stored now.

    A confined process cannot store it: each one would compile PyMuPDF anew, which takes 0.7 s, or the readers of this
    package, after an upgrade of it alone.
    """
    found = [importlib.util.find_spec(name) for name in ("pymupdf", "vrag_ray.corpus.formats.pdf")]
    modules = [(Path(spec.origin), Path(spec.cached)) for spec in found if spec and spec.origin and spec.cached]
    missing = [(source, stored) for source, stored in modules if not stored.exists()]
    if sys.dont_write_bytecode or not missing:
        return False
    if not sys.pycache_prefix and not all(os.access(source.parent, os.W_OK) for source, _ in missing):
        return False
    for module in pkgutil.walk_packages(vrag_ray.corpus.formats.__path__, "vrag_ray.corpus.formats."):
        importlib.import_module(module.name)
    return all(stored.exists() for _, stored in missing)


def confine(limits: DecodeLimits) -> None:
    """Bound what this process may take; no file can be written from here on."""
    memory = limits.memory_mb * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def serve(requests: BinaryIO, send: Send) -> None:
    """Answer requests until the parent closes the pipe, or memory runs out, after which nothing can be trusted."""
    start = read_start(requests)
    if start is None:
        return
    confine(start.limits)
    child = Child(start.limits, send)
    while (request := read_request(requests)) is not None:
        try:
            child.answer(request)
        except Exception as error:  # noqa: BLE001
            # The boundary: whatever a decoder raises becomes an error reply.
            if is_memory_error(error):
                gc.collect()
                send(pack(ErrorReply(message="out of memory", memory=True)))
                requests.read()  # Wait for the end here, where the parent can still see how much memory was taken.
                return
            message, detail = describe(error)
            send(pack(ErrorReply(message=message, detail=detail)))


def main() -> None:
    # PyMuPDF imports what is not used here: a layout analyser (0.5 s, 270 MB of address space), and a converter to
    # Markdown with onnxruntime.
    for unused in ("pymupdf.layout", "pymupdf4llm"):
        sys.modules[unused] = None  # type: ignore[assignment]
    if store_bytecode():
        # Anew, without what a document may not need.
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606  no shell
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)

    def send(data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[replies.write(view) :]

    serve(sys.stdin.buffer, send)


if __name__ == "__main__":
    main()
