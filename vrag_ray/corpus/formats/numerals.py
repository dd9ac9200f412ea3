"""Numbers as word processors and style sheets write them before paragraphs: b, IV, 07. Pure."""

from __future__ import annotations

_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
    (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
_LETTERS = 26
_MOST_REPEATED = 30
"""Times that a letter is repeated: zz is 52."""
_WITHOUT_NUMBER = frozenset(("bullet", "none"))
_CHINESE = frozenset(
    ("chineseCounting", "chineseCountingThousand", "ideographDigital", "japaneseCounting", "japaneseDigitalTenThousand",
     "taiwaneseCounting", "taiwaneseCountingThousand")
)  # fmt: skip
_CIRCLED = "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳"


def formatted(number: int, format_: str) -> str:
    """A number as the format of that name writes it; formats that are not known here are decimal."""
    kind = format_.removeprefix("upper").removeprefix("lower")
    if format_ in _WITHOUT_NUMBER:
        return ""
    if kind == "Letter" and 0 < number <= _LETTERS * _MOST_REPEATED:
        text = chr(ord("a") + (number - 1) % _LETTERS) * ((number - 1) // _LETTERS + 1)
    elif kind == "Roman" and 0 < number < 4000:
        text = _roman(number)
    elif format_ == "decimalZero":
        text = f"{number:02}"
    elif format_ == "ordinal":
        ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 // 10 != 1 else "th"
        text = f"{number}{ending}"
    elif format_.startswith("decimalEnclosedCircle") and 0 < number <= len(_CIRCLED):
        text = _CIRCLED[number - 1]
    elif format_ in _CHINESE and 0 < number < 100:
        text = _chinese(number)
    else:
        text = str(number)
    return text.upper() if format_.startswith("upper") else text


def _roman(number: int) -> str:
    text = ""
    for value, letters in _ROMAN:
        text += letters * (number // value)
        number %= value
    return text


def _chinese(number: int) -> str:
    tens, ones = divmod(number, 10)
    digits = "〇一二三四五六七八九"
    return (digits[tens] if tens > 1 else "") + ("十" if tens else "") + (digits[ones] if ones or not tens else "")
