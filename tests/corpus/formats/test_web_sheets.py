"""Rules of style sheets hold as on the screen of a desktop."""

import pytest

from vrag_ray.corpus.formats.web_sheets import PlainRules, applies, for_screen, sheet_for_screen


@pytest.mark.parametrize(
    "query",
    [
        "",
        "screen",
        "only screen and (min-width: 768px)",
        "(min-width:48em) and (max-width:1400px)",
        "print, (min-width:10px)",
        "(width >= 48rem)",
        "(640px <= width < 1281px)",
        "not all and (min-width:1400px)",
        "not print",
        "(max-width:600px) or (hover:hover)",
        "(prefers-color-scheme: light)",
    ],
)
def test_a_query_holds(query: str) -> None:
    assert applies(query)


@pytest.mark.parametrize(
    "query",
    [
        "print",
        "(max-width:767.98px)",
        "screen and (max-width:600px), print",
        "(width < 48rem)",
        "not all and (min-width:640px)",
        "not screen",
        "(prefers-color-scheme:dark)",
        "(unheard-of: 1)",
        "(min-width: calc(1px + 1px))",
    ],
)
def test_a_query_does_not_hold(query: str) -> None:
    assert not applies(query)


@pytest.mark.parametrize(
    ("sheet", "held"),
    [
        (".a{x:1}@media print{.a{x:2}}.b{x:3}", ".a{x:1}.b{x:3}"),
        ("@media (min-width:1px){.a{x:1}.b{x:2}}", ".a{x:1}.b{x:2}"),
        ("@media screen{@media print{.a{x:1}}@media (min-width:9px){.b{x:2}}}", ".b{x:2}"),
        (".a{x:1;@media print{x:2}@media screen{x:3}}", ".a{x:1;x:3}"),
        ("@supports (x:1){@media print{.a{x:1}}.b{x:2}}", ".b{x:2}"),
        ("@supports not (display:grid){.a{x:1}}.b{x:2}", ".b{x:2}"),
        ("@supports (-moz-appearance:none) or (display:grid){.a{x:1}}", ".a{x:1}"),
        ("@supports (-moz-appearance:none) and (display:grid){.a{x:1}}", ""),
        ("@layer base{.a{x:1}}.b{x:2}", ".a{x:1}.b{x:2}"),
        (".b{x:2}@layer base{.a{x:1}}", ".a{x:1}.b{x:2}"),
        ("@layer low, high;@layer high{.a{x:1}}@layer low{.a{x:2}}", ".a{x:2}.a{x:1}"),
        ("@layer a{.o{x:1}@layer b{.i{x:2}}}@layer a.b{.i{x:3}}", ".i{x:2}.i{x:3}.o{x:1}"),
        ("@layer{.a{x:1}}@layer{.b{x:2}}", ".a{x:1}.b{x:2}"),
        ("@media print{@layer a{.a{x:1}}}@layer b{@media screen{.b{x:2}}}", ".b{x:2}"),
        ("/* @media print{ */.a{x:1}", ".a{x:1}"),
        ("@media print{.a{x:1}", ""),
        (r".md\:block,.w-\31 0:hover{x:1}", '[class~="md:block"],[class~="w-10"]:hover{x:1}'),
        (r".p{width:.5\9}", r".p{width:.5\9}"),
        (".a{font-size:1.5vw;width:50vw}", ".a{font-size:19.2px;width:50vw}"),
        (".a{font:bold 2vh/1 serif}", ".a{font:bold 14.4px/1 serif}"),
    ],
)
def test_what_of_a_sheet_holds(sheet: str, held: str) -> None:
    assert sheet_for_screen(sheet) == held


def test_a_sheet_for_print_is_emptied_and_a_style_takes_pixels() -> None:
    page = '<style media="print">p{x:1}</style><style media=screen>p{x:2}</style><p style="font-size:2vw">50vw</p>'
    assert for_screen(page) == (
        '<style media="print"></style><style media=screen>p{x:2}</style><p style="font-size:25.6px">50vw</p>'
    )


def test_the_rule_with_more_names_overrules_and_an_important_one_overrules_all() -> None:
    rules = PlainRules()
    rules.add("p.a{x:1;y:1!important} .a{x:2} p{x:3;z:3} .a.b{x:4} #c{x:5} div .a{x:6} .a:hover{x:7}")
    assert rules.style_of("p", {"class": "a"}) == "x:1;z:3;y:1"
    assert rules.style_of("p", {"class": "a b", "style": "y:8"}) == "x:4;z:3;y:1"
    assert rules.style_of("i", {"id": "c", "style": "w:url(a;b:1)"}) == "x:5;w:url(a;b:1)"
    assert rules.style_of("i", {"class": "z"}) == ""


@pytest.mark.parametrize(
    ("stated", "drawn"),
    [
        ("'';content:none", '"";content:""'),
        ("normal", '""'),
        ("open-quote", '"\u201c"'),
        (r'"\2022\00A0 "', '"\u2022\u00a0"'),
        (r'"\f005"', '""'),
        ('"a" "b"', '"ab"'),
        (r'"say \"hi\"" !important', """'say "hi"'!important"""),
        ('"kr" / "crowns"', '"kr"'),
        ("url(a.png)", '""'),
        ('counter(part) ". "', '""'),
        ('" (" attr(href) ")"', '""'),
        ("'{;}'", '"{;}"'),
    ],
)
def test_what_a_sheet_puts_beside_an_element_is_a_string(stated: str, drawn: str) -> None:
    assert sheet_for_screen(f"q:before{{content:{stated}}}") == f"q:before{{content:{drawn}}}"
