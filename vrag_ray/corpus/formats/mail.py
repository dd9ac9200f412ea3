"""E-mail (EML by the standard library, Outlook's MSG by olefile), and web pages that are saved as one (MHTML): head and
body as a text, and what is attached.

An attached message is attached as a file of its own, so that its own attachments are found too.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import quopri
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from io import BytesIO
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from vrag_ray.corpus.formats.encodings import decode_text
from vrag_ray.corpus.formats.named_rows import text_tables, with_named_rows
from vrag_ray.corpus.formats.source import Attachment, Opening, damage
from vrag_ray.corpus.formats.text import TITLE_CHARS, SpanSource, divided_words, split_pieces
from vrag_ray.corpus.formats.uuencoded import without_encoded
from vrag_ray.corpus.formats.web_encoding import stated_text
from vrag_ray.corpus.formats.web_text import read_html
from vrag_ray.corpus.model import DecodeError, Probe, clean, title_from_name
from vrag_ray.corpus.sniff import Format
from vrag_ray.types import DocumentKind, MetaValue

if TYPE_CHECKING:
    from olefile import OleFileIO

UNREADABLE = "is a damaged or cut short e-mail: get the whole file again, or save the message anew"
_HEADERS = ("Subject", "From", "To", "Cc", "Date")
_SUBJECT, _SENDER, _SENDER_ADDRESS, _TO, _CC, _BODY, _HTML = "0037", "0C1A", "0C1F", "0E04", "0E03", "1000", "1013"
_LONG_NAME, _SHORT_NAME, _DATA, _EMBEDDED = "3707", "3704", "3701", "3701000D"
_SENT, _RECEIVED = 0x00390040, 0x0E060040
_WORD = re.compile(r"\w+")
_ADDRESS = re.compile(r"\b(?:https?://|mailto:|www\.)\S+")
_EPOCH_OF_WINDOWS = datetime(1601, 1, 1, tzinfo=UTC)
_LISTED = ("Subject", "From", "Date")
"""What is shown of each message of a mailbox; the rest is in the message."""
_BEFORE_A_MESSAGE = re.compile(rb"(?:\A|\n\r?\n)From [^\n]*\d\d:\d\d[^\n]*\n(?=[!-9;-~]+:)")
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
_ENCODED_WORD = re.compile(r"=\?[^?\s]{1,60}\?([bBqQ])\?([^?\s]*)\?=")
_ENCODED_WORDS = re.compile(r"=\?([^?\s]{1,60})\?[bBqQ]\?[^?\s]*\?=(?:\s+=\?\1\?[bBqQ]\?[^?\s]*\?=)*")
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")
LEAST_OF_BASE64 = 60
"""Characters of a full line of it."""
_SHEET = "text/css"
_APPLE_SIZE = re.compile(rb"\s{0,8}(\d{1,10})[ \t]*\r?\n")
"""The first line of a message as Apple Mail stores it (EMLX): its size in bytes. Properties follow the message."""
_DELIVERY_STATUS = "message/delivery-status"
_OF_ONE_PROGRAM = frozenset(("text/x-amp-html", "text/watch-html"))
"""Forms of the body for one program alone."""
_SIGNATURE = "-- "
"""The line before a signature."""
_WINDOWS = {code: bytes([code]).decode("cp1252", "ignore") or chr(code) for code in range(128, 160)}
"""What Windows writes in what it calls Latin-1, where that has control characters."""
_ROOT_PROPERTIES = 32
"""Bytes of a message's property stream before its first property; each then takes sixteen."""


@dataclass(frozen=True, slots=True)
class Mail:
    """A message: its headers by name, in the order they are shown, its body, and what is attached."""

    headers: dict[str, str]
    body: str
    attachments: tuple[Attachment, ...]
    notices: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        lines = [f"{name}: {self.headers[name]}" for name in _HEADERS if self.headers.get(name)]
        return "\n".join(lines) + ("\n\n" if self.body else "") + self.body


