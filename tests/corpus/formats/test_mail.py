import base64
import binascii
import struct
from collections.abc import Mapping
from email.message import EmailMessage

import pymupdf
import pytest

from tests.support.documents import decoded
from tests.support.office import compound
from vrag_ray.corpus.formats.mail import read_eml, read_msg
from vrag_ray.corpus.formats.web_text import text_of_html
from vrag_ray.corpus.model import WorkItem
from vrag_ray.types import DocumentKind


def message(body: str = "The barge is late.", *, html: str = "", charset: str = "utf-8") -> EmailMessage:
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = "Größe der Schleuse", "Ida <ida@example.org>", "kai@example.org"
    mail["Date"] = "Fri, 16 Dec 2022 17:04:16 +0000"
    if body:
        mail.set_content(body, charset=charset)
    if html:
        mail.add_alternative(html, subtype="html") if body else mail.set_content(html, subtype="html")
    return mail


def test_a_message_is_a_text_with_its_head_and_is_titled_by_its_subject(sandbox, put, options):
    path = put("a.eml", message().as_bytes())
    probe = sandbox.probe(path, "a.eml")
    assert (probe.kind, probe.title, probe.meta["format"]) == (DocumentKind.TEXT, "Größe der Schleuse", "e-mail")
    assert (probe.meta["sender"], probe.meta["recipients"]) == ("Ida <ida@example.org>", "kai@example.org")
    (unit,) = decoded(sandbox, path, WorkItem("d", DocumentKind.TEXT, 0, 1, "a.eml"), options)
    assert unit.text.startswith(
        "Subject: Größe der Schleuse\nFrom: Ida <ida@example.org>\nTo: kai@example.org\nDate: Fri"
    )
    assert unit.text.endswith("The barge is late.")
    page = sandbox.page_text(path, DocumentKind.TEXT, unit.locator, options, format_="e-mail")
    assert page.text == unit.text


def test_words_that_line_ends_divide_are_whole_in_a_message_and_in_what_it_quotes(sandbox, put, options):
    body = "We measured the concen-\ntration again.\n\n> You measured the tempe-\n> rature of it.\n"
    path = put("a.eml", message(body).as_bytes())
    (unit,) = decoded(sandbox, path, WorkItem("d", DocumentKind.TEXT, 0, 1, "a.eml"), options)
    assert unit.text.split("\n\n", 1)[1] == (
        "We measured the concentration\nagain.\n\n> You measured the temperature\n> of it."
    )
    page = sandbox.page_text(path, DocumentKind.TEXT, unit.locator, options, format_="e-mail")
    assert page.text == unit.text


def uuencoded(name: str, data: bytes, end: str = "`\nend\n") -> str:
    lines = (binascii.b2a_uu(data[at : at + 45]).decode().rstrip() for at in range(0, len(data), 45))
    return f"begin 644 {name}\n" + "".join(f"{line}\n" for line in lines) + end


def test_files_that_are_written_into_the_body_are_attachments():
    first, second = bytes(range(256)) + bytes(60), "The kiln holds 630 jars.".encode("utf-16")
    text = f"See below.\n\n{uuencoded('kiln.bin', first)}And this:\n{uuencoded('docs/b.txt', second)}Regards"
    mail = read_eml(message(text).as_bytes())
    assert mail.body.split() == ["See", "below.", "And", "this:", "Regards"]
    assert [(file.name, file.data) for file in mail.attachments] == [("kiln.bin", first), ("b.txt", second)]
    coded = "begin-base64 644 a.txt\nVGhlIGtpbG4=\n====\n"
    assert read_eml(message(coded).as_bytes()).attachments[0].data == b"The kiln"


def test_a_file_in_the_body_that_is_cut_off_and_a_sentence_that_begins_like_one():
    cut = read_eml(message(uuencoded("a.txt", b"The kiln", end="Regards\n")).as_bytes())
    assert (cut.body, cut.attachments[0].data) == ("Regards", b"The kiln")
    text = "begin 644 tomorrow\nwith the gates.\nend"
    assert (read_eml(message(text).as_bytes()).body, read_eml(message(text).as_bytes()).attachments) == (text, ())


