"""Places and long texts as lines of a terminal or of a tool."""

from __future__ import annotations

from vrag_ray.views.words import shortened, where_text


def test_where_text_names_page_time_or_characters():
    none = (None, None)
    assert where_text(3, None, None, none) == "page 3"
    assert where_text(10, None, None, none, "viii", 254) == "page viii (10 of 254)"
    assert where_text(None, 60.0, 62.5, none) == "60.0-62.5 s"
    assert where_text(None, None, None, (10, 20)) == "characters 10-20"
    assert where_text(None, None, None, none) == "the text"


def test_long_text_is_cut_between_words():
    assert shortened("one  two\nthree", 9) == "one two …"
    assert shortened("one  two", 9) == "one two"
