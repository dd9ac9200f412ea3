"""Small pictures of the pages that answers cite or should cite, stored beside an evaluation for its report."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from vrag_ray.agent.citations import Citation
from vrag_ray.client.contract import System
from vrag_ray.questions.gold_places import GoldPlace
from vrag_ray.types import VragError
from vrag_ray.types.redaction import scrub

PAGES = "pages"
LONGEST_PX, QUALITY = 640, 60
DPI = 100.0
"""A sheet of A4 is then 1,170 pixels high: enough to be made smaller well."""
PICTURE, REASON = ".jpg", ".txt"
_SAFE_ID = re.compile(r"[0-9A-Za-z_-]{1,128}")
"""Ids come from a service too, and name files here."""


Draw = Callable[[str, int | None, float | None], Awaitable[bytes]]
"""``drawn`` by a system."""


class PageShots:
    """Each page once, in ``root/pages``. One that cannot be drawn has a text file there, which says why."""

    def __init__(self, root: Path, draw: Draw) -> None:
        self._folder = root / PAGES
        self._draw = draw
        self._begun: set[str] = set()

    async def take(self, citations: Iterable[Citation], gold: Iterable[GoldPlace]) -> None:
        """What of them has a picture and is not there yet."""
        for doc_id, page, seconds in (*map(shown_of_citation, citations), *map(shown_of_gold, gold)):
            name = shot_name(doc_id, page, seconds)
            if name and name not in self._begun and not (self._folder / f"{name}{PICTURE}").exists():
                # Before it is drawn: questions that run at the same time cite the same page.
                self._begun.add(name)
                await self._store(name, doc_id, page, seconds)

    async def _store(self, name: str, doc_id: str, page: int | None, seconds: float | None) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        reason = self._folder / f"{name}{REASON}"
        try:
            png = await self._draw(doc_id, page, seconds)
            jpeg = await asyncio.to_thread(small_jpeg, png)
        except VragError as error:
            reason.write_text(scrub(str(error)), encoding="utf-8")
            return
        part = self._folder / f"{name}.part"
        part.write_bytes(jpeg)
        part.rename(self._folder / f"{name}{PICTURE}")
        reason.unlink(missing_ok=True)


async def drawn(system: System, doc_id: str, page: int | None, seconds: float | None) -> bytes:
    """The picture of a page, or of the frame at a second, as PNG."""
    if page is not None:
        return await system.page_png(doc_id, page, dpi=DPI)
    return await system.frame_png(doc_id, seconds or 0.0)


Shown = tuple[str, int | None, float | None]
"""Document, and its page or the second of the frame that is shown for it; neither for plain text."""


def shown_of_citation(citation: Citation) -> Shown:
    return citation.doc_id, citation.page, citation.t_start


def shown_of_gold(gold: GoldPlace) -> Shown:
    """Of seconds, the frame in their middle."""
    return gold.doc_id, gold.page, None if gold.seconds is None else sum(gold.seconds) / 2


def shot_name(doc_id: str, page: int | None, seconds: float | None) -> str:
    """The name of a picture's file, without its ending; empty for what has no picture."""
    if not _SAFE_ID.fullmatch(doc_id) or (page is None and seconds is None):
        return ""
    return f"{doc_id}-p{page}" if page is not None else f"{doc_id}-t{seconds:.1f}"


def small_jpeg(png: bytes) -> bytes:
    """At most ``LONGEST_PX`` on the longer side. Raises VragError for what is no picture."""
    from PIL import Image

    buffer = io.BytesIO()
    try:
        with Image.open(io.BytesIO(png)) as image:
            small = image.convert("RGB")
    except (OSError, Image.DecompressionBombError) as error:
        raise VragError("what came is no picture that can be read") from error
    small.thumbnail((LONGEST_PX, LONGEST_PX), Image.Resampling.LANCZOS)
    small.save(buffer, "JPEG", quality=QUALITY, optimize=True)
    return buffer.getvalue()