def test_the_html_body_serves_where_there_is_no_other():
    html = "<style>p {}</style><p>The quay is <b>9</b>&nbsp;m wide</p><table><tr><td>a</td><td>b</td></tr></table>"
    assert read_eml(message("", html=html).as_bytes()).body == "The quay is 9 m wide\na b"


@pytest.mark.parametrize(
    ("plain", "html", "body"),
    [
        ("The crane is due.", "<p>The <b>crane</b> is due.</p>", "The crane is due."),
        (
            "The crane is due. https://a.example/x",
            "<p>The crane is due on 21 March.</p>",
            "The crane is due on 21 March.",
        ),
        ("See the other form.", "<p>The crane is due.</p>", "See the other form.\n\nThe crane is due."),
    ],
)
def test_of_two_bodies_the_one_that_says_more_is_read(plain, html, body):
    both = read_eml(message(plain, html=html).as_bytes())
    assert (both.body.strip(), both.attachments) == (body, ())


def test_a_body_whose_charset_is_wrong_is_detected():
    data = b"Subject: x\nFrom: a@b\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n"
    assert read_eml(data + "Die Größe der Brücke".encode("cp1252")).body == "Die Größe der Brücke"


@pytest.mark.parametrize(
    ("charset", "written"),
    [("iso-8859-1", "cp1252"), ("us-ascii", "cp1252"), ("iso-8859-1", "utf-8"), ("windows-1252", "utf-8")],
)
def test_a_body_is_read_as_it_is_written_where_its_charset_allows_any_bytes(charset, written):
    text = "The baker’s “loaf” – from the café – costs € 3.20."  # noqa: RUF001
    head = f"Subject: x\nContent-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: 8bit\n\n"
    assert read_eml(head.encode() + text.encode(written)).body == text


@pytest.mark.parametrize(
    ("charset", "text"),
    [
        ("iso-8859-1", "5 µm ÷ 2"), ("iso-8859-9", "İstanbul'da şimdi"), ("koi8-r", "Я"), ("gb2312", "联通"),
        ("euc-jp", "通知"), ("iso-2022-jp", "会議は"), ("shift_jis", "ｱｲｳ"), ("utf-7", "通知"), ("utf-16-le", "通知"),
    ],
)  # fmt: skip
def test_a_short_body_is_believed_to_be_in_the_charset_that_it_states(charset, text):
    mail = EmailMessage()
    mail.set_content(text.encode(charset), "text", "plain", cte="base64")
    mail.set_param("charset", charset)
    assert read_eml(mail.as_bytes()).body == text


def test_signs_of_windows_in_a_header_of_latin_1():
    assert read_eml(b"Subject: =?iso-8859-1?Q?The_baker=92s_=80_3?=\n\nx").headers["Subject"] == "The baker\u2019s € 3"


def test_the_lines_of_a_flowed_body_are_whole_paragraphs():
    head = b"Subject: x\nContent-Type: text/plain; format=flowed"
    lines = b"The con \ntrol tow \ner.\n From Monday\n>> Who of \n>> you? \n> No \nBly.\n-- \nAna"
    deleted = read_eml(head + b"; delsp=yes\n\n" + lines).body
    assert deleted == "The control tower.\nFrom Monday\n>> Who ofyou?\n> No\nBly.\n-- \nAna"
    assert read_eml(head + b"\n\nThe tow \ner.\n> a \n> b\nc").body == "The tow er.\n> a b\nc"


def test_headers_are_read_behind_a_byte_order_mark():
    assert read_eml(b"\xef\xbb\xbfFrom: a@b\nSubject: x\n\nwords").headers == {"Subject": "x", "From": "a@b"}


