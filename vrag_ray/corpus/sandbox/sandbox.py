"""The parent of the decoding child: sends requests, watches the clock, checks replies, ends and replaces the child.

What holds against a hostile file: address space, CPU seconds and written files are limited by the kernel, wall time
(a multiple of the CPU seconds, since a busy machine gives a process little of a core) by the parent's kill, pixels,
pages and frames by checks before anything is allocated. What does not: the child may still open connections and read
files of its user; deployments that decode for strangers add a container around it. A child that a file has taken over
can also say something wrong of the files that it reads afterwards, and of pictures that the OCR cache stores for it.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from vrag_ray.caching import BoundedDiskCache
from vrag_ray.config import CorpusConfig, DecodeLimits
from vrag_ray.corpus.model import (
    PASSAGE_KINDS,
    DecodedUnit,
    DecodeError,
    DecodeOptions,
    Frame,
    KilledError,
    Probe,
    Sidecar,
    WorkItem,
    with_name,
)
from vrag_ray.corpus.sandbox.process import ChildProcess
from vrag_ray.corpus.sandbox.wire import (
    AttachmentReply,
    AttachmentsRequest,
    ChildReply,
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
)
from vrag_ray.corpus.sniff import Format
from vrag_ray.types import Box, DocumentKind, Locator, PageText
from vrag_ray.types.copies import with_changes
from vrag_ray.types.file_names import shown_name

log = logging.getLogger("vrag_ray.corpus")

MOST_OCR_NOTICES = 24
"""Extensions of one unit that the parent grants; a clip of a minute asks for three for speech, twelve for pictures."""
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"

T = TypeVar("T")


class Sandbox(AbstractContextManager["Sandbox"]):
    """One killable child process, started at the first call and replaced after a kill. Not thread-safe but for
    ``stop``.

    Every method raises DecodeError, naming the file and the reason; KilledError where the child broke a limit.
    """

    def __init__(self, limits: DecodeLimits) -> None:
        self._limits = limits
        self._default_options = DecodeOptions.from_config(CorpusConfig(limits=limits))
        self._child: ChildProcess | None = None
        self._peak_memory_mb = 0.0
        self._caches = True
        self._stopped = False

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def peak_memory_mb(self) -> float:
        """The most resident memory that a child of this sandbox has had."""
        return max(self._peak_memory_mb, self._child.peak_memory_mb if self._child else 0.0)

    def format_of(self, path: Path, name: str) -> Format:
        """The format of the bytes at ``path``; by content first, by the original file ``name`` second."""
        name = shown_name(name)
        return self._single_reply(path, name, FormatRequest(path=path, name=name), FormatReply)[0].format

    def probe(
        self,
        path: Path,
        name: str,
        options: DecodeOptions | None = None,
        sidecars: tuple[Sidecar, ...] = (),
        pages: Path | None = None,
    ) -> Probe:
        """What the bytes at ``path`` are; by content first, by the original file ``name`` second.

        ``options`` matters for videos only, whose units are clips; by default those of an unchanged configuration.
        ``sidecars`` are files that are read with it; ``pages`` is what LibreOffice made of the file, if anything.
        """
        options, name = options or self._default_options, shown_name(name)
        request = ProbeRequest(path=path, name=name, options=options, cautious=False, sidecars=sidecars, pages=pages)
        try:
            return self._single_reply(path, name, request, ProbeReply)[0].probe
        except KilledError:
            # A title is looked for on the first page. A page that kills must cost itself, not its document.
            request = with_changes(request, {"cautious": True})
            return self._single_reply(path, name, request, ProbeReply)[0].probe

    def stream(self, path: Path, item: WorkItem, options: DecodeOptions) -> Iterator[DecodedUnit]:
        """The units of ``item`` one by one as they are decoded; each has the whole CPU and wall limit to itself.

        A unit that cannot be read carries its error; one that kills the child ends the stream with KilledError. See
        ``isolate.decode_isolating`` for a decode that loses the killing unit only.
        """
        request = DecodeRequest(path=path, item=item, options=options)
        name = item.name or shown_name(path.name)
        with closing(self._exchange(path, name, request)) as replies:
            for unit in range(item.start, item.stop):
                reply, _ = next(replies, (DoneReply(), b""))
                if (
                    not isinstance(reply, UnitReply)
                    or reply.unit.unit != unit
                    or reply.unit.kind is not PASSAGE_KINDS[item.kind]
                ):
                    self._discard()
                    raise DecodeError(f"{name}: the decoder answered out of turn at unit {unit}")
                if reply.detail:
                    log.debug("%s, unit %d: the decoder said: %s", name, unit, reply.detail)
                unit_error = f"{name}: {reply.unit.error}" if reply.unit.error else ""
                yield replace(reply.unit, error=unit_error)
            self._expect_end(replies, name)

    def attachments(self, path: Path, name: str, options: DecodeOptions | None = None) -> Iterator[tuple[str, bytes]]:
        """Name and content of each file that is attached to a document and of a kind that is read.

        ``Probe.meta`` counts them as ``attachments``, and its notices name those that are left out.
        """
        name = shown_name(name)
        request = AttachmentsRequest(path=path, name=name, options=options or self._default_options)
        with closing(self._exchange(path, name, request)) as replies:
            for reply, body in replies:
                if not isinstance(reply, AttachmentReply):
                    self._discard()
                    raise DecodeError(f"{name}: the decoder answered out of turn")
                yield shown_name(reply.name), body

    def page_text(
        self,
        path: Path,
        kind: DocumentKind,
        locator: Locator,
        options: DecodeOptions,
        *,
        format_: str = "",
        notes: Path | None = None,
    ) -> PageText:
        """Text and words of one page, picture, clip or piece. ``doc_id`` of the answer is the name of ``path``.

        ``format_`` is ``format`` in the document's metadata, which says how a text is written; ``notes`` is the file
        with the notes of slides, where that of the pages has them not.
        """
        request = PageTextRequest(path=path, kind=kind, locator=locator, options=options, format=format_, notes=notes)
        return self._single_reply(path, shown_name(path.name), request, PageTextReply)[0].page_text

    def render(
        self, path: Path, kind: DocumentKind, locator: Locator, *, dpi: float, box: Box | None, max_pixels: int
    ) -> bytes:
        """PNG of a page, picture or frame (at ``t_start``), or of ``box`` of it.

        A PDF is drawn anew from its vector source at ``dpi``. Pictures and frames have their own pixels at 150 dpi
        and are never enlarged. ``dpi`` is lowered where the result would have more than ``max_pixels`` pixels.
        """
        pixels = min(max_pixels, self._limits.max_pixels)
        request = RenderRequest(
            path=path,
            kind=kind,
            locator=locator,
            options=self._default_options,
            dpi=dpi,
            box=box,
            max_pixels=pixels,
        )
        return _checked_png(
            self._single_reply(path, shown_name(path.name), request, PictureReply)[1], shown_name(path.name)
        )

    def frames(self, path: Path, locator: Locator, options: DecodeOptions, *, max_pixels: int) -> list[Frame]:
        """The sampled frames of a clip: ``options.video_fps`` a second, at most ``options.max_frames``, evenly."""
        pixels = min(max_pixels, self._limits.max_pixels)
        request = FramesRequest(path=path, locator=locator, options=options, max_pixels=pixels)
        frames: list[Frame] = []
        name = shown_name(path.name)
        with closing(self._exchange(path, name, request)) as replies:
            for reply, body in replies:
                if not isinstance(reply, PictureReply) or reply.t is None or len(frames) >= options.max_frames:
                    self._discard()
                    raise DecodeError(f"{name}: the decoder answered out of turn")
                frames.append(Frame(reply.t, _checked_png(body, name)))
        return frames

    def close(self) -> None:
        """End the child. The next call would start a new one."""
        self._discard()

    def stop(self) -> None:
        """From another thread: the call that is under way, and later ones, fail at once."""
        self._stopped = True
        child = self._child
        if child is not None:
            child.kill()

    def _single_reply(self, path: Path, name: str, request: Request, reply_type: type[T]) -> tuple[T, bytes]:
        with closing(self._exchange(path, name, request)) as replies:
            reply, body = next(replies, (DoneReply(), b""))
            if not isinstance(reply, reply_type):
                self._discard()
                raise DecodeError(f"{name}: the decoder answered out of turn")
            self._expect_end(replies, name)
        return reply, body

    def _expect_end(self, replies: Iterator[tuple[ChildReply, bytes]], name: str) -> None:
        if next(replies, None) is not None:
            self._discard()
            raise DecodeError(f"{name}: the decoder sent more units than were requested")

    def _exchange(self, path: Path, name: str, request: Request) -> Generator[tuple[ChildReply, bytes]]:
        """Replies up to Done. A child whose replies were not all taken is ended: its pipe is out of step."""
        self._check_file(path, name)
        finished = False
        try:
            child = self._send(request)
            extensions = readings = 0
            while True:
                reply, body = child.receive()
                if isinstance(reply, DoneReply):
                    finished = True
                    return
                if isinstance(reply, ErrorReply):
                    finished = not reply.memory
                    if reply.memory:
                        raise child.out_of_memory()
                    log.debug("%s: the decoder said: %s", name, reply.detail)
                    raise DecodeError(reply.message)
                if isinstance(reply, OcrNotice):
                    extensions += 1
                    if extensions <= MOST_OCR_NOTICES:
                        child.grant_ocr()
                    continue
                if isinstance(reply, ReadingReply):
                    readings += 1
                    # Telling a format reads no picture.
                    if readings <= MOST_OCR_NOTICES and not isinstance(request, FormatRequest):
                        self._store(request.options, reply.key, body)
                    continue
                extensions = readings = 0
                child.begin_unit()
                yield reply, body
        except DecodeError as error:
            raise with_name(error, name) from error
        finally:
            if not finished:
                self._discard()

    def _store(self, options: DecodeOptions, key: str, reading: bytes) -> None:
        if not (self._caches and options.ocr_cache):
            return
        try:
            BoundedDiskCache(Path(options.ocr_cache), options.ocr_cache_mb << 20).put(key, reading)
        except OSError as error:
            self._caches = False
            log.warning(
                "%s cannot be written (%s): what OCR reads is not cached, and is read again when it is needed again; "
                "set VRAG_CACHE_HOME to another folder, or corpus.ocr_cache_mb to 0",
                options.ocr_cache,
                error.strerror or error,
            )

    def _send(self, request: Request) -> ChildProcess:
        """Hand the request to the child, to a new one where the old one has died since the last call."""
        if self._stopped:
            raise DecodeError("not read: the decoder was stopped")
        if self._child is not None and self._child.send(request):
            return self._child
        self._discard()
        self._child = ChildProcess(self._limits)
        if not self._child.send(request):
            raise self._child.died()
        return self._child

    def _check_file(self, path: Path, name: str) -> None:
        try:
            size = path.stat().st_size
        except OSError as error:
            raise DecodeError(f"{name}: cannot be opened: {error.strerror}") from error
        if size > self._limits.max_file_mb * 2**20:
            raise DecodeError(
                f"{name}: has {size / 2**20:.0f} MiB, more than the limit of {self._limits.max_file_mb}: "
                "split it or raise corpus.limits.max_file_mb"
            )

    def _discard(self) -> None:
        if self._child is not None:
            self._child.end()
            self._peak_memory_mb = max(self._peak_memory_mb, self._child.peak_memory_mb)
            self._child = None


def _checked_png(data: bytes, name: str) -> bytes:
    if not data.startswith(PNG_SIGNATURE):
        raise DecodeError(f"{name}: the decoder returned something that is no PNG")
    return data
