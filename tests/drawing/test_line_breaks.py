"""Lines end at spaces and between Chinese characters, and marks do not begin them."""

from __future__ import annotations

import pytest

from vrag_ray.drawing.line_breaks import broken


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("", 5, []),
        ("one two  three", 7, ["one two", "three"]),
        ("unbreakable it is", 4, ["unbreakable", "it", "is"]),
        ("三年数据", 2, ["三年", "数据"]),
        ("三年。数据", 2, ["三", "年。", "数据"]),
        ("岸电（兆瓦）", 3, ["岸电", "（兆", "瓦）"]),  # noqa: RUF001
        ("Ellwick 港于 1900 年", 9, ["Ellwick 港", "于 1900 年"]),
    ],
)
def test_lines_fit_where_they_can(text: str, width: int, lines: list[str]) -> None:
    assert broken(text, lambda line: len(line) <= width) == lines
