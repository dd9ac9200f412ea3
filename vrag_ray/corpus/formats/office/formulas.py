"""Formulas of office programs (OMML), each as one line of text."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

from vrag_ray.corpus.formats.formulas import Piece, accented, fraction, joined, plain_letters, root, scripted
from vrag_ray.corpus.formats.office.parts import child, every, tag_of

_INTEGRAL, _HAT = "∫", "\u0302"
"""What a large operator and an accent are where the file names none."""


def formula_line(formula: ElementTree.Element) -> str:
    """A formula in one line, as `a/b` and `x²`."""
    return joined(_row(formula))


def _row(holder: ElementTree.Element | None) -> Iterator[Piece]:
    """The pieces in an element; runs beside each other are one, since office programs divide words and numbers."""
    text = ""
    for element in holder if holder is not None else ():
        tag = tag_of(element)
        if tag == "r":
            text += plain_letters("".join(inner.text or "" for inner in every(element, "t")))
        elif not tag.endswith("Pr"):
            if text:
                yield Piece(text)
                text = ""
            yield _piece(element)
    if text:
        yield Piece(text)


def _piece(element: ElementTree.Element) -> Piece:  # noqa: PLR0911, PLR0912
    def line(*path: str) -> str:
        return joined(_row(child(element, *path)))

    def stated(name: str, default: str) -> str:
        """A value of the properties, which may be stated as empty."""
        entry = child(element, f"{tag_of(element)}Pr", name)
        if entry is None:
            return default
        return next((value for key, value in entry.attrib.items() if key.rpartition("}")[2] == "val"), "")

    match tag_of(element):
        case "f":
            return fraction(line("num"), line("den"), has_line=stated("type", "bar") != "noBar")
        case "sSup" | "sSub" | "sSubSup":
            return scripted(line("e"), line("sub"), line("sup"))
        case "sPre":
            return Piece(scripted("", line("sub"), line("sup")).text + line("e"), is_apart=True)
        case "rad":
            return root(line("e"), line("deg"))
        case "d":
            inner = stated("sepChr", "|").join(joined(_row(part)) for part in element if tag_of(part) == "e")
            return Piece(f"{stated('begChr', '(')}{inner}{stated('endChr', ')')}")
        case "nary":
            operator = scripted(stated("chr", _INTEGRAL), line("sub"), line("sup"))
            return Piece(joined((operator, Piece(line("e")))), is_apart=True)
        case "func":
            return Piece(joined((Piece(line("fName"), is_apart=True), Piece(line("e")))), is_apart=True)
        case "limLow":
            return scripted(line("e"), line("lim"), "")
        case "limUpp":
            return scripted(line("e"), "", line("lim"))
        case "acc":
            return accented(line("e"), stated("chr", _HAT), is_above=True)
        case "bar":
            return accented(
                line("e"), "_" if stated("pos", "bot") == "bot" else "¯", is_above=stated("pos", "bot") == "top"
            )
        case "m":
            rows = (row for row in element if tag_of(row) == "mr")
            return Piece("; ".join(" ".join(joined(_row(cell)) for cell in row if tag_of(cell) == "e") for row in rows))
        case "eqArr":
            return Piece("; ".join(joined(_row(part)) for part in element if tag_of(part) == "e"))
        case "phant" if stated("show", "1") in ("0", "off", "false"):
            return Piece("")
        case "oMath":
            return Piece(f"{joined(_row(element))} ")
        case "t":
            return Piece(element.text or "")
    return Piece(joined(_row(element)))
