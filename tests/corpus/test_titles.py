"""A title names a document; stamps, numbers, dates and page furniture do not."""

from __future__ import annotations

import pytest

from vrag_ray.corpus.titles import headline, is_title


@pytest.mark.parametrize(
    "text",
    [
        "arXiv:2401.00017v1 [cs.IR] 5 Jan 2024",
        "0000912345-24-000017",
        "d812345d10k.htm",
        "report_final_3",
        "Microsoft Word - draft",
        "Untitled 2",
        "(anonymous)",
        "(stdin)",
        "about:blank",
        "Scanned Document",
        "Microsoft Word - Harbour plan.docx",
        "Crystal Reports - stock.rpt",
        "Harbour plan.docm",
        "PowerPoint Presentation",
        "PowerPoint-Präsentation",
        "Présentation PowerPoint",
        "x ANNUAL REPORT PURSUANT TO SECTION 13 OR 15(d) OF THE SECURITIES EXCHANGE ACT OF 1934",
        "Quarterly report pursuant to Section 13 or 15(d)",
        "[X] Annual filing",
        "Washington, D.C. 20549",
        "12 Pier Road, Richfield, MN 55423-1234",
        "þ Large accelerated filer",
        "Contents",
        "Table of Contents",
        "Page 1 of 9",
        "3 / 12",
        "2024",
        "5 January 2024",
        "3. März 2021",
        "5 de mayo de 2020",
        "settembre 2019",
        "March 2023",
        "12/31/2023",
        "As of December 31, 2023",
        "UNITED STATES SECURITIES AND EXCHANGE COMMISSION",
        "which is required by the rules of this part.",
        "which is required by rule 240.10D-1(b). ☐",
        "☒ ANNUAL REPORT PURSUANT TO SECTION 13",
        "§",
        "Présentation PowerPoint",
        "PowerPoint Presentation",
        "Unbenannt-1",
        "Sans titre",
        "Dokument1",
        "PII: S0022-1236(97)93139-4",
        "<TITLE>",
        "DRAFT",
        "Confidential",
        "Source: https://example.org/docs/mjgl0226",
        "\ufffdZ]yDA\ufffd]",
        "4,812.50 EUR",
        "USD 900",
    ],
)
def test_what_names_no_document_is_no_title(text: str) -> None:
    assert not is_title(text)


@pytest.mark.parametrize(
    "text",
    [
        "Annual Report 2023",
        "March of the Penguins",
        "X Window System",
        "1984 in review",
        "COVID-19",
        "AlphaFold2",
        "Contents of the sea",
        "Draft of the sea law",
        "The unknown sea",
        "Anonymous letters",
    ],
)
def test_words_with_numbers_and_months_in_them_are_titles(text: str) -> None:
    assert is_title(text)


def test_the_headline_is_the_first_title_from_the_largest_type_down_to_that_of_the_text() -> None:
    text = [(10.0, "The ferry leaves at nine and returns at noon.")] * 3
    assert headline([(24.0, "Contents"), (18.0, "Ferries of"), (18.0, "the Sound"), *text]) == "Ferries of the Sound"
    assert headline([(18.0, "Hydrogeo-"), (18.0, "chemical Atlas"), *text]) == "Hydrogeochemical Atlas"
    assert headline([(24.0, "2024"), *text]) is None
    assert headline([(24.0, "Everything is large")]) is None
    assert headline([]) is None
