"""Numbers of sheets as their formats show them."""

from __future__ import annotations

from datetime import datetime

import pytest

from vrag_ray.corpus.formats.office.number_formats import number_format, plain

EPOCH = datetime(1899, 12, 30)
KRONER = r'_-* #,##0.00\ "kr"_-;\-* #,##0.00\ "kr"_-;_-* "-"??\ "kr"_-;_-@_-'
PHONE = r"[<=9999999]###\-####;\(###\)\ ###\-####"


@pytest.mark.parametrize(
    ("code", "number", "shown"),
    [
        ("[h]:mm", 1.572916666666667, "37:45"),
        ("[h]:mm:ss", 2.5625, "61:30:00"),
        ("[mm]:ss", 0.05, "72:00"),
        ("[ss]", 0.001, "86"),
        ("[h]:mm", -0.5, "-12:00"),
        ("mm:ss.00", 0.003136574, "00:04:31.00"),
        ("h:mm AM/PM", 0.770833333333333, "18:30:00"),
        ("h:mm", 2.5, "12:00:00"),
        ("d mmm yyyy h:mm", 45352.39583333334, "2024-03-01 09:30:00"),
        (r"[$-F800]dddd\,\ mmmm\ dd\,\ yyyy", 45449, "2024-06-06"),
        ("yyyy-mm-dd", 1, "1900-01-01"),
        ("yyyy-mm-dd", 61, "1900-03-01"),
        ("00000", 457, "00457"),
        ("00.0", 5.25, "05.25"),
        ('"AB-"0000', 37, "AB-0037"),
        (r"000\-00\-0000", 12345678, "012-34-5678"),
        (PHONE, 5551234567, "(555) 123-4567"),
        (PHONE, 1234567, "123-4567"),
        ("# ##0", 12345, "12345"),
        ("#,##0.00", 1234567.5, "1234567.5"),
        ("€ #,##0.00", 1234.5, "€ 1234.5"),
        (r"#,##0.00\ [$€-407];[Red]-#,##0.00\ [$€-407]", -5.5, "-5.5 €"),
        ("_($* #,##0.00_);_($* (#,##0.00)", -450.25, "$-450.25"),
        ('"kr"* 0.00', 5, "kr 5"),
        (KRONER, 1250, "1250 kr"),
        (KRONER, -1250.5, "-1250.5 kr"),
        (KRONER, 0, "0 kr"),
        ('0.0" mm"', 12.5, "12.5 mm"),
        (r'General\ "years"', 41, "41 years"),
        ('#,##0,"k"', 125000, "125k"),
        (r"0.0\%", 55.5, "55.5%"),
        ("0.0%", 0.1234, "12.3%"),
        ("+0.0;-0.0;0", 3.2, "+3.2"),
        ("+0.0;-0.0;0", -3.2, "-3.2"),
        ("0.00_d", 2.75, "2.75"),
        ("#,##0_h", 1200, "1200"),
        ("[Red]0.00*s", 2.5, "2.5"),
        ('[=1]"yes";[=0]"no";General', 1, "yes"),
        ('[=1]"yes";[=0]"no";General', 0, "no"),
        ('[=1]"yes";[=0]"no";General', 7, "7"),
    ],
)
def test_a_number_is_shown_by_its_format(code, number, shown):
    assert number_format(code).shown(float(number), EPOCH) == shown


@pytest.mark.parametrize(("code", "is_unseen"), [(";;;", True), ("; ;", True), ("0;;", False), ("yyyy;;;", False)])
def test_a_format_without_anything_shows_nothing(code, is_unseen):
    assert number_format(code).shows_nothing is is_unseen


@pytest.mark.parametrize(
    ("number", "shown"), [(4006381333931.0, "4006381333931"), (12345678901.25, "12345678901.25"), (0.1 + 0.2, "0.3")]
)
def test_a_number_without_a_format_has_all_its_digits_and_none_of_binary_fractions(number, shown):
    assert plain(number) == shown