class MailSource(SpanSource):
    """An open message: a text document, whose spans count the characters of its headers and its body."""

    def __init__(self, opening: Opening, format_: Format) -> None:
        super().__init__(opening, "an e-mail")
        with damage(UNREADABLE):
            data = opening.path.read_bytes()
            self._mail = read_msg(data) if format_ is Format.MSG else read_eml(data)
        self._text = clean(self._mail.text)
        self._format = format_
        self._spans = split_pieces(self._text)
        self._whole_words = divided_words(self._text, text_tables(self._text))

    def probe(self) -> Probe:
        headers = self._mail.headers
        meta: dict[str, MetaValue] = {"format": str(self._format)}
        for name, header in (("sender", "From"), ("recipients", "To"), ("date", "Date")):
            if value := " ".join(clean(headers.get(header, "")).split())[:TITLE_CHARS]:
                meta[name] = value
        title = " ".join(clean(headers.get("Subject", "")).split())[:TITLE_CHARS]
        return Probe(
            DocumentKind.TEXT,
            len(self._spans),
            title or title_from_name(self._opening.name),
            meta=meta,
            notices=self._mail.notices,
        )

    def attachments(self) -> Iterator[Attachment]:
        return iter(self._mail.attachments)

    def _shown(self, start: int, end: int) -> str:
        return with_named_rows(self._text, self._whole_words, start, end)


def read_eml(data: bytes) -> Mail:
    """A message as it is sent, or as Apple Mail stores it. Parts without a text of their own are attachments, and so
    are the messages of a mailbox, but not the style sheets that a page is saved with."""
    if size := _APPLE_SIZE.match(data):
        data = data[size.end() : size.end() + int(size[1])]
    if len(messages := messages_of(data)) > 1:
        mails = [(inner, _parsed(inner)) for inner in messages]
        heads = [" - ".join(filter(None, (_header(mail, name) for name in _LISTED))) for _, mail in mails]
        names = [_header(mail, "Subject") or f"message {number}" for number, (_, mail) in enumerate(mails, 1)]
        attached = [Attachment(_plain_name(f"{name}.eml"), mail[0]) for name, mail in zip(names, mails, strict=True)]
        return Mail({}, "\n".join(heads), tuple(attached))
    message = _parsed(data)
    headers = {name: _header(message, name) for name in _HEADERS if message[name] is not None}
    plain, html = message.get_body(("plain",)), message.get_body(("html",))
    if plain is None and html is not None and "To" not in headers and "@" not in headers.get("From", "@"):
        # The browser that saved a web page, such as "Saved by Blink".
        del headers["From"]
    body, encoded = without_encoded(_text_of(plain) if isinstance(plain, EmailMessage) else "")
    sheets, notices = dict[str, str](), list[str]()
    if isinstance(html, EmailMessage):
        sheets = _sheets_beside(message, html)
        shown, beside, notices = read_html(_text_of(html), sheets)
        body = _fuller(body, shown, beside)
    attached = [Attachment(_plain_name(file.name), file.data) for file in encoded]
    reports: list[str] = []
    for part in _leaves(message):
        is_a_body = part is plain or part is html or part.get_content_type() in _OF_ONE_PROGRAM
        if is_a_body or (sheets and _is_sheet(part)):
            continue
        number = len(attached) + 1
        if part.get_content_type() == "message/rfc822":
            inner = part.get_payload(0) if part.is_multipart() else None
            if isinstance(inner, EmailMessage):
                inner_data = _bytes_of(inner, str(part.get("Content-Transfer-Encoding", "")))
                subject = _header(_parsed(inner_data), "Subject")
                attached.append(
                    Attachment(_plain_name(_name_of(part) or f"{subject or f'message {number}'}.eml"), inner_data)
                )
        elif part.get_content_type() == _DELIVERY_STATUS:
            reports += [block.as_string().strip() for block in part.iter_parts()]
        else:
            content, _ = _content_of(part)
            if content:
                name = _name_of(part) or f"part {number}{_suffix_of(part)}"
                attached.append(Attachment(_plain_name(name), content))
    return Mail(headers, "\n\n".join(filter(None, [body.strip(), *reports])), tuple(attached), tuple(notices))


