"""Reading text off pictures with RapidOCR (PP-OCRv6 on ONNX Runtime; the models are in its wheel).

Measured on one core: 5 to 7 s for a full page at 150 dpi, about 0.13 s a line; word F1 0.99 on rendered pages of
a manual. Peak address space of the child 1.2 GB: recognition goes line by line, batches of six cost as much time
and twice the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from vrag_ray.corpus.model import DecodeError, TextLine, clean, letters_in
from vrag_ray.types import Box, Word

if TYPE_CHECKING:
    from rapidocr import RapidOCR

Picture = NDArray[np.uint8]
"""An upright picture, RGB, shape (height, width, 3)."""

Quad = Sequence[Sequence[float]]
"""Four corners in pixels."""

LONGEST_SIDE = 2000
"""Pixels. A larger picture is read scaled down to this: the detector sees no more."""
OCR_PIXELS = LONGEST_SIDE**2
"""Pixels that a picture handed to OCR need not exceed."""
DETECTOR_SIDE = 1600
TURNED_ASPECT = 1.5
"""RapidOCR turns a line that is this many times higher than wide by a quarter before it reads it."""


@dataclass(frozen=True, slots=True)
class OcrText:
    """The words of a picture in reading order, boxes in fractions of the picture.

    The words are ``text.split()``, so that a quote of words stands in the text. A script without spaces has none
    between its characters: a run of it is one word, as in a PDF's text layer.
    """

    text: str
    words: tuple[Word, ...]


ReadPicture = Callable[[Picture], OcrText]


@dataclass(frozen=True, slots=True)
class OcrLine:
    """One line as the recogniser gives it, in pixels.

    ``glyphs`` has a quad for each character of ``text`` that is no space, in order; empty where they are not known.
    """

    text: str
    quad: Quad
    glyphs: tuple[Quad, ...] = ()


class OcrEngine:
    """A RapidOCR session, loaded at the first picture (about 0.5 s)."""

    def __init__(self) -> None:
        self._engine: RapidOCR | None = None

    def read(self, picture: Picture) -> OcrText:
        """The text of ``picture``; empty where there is none."""
        from rapidocr.utils.output import RapidOCROutput

        if self._engine is None:
            self._engine = _load_engine()
        result = self._engine(np.ascontiguousarray(picture[:, :, ::-1]))
        if not isinstance(result, RapidOCROutput) or result.txts is None or result.boxes is None:
            return OcrText("", ())
        texts, quads = [clean(text) for text in result.txts], result.boxes
        glyphs = result.word_results if len(result.word_results) == len(texts) else [()] * len(texts)
        lines = [
            OcrLine(text, cast(Quad, quad.tolist()), glyph_quads(text, found))
            for text, quad, found in zip(texts, quads, glyphs, strict=True)
        ]
        return assemble(lines, width=picture.shape[1], height=picture.shape[0])


def assemble(lines: Sequence[OcrLine], width: int, height: int) -> OcrText:
    """Lines in reading order: rows from top to bottom, a row from left to right. One text line a row.

    ``width`` and ``height`` are the picture's, in pixels. A line that lies wholly outside it is left out.
    """
    rows = _rows([line for line in lines if line.text.strip() and _box(line.quad, width, height) is not None])
    words = [word for row in rows for line in row for word in _words(line, width, height)]
    return OcrText("\n".join(" ".join(line.text.strip() for line in row) for row in rows), tuple(words))


def lines_of_words(words: Sequence[Word]) -> tuple[TextLine, ...]:
    """Where OCR's text stands, a word at a time."""
    return tuple(TextLine(letters_in(word.text), word.box) for word in words)


