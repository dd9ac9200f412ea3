"""Office files made by code, and stand-ins for LibreOffice's program."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase

_SPACES = {
    "office": "office",
    "text": "text",
    "table": "table",
    "draw": "drawing",
    "presentation": "presentation",
    "svg": "svg-compatible",
    "xlink": "http://www.w3.org/1999/xlink",
}
_LAST, _FREE, _FAT, _NO_ENTRY = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD, 0xFFFFFFFF


_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPES = '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'
_P = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
_A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
_R = f'xmlns:r="{_OFFICE}"'
_CHART = "http://schemas.openxmlformats.org/drawingml/2006/chart"
WORD_SPACES = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    f'xmlns:c="{_CHART}" xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" {_A}{_R}'
)


def archive(files: dict[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as out:
        for name, content in files.items():
            out.writestr(name, content)
    return buffer.getvalue()


def relations(**targets: str) -> str:
    """The parts that a part refers to; the first letter of an id is that of the kind."""
    kinds = {
        "r": "officeDocument",
        "s": "slide",
        "w": "worksheet",
        "n": "notesSlide",
        "h": "header",
        "f": "footer",
        "c": "chart",
        "d": "diagramData",
        "p": "image",
        "a": "aFChunk",
    }
    rows = (
        f'<Relationship Id="{id_}" Type="{_OFFICE}/{kinds[id_[0]]}" Target="{target}"/>'
        for id_, target in targets.items()
    )
    return f'<Relationships xmlns="{_RELATIONS}">{"".join(rows)}</Relationships>'


def paragraph(text: str, properties: str = "") -> str:
    """A paragraph of a DOCX."""
    return f"<w:p>{properties and f'<w:pPr>{properties}</w:pPr>'}<w:r><w:t>{text}</w:t></w:r></w:p>"


def docx(*paragraphs: str, **media: bytes) -> bytes:
    body = "".join(map(paragraph, paragraphs))
    return docx_of(body, {f"word/media/{name}.png": data for name, data in media.items()})


def docx_of(body: str, parts: Mapping[str, str | bytes] | None = None, **related: str) -> bytes:
    """A DOCX with the XML ``body`` and further ``parts``; ``related`` are those of the document's relations."""
    return archive(
        {
            "[Content_Types].xml": _TYPES,
            "_rels/.rels": relations(r1="word/document.xml"),
            "word/_rels/document.xml.rels": relations(**related),
            "word/document.xml": f"<w:document {WORD_SPACES}><w:body>{body}</w:body></w:document>",
            **(parts or {}),
        }
    )


def chart(title: str, axis: str, categories: Sequence[str], **series: Sequence[float]) -> str:
    """The part of a chart with columns, as an office file keeps it."""

    def cached(tag: str, values: Sequence[object]) -> str:
        points = "".join(f'<c:pt idx="{n}"><c:v>{value}</c:v></c:pt>' for n, value in enumerate(values))
        return f"<c:{tag}>{points}</c:{tag}>"

    def titled(text: str) -> str:
        return f"<c:title><c:tx><c:rich><a:p><a:r><a:t>{text}</a:t></a:r></a:p></c:rich></c:tx></c:title>"

    drawn = "".join(
        f"<c:ser><c:tx><c:strRef>{cached('strCache', [name])}</c:strRef></c:tx><c:cat><c:strRef>"
        f"{cached('strCache', categories)}</c:strRef></c:cat><c:val><c:numRef>{cached('numCache', values)}</c:numRef>"
        "</c:val></c:ser>"
        for name, values in series.items()
    )
    plot = f"<c:plotArea><c:barChart>{drawn}</c:barChart><c:valAx>{titled(axis)}</c:valAx></c:plotArea>"
    return f'<c:chartSpace xmlns:c="{_CHART}" {_A}><c:chart>{titled(title)}{plot}</c:chart></c:chartSpace>'


def text_shape(text: str, place: str = "") -> str:
    """A shape of a slide with words, at a place of its layout if that is named."""
    held = f'<p:nvSpPr><p:nvPr><p:ph type="{place}"/></p:nvPr></p:nvSpPr>' if place else ""
    return f"<p:sp>{held}<p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"


def pptx(*slides: str, notes: str = "") -> bytes:
    """A presentation; a slide is the words of its only shape, or the XML of its shapes."""

    def shapes(root: str, text: str) -> str:
        shape = text if text.startswith("<") else text_shape(text)
        return f"<p:{root} {_P}{_A}{_R}><p:cSld><p:spTree>{shape}</p:spTree></p:cSld></p:{root}>"

    numbers = range(1, len(slides) + 1)
    listed = "".join(f'<p:sldId id="{255 + n}" r:id="s{n}"/>' for n in numbers)
    files = {
        "[Content_Types].xml": _TYPES,
        "_rels/.rels": relations(r1="ppt/presentation.xml"),
        "ppt/presentation.xml": f"<p:presentation {_P}{_R}><p:sldIdLst>{listed}</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(**{f"s{n}": f"slides/slide{n}.xml" for n in numbers}),
        **{f"ppt/slides/slide{n}.xml": shapes("sld", text) for n, text in zip(numbers, slides, strict=True)},
    }
    if notes:
        files["ppt/slides/_rels/slide1.xml.rels"] = relations(n1="../notesSlides/notesSlide1.xml")
        files["ppt/notesSlides/notesSlide1.xml"] = shapes("notes", notes)
    return archive(files)