@pytest.mark.parametrize("encoding", ["base64", "quoted-printable"])
def test_an_attached_message_that_is_encoded_as_a_whole_is_decoded(encoding):
    inner = "Subject: Mast\nContent-Type: text/plain; charset=utf-8\n\nThe mast is 18 m, größer = 20 m.\n".encode()
    coded = binascii.b2a_qp(inner) if encoding == "quoted-printable" else binascii.b2a_base64(inner)
    head = b"Subject: Fwd\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nSee.\n--b\n"
    stated = f"Content-Type: message/rfc822\nContent-Transfer-Encoding: {encoding}\n\n".encode()
    [attached] = read_eml(head + stated + coded + b"\n--b--\n").attachments
    assert attached.name == "Mast.eml"
    assert read_eml(attached.data).body == "The mast is 18 m, größer = 20 m."


def test_the_report_of_a_delivery_is_part_of_the_body():
    head = b"Subject: x\nContent-Type: multipart/report; boundary=b\n\n--b\n\nNot delivered.\n--b\n"
    status = b"Reporting-MTA: dns; a.example\n\nFinal-Recipient: rfc822; p@b.example\nStatus: 5.1.1\n"
    mail = read_eml(head + b"Content-Type: message/delivery-status\n\n" + status + b"\n--b--\n")
    assert mail.body.split("\n") == ["Not delivered.", "", *status.decode().strip().split("\n")]


def test_a_mailbox_lists_its_messages_which_are_attached(sandbox, put):
    first, second = message("The gaffer is Ott.", charset="utf-8"), message("From here on\nit rains.")
    del second["Subject"]
    data = b"\n".join(
        b"From ida@example.org Tue Mar  5 09:12:00 2024\n" + mail.as_bytes().replace(b"\nFrom h", b"\n>From h")
        for mail in (first, second)
    )
    path = put("a.mbox", data)
    probe = sandbox.probe(path, "a.mbox")
    assert (probe.title, probe.meta["attachments"]) == ("a", 2)
    attached = dict(sandbox.attachments(path, "a.mbox"))
    assert list(attached) == ["Größe der Schleuse.eml", "message 2.eml"]
    assert [read_eml(content).body for content in attached.values()] == [
        "The gaffer is Ott.",
        "From here on\nit rains.",
    ]
    assert read_eml(data).body.startswith("Größe der Schleuse - Ida <ida@example.org> - Fri, 16 Dec")
    assert read_eml(data[: data.index(b"\nFrom ida") + 1]).body == "The gaffer is Ott."


def test_a_header_in_an_encoding_that_it_does_not_state_is_detected():
    data = "Subject: Маяк и пристань\nFrom: Пётр Соколов <a@b.example>\n\n".encode("cp1251") + b"words"
    assert read_eml(data).headers == {"Subject": "Маяк и пристань", "From": "Пётр Соколов <a@b.example>"}


@pytest.mark.parametrize("header", ["Content-Disposition: attachment; filename", "Content-Type: text/plain; name"])
@pytest.mark.parametrize(
    ("name", "encoding"),
    [("Öfen.txt", "latin-1"), ("Größe.txt", "cp1252"), ("Маяк.txt", "cp1251"), ("Réunion d'été.txt", "cp850")],
)
def test_the_name_of_an_attachment_in_an_encoding_that_it_does_not_state_is_detected(header, name, encoding):
    head = b"Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nwords\n--b\n"
    stated = f'{header}="{name}"\nContent-Transfer-Encoding: 8bit\n\n'.encode(encoding)
    [attached] = read_eml(head + stated + b"Herring\n--b--\n").attachments
    assert (attached.name, attached.data.strip()) == (name, b"Herring")


def test_what_a_reader_does_not_see_of_a_page_is_left_out():
    assert text_of_html("<head><title>t</title></head><script>x()</script><h1>A</h1>b<br>c &amp; d") == "A\nb\nc & d"


def test_controls_and_centred_lines_of_a_web_page_are_apart_from_their_neighbours():
    page = "a<button>b</button><option>c</option>d<center>e</center>f<details><summary>g</summary>h</details>"
    assert text_of_html(page) == "a b c d\ne\nf\ng\nh"