def messages_of(data: bytes) -> list[bytes]:
    """The messages of a mailbox in one file (mbox); none of any other file."""
    if not data.startswith(b"From "):
        return []
    return [_QUOTED_FROM.sub(rb"\1", message) for message in _BEFORE_A_MESSAGE.split(data)[1:]]


def _bytes_of(inner: EmailMessage, encoding: str) -> bytes:
    """An attached message. Some programs encode it, though MIME forbids that, and its parser takes it as it stands."""
    data = inner.as_bytes(policy=policy.default.clone(refold_source="none"))
    if encoding.strip().casefold() == "base64":
        try:
            return base64.b64decode(b"".join(data.split()), validate=True)
        except binascii.Error:
            return data
    return quopri.decodestring(data) if encoding.strip().casefold() == "quoted-printable" else data


def _parsed(data: bytes) -> EmailMessage:
    """The message, also where an editor put the mark of UTF-8 before its first header."""
    message = BytesParser(policy=policy.default).parsebytes(data.removeprefix(codecs.BOM_UTF8))
    assert isinstance(message, EmailMessage)
    return message


def shown_part(data: bytes) -> tuple[str, bool]:
    """What readers of a message, or of a web page that is saved as a message, see; and whether that is HTML."""
    message = _parsed(data)
    shown = message.get_body(("html", "plain"))
    if not isinstance(shown, EmailMessage):
        return "", False
    return _text_of(shown), shown.get_content_type() == "text/html"


def _is_sheet(part: EmailMessage) -> bool:
    return part.get_content_type() == _SHEET and part.get_content_disposition() != "attachment"


def _sheets_beside(message: EmailMessage, page: EmailMessage) -> dict[str, str]:
    """The style sheets that ``page`` is saved with, by the addresses by which it may name them."""
    base = _location(page)
    sheets: dict[str, str] = {}
    for part in filter(_is_sheet, _leaves(message)):
        text, location = _text_of(part), _location(part)
        if name := str(part.get("Content-ID", "")).strip().strip("<>"):
            sheets[f"cid:{name}"] = text
        if location:
            sheets[location] = sheets[urljoin(base, location)] = text
    return sheets


def _location(part: EmailMessage) -> str:
    return "".join(str(part.get("Content-Location", "")).split())


def _fuller(plain: str, shown: str, beside: Sequence[str]) -> str:
    """The body of a message that is written twice: ``shown``, which its readers see, where it says more than ``plain``.

    Some programs leave out of the plain form what they cannot write there, and some refer there to the other. What
    only the plain form says stays too, but for addresses of links. ``beside`` are the texts in ``shown`` that stand for
    pictures and in fields: where it says no more but for those, they follow the plain form.
    """
    plain_words, shown_words = _words(plain), _words(shown)
    more = shown_words - plain_words
    if not more - _words(" ".join(beside)):
        left = (text for text in dict.fromkeys(beside) if _words(text) & more)
        return "\n".join([plain.strip() if more else plain, *left])
    return shown if not plain_words - shown_words else f"{plain.strip()}\n\n{shown.strip()}"


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(_ADDRESS.sub(" ", text).casefold()))


def _header(message: EmailMessage, name: str) -> str:
    """A header, also where its bytes are in an encoding that it does not state."""
    value = str(message[name] or "")
    if value.isascii():
        return value
    stated = _decoded(message, name)
    if "=?" in stated:
        whole = EmailMessage(policy.default)
        whole[name] = stated
        stated = str(whole[name])
    return (stated or value).translate(_WINDOWS)


def _decoded(message: EmailMessage, name: str) -> str:
    """A header in the encodings that its bytes are found to be in, encoded words in UTF-8; "" where none is found, and
    where it is right as it stands."""
    raw = next(text for key, text in message.raw_items() if key.lower() == name.lower())
    try:
        text = decode_text(str(raw).encode("utf-8", "surrogateescape")).text
        stated = _ENCODED_WORDS.sub(_in_utf8, text)
    except (DecodeError, ValueError):
        return ""
    return "" if stated == str(raw) else " ".join(stated.split())


