"""Draw ``docs/images/answer.png``: the page that an answer of the demo cites, with the cited row and its cell boxed.

.venv/bin/vrag demo                    # leaves demo-collection
.venv/bin/python tools/draw_answer.py demo-collection
"""

from __future__ import annotations

import argparse
import asyncio
import io
import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[1]
# ``ui`` is no installed package.
sys.path[0] = str(ROOT)

from ui.boxes import outlined
from vrag_ray.client.schemas import RunRequest
from vrag_ray.config import Settings
from vrag_ray.samples.demo.questions import QUESTIONS
from vrag_ray.system.here import local_system
from vrag_ray.types import Box

PICTURE = ROOT / "docs/images/answer.png"
RUN = "drawn-answer"
DPI = 100.0
COLOURS = 64
SHOWN = 0.64
"""Of the height of the page, from its top."""


async def draw(collection: str, question: str) -> Image.Image:
    async with local_system(Settings(collection=collection)) as system:
        request = RunRequest(question=question, run_id=RUN)
        async for _ in system.ask(request):
            pass
        citation = (await system.run(RUN)).citations[0]
        if citation.page is None or citation.bbox is None:
            raise SystemExit(f"{question!r} is not answered with a box on a page: {citation}")
        png = await system.page_png(citation.doc_id, citation.page, dpi=DPI)
    value = Box(*citation.value_bbox) if citation.value_bbox is not None else None
    return Image.open(io.BytesIO(outlined(png, Box(*citation.bbox), None, value)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection")
    parser.add_argument("--question", default=QUESTIONS[0].question)
    arguments = parser.parse_args()
    page = asyncio.run(draw(arguments.collection, arguments.question))
    picture = page.crop((0, 0, page.width, round(SHOWN * page.height)))
    picture.convert("P", palette=Image.Palette.ADAPTIVE, colors=COLOURS).save(PICTURE, optimize=True)
    print(f"{PICTURE}: {picture.width} x {picture.height}, {PICTURE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
