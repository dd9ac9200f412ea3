"""Which implementation reads which kind of document. The only place that imports the decoding libraries."""

from __future__ import annotations

from collections.abc import Callable

from vrag_ray.corpus.formats.source import OpenContainer, OpenDocument, Opening, OpenVideo
from vrag_ray.corpus.model import DecodeError
from vrag_ray.corpus.sniff import OFFICE, Format, Sniffed, sniff
from vrag_ray.types import DocumentKind


def open_source(kind: DocumentKind, opening: Opening) -> OpenDocument:
    """Open a document; only here are the decoding libraries imported, so that each child loads what it needs."""
    return _OPENERS[kind](opening)


def open_container(sniffed: Sniffed, opening: Opening) -> OpenContainer | OpenDocument:
    """What holds the files in a document: of an office file its archive, of a web page its text, which need not be laid
    out for them."""
    if sniffed.format is Format.HTML:
        from vrag_ray.corpus.formats.laid_out import WebPage

        return WebPage(opening.path)
    if sniffed.format in OFFICE:
        from vrag_ray.corpus.formats.laid_out import OfficeArchive

        return OfficeArchive(opening.path, sniffed.format)
    return open_source(sniffed.kind, opening)


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
    match opening.format or _text_format(opening):
        case Format.TABLE:
            from vrag_ray.corpus.formats.table import TableSource

            return TableSource(opening)
        case Format.MAIL | Format.MSG as format_:
            from vrag_ray.corpus.formats.mail import MailSource

            return MailSource(opening, format_)
        case format_:
            from vrag_ray.corpus.formats.text import TextSource

            return TextSource(opening, format_)


def _text_format(opening: Opening) -> Format:
    try:
        return sniff(opening.path, opening.name).format
    except DecodeError:
        # A text that was taken in under another name than it has now.
        return Format.TEXT


_OPENERS: dict[DocumentKind, Callable[[Opening], OpenDocument]] = {
    DocumentKind.PDF: _open_pdf,
    DocumentKind.IMAGE: _open_image,
    DocumentKind.VIDEO: open_video,
    DocumentKind.TEXT: _open_text,
}