@pytest.mark.parametrize(
    "how",
    [
        "hidden",
        'popover="auto"',
        'style="height:0; overflow:hidden"',
        'style="display:none"',
        "style='font-size: 0 !important'",
        'style="OPACITY:0"',
    ],
)
def test_what_a_style_hides_of_a_message_is_left_out(how):
    assert text_of_html(f"<p>Seen.</p><div {how}>One <div>two</div> three<br>four</div><p>Seen too.</p>") == (
        "Seen.\nSeen too."
    )


def test_a_closed_dialog_of_a_message_is_left_out_and_an_open_one_is_read():
    assert text_of_html("<p>Seen.</p><dialog>One</dialog><dialog open>two</dialog>") == "Seen.\ntwo"


@pytest.mark.parametrize("struck", ["<del>40</del>", "<s>40</s>", '<b style="text-decoration: line-through">40</b>'])
def test_what_is_struck_out_in_a_message_is_left_out(struck):
    assert text_of_html(f"<p>It costs {struck} 55 crowns.</p>") == "It costs 55 crowns."


def test_a_raised_digit_of_a_message_stays_apart_from_the_figure_before_it():
    html = "<p>Ness has 5,120<sup>3</sup> people.</p><p><sup>3</sup> Census of 1 May.</p>"
    assert text_of_html(html) == "Ness has 5,120³ people.\n3 Census of 1 May."


def test_attachments_are_given_with_their_names_and_others_are_named_in_a_notice(sandbox, put):
    mail, inner = message(), message("The inner words.")
    mail.add_attachment(b"Tariff: 6 percent.", maintype="text", subtype="plain", filename="../tariff.txt")
    mail.add_attachment(b"MZ\0\0\1\2", maintype="application", subtype="octet-stream", filename="setup.exe")
    mail.add_attachment(inner)
    path = put("a.eml", mail.as_bytes())
    probe = sandbox.probe(path, "a.eml")
    assert probe.meta["attachments"] == 2
    assert probe.notices == ("attachments left out: setup.exe (is of no supported kind)",)
    attached = dict(sandbox.attachments(path, "a.eml"))
    assert list(attached) == ["tariff.txt", "Größe der Schleuse.eml"]
    assert attached["tariff.txt"] == b"Tariff: 6 percent."
    assert read_eml(attached["Größe der Schleuse.eml"]).body == "The inner words."


@pytest.fixture
def portfolio(put):
    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((72, 100), "Cover of the portfolio")
    page.add_file_annot((50, 50), b"Words in a note.", "note.txt")
    document.embfile_add("inner.txt", b"Herring: 6 percent.", filename="inner.txt")
    return put("portfolio.pdf", document.tobytes())


