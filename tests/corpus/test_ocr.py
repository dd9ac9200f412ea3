import numpy as np
import pytest

from tests.corpus.samples import picture_of
from vrag_ray.corpus.ocr import OcrEngine, OcrLine, assemble


def line(text: str, x: float, y: float, words: tuple[str, ...] = ()) -> OcrLine:
    quad = ((x, y), (x + 10 * len(text), y), (x + 10 * len(text), y + 20), (x, y + 20))
    return OcrLine(text, quad, tuple((word, quad) for word in words))


def test_lines_are_read_from_top_to_bottom_and_a_row_from_left_to_right():
    seen = assemble(
        [line("total", 300, 52), line("below", 10, 90), line("head", 10, 10), line("sum", 10, 48)], 400, 200
    )
    assert seen.text == "head\nsum total\nbelow"
    assert [word.text for word in seen.words] == ["head", "sum", "total", "below"]


def test_words_without_boxes_share_their_line_by_characters():
    seen = assemble([line("ab cd", 100, 0)], 200, 20)
    assert [word.text for word in seen.words] == ["ab", "cd"]
    assert seen.words[0].box.as_tuple() == pytest.approx((0.5, 0.0, 0.6, 1.0))
    assert seen.words[1].box.as_tuple() == pytest.approx((0.65, 0.0, 0.75, 1.0))


def test_boxes_are_clamped_to_the_picture_and_empty_ones_are_dropped():
    seen = assemble([line("edge", 180, 10), line("out", 500, 60)], 200, 100)
    assert [(word.text, word.box.x1) for word in seen.words] == [("edge", 1.0)]


def test_the_models_come_from_the_wheel_and_nothing_is_downloaded(monkeypatch):
    from rapidocr.utils.download_file import DownloadFile

    def refuse(*_: object) -> None:
        raise AssertionError("a download was tried")

    monkeypatch.setattr(DownloadFile, "run", refuse)
    engine = OcrEngine()
    assert engine.read(np.asarray(picture_of(["Margin 12.5 %"]))).text == "Margin 12.5 %"
    assert engine.read(np.full((200, 300, 3), 255, np.uint8)).text == ""
