"""Which implementation reads which kind of document. The only place that imports the decoding libraries."""

from __future__ import annotations

from collections.abc import Callable

from vrag_ray.corpus.formats.source import OpenDocument, Opening, OpenVideo
from vrag_ray.types import DocumentKind


def open_source(kind: DocumentKind, opening: Opening) -> OpenDocument:
    """Open a document; only here are the decoding libraries imported, so that each child loads what it needs."""
    return _OPENERS[kind](opening)


def open_video(opening: Opening) -> OpenVideo:
    from vrag_ray.corpus.formats.video import VideoSource

    return VideoSource(opening)


def _open_pdf(opening: Opening) -> OpenDocument:
    from vrag_ray.corpus.formats.pdf import PdfSource

    return PdfSource(opening)


def _open_image(opening: Opening) -> OpenDocument:
    from vrag_ray.corpus.formats.image import ImageSource

    return ImageSource(opening)


def _open_text(opening: Opening) -> OpenDocument:
    from vrag_ray.corpus.formats.text import TextSource

    return TextSource(opening)


_OPENERS: dict[DocumentKind, Callable[[Opening], OpenDocument]] = {
    DocumentKind.PDF: _open_pdf,
    DocumentKind.IMAGE: _open_image,
    DocumentKind.VIDEO: open_video,
    DocumentKind.TEXT: _open_text,
}