def test_files_in_a_pdf_and_in_notes_on_its_pages_are_attachments(sandbox, portfolio):
    assert sandbox.probe(portfolio, "portfolio.pdf").meta["attachments"] == 2
    attached = list(sandbox.attachments(portfolio, "portfolio.pdf"))
    assert attached == [("inner.txt", b"Herring: 6 percent."), ("note.txt", b"Words in a note.")]


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("", '<table><tr><td style="font-size:0px"><div style="font-size:13px">{}</div></table>'),
        ("", '<div style="visibility:hidden">No<p style="visibility:visible">{}</p>no</div>'),
        ("<style>.pre{{display:none!important}}</style>", '<div class="pre">No</div><p>{}</p>'),
        ("<style>#top,.pre{{font-size:1px}}</style>", '<div class="pre">No</div><p>{}</p><i id=top>no</i>'),
        ("<style>.a{{display:none}}@media (min-width:600px){{.a{{display:block}}}}</style>", "<p class=a>{}</p>"),
        ("<style>@media (max-width:600px){{.a{{display:none}}}}</style>", "<p class=a>{}</p>"),
        ("<style>.dark .a{{display:none}}</style>", "<p class=a>{}</p>"),
        ("<style media=print>.a{{display:none}}</style>", "<p class=a>{}</p>"),
        ("<!--[if mso]><style>.a{{display:none}}</style><![endif]-->", "<p class=a>{}</p>"),
        ("", "<table><tr><td style=font-size:0>no<td>{}</table>"),
        ("", "<ul><li style=font-size:0>no<li>{}</ul>"),
    ],
)
def test_what_the_styles_of_a_message_show_is_read_and_nothing_else(head: str, body: str) -> None:
    assert text_of_html(f"<head>{head.format()}</head>{body.format('The sail is red.')}") == "The sail is red."


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ('<img src="cid:plan@x" alt="Plan of quay 4">', "Plan of quay 4"),
        ("<img alt='Gate &amp; lock'>", "Gate & lock"),
        ('<input type="text" value="1,946 MWh">', "1,946 MWh"),
        ('<input type=submit value="Confirm berth 7">', "Confirm berth 7"),
        ('<img src="data:image/png;base64,AAAA" alt="held">', ""),
        ('<img src="cid:x" alt="image001.png">', ""),
        ('<img src="x" alt="">', ""),
        ('<input type="hidden" value="token">', ""),
        ('<input type="password" value="secret">', ""),
        ('<img src="x" alt="spacer" style="display:none">', ""),
        ('<b style="display:none"><img src="x" alt="preview"></b>', ""),
        ('<b style="font-size:0"><img src="x" alt="tiny"></b>', ""),
    ],
)
def test_words_for_pictures_and_in_fields_of_a_message_are_read(part: str, words: str) -> None:
    assert text_of_html(f"<p>Seen {part} twice.</p>") == " ".join(f"Seen {words} twice.".split())


def test_words_for_pictures_follow_a_plain_form_that_says_the_rest() -> None:
    html = '<p>The crane is due.</p><img src="x" alt="Crane 7 at berth 4"><img src="y" alt="The crane">'
    assert read_eml(message("The crane is due at last.", html=html).as_bytes()).body == (
        "The crane is due at last.\nCrane 7 at berth 4"
    )


@pytest.mark.parametrize(
    ("head", "subject"),
    [
        ("=?iso-8859-1?Q?Gr=C3=B6=C3=9Fe?= der =?iso-8859-1?Q?T=C3=BCr?=", "Größe der Tür"),
        ("=?us-ascii?B?R3LDtsOfZQ==?=", "Größe"),
        ("=?x-unknown?Q?Gr=C3=B6=C3=9Fe?=", "Größe"),
        ("=?windows-1252?Q?Gr=C3?=\n =?windows-1252?Q?=B6=C3=9Fe?=", "Größe"),
        ("=?iso-8859-1?Q?Gr=F6=DFe?=", "Größe"),
        ("=?utf-8?Q?Gr=C3=B6=C3=9Fe?= a_b", "Größe a_b"),
        ("=?iso-8859-1?Q?=93Odin=94?=", "\u201cOdin\u201d"),
        ("=?gb2312?B?xOO6ww==?=", "你好"),
        ("Tür =?iso-8859-1?Q?Gr=C3=B6=C3=9Fe?=", "Tür Größe"),
    ],
)
def test_a_header_is_read_as_it_is_written_whatever_charset_it_states(head: str, subject: str) -> None:
    data = f"Subject: {head}\nFrom: =?latin1?Q?J=C3=B6rg?= <a@b.example>\nTo: a@b.example\n\nwords".encode()
    assert read_eml(data).headers == {"Subject": subject, "From": "Jörg <a@b.example>", "To": "a@b.example"}


