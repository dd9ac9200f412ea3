"""Places and long texts as lines of a terminal or of a tool."""

from __future__ import annotations

from vrag_ray.agent.events import CorrectionEvent, ErrorEvent, SearchEvent
from vrag_ray.views.words import QUOTE_CHARS, Narrator, event_lines, shortened, size_in_words, where_text

LONG = "the model could not be reached " * 20


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


def test_no_file_is_shown_as_nothing():
    assert [size_in_words(size) for size in (12, 2_400, 3_449_000)] == ["1 kB", "2 kB", "3.4 MB"]


def test_errors_and_queries_are_whole_and_what_a_model_writes_at_length_is_shortened():
    [error] = event_lines(ErrorEvent(step=1, message=LONG, terminal=True))
    [query] = event_lines(SearchEvent(step=1, node_id="a", parent_ids=(), query=LONG))
    assert error.endswith(f"error     {LONG}") and query.endswith(f"search    {LONG}")
    correction = CorrectionEvent(step=1, message=LONG, reply="", count=1)
    [refused] = event_lines(correction)
    assert refused.endswith(" …") and len(refused) < 2 * QUOTE_CHARS
    # Thoughts are read at leisure.
    assert Narrator().text(correction) == f"Refused: {LONG}\n"
