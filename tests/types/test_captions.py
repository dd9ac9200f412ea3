"""When the words of a quote are spoken."""

from vrag_ray.types import Cue
from vrag_ray.types.captions import quoted_cues

CUES = [
    Cue(0.0, 2.0, "Good morning"),
    Cue(2.0, 4.0, "The ferry sails"),
    Cue(4.0, 6.0, "at nine"),
    Cue(9.0, 11.0, "Good morning"),
]


def test_a_quote_over_several_captions_lasts_from_the_first_to_the_last_that_holds_it() -> None:
    assert quoted_cues("the ferry sails at nine", CUES, None) == range(1, 3)
    assert quoted_cues("sails", CUES, None) == range(1, 2)
    assert quoted_cues("the ferry sails at ten", CUES, None) is None
    assert quoted_cues(" ", CUES, None) is None


def test_a_sentence_spoken_twice_is_cited_where_it_was_remembered() -> None:
    assert quoted_cues("good morning", CUES, None) == range(0, 1)
    assert quoted_cues("good morning", CUES, 9.5) == range(3, 4)