@pytest.mark.parametrize(
    "name", ["filename*=iso-8859-1''Gr%C3%B6%C3%9Fe.txt", 'filename="=?iso-8859-1?Q?Gr=C3=B6=C3=9Fe.txt?="']
)
def test_the_name_of_an_attachment_in_utf_8_under_another_name_is_read(name: str) -> None:
    head = b"Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nwords\n--b\n"
    stated = f"Content-Disposition: attachment; {name}\n\n".encode()
    [attached] = read_eml(head + stated + b"Herring\n--b--\n").attachments
    assert attached.name == "Größe.txt"


@pytest.mark.parametrize("text", ["Grüße vom Wehr, 327 Ellen", "Grüße vom Wehr, 327 Ellen!", "Grüße vom Wehr, 327 Ell"])
@pytest.mark.parametrize("padding", ["=", ""])
def test_the_footer_of_a_mailing_list_behind_base64_is_text_and_no_part_of_a_file(text, padding):
    encoded = base64.b64encode(text.encode()).decode().replace("=", padding)
    footer = "____\nHafen mailing list\n"
    head = "Content-Transfer-Encoding: base64\nContent-Type: "
    mail = read_eml(f"{head}text/plain; charset=utf-8\n\n{encoded}\n{footer}".encode())
    assert mail.body == f"{text}\n{footer.strip()}"
    ((file),) = read_eml(f"{head}image/png\n\n{encoded}\n\n{footer}".encode()).attachments
    assert file.data == text.encode()


def test_a_damaged_line_of_base64_is_no_footer():
    data = bytes(range(180))
    lines = base64.encodebytes(data).decode().splitlines()
    lines[1] = f"!{lines[1]}"
    head = "Content-Transfer-Encoding: base64\nContent-Type: image/png\n\n"
    (file,) = read_eml((head + "\n".join(lines)).encode()).attachments
    assert file.data == data


SAVED = """\
From: <Saved by Blink>
Snapshot-Content-Location: https://bath.example/hours/
Subject: Opening hours
MIME-Version: 1.0
Content-Type: multipart/related; type="text/html"; boundary="b"

--b
Content-Type: text/html
Content-Location: https://bath.example/hours/
Content-Transfer-Encoding: quoted-printable

<html><head><link rel=3D"stylesheet" href=3D"{href}"{media}></head><body>
<p>The bath opens at 07:15.</p><p class=3D"gone">The guard is Zo=C3=AB.</p></body></html>
--b
Content-Type: text/css
{name}

.gone {{ display: none; }}
--b
Content-Type: image/png
Content-Location: https://bath.example/plan.png
Content-Transfer-Encoding: base64

iVBORw0KGgo=
--b--
"""


@pytest.mark.parametrize(
    ("href", "name"),
    [
        ("cid:css-1@mhtml.blink", "Content-ID: <css-1@mhtml.blink>"),
        ("https://bath.example/a.css", "Content-Location: https://bath.example/a.css"),
        ("https://bath.example/hours/a.css", "Content-Location: a.css"),
    ],
)
def test_a_web_page_that_is_saved_in_one_file_is_read_as_its_style_sheets_show_it(sandbox, put, options, href, name):
    path = put("hours.mhtml", SAVED.format(href=href, name=name, media="").encode())
    probe = sandbox.probe(path, "hours.mhtml")
    assert (probe.title, probe.meta["attachments"]) == ("Opening hours", 1)
    (unit,) = decoded(sandbox, path, WorkItem("d", DocumentKind.TEXT, 0, 1, "hours.mhtml"), options)
    assert unit.text.split("\n\n", 1)[1] == "The bath opens at 07:15."


def test_a_style_sheet_for_print_hides_nothing_of_a_saved_page():
    page = SAVED.format(href="cid:a", name="Content-ID: <a>", media=' media=3D"print"')
    assert read_eml(page.encode()).body == "The bath opens at 07:15.\nThe guard is Zoë."


