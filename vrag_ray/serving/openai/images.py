"""Pictures for the bare model: pages of the collection, and pictures that the caller sent."""

from __future__ import annotations

import asyncio
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_ray.config import DecodeLimits
from vrag_ray.serving.backends import DocumentBackend
from vrag_ray.serving.errors import InvalidError
from vrag_ray.serving.openai.references import DocumentPlace, InlinePicture
from vrag_ray.types import DocumentKind, Locator

if TYPE_CHECKING:
    from vrag_ray.corpus.sandbox.sandbox import Sandbox

DPI = 150.0
"""Pages are drawn at this; pictures and frames have their own pixels at it."""
MAX_PIXELS = 4_000_000
"""A sent picture with more is scaled down: no model behind this looks at more."""
LIMITS = DecodeLimits(max_pixels=32_000_000)


class Pictures:
    """Sent files are decoded in one killable child process, started at the first of them."""

    def __init__(self, documents: DocumentBackend) -> None:
        self._documents = documents
        self._sandbox: Sandbox | None = None
        # A sandbox serves one thread.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="chat-pictures")

    async def png(self, picture: DocumentPlace | InlinePicture, param: str) -> bytes:
        """Raises InvalidError (for ``param``) where a sent file is no picture, NotFoundError for an unknown place."""
        if isinstance(picture, InlinePicture):
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._decode, picture.data, param)
        if picture.t is not None:
            return await self._documents.frame_png(picture.doc_id, picture.t)
        return await self._documents.page_png(picture.doc_id, picture.page or 1, DPI, None)

    def _decode(self, data: bytes, param: str) -> bytes:
        """Upright RGB on white, as PNG. Blocking."""
        from vrag_ray.corpus.model import DecodeError
        from vrag_ray.corpus.sandbox.sandbox import Sandbox

        if self._sandbox is None:
            self._sandbox = Sandbox(LIMITS)
        with tempfile.TemporaryDirectory(prefix="vrag-chat-") as folder:
            path = Path(folder) / "picture"
            path.write_bytes(data)
            try:
                return self._sandbox.render(
                    path, DocumentKind.IMAGE, Locator(page=1), dpi=DPI, box=None, max_pixels=MAX_PIXELS
                )
            except DecodeError as error:
                raise InvalidError(f"{param}: {error}", param=param) from error
