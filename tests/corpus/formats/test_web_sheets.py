"""Rules of style sheets hold as on the screen of a desktop."""

import pytest

from vrag_ray.corpus.formats.web_sheets import applies, content_text, in_pixels, rules_for_screen


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
        (".a{x:1;@media print{x:2}@media screen{x:3}}", ".a{x:1}.a{x:3}"),
        ("@supports (x:1){@media print{.a{x:1}}.b{x:2}}", ".b{x:2}"),
        ("@supports not (display:grid){.a{x:1}}.b{x:2}", ".b{x:2}"),
        ("@supports (-moz-appearance:none) or (display:grid){.a{x:1}}", ".a{x:1}"),
        ("@supports (-moz-appearance:none) and (display:grid){.a{x:1}}", ""),
        ("@container card (min-width:40em){.a{x:1}}@container (width<9em){.b{x:2}}", ".a{x:1}"),
        ("@keyframes k{from{x:1}}@font-face{x:2}@starting-style{.a{x:3}}.b{x:4}", ".b{x:4}"),
        ("@layer base{.a{x:1}}.b{x:2}", ".a{x:1}.b{x:2}"),
        (".b{x:2}@layer base{.a{x:1}}", ".a{x:1}.b{x:2}"),
        ("@layer low, high;@layer high{.a{x:1}}@layer low{.a{x:2}}", ".a{x:2}.a{x:1}"),
        ("@layer a{.o{x:1}@layer b{.i{x:2}}}@layer a.b{.i{x:3}}", ".i{x:2}.i{x:3}.o{x:1}"),
        ("@layer{.a{x:1}}@layer{.b{x:2}}", ".a{x:1}.b{x:2}"),
        ("@media print{@layer a{.a{x:1}}}@layer b{@media screen{.b{x:2}}}", ".b{x:2}"),
        ("/* @media print{ */.a{x:1}", ".a{x:1}"),
        ("@media print{.a{x:1}", ""),
        (".a{x:1;.b{x:2}x:3}", ".a{x:1}.a .b{x:2}.a{x:3}"),
        (".a,.b{&:hover>i,.c &{x:1}}", ":is(.a,.b):hover>i{x:1}.c :is(.a,.b){x:1}"),
        (".a{@media print{.b{x:1}}> .c{@media screen{x:2}}}", ".a > .c{x:2}"),
        (f".a{{{'&,&{' * 30}x:1{'}' * 30}}}.b{{x:2}}", ".b{x:2}"),
        ("@scope (.a){:scope{x:1}.b{x:2}}@scope (.a) to (.c){.b{x:3}}", ".a{x:1}.a .b{x:2}"),
        (".a{x:'}{';y:2}", ".a{x:'}{';y:2}"),
        ("@import url(a.css);.a{x:1}", ".a{x:1}"),
    ],
)
def test_what_of_a_sheet_holds(sheet: str, held: str) -> None:
    rules = (
        f"{rule.selector}{{{';'.join(f'{name}:{value}' for name, value, _ in rule.declared)}}}"
        for rule in rules_for_screen(sheet)
    )
    assert "".join(rules) == held


@pytest.mark.parametrize(
    ("style", "drawn"),
    [
        ("font-size:1.5vw;width:50vw", "font-size:19.2px;width:50vw"),
        ("font:bold 2vh/1 serif", "font:bold 14.4px/1 serif"),
        ("content:'2vw'", "content:'2vw'"),
    ],
)
def test_type_sizes_by_the_window_are_pixels(style: str, drawn: str) -> None:
    assert in_pixels(style) == drawn


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("none", ""),
        ("open-quote", "\u201c"),
        (r'"\2022\00A0 "', "\u2022\u00a0"),
        (r'"\f005"', ""),
        ('"a" "b"', "ab"),
        (r'"say \"hi\""', 'say "hi"'),
        ('"kr" / "crowns"', "kr"),
        ("url(a.png)", ""),
        ('counter(part) ". "', "<counter part>. "),
        ('" (" attr(href) ")"', " (<attr href>)"),
    ],
)
def test_what_a_sheet_puts_beside_an_element_is_a_text(value: str, text: str) -> None:
    def written(name: str, given: list[str]) -> str:
        return "" if name == "url" else f"<{name} {' '.join(given)}>"

    assert content_text(value, written) == text
