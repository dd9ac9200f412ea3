"""Pictures of a conversation: pages of the collection, and pictures that the caller sent."""

from __future__ import annotations

from vrag_ray.serving.contract import DocumentPart
from vrag_ray.serving.openai.references import DocumentPlace, InlinePicture
from vrag_ray.serving.sent_pictures import DPI, SentPictures


class Pictures:
    """Pages are drawn by the library; what was sent is decoded by ``sent``."""

    def __init__(self, documents: DocumentPart, sent: SentPictures) -> None:
        self._documents = documents
        self._sent = sent

    async def png(self, picture: DocumentPlace | InlinePicture, param: str) -> bytes:
        """Raises InvalidError (for ``param``) where a sent file is no picture, NotFoundError for an unknown place."""
        if isinstance(picture, InlinePicture):
            return await self._sent.png(picture.data, param)
        if picture.t is not None:
            return await self._documents.frame_png(picture.doc_id, picture.t)
        return await self._documents.page_png(picture.doc_id, picture.page or 1, DPI, None)