def test_a_message_as_apple_mail_stores_it_is_read_without_what_is_around_it(sandbox, put, options):
    data = message().as_bytes()
    stored = b"%-10d\n" % len(data) + data + b'<?xml version="1.0"?><plist><dict><key>flags</key></dict></plist>'
    path = put("4711.emlx", stored)
    assert sandbox.probe(path, "4711.emlx").title == "Größe der Schleuse"
    (unit,) = decoded(sandbox, path, WorkItem("d", DocumentKind.TEXT, 0, 1, "4711.emlx"), options)
    assert unit.text.startswith("Subject: Größe der Schleuse")
    assert unit.text.endswith("The barge is late.")


def outlook(body: Mapping[str, bytes], attached: Mapping[str, bytes] | None = None) -> bytes:
    """A message as Outlook saves it, with streams by the tags of their properties, perhaps with an attachment."""
    sent = struct.pack("<32xIIQ", 0x00390040, 0, 133_600_000_000_000_000)
    own = {f"__substg1.0_{tag}": data for tag, data in body.items()} | {"__properties_version1.0": sent}
    held = {f"__substg1.0_{tag}": data for tag, data in (attached or {}).items()}
    folder = "__attach_version1.0_#00000000"
    return compound(*own, inside=list(held), folder=folder, contents=own | held)


SUBJECT = {"0037001F": "Crane 2".encode("utf-16-le"), "0C1A001F": "Harbour workshop".encode("utf-16-le")}


def test_a_message_of_outlook_is_read_with_its_attachment():
    body = SUBJECT | {"1000001F": "Inspected in June.\r\n".encode("utf-16-le")}
    mail = read_msg(outlook(body, {"3707001F": "sheet.txt".encode("utf-16-le"), "37010102": b"rope worn"}))
    assert (mail.headers["Subject"], mail.headers["From"]) == ("Crane 2", "Harbour workshop")
    assert mail.headers["Date"] == "2024-05-12 15:06 UTC"
    assert mail.body == "Inspected in June."
    [attachment] = mail.attachments
    assert (attachment.name, attachment.data.rstrip(b"\0")) == ("sheet.txt", b"rope worn")


def test_a_message_of_outlook_without_plain_words_is_read_from_its_web_page():
    page = b"<p>Inspected in <b>June</b>.</p><p style='display:none'>Hidden</p>".ljust(4096)
    assert read_msg(outlook(SUBJECT | {"10130102": page})).body == "Inspected in June."


@pytest.mark.parametrize("browser", ["<Saved by Blink>", "<Von Microsoft Internet Explorer gespeichert>"])
def test_the_browser_that_saved_a_page_is_no_sender(browser: str) -> None:
    head = f"From: {browser}\nSubject: Fares\nMIME-Version: 1.0\nContent-Type: text/html\n"
    assert read_eml(f"{head}\n<p>A dog is 15.".encode()).text == "Subject: Fares\n\nA dog is 15."
    assert read_eml(f"{head}To: Ida\n\n<p>A dog is 15.".encode()).headers["From"]


def test_a_form_of_the_body_for_one_program_is_no_attachment() -> None:
    mail = message(html="<p>The barge is late.</p>")
    mail.add_alternative("<html amp4email>The barge is late.</html>", subtype="x-amp-html")
    assert read_eml(mail.as_bytes()).attachments == ()


def test_white_words_of_a_message_are_read_on_a_ground_alone():
    html = (
        '<html><head><style>.w{color:#FFF}</style></head><body bgcolor="#ffffff"><p>Seen.</p><p class=w>Gone <b>too</b>'
        '</p><font color="white">Gone</font><p style="color:white;background:#fff">Gone</p>'
        '<table bgcolor="#003366"><tr><td class=w>In blue.</table><div style="background-image:url(sea.png)">'
        '<p class=w>On the sea.</p></div><p class=w>Gone <i style="color:rgb(9, 9, 9)">In black.</i></p>'
        '<a style="background:linear-gradient(red,blue);color:#ffffff">On a slope.</a></body></html>'
    )
    shown = read_eml(message("", html=html).as_bytes()).body
    assert shown.split("\n") == ["Seen.", "In blue.", "On the sea.", "In black.", "On a slope."]
    assert "Gone" in text_of_html(html)
