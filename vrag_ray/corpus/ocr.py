"""Reading text off pictures with RapidOCR (PP-OCRv6 on ONNX Runtime; the models are in its wheel).

Measured on one core: 5 to 7 s for a full page at 150 dpi, about 0.13 s a line; word F1 0.99 on rendered pages of
a manual. Peak address space of the child 1.2 GB: recognition goes line by line, batches of six cost as much time
and twice the memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class OcrText:
    """The words of a picture in reading order, boxes in fractions of the picture."""

    text: str
    words: tuple[Word, ...]


ReadPicture = Callable[[Picture], OcrText]


@dataclass(frozen=True, slots=True)
class OcrLine:
    """One line as the recogniser gives it, in pixels. ``words`` is empty where it gave none that fit the line."""

    text: str
    quad: Quad
    words: tuple[tuple[str, Quad], ...]


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
        texts, quads = result.txts, result.boxes
        words = result.word_results if len(result.word_results) == len(texts) else [()] * len(texts)
        lines = [
            OcrLine(clean(text), cast(Quad, quad.tolist()), _words_of_line(text, found))
            for text, quad, found in zip(texts, quads, words, strict=True)
        ]
        return assemble(lines, width=picture.shape[1], height=picture.shape[0])


def assemble(lines: Sequence[OcrLine], width: int, height: int) -> OcrText:
    """Lines in reading order: rows from top to bottom, a row from left to right. One text line a row."""
    rows = _rows([line for line in lines if line.text.strip()])
    words: list[Word] = []
    for line in (line for row in rows for line in row):
        for text, quad in line.words or _proportional(line):
            if (box := _box(quad, width, height)) is not None:
                words.append(Word(text, box))
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


def _proportional(line: OcrLine) -> list[tuple[str, Quad]]:
    """Word boxes by share of the line's characters, where the recogniser gave none."""
    left, right = min(x for x, _ in line.quad), max(x for x, _ in line.quad)
    top, bottom = _top(line.quad), _bottom(line.quad)
    step = (right - left) / len(line.text)
    return [
        (match[0], ((left + match.start() * step, top), (left + match.end() * step, bottom)))
        for match in re.finditer(r"\S+", line.text)
    ]


def _box(quad: Quad, width: int, height: int) -> Box | None:
    x0, x1 = (min(max(f(x for x, _ in quad) / width, 0.0), 1.0) for f in (min, max))
    y0, y1 = (min(max(f(y for _, y in quad) / height, 0.0), 1.0) for f in (min, max))
    return Box(x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None


def _words_of_line(text: str, found: object) -> tuple[tuple[str, Quad], ...]:
    """RapidOCR's words if they spell the line; it can hand back raw columns, or the words of another line."""
    if not isinstance(found, list | tuple) or not all(isinstance(w, tuple) and len(w) == 3 for w in found):
        return ()
    words = tuple((clean(str(word)), cast(Quad, quad)) for word, _, quad in found)
    spelled = "".join(word for word, _ in words)
    return words if "".join(spelled.split()) == "".join(clean(text).split()) else ()


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