def xlsx(**sheets: list[list[str]]) -> bytes:
    def place(x: int, y: int) -> str:
        return f' r="{ascii_uppercase[x]}{y}"' if x < len(ascii_uppercase) else ""

    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    files = {"[Content_Types].xml": _TYPES, "_rels/.rels": relations(r1="xl/workbook.xml")}
    listed = "".join(f'<sheet name="{name}" sheetId="{n}" r:id="w{n}"/>' for n, name in enumerate(sheets, 1))
    files["xl/workbook.xml"] = f"<workbook {main} {_R}><sheets>{listed}</sheets></workbook>"
    files["xl/sharedStrings.xml"] = f"<sst {main}/>"
    files["xl/_rels/workbook.xml.rels"] = relations(
        **{f"w{n + 1}": f"worksheets/sheet{n + 1}.xml" for n in range(len(sheets))}
    )
    for n, rows in enumerate(sheets.values(), 1):
        cells = "".join(
            f'<row r="{y}">'
            + "".join(f'<c{place(x, y)} t="inlineStr"><is><t>{cell}</t></is></c>' for x, cell in enumerate(row))
            + "</row>"
            for y, row in enumerate(rows, 1)
        )
        files[f"xl/worksheets/sheet{n}.xml"] = f"<worksheet {main}><sheetData>{cells}</sheetData></worksheet>"
    return archive(files)


def stand_in(folder: Path, script: str) -> Path:
    """A program named as LibreOffice's, which runs ``script`` with ``$in`` and ``$out``, the file to make."""
    program = folder / "soffice"
    folder.mkdir(exist_ok=True)
    paths = 'for in; do :; done; target=; for a; do [ "$last" = --convert-to ] && target=$a; last=$a; done\n'
    program.write_text(f'#!/bin/sh\n{paths}out="${{in%.*}}.${{target%%:*}}"\n{script}\n')
    program.chmod(0o755)
    return program


def open_document(kind: str, body: str, *, files: Sequence[tuple[str, bytes]] = ()) -> bytes:
    """An OpenDocument file; ``kind`` is text, presentation or spreadsheet, ``body`` what stands in that element."""
    mimetype = f"application/vnd.oasis.opendocument.{kind}"
    spaces = " ".join(
        f'xmlns:{name}="{place if "/" in place else f"urn:oasis:names:tc:opendocument:xmlns:{place}:1.0"}"'
        for name, place in _SPACES.items()
    )
    content = (
        f'<?xml version="1.0"?><office:document-content {spaces} office:version="1.3"><office:body>'
        f"<office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    )
    entry = "<manifest:file-entry manifest:full-path={!r} manifest:media-type={!r}/>"
    listed = entry.format("/", mimetype) + entry.format("content.xml", "text/xml")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as out:
        out.writestr("mimetype", mimetype)
        out.writestr("content.xml", content)
        space = "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"
        out.writestr(
            "META-INF/manifest.xml", f'<manifest:manifest xmlns:manifest="{space}">{listed}</manifest:manifest>'
        )
        for name, data in files:
            out.writestr(name, data)
    return buffer.getvalue()


_LEAST_STREAM = 4096


def compound(
    *names: str, inside: Sequence[str] = (), folder: str = "ObjectPool", contents: Mapping[str, bytes] | None = None
) -> bytes:
    """A compound file of Microsoft's with streams of these names; those of ``inside`` lie in ``folder``.

    Streams are empty but for ``contents``, which are padded with zeros to the least that stands outside of the stream
    of small ones.
    """
    entries = [("Root Entry", 5, 1), *((name, 2, _NO_ENTRY) for name in names)]
    if inside:
        entries += [(folder, 1, len(entries) + 1), *((name, 2, _NO_ENTRY) for name in inside)]
    padded = {name: data.ljust(_LEAST_STREAM, b"\0") for name, data in (contents or {}).items()}
    sectors = -(-len(entries) * 128 // 512)
    starts, free = {}, 1 + sectors
    for name, data in padded.items():
        starts[name] = free
        free += -(-len(data) // 512)
    top = len(names) + 1 + bool(inside)
    directory = b""
    for number, (name, kind, child) in enumerate(entries):
        # A chain of right neighbours is a tree, though no balanced one.
        is_last = number in (0, top - 1, len(entries) - 1)
        coded = name.encode("utf-16-le") + b"\0\0"
        directory += struct.pack(
            "<64sHBBIII16sIQQIQ",
            coded, len(coded), kind, 1, _NO_ENTRY, _NO_ENTRY if is_last else number + 1, child, b"", 0, 0, 0,
            starts.get(name, _LAST), len(padded.get(name, b"")),
        )  # fmt: skip
    directory = directory.ljust(sectors * 512, b"\0")
    table = [_FAT, *(n + 2 for n in range(sectors - 1)), _LAST]
    for data in padded.values():
        table += [*range(len(table) + 1, len(table) + -(-len(data) // 512)), _LAST]
    fat = struct.pack("<128I", *table, *[_FREE] * (128 - len(table)))
    header = struct.pack(
        "<8s16sHHHHH6sIIIIIIIIII",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"", 0x3E, 3, 0xFFFE, 9, 6, b"", 0, 1, 1, 0, 4096, _LAST, 0, _LAST, 0, 0,
    )  # fmt: skip
    streams = b"".join(data.ljust(-(-len(data) // 512) * 512, b"\0") for data in padded.values())
    return header + struct.pack("<108I", *[_FREE] * 108) + fat + directory + streams
