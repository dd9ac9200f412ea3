"""Reading text off pictures with RapidOCR (PP-OCRv6 on ONNX Runtime; the models are in its wheel).

A long picture, as a web page or a receipt in one piece, is read in strips.
Measured on one core: 5 to 7 s for a full page at 150 dpi, about 0.13 s a line; word F1 0.99 on rendered pages of
a manual. Peak address space of the child 1.2 GB: recognition goes line by line, batches of six cost as much time
and twice the memory.
"""

from __future__ import annotations

import hashlib
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from itertools import groupby, islice, pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from vrag_ray.corpus.model import DecodeError, TextLine, clean, letters_in
from vrag_ray.corpus.reading_order import arranged, text_of
from vrag_ray.corpus.windows import SPACELESS
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
LONG, LONGEST = 2.0, 16.0
"""Longer by shorter side from which on a picture is read in strips, and up to which none of its pixels are missing."""
A_STRIP = 100
"""Pixels of the shorter side of a picture of several lines, at least: a single line is not cut."""
BEYOND, SEAM = 120, 400
"""Pixels beyond its seams of which a strip is read, so that each line is whole in one; pixels in which a seam is
sought."""
EVEN_ROW = 1.0
"""Grey levels from pixel to pixel by which a row has no more in it than the emptiest one."""
LEAST_SIDE = 32
"""Pixels of the shorter side, once scaled: RapidOCR refuses a picture that has no whole tile of its detector."""
DETECTOR_SIDE = 1600
TURNED_ASPECT = 1.5
"""RapidOCR turns a line that is this many times higher than wide by a quarter before it reads it."""
SURE = 0.9
"""Mean confidence of a picture that stands upright, at least; below it a sample of its lines is read upside down."""
CLEARLY = 0.1
AS_MUCH = 0.9
"""Share of the letters of a first reading that a second one must have to stand in its place."""
LEAST_CONFIDENCE = 0.6
"""Below it what OCR reads is nonsense: nobody should find or quote it."""
LEAST_OF_A_LINE = 0.5
"""The same of one line: texture, or a script that the recogniser does not know."""
SPARSE, BARE = 0.35, 1.0
"""Characters in a length of a line's height, one of Chinese or Japanese counted as two: print has 1.5 to 2.5. Below the
first, letters are missing; below the second, where the recogniser is in doubt too."""
DOUBTED, DOUBTED_FIGURES = 0.85, 0.93
"""Confidence of a bare line below which letters are missing, and the same of one that is figures and signs for the most
part."""
A_LINE = 4.0
"""Heights from which on a line that is not read is text, and not a letter or a stain."""
LEAST_UNKNOWN = 8
"""Letters of scripts that the recogniser knows in part, from which on a line of mostly these is not read."""
SAMPLE = 6
LEAST_LETTERS_FOR_SKEW = 8
MOST_SKEW = 40
INVISIBLE = 4
"""Of 256 levels of a colour: a difference that nobody sees."""
OF_SCRIPTS = "OCR knows Latin, Chinese and Japanese letters"
_UNKNOWN = re.compile("[\u0370-\u03ff\u0400-\u052f\u0590-\u06ff\u0900-\u0dff\u0e00-\u0e7f\u1100-\u11ff\uac00-\ud7af]")
"""Greek, Cyrillic, Hebrew, Arabic, Indic scripts, Thai, Korean: next to none of their letters are recognised."""
LONGEST_READING = 64 * 2**20
"""Bytes of a reading: one that is longer is none of ours."""


@dataclass(frozen=True, slots=True)
class OcrText:
    """The words of a picture in reading order, boxes in fractions of the picture, and the text that they make.

    A script without spaces has none between its characters: a run of it is one word, as in a PDF's text layer.
    ``confidence`` is the recogniser's own, from 0 to 1, its mean over the characters; 1 where there are none.
    ``notices`` say what could not be read.
    """

    text: str
    words: tuple[Word, ...]
    confidence: float = 1.0
    notices: tuple[str, ...] = ()


ReadPicture = Callable[[Picture], OcrText]