def _rows(lines: Sequence[OcrLine]) -> list[list[OcrLine]]:
    if not lines:
        return []
    slack = median(_bottom(line.quad) - _top(line.quad) for line in lines) / 2
    rows: list[list[OcrLine]] = []
    anchor = 0.0
    for line in sorted(lines, key=lambda line: _top(line.quad) + _bottom(line.quad)):
        middle = (_top(line.quad) + _bottom(line.quad)) / 2
        if rows and middle - anchor <= slack:
            rows[-1].append(line)
        else:
            rows.append([line])
            anchor = middle
    return [sorted(row, key=lambda line: min(x for x, _ in line.quad)) for row in rows]


def _top(quad: Quad) -> float:
    return min(y for _, y in quad)


def _bottom(quad: Quad) -> float:
    return max(y for _, y in quad)


def _words(line: OcrLine, width: int, height: int) -> Iterator[Word]:
    """The line's text, cut at its spaces; a word's box is around its glyphs."""
    whole = _box(line.quad, width, height)
    quads = iter(line.glyphs or _proportional(line))
    for text in line.text.split():
        corners = [corner for quad in islice(quads, len(text)) for corner in quad]
        # Glyphs are in whole pixels: a narrow one at the edge of the picture can have no area.
        if (box := _box(corners, width, height) or whole) is not None:
            yield Word(text, box)


def _proportional(line: OcrLine) -> Iterator[Quad]:
    """An equal share of the line for each character, where the recogniser does not say where they stand.

    From left to right; from top to bottom in a line that the recogniser turns before it reads it.
    """
    left, right = min(x for x, _ in line.quad), max(x for x, _ in line.quad)
    top, bottom = _top(line.quad), _bottom(line.quad)
    turned = bottom - top >= TURNED_ASPECT * (right - left)
    step = ((bottom - top) if turned else (right - left)) / len(line.text)
    for place, character in enumerate(line.text):
        if character.isspace():
            continue
        if turned:
            yield (left, top + place * step), (right, top + (place + 1) * step)
        else:
            yield (left + place * step, top), (left + (place + 1) * step, bottom)


def _box(quad: Quad, width: int, height: int) -> Box | None:
    x0, x1 = (min(max(f(x for x, _ in quad) / width, 0.0), 1.0) for f in (min, max))
    y0, y1 = (min(max(f(y for _, y in quad) / height, 0.0), 1.0) for f in (min, max))
    return Box(x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None


def glyph_quads(text: str, found: object) -> tuple[Quad, ...]:
    """The quads of RapidOCR's single characters ``found``, (character, confidence, quad) each, if they spell ``text``.

    Empty where they do not: RapidOCR can hand back raw columns, or the characters of another line.
    """
    if not isinstance(found, list | tuple) or not all(isinstance(one, tuple) and len(one) == 3 for one in found):
        return ()
    glyphs = [(letter, cast(Quad, quad)) for character, _, quad in found for letter in clean(str(character))]
    spelled = [(letter, quad) for letter, quad in glyphs if not letter.isspace()]
    fits = "".join(letter for letter, _ in spelled) == "".join(text.split())
    return tuple(quad for _, quad in spelled) if fits else ()


def _load_engine() -> RapidOCR:
    import rapidocr

    models = Path(rapidocr.__file__).parent / "models"
    detector = models / "PP-OCRv6_det_small.onnx"
    recogniser = models / "PP-OCRv6_rec_small.onnx"
    if not (detector.exists() and recogniser.exists()):
        raise DecodeError(
            "needs OCR, but the installed rapidocr does not carry its PP-OCRv6 models; "
            'install "rapidocr>=3.10,<4" or set corpus.ocr to false'
        )
    # Explicit model paths: without them RapidOCR downloads whatever its configuration names.
    return rapidocr.RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.use_cls": False,
            "Global.return_word_box": True,
            # Its own words are cut at wide gaps, not at the spaces that it reads; its characters cost 1 % more time.
            "Global.return_single_char_box": True,
            "Global.max_side_len": LONGEST_SIDE,
            "Det.model_path": str(detector),
            "Det.limit_type": "max",
            "Det.limit_side_len": DETECTOR_SIDE,
            "Rec.model_path": str(recogniser),
            "Rec.rec_batch_num": 1,
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )
