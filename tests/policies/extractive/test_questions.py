"""Questions fall into their parts, and each part knows what kind of answer it wants."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vrag_ray.policies.extractive.courtesy import without_courtesy
from vrag_ray.policies.extractive.follow_ups import standalone
from vrag_ray.policies.extractive.lexicon import stem, terms, tokens
from vrag_ray.policies.extractive.questions import AnswerKind, is_negated, part_of, parts


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What was the cost of X in 2022?", ["What was the cost of X in 2022?"]),
        ("Who founded it? When was it sold?", ["Who founded it?", "When was it sold?"]),
        ("Who founded it; when was it sold", ["Who founded it", "when was it sold"]),
        ("Who founded it, and when was it sold?", ["Who founded it", "when was it sold?"]),
        (
            "What was the cost of boats and masts in 2022?",
            ["What was the cost of boats in 2022?", "What was the cost of masts in 2022?"],
        ),
        ("North vs South in 2023", ["North in 2023", "South in 2023"]),
        ("Which was higher: wind or solar?", ["Which was higher: wind?", "Which was higher: solar?"]),
        ('What does "search and rescue" mean?', ['What does "search and rescue" mean?']),
        ("Is it a boat or a ship", ["Is it a boat or a ship"]),
        (
            "What was the revenue of Norfell in 2022? And in 2021?",
            ["What was the revenue of Norfell in 2022?", "What was the revenue of Norfell in 2021?"],
        ),
        ("How far is it between Harwick and Norfell?", ["How far is it between Harwick and Norfell?"]),
        ("How many boats sank between 2019 and 2021?", ["How many boats sank between 2019 and 2021?"]),
        (
            "Was there a drop in cash between FY 2023 and Q2 of FY2024?",
            ["Was there a drop in cash in FY 2023", "Was there a drop in cash in Q2 of FY2024?"],
        ),
        (
            "How did the rent change between March and May 2021?",
            ["How did the rent change in March?", "How did the rent change in May 2021?"],
        ),
        (
            "By how much did sales rise from 2021 to 2022?",
            ["By how much did sales rise in 2021?", "By how much did sales rise in 2022?"],
        ),
        (
            "Was income in Norfell higher in Q2 2022 than in Q1 2021?",
            ["Was income in Norfell higher in Q2 2022?", "Was income in Norfell higher in Q1 2021?"],
        ),
        ("How many boats sank from 2019 to 2021?", ["How many boats sank from 2019 to 2021?"]),
        ("How did the fare rise from Harwick to Norfell?", ["How did the fare rise from Harwick to Norfell?"]),
    ],
)
def test_a_question_is_split_where_it_asks_several_things(question: str, expected: list[str]) -> None:
    assert [part.text for part in parts(question, limit=3)] == expected


@pytest.mark.parametrize(
    ("question", "query", "words"),
    [
        ("Who founded Harwick Marine, and when was it sold?", "it sold Harwick Marine", ["sold"]),
        ("Who is the chairman of Fennmark Tools and when was he born?", "he born Fennmark Tools", ["born"]),
        ("When was the Ravel lighthouse built, and who built it?", "built it the Ravel lighthouse", ["built"]),
        ("How long is the key of the old crane? How wide is it?", "wide is it the old crane", ["wide"]),
        ("Who is Anna Berg? What is a transformer?", "a transformer", ["transformer"]),
        ("Who is Anna Berg? Is it true that oak is oiled?", "it true that oak is oiled", ["true", "oak", "oiled"]),
    ],
)
def test_what_a_pronoun_may_stand_for_is_searched_and_not_required_of_the_answer(
    question: str, query: str, words: list[str]
) -> None:
    _, second = parts(question, limit=3)
    assert second.query == query
    assert [term.surface for term in second.terms] == words


@pytest.mark.parametrize(
    ("earlier", "question", "expected"),
    [
        (["Who founded Harwick Marine?"], "When was it sold?", "When was Harwick Marine sold?"),
        (["Who founded Harwick Marine?"], "What about it is new?", "What about Harwick Marine is new?"),
        (["Who is Anna Berg?", "When was she born?"], "Who hired her?", "Who hired Anna Berg?"),
        (["Who is Anna Berg?"], "What is her salary?", "What is Anna Berg's salary?"),
        (["When was the ferry Sigrid built?", "thanks!"], "How long is it?", "How long is the ferry Sigrid?"),
        (["How do I reset the router?"], "What if it does not work?", "What if the router does not work?"),
        (["Who signed the lease on 4 May 2020?"], "Who witnessed it?", "Who witnessed the lease?"),
        (["Is the park open?"], "Are dogs allowed in it?", "Are dogs allowed in the park?"),
        (["How many MWh did the berth take in May?"], "Who built it?", "Who built the berth?"),
        (["What did Norfell Boats earn in 2021?"], "And in 2022?", "What did Norfell Boats earn in 2022?"),
        (
            ["What did Norfell Boats earn in 2021?", "and for 2022"],
            "What about Harwick Marine?",
            "What did Harwick Marine earn in 2022?",
        ),
        (["What did Apple earn in Q1 2021?"], "And in Q2?", "What did Apple earn in Q2 2021?"),
        (["When does the museum open on Sunday?"], "And on Monday?", "When does the museum open on Monday?"),
        (["What does Table 2 show?"], "And Figure 3?", "What does Figure 3 show?"),
        (["How tall is the Eiffel Tower?"], "And the Big Ben?", "How tall is the Big Ben?"),
        (["Who runs the port of Harwick?"], "And the port of Norfell?", "Who runs the port of Norfell?"),
        # In doubt a question stays as it is.
        (["Who is the mayor of Leeds?"], "How old is she?", "How old is she?"),
        (["Who designed the Alder Bridge?"], "When was he born?", "When was he born?"),
        (["Which countries import the most coffee?"], "How much do they pay?", "How much do they pay?"),
        (["When does the museum open on Sunday?"], "And in June?", "And in June?"),
        (["Who runs Harwick?"], "And now?", "And now?"),
        (["Thanks!"], "What is it?", "What is it?"),
        (["Who founded Harwick Marine?"], "How deep is the bay?", "How deep is the bay?"),
        ([], "And in 2022?", "And in 2022?"),
    ],
)
def test_a_question_of_a_conversation_reads_on_its_own(earlier: list[str], question: str, expected: str) -> None:
    assert standalone(question, earlier) == expected


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("The fog lifted over Harwick", "the fog lifted over harwick"),
        ("When the fog lifted, the boats left.", "when the fog lifted the boats left"),
        # These are questions, or words to search for.
        ("Opening hours", ""),
        ("When the fog lifted over Harwick", ""),
        ("The fog lifted over Harwick?", ""),
    ],
)
def test_a_sentence_of_a_page_is_whole_and_no_question(text: str, sentence: str) -> None:
    assert part_of(text).sentence == sentence


def test_a_sentence_about_a_telephone_number_is_not_for_it() -> None:
    assert part_of("Anna Berg changed her telephone number in 2021").kind is AnswerKind.STATEMENT


@pytest.mark.parametrize(
    "text", ["Rooms 3 and 4 have no lift.", "Rooms without a lift: 3", "Room 3 doesn't have a lift."]
)
def test_a_sentence_says_that_something_is_not_so(text: str) -> None:
    assert is_negated(text)


def test_a_time_beside_a_moment_of_a_video_is_a_moment_too() -> None:
    text = "Who raises the mast in the video and when is it lowered?"
    assert [part.kind for part in parts(text, limit=3)] == [AnswerKind.NAME, AnswerKind.MOMENT]


def test_a_question_of_too_many_parts_stays_whole() -> None:
    question = "Who? What boat? Which mast? When sold?"
    assert [part.text for part in parts(question, limit=3)] == [question]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How much was it in 2015? Answer in millions.", "How much was it in 2015?"),
        ("How many lines are blue? Give me a rounded integer.", "How many lines are blue?"),
        ('Which months? Please write the answer in list format, e.g., ["Jan","Feb"].', "Which months?"),
        ("What is the date of it? Format your answer as YYYY-MM-DD.", "What is the date of it?"),
        ("Is it in the Bay Area? Answer 'yes' or 'no'.", "Is it in the Bay Area?"),
        ("What is the ratio? Round your answer to two decimal places.", "What is the ratio?"),
        ("What was the cost in 2021?Answer in millions.", "What was the cost in 2021?"),
        ("Is the mast of oak or of pine? Directly answer 'oak' or 'pine'.", "Is the mast of oak or of pine?"),
        ("Name the berths. The answer should be a list.", "Name the berths."),
        ("What is the date of it? Format the date as YYYY-MM.", "What is the date of it?"),
        ("How deep is the bay? If the documents do not tell, say so.", "How deep is the bay?"),
        ("How deep is the bay? Keep your answer short. Cite your sources.", "How deep is the bay?"),
        ("Answer in one sentence: how deep is the bay?", "how deep is the bay?"),
        ("Basing your judgment on the chart, how deep is the bay?", "how deep is the bay?"),
        ("How deep is the bay? If depth is of no use, then please state that and say why.", "How deep is the bay?"),
        ("What is its DSR? DSR is defined as: depth / (mean of spring and neap).", "What is its DSR?"),
        ("What is the ratio? Calculate what was asked by using the chart.", "What is the ratio?"),
        ("What is the ratio? Base your judgments on the chart.", "What is the ratio?"),
        # These ask for something.
        ("If the tide is low, how deep is the bay?", "If the tide is low, how deep is the bay?"),
        ("Cite the sources of the river.", "Cite the sources of the river."),
        ("Where is https://x.example/?mast=oak defined?", "Where is https://x.example/?mast=oak defined?"),
        ("Give me the number of cranes in Harwick.", "Give me the number of cranes in Harwick."),
        ("List the results of the test in 2020.", "List the results of the test in 2020."),
        ("Provide the answer that the minister gave.", "Provide the answer that the minister gave."),
        ("Give me an integer.", "Give me an integer."),
    ],
)
def test_a_wish_for_a_form_of_the_answer_is_no_question(question: str, expected: str) -> None:
    assert [part.text for part in parts(question, limit=3)] == [expected]


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("How many boats were sold?", AnswerKind.NUMBER),
        ("What was the average cost of a boat?", AnswerKind.NUMBER),
        ("When was it founded?", AnswerKind.DATE),
        ("In which year was it founded?", AnswerKind.DATE),
        ("Who founded it?", AnswerKind.NAME),
        ("When in the video is the mast raised?", AnswerKind.MOMENT),
        ("At what time does the clip show the crane?", AnswerKind.MOMENT),
        ("Which second of it shows the crane?", AnswerKind.MOMENT),
        ("At what time does the shop open?", AnswerKind.DATE),
        ("Why is oak oiled?", AnswerKind.STATEMENT),
        ("Wie viele Boote liegen im Hafen?", AnswerKind.NUMBER),
        ("Was kosten zwei Karten?", AnswerKind.NUMBER),
        ("Quel est le prix de la carte ?", AnswerKind.NUMBER),
        ("¿Cuántos barcos hay en el puerto?", AnswerKind.NUMBER),
        ("Hoe lang is de pier?", AnswerKind.NUMBER),
        ("Quanti battelli ci sono?", AnswerKind.NUMBER),
        ("Wann wurde der Hafen gebaut?", AnswerKind.DATE),
        ("En quelle année le port a-t-il ouvert ?", AnswerKind.DATE),
        ("Wer leitet den Hafen?", AnswerKind.NAME),
        ("Wie is de havenmeester?", AnswerKind.NAME),
        ("¿Quién dirige el puerto?", AnswerKind.NAME),
        ("Wie ist der Hafen?", AnswerKind.STATEMENT),
    ],
)
def test_each_part_knows_what_answers_it(question: str, kind: AnswerKind) -> None:
    assert [part.kind for part in parts(question, limit=3)] == [kind]


@pytest.mark.parametrize(
    "question",
    [
        "Hello! When was the Larsmo painted? Thanks in advance!",
        "Hi there,\n\nWhen was the Larsmo painted?\n\nBest regards,\nAnna Berg",
        "Good morning! I hope you are well. When was the Larsmo painted? Have a nice day!",
        "Please help me with this. When was the Larsmo painted? (Thank you!)",
        "Dear Anna, I have a quick question: When was the Larsmo painted?\nThanks, Tom",
        "Hallo, When was the Larsmo painted? Vielen Dank im Voraus!",
        "Bonjour ! When was the Larsmo painted? Merci d'avance",
    ],
)
def test_courtesy_around_a_question_is_no_part_of_it(question: str) -> None:
    assert [part.text for part in parts(question, limit=4)] == ["When was the Larsmo painted?"]


@pytest.mark.parametrize(
    "question",
    [
        "Thanks to whom was the pier built?",
        "Hello Kitty, when was it made?",
        "Hi Tech Ltd: which revenue?",
        "Who said hello? Hello Games.",
        'Where does it say "It is done. Thanks in advance!"',
        "Thank you!",
    ],
)
def test_words_of_courtesy_that_are_the_subject_stay(question: str) -> None:
    assert without_courtesy(question) == question


def test_queries_drop_question_words_and_reformulate_by_specific_words_first() -> None:
    (part,) = parts('What was the cost of "Second battery" in Harlow?', limit=3)
    assert part.query == 'cost of "Second battery" in Harlow'
    assert part.other_query.split()[0] == "Second"
    assert part.other_query.split()[-1] == "cost"


@pytest.mark.parametrize(
    ("question", "query"),
    [
        ("How much waste heat was recovered?", "waste heat was recovered"),
        ("Which documents mention cranes?", "documents mention cranes"),
        ("Is island power cheap?", "island power cheap"),
        ("At what time is turbine T4 released?", "turbine T4 released"),
        ("What time zone is used?", "time zone is used"),
        ("What's the depth of the bay?", "depth of the bay"),
    ],
)
def test_a_query_never_begins_within_a_word(question: str, query: str) -> None:
    assert [part.query for part in parts(question, limit=3)] == [query]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which report mentions the tern?", ["tern"]),
        ("What files contain the word lagoon?", ["word", "lagoon"]),
        ("In which letter is the tern described?", ["tern"]),
        ("Welche Datei enthält den Pegel?", ["pegel"]),
        ("In welchem Dokument wird der Pegel erwähnt?", ["pegel"]),
        ("Which folder holds the tern?", ["folder", "holds", "tern"]),
    ],
)
def test_the_document_that_is_looked_for_need_not_call_itself_so(question: str, expected: list[str]) -> None:
    (part,) = parts(question, limit=3)
    assert [term.surface for term in part.terms] == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Wie hoch ist die Gebühr für den Hafen?", ["gebühr", "hafen"]),
        ("Wie heißt der Hafen?", ["hafen"]),
        ("Quel est le prix de l'entrée du port ?", ["prix", "entrée", "port"]),
        ("¿Cuál es el precio de la entrada?", ["precio", "entrada"]),
        ("Qual è il prezzo della torta?", ["prezzo", "torta"]),
        ("Wat is de prijs van het kaartje?", ["prijs", "kaartje"]),
        ("How many fell in the war at Die?", ["fell", "war", "die"]),
        ("When was the hat of Las Vegas made?", ["hat", "las", "vegas", "made"]),
    ],
)
def test_words_of_grammar_of_the_question_s_language_are_not_looked_for(question: str, expected: list[str]) -> None:
    (part,) = parts(question, limit=3)
    assert [term.surface for term in part.terms] == expected


def test_words_meet_in_their_light_stem() -> None:
    for left, right in [
        ("costs", "cost"),
        ("rated", "rates"),
        ("oiled", "oiling"),
        ("March", "Mar"),
        ("bodies", "body"),
        ("sold", "sells"),
        ("begun", "beginning"),
        ("women", "woman"),
    ]:
        assert stem(left.casefold()) == stem(right.casefold()), (left, right)
    assert tokens("1,204 MWh in max_steps") == ["1204", "mwh", "in", "max", "steps"]
    assert tokens("阿里云APSARA 2023年发布") == ["阿里", "里云", "apsara", "2023", "年发", "发布"]
    assert [term.surface for term in terms("What was the wind in May 2024?")] == ["wind", "may", "2024"]
    assert [term.specific for term in terms("WHAT IS THE CASE NUMBER OF VIK?")] == [False] * 3
    assert tokens("FY2021, FY 2021 and FY21") == ["2021", "2021", "and", "2021"]


@pytest.mark.parametrize(
    ("question", "words", "pages"),
    [
        ("What does Figure 2 show?", ["figure 2"], set()),
        ("Who built the mast in unit-8?", ["built", "mast", "unit 8"], set()),
        ("What is the title of the table 3.1?", ["table 3.1"], set()),
        ("Who built the mast in Chapter 4?", ["built", "mast", "section 4"], set()),
        ("What was the cost in fiscal year 2021?", ["cost", "2021"], set()),
        ("What was the length of the fiscal year?", ["length", "fiscal", "year"], set()),
        ("Which mast is on page 12?", ["mast"], {12}),
        ("Which mast does the second slide show?", ["mast"], {2}),
    ],
)
def test_numbers_of_figures_sections_and_pages_belong_to_their_names(
    question: str, words: list[str], pages: set[int]
) -> None:
    (part,) = parts(question, limit=3)
    assert ([term.surface for term in part.terms], part.pages) == (words, pages)


@given(st.text(), st.integers(1, 4))
def test_any_text_has_at_least_one_part(question: str, limit: int) -> None:
    result = parts(question, limit=limit)
    assert 1 <= len(result) <= max(limit, 1)


@pytest.mark.parametrize(
    ("question", "query"),
    [
        ("The siren sounds at noon and the winch lifts 45 tonnes.", ""),
        ("Where does it say “the winch lifts 45 tonnes”?", "the winch lifts 45 tonnes"),
        ("On which page is it written that 'the winch lifts 45 tonnes'?", "the winch lifts 45 tonnes"),
        ("„the winch lifts 45 tonnes“", "the winch lifts 45 tonnes"),
    ],
)
def test_a_sentence_and_a_quotation_are_looked_for_whole(question: str, query: str) -> None:
    (part,) = parts(question, limit=3)
    assert part.wants_passage
    assert part.query == (query or question)


@pytest.mark.parametrize(
    "question",
    ["What lifts 45 tonnes?", 'What does "search and rescue" mean?', "Compare the winch and the crane.", "max_steps"],
)
def test_a_question_about_a_thing_wants_more_than_its_own_words(question: str) -> None:
    assert not any(part.wants_passage for part in parts(question, limit=3))


@pytest.mark.parametrize(
    ("text", "is_sentence"),
    [
        ("When the fog lifted over Harwick the boats left at once.", True),
        ("How the anchor was lost is in the parish book.", True),
        ("Why the mole sank is known to the divers.", True),
        ("Where the river ends, the harbour begins.", True),
        ("What the bell weighs is unknown.", True),
        ("When was the crane built.", False),
        ("When's the crane built.", False),
        ("Why don't the boats leave.", False),
        ("Where is the lamp.", False),
        ("How many boats were sold.", False),
        ("How to install the pump.", False),
        ("Who founded the workshop.", False),
        ("Which documents mention cranes.", False),
        ("Tell me who keeps the lamp of Harwick.", False),
        ("When the fog lifted over Harwick, who left?", False),
        ("When the fog lifted over Harwick", False),
    ],
)
def test_a_sentence_may_begin_with_a_question_word(text: str, is_sentence: bool) -> None:
    assert [part.wants_passage for part in parts(text, limit=3)] == [is_sentence]