@dataclass(frozen=True, slots=True)
class OcrLine:
    """One line as the recogniser gives it, in pixels.

    ``glyphs`` has a quad for each character of ``text`` that is no space, in order; empty where they are not known.
    """

    text: str
    quad: Quad
    glyphs: tuple[Quad, ...] = ()
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class Reading:
    """What the models see in a picture of ``width`` by ``height`` pixels, before it is put into reading order.

    ``turn`` is by how many degrees clockwise its lines are turned.
    """

    width: int
    height: int
    turn: int = 0
    lines: tuple[OcrLine, ...] = ()

    def ordered(self) -> OcrText:
        """The text without lines that are not read, with a notice of how many; empty where most of it is not read, or
        the models do not trust what they read."""
        read: list[OcrLine] = []
        unread: list[OcrLine] = []
        for line in self.lines:
            if not is_unread(line):
                read.append(line)
            elif _aspect(line.quad) >= A_LINE:
                unread.append(line)
        if not read and not unread:
            return OcrText("", ())
        confidence = _confidence(read or unread)
        missing = sum(_length(line.quad) for line in unread) > sum(_length(line.quad) for line in read)
        if missing or confidence < LEAST_CONFIDENCE:
            why = OF_SCRIPTS if missing else f"OCR trusts its reading to {confidence:.0%}"
            return OcrText("", (), confidence, (f"what stands in it could not be read ({why})",))
        notices = (f"{len(unread)} lines in it could not be read ({OF_SCRIPTS})",) if unread else ()
        return replace(assemble(read, self.width, self.height, self.turn), confidence=confidence, notices=notices)

    def to_bytes(self) -> bytes:
        return zlib.compress(_readings().dump_json(self), 1)

    @classmethod
    def from_bytes(cls, data: bytes) -> Reading | None:
        """The reading that ``to_bytes`` wrote; None for anything else."""
        unpacking = zlib.decompressobj()
        try:
            reading = _readings().validate_json(unpacking.decompress(data, LONGEST_READING))
        except (zlib.error, ValidationError):
            return None
        return reading if unpacking.eof else None


@cache
def _readings() -> TypeAdapter[Reading]:
    return TypeAdapter(Reading)


@cache
def _engine_id() -> bytes:
    """What a reading depends on beside the picture: the models, which are in the wheel, and how this module uses
    them."""
    versions = f"{version('rapidocr')} {version('onnxruntime')} "
    return versions.encode() + hashlib.sha256(Path(__file__).read_bytes()).digest()


def picture_key(picture: Picture) -> str:
    """A digest of the pixels and of what reads them, which a reading is stored by."""
    digest = hashlib.sha256(_engine_id())
    digest.update(repr(picture.shape).encode())
    digest.update(np.ascontiguousarray(picture).data)
    return digest.hexdigest()


def ocr_pixels(width: float, height: float) -> int:
    """Pixels that a picture of these sides handed to OCR need not exceed."""
    aspect = max(width, height) / max(1.0, min(width, height))
    return round(OCR_PIXELS * max(1.0, min(aspect, LONGEST) / LONG))


