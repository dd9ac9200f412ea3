import functools
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vrag_ray.config import CorpusConfig
from vrag_ray.corpus.formats.text import split_pieces
from vrag_ray.corpus.model import DecodedUnit, TextLine, letters_in
from vrag_ray.corpus.passages import UNIT_ERROR, boxes_of, passages_of
from vrag_ray.corpus.windows import WORD, window_spans, without_leaders
from vrag_ray.types import Box, Locator, PassageKind, VragError, Word


def split_windows(text: str, words: int, overlap: int) -> list[str]:
    return [text[start:stop] for start, stop in window_spans(text, words, overlap)]


texts = st.text(st.sampled_from("ab .,\n\t字か한"), max_size=400)
sizes = st.integers(1, 12).flatmap(lambda words: st.tuples(st.just(words), st.integers(0, words - 1)))


@given(st.integers(1, 400), sizes)
def test_windows_are_the_fewest_even_ones_that_hold_every_word_with_the_overlap(
    count: int, size: tuple[int, int]
) -> None:
    words, overlap = size
    text = "\n".join(map(str, range(count)))
    windows = [list(map(int, window.split())) for window in split_windows(text, words, overlap)]
    assert len({len(window) for window in windows}) == 1
    assert len(windows[0]) <= words
    assert (len(windows) - 1) * (words - overlap) + overlap < max(count, overlap + 1)
    assert (windows[0][0], windows[-1][-1]) == (0, count - 1)
    assert all(window == list(range(window[0], window[-1] + 1)) for window in windows)
    shared = {before[-1] + 1 - after[0] for before, after in itertools.pairwise(windows)}
    assert shared <= {overlap, overlap + 1}


@given(texts, st.integers(1, 12))
def test_windows_without_overlap_are_slices_that_keep_every_word(text: str, words: int) -> None:
    windows = split_windows(text, words, 0)
    assert all(window in text for window in windows)
    assert set(WORD.findall(text)) == {word for window in windows for word in WORD.findall(window)}


def test_empty_text_gives_one_empty_window() -> None:
    assert split_windows(" \n ", 150, 0) == [""]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Sorting . . . . . . . . 12\nTrees ........ 14", "Sorting … 12\nTrees … 14"),
        ("Plot ··········7", "Plot … 7"),
        ("and so on... but a[1..3] and 0.5. Then", "and so on... but a[1..3] and 0.5. Then"),
    ],
)
def test_dotted_lines_become_an_ellipsis_and_other_dots_stay(text: str, expected: str) -> None:
    assert without_leaders(text) == expected


def test_a_window_is_bounded_without_any_blank() -> None:
    assert max(map(len, split_windows("x" * 100_000, 150, 0))) <= 150 * 64


def test_an_overlap_that_would_never_end_is_refused() -> None:
    with pytest.raises(VragError, match="overlap 150"):
        split_windows("a b", 150, 150)


@given(texts, st.integers(1, 9))
def test_text_pieces_are_disjoint_ordered_bounded_and_lose_no_word(text: str, words: int) -> None:
    pieces = split_pieces(text, words)
    assert all(start <= end for start, end in pieces)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(pieces))
    counts = [len(WORD.findall(text, start, end)) for start, end in pieces]
    assert sum(counts) == len(WORD.findall(text))
    assert max(counts) <= words


def test_pieces_end_at_paragraphs_where_they_fit() -> None:
    text = "one two three\n\nfour five\n\nsix"
    assert [text[start:end] for start, end in split_pieces(text, 5)] == ["one two three\n\nfour five", "six"]


def test_passages_carry_the_unit_and_keep_ocr_words_once() -> None:
    word = Word("seven", Box(0.1, 0.1, 0.2, 0.2))
    unit = DecodedUnit(
        6, PassageKind.PAGE, Locator(page=7), " ".join("seven" for _ in range(50)), (), (word,), ocr=True, meta={"a": 2}
    )
    config = CorpusConfig(window_words=20, window_overlap=5)
    passages = passages_of("f" * 64, unit, config, {"a": 1, "b": "x"})
    assert [passage.id for passage in passages] == [f"{'f' * 24}:p7:w{n}" for n in range(3)]
    assert [passage.words for passage in passages] == [(word,), (), ()]
    assert all(passage.meta == {"a": 2, "b": "x"} and passage.kind is PassageKind.PAGE for passage in passages)


@given(st.lists(st.lists(st.sampled_from(("ab", "c-3", "...", "字")), max_size=5), max_size=12), st.integers(1, 7))
def test_the_box_of_a_window_is_around_the_lines_that_hold_its_letters(lines: list[list[str]], words: int) -> None:
    boxes = [Box(0.1, y / 20, 0.1 + (len(line) + 1) / 10, (y + 1) / 20) for y, line in enumerate(lines)]
    places = [TextLine(letters_in("".join(line)), box) for line, box in zip(lines, boxes, strict=True)]
    text = "\n".join(" ".join(line) for line in lines)
    line_of = [n for n, line in enumerate(text.split("\n")) for _ in range(len(line) + 1)]
    spans = window_spans(text, words, 0)
    for (start, stop), box in zip(spans, boxes_of(text, spans, places), strict=True):
        held = sorted({line_of[i] for i in range(start, stop) if text[i].isalnum()})
        expected = [boxes[n] for n in held]
        assert box == (functools.reduce(Box.union, expected) if expected else None)


def test_a_box_is_found_where_a_hyphen_was_joined_and_where_a_dotted_line_went() -> None:
    upper, lower = Box(0.1, 0.1, 0.9, 0.2), Box(0.1, 0.3, 0.9, 0.4)
    lines = (TextLine(letters_in("The docu-"), upper), TextLine(letters_in("ments .......... 12"), lower))
    unit = DecodedUnit(0, PassageKind.PAGE, Locator(page=1), "The documents .......... 12", lines)
    assert [passage.box for passage in passages_of("f" * 64, unit, CorpusConfig(), {})] == [upper.union(lower)]


def test_lines_that_are_not_of_the_text_give_no_box() -> None:
    assert boxes_of("seven words", [(0, 11)], [TextLine(4, Box(0.1, 0.1, 0.2, 0.2))]) == [None]


def test_a_unit_that_failed_still_has_a_passage_that_says_why() -> None:
    unit = DecodedUnit(0, PassageKind.PAGE, Locator(page=1), error="a.pdf: took too long")
    (passage,) = passages_of("f" * 64, unit, CorpusConfig(), {})
    assert (passage.text, passage.meta[UNIT_ERROR]) == ("", "a.pdf: took too long")
