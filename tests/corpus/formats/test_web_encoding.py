"""The encoding that pages and mails state, by the labels of browsers, and where they are in an extension of it."""

from __future__ import annotations

import codecs

import pytest

from tests.support.documents import decoded
from vrag_ray.corpus.formats.encodings import decode_text
from vrag_ray.corpus.formats.mail import read_eml
from vrag_ray.corpus.formats.web_encoding import markup_in_utf8
from vrag_ray.corpus.model import WorkItem
from vrag_ray.types import DocumentKind

KOREAN, JAPANESE, THAI = "똠방 각하의 창고", "①髙橋の倉庫", "ประภาคารสูง 45 เมตร"
STATED = [
    (KOREAN, "ks_c_5601-1987", "cp949"),
    (KOREAN, "euc-kr", "cp949"),
    (KOREAN, "windows-949", "cp949"),
    (JAPANESE, "Shift_JIS", "cp932"),
    (JAPANESE, "x-sjis", "cp932"),
    ("①髙橋", "Shift_JIS", "cp932"),
    ("①", "Shift_JIS", "cp932"),
    (THAI, "windows-874", "cp874"),
    (f"“{THAI}”", "TIS-620", "cp874"),
    ("朱镕基会议", "gb2312", "gb18030"),
    ("朱镕基会议", "x-gbk", "gb18030"),
    ("Ёлки и сосны", "x-cp1251", "cp1251"),
    ("שלום לכם", "iso-8859-8-i", "iso8859-8"),
]


@pytest.mark.parametrize(("text", "label", "codec"), STATED)
def test_pages_and_mails_are_read_in_what_browsers_take_their_label_for(text, label, codec):
    page = f'<html><meta charset="{label}"><p>{text}</p></html>'.encode(codec)
    markup, notice = markup_in_utf8(page)
    assert (text in markup.decode(), notice) == (True, "")
    encoded = codecs.encode(text.encode(codec), "base64").decode().strip()
    head = f"Subject: =?{label}?B?{encoded}?=\nContent-Type: text/plain; charset={label}\n"
    mail = read_eml(f"{head}Content-Transfer-Encoding: 8bit\n\n".encode() + text.encode(codec))
    assert (mail.headers["Subject"], mail.body) == (text, text)


def test_xml_is_read_in_the_encoding_that_it_states(sandbox, put, options):
    path = put("a.xml", f'<?xml version="1.0" encoding="windows-874"?><r><i>{THAI}</i></r>'.encode("cp874"))
    assert sandbox.probe(path, "a.xml").notices == ()
    (unit,) = decoded(sandbox, path, WorkItem("d", DocumentKind.TEXT, 0, 1, "a.xml"), options)
    assert unit.text.strip() == f"r i: {THAI}"


def test_a_page_in_another_encoding_than_it_states_is_not_read_in_an_extension_of_that():
    page = '<html><meta charset="shift_jis"><p>九十坪の倉庫と橋を管理する会社です。黎明の鷺、龍、麗、鶴</p></html>'
    assert "龍、麗、鶴" in markup_in_utf8(page.encode("euc-jp"))[0].decode()


def test_a_text_that_states_nothing_is_found_in_an_extension_too():
    read = decode_text(f"{JAPANESE}は九十坪です。".encode("cp932"))
    assert (read.text, read.notice) == (f"{JAPANESE}は九十坪です。", "read as CP932: it is not UTF-8")