def strips_of(picture: Picture) -> list[tuple[int, int]]:
    """The first and the last row of each strip in which ``picture`` is read, columns if it is broad; a single strip
    unless it is long.

    The seams are where least is drawn.
    """
    long, short = max(picture.shape[:2]), min(picture.shape[:2])
    if long <= LONGEST_SIDE or long < LONG * short or short < A_STRIP:
        return [(0, long)]
    rows = picture if picture.shape[0] == long else picture.transpose(1, 0, 2)
    count = math.ceil(long / (LONGEST_SIDE - 2 * BEYOND - SEAM))
    seams = [0]
    for number in range(1, count):
        first = round(number * long / count) - SEAM // 2
        drawn = np.abs(np.diff(rows[first : first + SEAM, :, 1].astype(np.int16), axis=1)).mean(axis=1)
        even = (drawn <= drawn.min() + EVEN_ROW).tolist()
        runs = [list(run) for is_even, run in groupby(range(len(even)), even.__getitem__) if is_even]
        longest = max(runs, key=len)
        seams.append(first + longest[len(longest) // 2])
    return list(pairwise([*seams, long]))


def is_blank(picture: Picture) -> bool:
    """Whether the picture is white, grey or black all over, to the eye: any other colour may be its subject."""
    return int(picture.max()) - int(picture.min()) <= INVISIBLE


class OcrEngine:
    """A RapidOCR session, loaded at the first picture (about 0.5 s)."""

    def __init__(self) -> None:
        self._engine: RapidOCR | None = None

    def read(self, picture: Picture) -> OcrText:
        """The text of ``picture``, which may be turned by any quarter; empty where there is none."""
        return self.reading(picture).ordered()

    def reading(self, picture: Picture) -> Reading:
        """The lines of ``picture``, strip by strip if it is long."""
        strips = strips_of(picture)
        if len(strips) == 1:
            return self._reading(picture)
        height, width = picture.shape[:2]
        axis = 1 if height > width else 0
        lines: list[OcrLine] = []
        letters: Counter[int] = Counter()
        for begin, end in strips:
            first, last = max(0, begin - BEYOND), end + BEYOND
            strip = self._reading(np.ascontiguousarray(picture[first:last] if axis else picture[:, first:last]))
            parts = [part for line in strip.lines if (part := part_of(line, axis, begin - first, end - first))]
            lines += (_moved(line, 0 if axis else first, first if axis else 0) for line in parts)
            letters[strip.turn] += sum(len(line.text) for line in parts)
        return Reading(width, height, letters.most_common(1)[0][0], tuple(lines))

    def _reading(self, picture: Picture) -> Reading:
        """The lines of ``picture``.

        A picture that lies on its side is read again as it would stand upright: the detector joins or misses short
        figures there. So is one that reads badly, if a sample of its lines reads better so.
        """
        height, width = picture.shape[:2]
        if is_blank(picture):
            return Reading(width, height)
        if max(height, width) > LONGEST_SIDE:
            # Below and on the right: no place in the picture moves.
            least = math.ceil(max(height, width) * LEAST_SIDE / LONGEST_SIDE)
            more = ((0, max(0, least - height)), (0, max(0, least - width)), (0, 0))
            picture = np.pad(picture, more, mode="edge")
        lines = self._lines(picture)
        turn, is_read = self._turn(picture, lines)
        if not is_read:
            upright = np.ascontiguousarray(np.rot90(picture, turn // 90))
            again = [turned_line(line, turn, picture.shape[1], picture.shape[0]) for line in self._lines(upright)]
            if _letters_read(again) >= AS_MUCH * _letters_read(lines):
                lines = again
            else:
                turn = 0 if turn == 180 else 90
        return Reading(width, height, turn, tuple(lines))

    def _turn(self, picture: Picture, lines: Sequence[OcrLine]) -> tuple[int, bool]:
        """By how many degrees clockwise the lines are turned, and whether they were read as that demands."""
        clear = [line for line in lines if line.confidence >= LEAST_OF_A_LINE]
        if 2 * sum(_length(line.quad) for line in clear) > sum(_length(line.quad) for line in lines):
            lines = clear
        if not lines:
            return 0, True
        quads = sorted((line.quad for line in lines), key=_length, reverse=True)[:SAMPLE]
        tall = 2 * sum(_bottom(q) - _top(q) > TURNED_ASPECT * _width(q) for q in quads) > len(quads)
        is_sure = _confidence(lines) >= SURE
        if not tall:
            # Where nothing is clear, there is no text, or a text in an unknown script: neither has an upper edge.
            if is_sure or not clear:
                return 0, True
            here, over = (self._sample(picture, quads, turn) for turn in (0, 180))
            return (180, False) if over > here + CLEARLY else (0, True)
        # RapidOCR reads tall lines downwards by itself, columns of Chinese and Japanese among them.
        down, up = (1.0, 0.0) if is_sure else (self._sample(picture, quads, turn) for turn in (90, 270))
        if up <= down + CLEARLY and self._is_vertical(picture, quads):
            return 90, True
        return (90 if down >= up else 270), False

    def _sample(self, picture: Picture, quads: Sequence[Quad], turn: int) -> float:
        """How well the sampled lines read once they are turned back by ``turn``: mean confidence."""
        pieces = [np.rot90(_cut_out(picture, quad), turn // 90) for quad in quads]
        return sum(self._recognised(piece)[1] for piece in pieces) / len(pieces)

    def _is_vertical(self, picture: Picture, quads: Sequence[Quad]) -> bool:
        """Whether the first characters of the columns stand upright, as in vertical Chinese and Japanese."""
        heads = []
        for quad in quads:
            piece = _cut_out(picture, quad)
            heads.append(piece[: round(piece.shape[1] * 1.1)])
        read = [self._recognised(head) for head in heads]
        return 2 * sum(score > SURE and SPACELESS.search(text) is not None for text, score in read) > len(read)

    def _recognised(self, piece: Picture) -> tuple[str, float]:
        from rapidocr.utils.output import RapidOCROutput

        result = self._loaded()(np.ascontiguousarray(piece[:, :, ::-1]), use_det=False, use_cls=False, use_rec=True)
        texts, scores = getattr(result, "txts", None), getattr(result, "scores", None)
        assert not isinstance(result, RapidOCROutput) or result.boxes is None
        return (str(texts[0]), float(scores[0])) if texts and scores else ("", 0.0)

    def _loaded(self) -> RapidOCR:
        if self._engine is None:
            self._engine = _load_engine()
        return self._engine

    def _lines(self, picture: Picture) -> list[OcrLine]:
        from rapidocr.utils.output import RapidOCROutput

        # Every step by name: a session keeps the steps of the call before.
        reads = {"use_det": True, "use_cls": False, "use_rec": True}
        result = self._loaded()(np.ascontiguousarray(picture[:, :, ::-1]), **reads)
        if not isinstance(result, RapidOCROutput) or result.txts is None or result.boxes is None:
            return []
        texts, quads = [clean(text) for text in result.txts], result.boxes
        scores = result.scores or [1.0] * len(texts)
        glyphs = result.word_results if len(result.word_results) == len(texts) else [()] * len(texts)
        lines = [
            OcrLine(text, cast(Quad, quad.tolist()), glyph_quads(text, characters), float(score))
            for text, quad, characters, score in zip(texts, quads, glyphs, scores, strict=True)
        ]
        return [line for line in lines if line.text.strip()]


def assemble(lines: Sequence[OcrLine], width: int, height: int, turn: int = 0) -> OcrText:
    """Lines in reading order, a text line each row of a column.

    ``width`` and ``height`` are the picture's, in pixels; ``turn`` is by how many degrees clockwise its lines are
    turned, beside what they are askew. A line that lies wholly outside the picture is left out.
    """
    lines = [line for line in lines if line.text.strip() and _box(line.quad, width, height) is not None]
    turn = (turn + _skew(lines, turn)) % 360
    quarter = round(turn / 90) % 4 * 90
    rows = sorted(lines, key=lambda line: _place(line.quad, quarter))
    words = [word for line in rows for word in _words(line, width, height, _own_turn(line, turn))]
    ordered, regions = arranged(words, width / height)
    return OcrText(text_of(regions), tuple(ordered))


def is_unread(line: OcrLine) -> bool:
    """Whether letters are missing in a line: of a script that it does not know, the recogniser gives the figures, the
    signs and the blanks, or nothing but a stray letter."""
    letters = sum(map(str.isalpha, line.text))
    if line.confidence < LEAST_OF_A_LINE or 2 * len(_UNKNOWN.findall(line.text)) > max(letters, 2 * LEAST_UNKNOWN - 1):
        return True
    if (aspect := _aspect(line.quad)) < A_LINE:
        return False
    weight = len("".join(line.text.split())) + len(SPACELESS.findall(line.text))
    density = weight / aspect
    doubted = line.confidence < (DOUBTED if 2 * letters > weight else DOUBTED_FIGURES)
    return density < SPARSE or (density < BARE and doubted)


def turned_line(line: OcrLine, turn: int, width: int, height: int) -> OcrLine:
    """A line that was read upright, as it stands in the picture of ``width`` by ``height`` turned by ``turn``."""

    def back(quad: Quad) -> Quad:
        if turn == 90:
            return [(width - y, x) for x, y in quad]
        if turn == 180:
            return [(width - x, height - y) for x, y in quad]
        return [(y, height - x) for x, y in quad]

    return replace(line, quad=back(line.quad), glyphs=tuple(map(back, line.glyphs)))


def part_of(line: OcrLine, axis: int, begin: float, end: float) -> OcrLine | None:
    """What of a line stands between two seams across an axis (0 is x, 1 is y): the line or nothing where it runs along
    the seams, else those of its words whose middles are there, and of longer words those characters."""

    def is_inside(quads: Sequence[Quad]) -> bool:
        places = [corner[axis] for quad in quads for corner in quad]
        return begin <= (min(places) + max(places)) / 2 < end

    low, high = (f(corner[axis] for corner in line.quad) for f in (min, max))
    if (begin <= low and high < end) or _length(line.quad) > high - low:
        return line if is_inside([line.quad]) else None
    quads = iter(line.glyphs or _proportional(line))
    words: list[str] = []
    glyphs: list[Quad] = []
    for word in line.text.split():
        of_word = list(islice(quads, len(word)))
        places = [corner[axis] for quad in of_word for corner in quad]
        if max(places) - min(places) < 2 * BEYOND:
            inside = [(word, quad) for quad in of_word] if is_inside(of_word) else []
            words += [word] if inside else []
        else:
            inside = [(letter, quad) for letter, quad in zip(word, of_word, strict=True) if is_inside([quad])]
            words += ["".join(letter for letter, _ in inside)] if inside else []
        glyphs += (quad for _, quad in inside)
    if not glyphs:
        return None
    x0, x1 = (f(x for quad in glyphs for x, _ in quad) for f in (min, max))
    y0, y1 = (f(y for quad in glyphs for _, y in quad) for f in (min, max))
    return replace(line, text=" ".join(words), quad=((x0, y0), (x1, y0), (x1, y1), (x0, y1)), glyphs=tuple(glyphs))


def _moved(line: OcrLine, right: int, down: int) -> OcrLine:
    def moved(quad: Quad) -> Quad:
        return [(x + right, y + down) for x, y in quad]

    return replace(line, quad=moved(line.quad), glyphs=tuple(map(moved, line.glyphs)))


def _place(quad: Quad, quarter: int) -> tuple[float, float]:
    """What orders lines from the first to the last and from their begin, as they would stand upright: the sides of a
    table would be columns by another order."""
    left, right = min(x for x, _ in quad), max(x for x, _ in quad)
    if quarter == 90:
        return -right, _top(quad)
    if quarter == 180:
        return -_bottom(quad), -right
    return (left, -_bottom(quad)) if quarter == 270 else (_top(quad), left)


def _own_turn(line: OcrLine, turn: int) -> int:
    """That of the page, but for a line that lies across it."""
    is_tall = _bottom(line.quad) - _top(line.quad) >= TURNED_ASPECT * _width(line.quad)
    is_wide = _width(line.quad) >= TURNED_ASPECT * (_bottom(line.quad) - _top(line.quad))
    across = is_tall if abs((turn + 90) % 180 - 90) < MOST_SKEW else is_wide
    if not across or len(line.text) < 2:
        return turn
    return 90 if is_tall else 0


def _confidence(lines: Sequence[OcrLine]) -> float:
    """Mean over the characters."""
    return sum(line.confidence * len(line.text) for line in lines) / sum(len(line.text) for line in lines)


def _letters_read(lines: Sequence[OcrLine]) -> float:
    """The characters that are no blanks, each counted by the confidence in its line."""
    clear = [line for line in lines if line.confidence >= LEAST_OF_A_LINE]
    return sum(line.confidence * len("".join(line.text.split())) for line in clear)


def _skew(lines: Sequence[OcrLine], turn: int) -> int:
    """Whole degrees by which long lines are askew; 0 where it is hardly any."""
    angles = []
    for line in lines:
        (x0, y0), (x1, y1) = line.quad[0], line.quad[1]
        if len(line.text) < LEAST_LETTERS_FOR_SKEW:
            continue
        angle = math.degrees(math.atan2(y1 - y0, x1 - x0)) - turn
        angles.append((angle + 180) % 360 - 180)
    skew = round(median(angles)) if angles else 0
    return skew if 1 < abs(skew) < MOST_SKEW else 0


def _cut_out(picture: Picture, quad: Quad) -> Picture:
    left, right = (round(f(x for x, _ in quad)) for f in (min, max))
    top, bottom = round(_top(quad)), round(_bottom(quad))
    return picture[max(0, top) : max(top, bottom) + 1, max(0, left) : max(left, right) + 1]


def _aspect(quad: Quad) -> float:
    """Length by height, however the line is turned."""
    along, across = math.dist(quad[0], quad[1]), math.dist(quad[1], quad[2])
    return max(along, across) / max(min(along, across), 1.0)


def _length(quad: Quad) -> float:
    return max(_width(quad), _bottom(quad) - _top(quad))


def _width(quad: Quad) -> float:
    return max(x for x, _ in quad) - min(x for x, _ in quad)


def lines_of_words(words: Sequence[Word]) -> tuple[TextLine, ...]:
    """Where OCR's text stands, a word at a time."""
    return tuple(TextLine(letters_in(word.text), word.box) for word in words)


def _top(quad: Quad) -> float:
    return min(y for _, y in quad)


def _bottom(quad: Quad) -> float:
    return max(y for _, y in quad)


def _words(line: OcrLine, width: int, height: int, turn: int) -> Iterator[Word]:
    """The line's text, cut at its spaces; a word's box is around its glyphs."""
    whole = _box(line.quad, width, height)
    quads = iter(line.glyphs or _proportional(line))
    for text in line.text.split():
        corners = [corner for quad in islice(quads, len(text)) for corner in quad]
        # Glyphs are in whole pixels: a narrow one at the edge of the picture can have no area.
        if (box := _box(corners, width, height) or whole) is not None:
            yield Word(text, box, turn)


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


def glyph_quads(text: str, characters: object) -> tuple[Quad, ...]:
    """The quads of RapidOCR's single ``characters``, (character, confidence, quad) each, if they spell ``text``.

    Empty where they do not: RapidOCR can hand back raw columns, or the characters of another line.
    """
    if not isinstance(characters, list | tuple) or not all(
        isinstance(line, tuple) and len(line) == 3 for line in characters
    ):
        return ()
    glyphs = [(letter, cast(Quad, quad)) for character, _, quad in characters for letter in clean(str(character))]
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
            # What is not read is counted, not left out.
            "Global.text_score": 0.0,
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
