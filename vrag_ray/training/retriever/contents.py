"""The words and pictures of queries and passages, the pictures at exactly the size at which they are embedded."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from vrag_ray.agent.chat import PictureRequest
from vrag_ray.config import Settings
from vrag_ray.embedding.base import Content, PictureSpec
from vrag_ray.imaging.coordinates import Size, model_size
from vrag_ray.imaging.fitting import fitted
from vrag_ray.index.storage.collection import Collection
from vrag_ray.library.library import Library
from vrag_ray.questions.named_pages import NamedPages
from vrag_ray.questions.rows import DataError
from vrag_ray.training.retriever.pairs import Item, Pair
from vrag_ray.types import Locator, VragError
from vrag_ray.types.copies import with_changes


class ContentReader:
    """Reads items as an ingest would show them to an embedder that asks for ``spec``.

    ``collection`` is the folder of the collection that pages of documents are drawn from, None where there are none.
    """

    def __init__(self, spec: PictureSpec, collection: str | None) -> None:
        self._spec = spec
        self._loop = asyncio.Runner()
        self._library: Library | None = None
        self._pages = NamedPages(())
        if collection is not None:
            self._library = Library(with_changes(Settings(), {"collection": collection, "collections": {}}))
            self._pages = NamedPages(Collection.open(collection).documents())

    def check(self, pairs: Sequence[Pair]) -> None:
        """Raises ``DataError`` for a page that the collection has not, or whose document it has twice by that name."""
        for item in dict.fromkeys(
            item for pair in pairs for item in (pair.query, *pair.positives, *pair.negatives) if item.doc
        ):
            self._place(item)

    def read(self, items: Sequence[Item]) -> list[Content]:
        """In order. Raises ``DataError`` that names what cannot be read."""
        drawn = iter(self._drawn([item for item in items if item.doc]))
        return [
            Content(item.text, next(drawn) if item.doc else self._file(item.picture) if item.picture else None)
            for item in items
        ]

    def _drawn(self, pages: Sequence[Item]) -> list[bytes]:
        if self._library is None or not pages:
            return []
        spec = self._spec
        requests = [
            PictureRequest(*self._place(page), None, None, spec.patch, spec.min_pixels, spec.max_pixels)
            for page in pages
        ]
        pngs = []
        for page, picture in zip(pages, self._loop.run(self._library.pictures(requests)), strict=True):
            if isinstance(picture, VragError):
                raise DataError(f"{page.name}: {picture}") from picture
            pngs.append(picture.png)
        return pngs

    def _place(self, page: Item) -> tuple[str, Locator]:
        try:
            return self._pages.find(page.doc, page.page, f"the document {page.doc!r}")
        except VragError as error:
            raise DataError(str(error)) from error

    def _file(self, path: str) -> bytes:
        """Upright, on white, as ingest decodes a picture."""
        from PIL import Image, ImageOps

        from vrag_ray.corpus.formats.image import rgb

        spec = self._spec
        try:
            data = Path(path).read_bytes()
            with Image.open(io.BytesIO(data)) as picture:
                upright = rgb(ImageOps.exif_transpose(picture))
                raw = Size(upright.width, upright.height)
                size = model_size(raw, patch=spec.patch, min_pixels=spec.min_pixels, max_pixels=spec.max_pixels)
                if picture.format == "PNG" and picture.mode == "RGB" and size == raw and not picture.getexif():
                    return data
                made = io.BytesIO()
                upright.save(made, "PNG", compress_level=1)
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            raise DataError(f"{path} is no picture: {error}") from error
        return made.getvalue() if size == raw else fitted(made.getvalue(), size)

    def close(self) -> None:
        if self._library is not None:
            self._library.close()
        self._loop.close()

    def __enter__(self) -> ContentReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