def _in_utf8(match: re.Match[str]) -> str:
    """Encoded words of one charset (RFC 2047) that follow each other, in UTF-8 where their bytes are in another
    encoding than they state. A letter may begin in one and end in the next.

    Raises ValueError for what is no encoding, DecodeError where that of the bytes is not found.
    """
    charset = match[1].partition("*")[0]
    parts = [
        base64.b64decode(part[2] + "=" * (-len(part[2]) % 4))
        if part[1] in "bB"
        else quopri.decodestring(part[2].replace("_", "=20"), header=True)
        for part in _ENCODED_WORD.finditer(match[0])
    ]
    data = b"".join(parts)
    text = stated_text(data, charset).text
    try:
        if text == data.decode(charset):
            return match[0]
    except (LookupError, UnicodeDecodeError):
        pass
    return f"=?utf-8?B?{base64.b64encode(text.encode()).decode()}?="


def _name_of(part: EmailMessage) -> str:
    """The file name that the part states, also where its bytes are in an encoding that it does not state."""
    name = part.get_filename() or ""
    if "\ufffd" not in name:
        for charset in ("latin-1", "cp1252"):
            # UTF-8 under the name of another charset.
            with suppress(UnicodeError):
                name = name.encode(charset).decode("utf-8")
        return name.translate(_WINDOWS)
    stated = EmailMessage(policy.default)
    for header in ("Content-Disposition", "Content-Type"):
        if part[header] is not None:
            # A header is one line.
            stated[header] = _decoded(part, header) or " ".join(str(part[header]).split())
    return stated.get_filename() or name


def _leaves(message: EmailMessage) -> Iterator[EmailMessage]:
    """The parts that are no containers. What an attached message holds is its own."""
    if message.get_content_type() in ("message/rfc822", _DELIVERY_STATUS) or not message.is_multipart():
        yield message
        return
    for part in message.iter_parts():
        if isinstance(part, EmailMessage):
            yield from _leaves(part)


def _content_of(part: EmailMessage) -> tuple[bytes, bytes]:
    """The decoded content of a part, and the text behind its base64: mailing lists put their footer there as it is."""
    data = part.get_payload(decode=True)
    raw = part.get_payload()
    if not isinstance(data, bytes) or not isinstance(raw, str):
        return b"", b""
    if str(part.get("Content-Transfer-Encoding", "")).strip().casefold() != "base64":
        return data, b""
    lines = [line.strip() for line in raw.splitlines()]
    end = next(
        (
            number + line.endswith("=")
            for number, line in enumerate(lines)
            if line.endswith("=") or not _BASE64.fullmatch(line)
        ),
        len(lines),
    )
    behind = lines[end:]
    if not any(behind) or any(len(line) >= LEAST_OF_BASE64 and _BASE64.fullmatch(line) for line in behind):
        # All of it, or with a damaged line.
        return data, b""
    encoded = "".join(lines[:end]).rstrip("=")
    # A single sign behind the last four holds no byte.
    encoded = encoded[:-1] if len(encoded) % 4 == 1 else encoded
    data = base64.b64decode(encoded + "=" * (-len(encoded) % 4))
    return data, "\n".join(behind).strip().encode("utf-8", "surrogateescape")


def _text_of(part: EmailMessage) -> str:
    data, behind = _content_of(part)
    data = data.rstrip() + b"\n" + behind if behind else data
    if not data:
        return ""
    try:
        text = stated_text(data, part.get_content_charset("")).text
    except DecodeError:
        # Its charset is believed, so that the rest of the message is read.
        content = part.get_content()
        text = content if isinstance(content, str) else ""
    is_flowed = part.get_content_type() == "text/plain" and _parameter(part, "format") == "flowed"
    return _unflowed(text, deletes_blank=_parameter(part, "delsp") == "yes") if is_flowed else text


def _parameter(part: EmailMessage, name: str) -> str:
    return str(part.get_param(name, "")).casefold()


def _unflowed(text: str, *, deletes_blank: bool) -> str:
    """A text of ``format=flowed`` (RFC 3676) with whole paragraphs: a blank at the end of a line says that the line
    goes on in the next of the same quote, and is itself no part of the text where it is deleted (``delsp``)."""
    parts: list[str] = []
    depth, goes_on = 0, False
    for number, line in enumerate(text.splitlines()):
        marks = len(line) - len(line.lstrip(">"))
        content = line[marks:].removeprefix(" ")
        is_within = goes_on and marks == depth and content != _SIGNATURE
        if not is_within:
            parts += ["\n" if number else "", f"{'>' * marks} " if marks else ""]
        depth, goes_on = marks, content.endswith(" ") and content != _SIGNATURE
        parts.append(content[:-1] if goes_on and deletes_blank else content)
    return "".join(parts)


def _suffix_of(part: EmailMessage) -> str:
    import mimetypes

    return mimetypes.guess_extension(part.get_content_type()) or ""


def _plain_name(name: str) -> str:
    """A file name without folders, on one line."""
    return " ".join(clean(name).replace("\\", "/").rpartition("/")[2].split())[:TITLE_CHARS] or "unnamed"


def read_msg(data: bytes) -> Mail:
    """A message as Outlook saves it. Its attached messages come empty: they are no files."""
    import olefile

    with olefile.OleFileIO(BytesIO(data)) as file:
        sender, address = _property(file, "", _SENDER), _property(file, "", _SENDER_ADDRESS)
        headers = {
            "Subject": _property(file, "", _SUBJECT),
            "From": f"{sender} <{address}>" if sender and "@" in address and address != sender else sender or address,
            "To": _property(file, "", _TO),
            "Cc": _property(file, "", _CC),
            "Date": _sent(file),
        }
        notices = list[str]()
        body, encoded = without_encoded(_property(file, "", _BODY))
        if not body.strip() and (html := _binary(file, "", _HTML)):
            body, _, notices = read_html(decode_text(html).text)
        folders = sorted({entry[0] for entry in file.listdir() if entry[0].startswith("__attach")})
        attached = [Attachment(_plain_name(inner.name), inner.data) for inner in encoded]
        for number, folder in enumerate(folders, 1):
            content = _binary(file, f"{folder}/", _DATA)
            name = _property(file, f"{folder}/", _LONG_NAME) or _property(file, f"{folder}/", _SHORT_NAME)
            if content:
                attached.append(Attachment(_plain_name(name or f"attachment {number}"), content))
            elif file.exists(f"{folder}/__substg1.0_{_EMBEDDED}"):
                attached.append(Attachment(_plain_name(name or f"attached message {number}"), b""))
    return Mail(headers, body.strip(), tuple(attached), tuple(notices))


def _property(file: OleFileIO, folder: str, tag: str) -> str:
    """A text property: in UTF-16, or in an encoding of eight bits in older messages."""
    name = f"{folder}__substg1.0_{tag}"
    if file.exists(f"{name}001F"):
        return str(file.openstream(f"{name}001F").read(), "utf-16-le", "replace").rstrip("\0")
    if file.exists(f"{name}001E"):
        return decode_text(file.openstream(f"{name}001E").read().rstrip(b"\0")).text
    return ""


def _binary(file: OleFileIO, folder: str, tag: str) -> bytes:
    name = f"{folder}__substg1.0_{tag}0102"
    return bytes(file.openstream(name).read()) if file.exists(name) else b""


def _sent(file: OleFileIO) -> str:
    """When the message was sent, or else received; "" where it says neither."""
    if not file.exists("__properties_version1.0"):
        return ""
    data = file.openstream("__properties_version1.0").read()[_ROOT_PROPERTIES:]
    times = {tag: ticks for tag, _, ticks in struct.iter_unpack("<IIQ", data[: len(data) - len(data) % 16])}
    ticks = times.get(_SENT) or times.get(_RECEIVED) or 0
    # Tenths of microseconds; more than these are no date of this or the next century.
    if not 0 < ticks < 10**18:
        return ""
    return (_EPOCH_OF_WINDOWS + timedelta(microseconds=ticks // 10)).strftime("%Y-%m-%d %H:%M UTC")
