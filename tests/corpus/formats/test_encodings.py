import gzip
import random

import pytest

from vrag_ray.corpus.formats.encodings import decode_text, encoding_in, is_unlikely
from vrag_ray.corpus.model import DecodeError, clean

GERMAN = "Die Straßenbrücke kostete 4,2 Millionen, Größe 42 m."
FRENCH = "L'été, le bateau a quitté le port à midi."
POLISH = "Żuraw portowy podnosi czterdzieści ton ładunku."
CZECH = "Přístavní jeřáb zvedne čtyřicet tun nákladu."
TURKISH = "Limanın vinci kırk ton kaldırır, şimdi ağır yük yok."
RUSSIAN = "Портовый кран поднимает сорок тонн груза."
GREEK = "Το λιμάνι έχει δύο γερανούς."
HEBREW = "המנוף מרים ארבעים טון"
CHINESE = "起重机可以吊起四十吨的货物。"
TRADITIONAL = "港口的倉庫在哪裡"
JAPANESE = "クレーンは四十トンを持ち上げる。"
KOREAN = "항구의 창고는 어디에 있습니까"


@pytest.mark.parametrize(
    ("text", "encodings"),
    [
        (GERMAN, "cp1252 latin-1 cp850 mac_roman utf-16-le utf-16-be utf-32-le utf-32-be"),
        (FRENCH, "cp1252"),
        (POLISH, "cp1250 iso8859-2"),
        (CZECH, "cp1250 iso8859-2"),
        (TURKISH, "cp1254"),
        (RUSSIAN, "cp1251 koi8-r cp866 iso8859-5 utf-16-le utf-16-be"),
        (GREEK, "cp1253 iso8859-7"),
        (HEBREW, "cp1255"),
        (CHINESE, "gb18030 utf-16-le utf-16-be"),
        (TRADITIONAL, "big5"),
        (JAPANESE, "shift_jis euc-jp iso2022_jp utf-16-le utf-16-be"),
        (KOREAN, "euc-kr utf-16-le utf-16-be"),
        ("He said “hello” to me – it’s 20 °C and 5 € each", "cp1252"),
        ("Plain text with a single café in it. " * 2000, "cp1252"),
    ],
)
def test_a_sentence_in_another_encoding_is_read_right_with_a_notice(text, encodings):
    for encoding in encodings.split():
        decoded = decode_text(text.encode(encoding))
        assert decoded.text == text, encoding
        assert "it is not UTF-8" in decoded.notice, encoding


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("都道府県,人口,面積\n北海道,5224614,83424\n岩手県,1210534,15275\n", "euc-jp"),
        ("氏名,住所\n鈴木健,長野県松本市\n", "euc-jp"),
        ("省份,人口,省会\n湖南,6644,长沙\n浙江,6457,杭州\n", "gb18030"),
        ("姓名,年份\n王小明,1898\n", "gb18030"),
        ("도시,인구\n부산,3343\n대구,2410\n", "euc-kr"),
    ],
)
def test_tables_of_names_without_the_small_words_of_a_language_are_read_right(text, encoding):
    assert decode_text(text.encode(encoding)).text == text


def test_the_notice_names_the_encoding():
    notice = decode_text(GERMAN.encode("cp1252")).notice
    assert notice == "read as CP1252: it is not UTF-8"
    assert (encoding_in(["left out: a table", notice]), encoding_in([])) == ("CP1252", "UTF-8")


@pytest.mark.parametrize("text", [GERMAN, RUSSIAN, JAPANESE, "plain", ""])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_unicode_that_says_what_it_is_has_no_notice(text, encoding):
    decoded = decode_text(text.encode(encoding))
    assert (decoded.text, decoded.notice) == (text, "")


def test_a_few_damaged_bytes_do_not_make_utf8_another_encoding():
    data = (RUSSIAN * 20).encode() + b"\xd0" + RUSSIAN.encode()
    decoded = decode_text(data)
    assert decoded.text.startswith(RUSSIAN)
    assert decoded.notice == "1 of its characters are damaged: it is not UTF-8 throughout"


def test_binary_data_is_refused_in_every_length():
    source = random.Random(7)
    blobs = [source.randbytes(size) for size in (40, 400, 4000)] + [gzip.compress(b"text " * 500, mtime=0)]
    for blob in [*blobs, b"abc\x00\x01", b"\x7fELF" + bytes(60)]:
        with pytest.raises(DecodeError, match=r"binary data|could not be detected"):
            decode_text(blob)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one\ftwo\vthree\x02four", "one two three four"),
        ("\x1b[31mred\x1b[0m, \x1b[1;32mgreen", "red, green"),
        ("down\x1b[2Kup\x1b]0;title\x07.", "down up ."),
        ("N\x08NA\x08AM\x08ME\x08E", "NAME"),
        ("so\u00adft\tand\nnew", "soft\tand\nnew"),
        ("Schleu\u200bse wa\u2060ter \u0431\ufeff\u0430", "Schleuse water \u0431\u0430"),
        (
            "\u0e1b\u0e25\u200b\u0e32 5\u200b6 \U0001f469\u200d\U0001f680",
            "\u0e1b\u0e25\u200b\u0e32 5\u200b6 \U0001f469\u200d\U0001f680",
        ),
        ("pump\U000e0068\U000e0069s run\U000e007f", "pumps run"),
    ],
)
def test_control_characters_part_words_and_escapes_leave_no_letters(text, shown):
    assert clean(text) == shown


def test_a_soft_hyphen_at_a_line_end_divides_no_word():
    assert clean("twelve milli\u00ad\n  grams of co\u00adbalt") == "twelve milligrams of cobalt"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Директор маяка — Пётр Соколов. Он живёт в Мурманске.", "mac_cyrillic"),
        ("حارس المنارة هو أحمد حسن. يعيش في الإسكندرية.", "iso8859-6"),
        ("Le gardien s'appelle François; il a payé 40 €.", "iso8859-15"),
    ],
)
def test_rare_encodings_are_distinguished_from_similar_encodings(text, encoding):
    assert decode_text(text.encode(encoding)).text == text


@pytest.mark.parametrize("encoding", ["cp1251", "koi8-r", "mac_cyrillic"])
@pytest.mark.parametrize(
    "text", ["Старый мост через реку Волхов, длина 312 метров.", "Улица Ленина, дом 5. Телефон редакции 44."]
)
def test_capitals_of_macs_are_no_quotation_marks_that_are_never_closed(text, encoding):
    assert decode_text(text.encode(encoding)).text == text


def test_lines_of_two_encodings_in_one_file_are_each_read_in_theirs():
    mixed = f"{GERMAN}\n".encode() + "Größe und Höhe, schöne Mädchen.\n".encode("cp1252") + f"{GERMAN}\n".encode()
    decoded = decode_text(mixed)
    assert decoded.text == f"{GERMAN}\nGröße und Höhe, schöne Mädchen.\n{GERMAN}\n"
    assert decoded.notice == "1 of its lines are not UTF-8: read as CP1252"


def test_an_encoding_that_a_page_states_and_is_not_in_is_unlikely():
    data = RUSSIAN.encode("koi8-r")
    assert is_unlikely(data, "windows-1251")
    assert not is_unlikely(data, "koi8-r")
    assert not is_unlikely(GERMAN.encode("cp1252"), "iso-8859-15")
    assert not is_unlikely(b"plain", "cp1252")


@pytest.mark.parametrize(
    "text",
    [
        "12:00 pump alarm \x07 level 4\n",
        "\x02The pump runs until nine in the evening.\x03\n",
        "pump one\0pump two\0pump three\0",
        "The pump runs.\0",
        "pump\x1cvalve\x1ftank\n",
    ],
)
def test_a_short_text_with_few_control_characters_is_no_binary_data(text):
    decoded = decode_text(text.encode())
    assert (decoded.text, decoded.notice) == (text, "")


def test_the_mark_of_the_end_of_a_dos_file_and_what_fills_its_block_are_no_text():
    assert decode_text(b"The pump runs.\r\n\x1a\0\0\0\0").text == "The pump runs.\r\n"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("Die Mühle läuft — Jörg, ".encode() + b"caf\xe9", "Die Mühle läuft — Jörg, caf\ufffd"),
        ("Die Größe der Mühle beträgt ".encode() + b"\xff27 Meter.", "Die Größe der Mühle beträgt \ufffd27 Meter."),
        ("Ein Lüfter, Größ".encode()[:-1], "Ein Lüfter, Grö\ufffd"),
        (f"{GERMAN}\n{GERMAN}\nLüfter, ".encode() + "ö".encode()[:1], f"{GERMAN}\n{GERMAN}\nLüfter, \ufffd"),
        (RUSSIAN.encode() + b" \xe9t", f"{RUSSIAN} \ufffdt"),
        (b"line\n" + "Lüfter, Gerät ".encode() + b"\x81\nline\n", "line\nLüfter, Gerät \ufffd\nline\n"),
    ],
)
def test_a_damaged_or_cut_character_leaves_the_rest_of_a_short_text_in_utf8(data, text):
    decoded = decode_text(data)
    assert decoded.text == text
    assert decoded.notice == "1 of its characters are damaged: it is not UTF-8 throughout"


def test_a_last_letter_that_could_begin_a_character_of_utf8_is_no_cut_one():
    assert decode_text("The pump stands in the café".encode("cp1252")).text == "The pump stands in the café"


@pytest.mark.parametrize(
    "text",
    [
        "The gauge shows 21 °C ± 2 at the pump.",
        "Length 14.2 ± 0.3 µm, angle 35°, area 12 m².",
        "Toleranz: ±5 %",
        "Dose 40 µg ± 3 µg per day",
        "The tank holds 3½ gallons at £4.",
        "© 2004 Pump Authority",
        "ACME® pumps, 2×4 m",
        "Note¹ costs 7 ¢, see § 12",
        "The «heron» pump",
        "Den »gule« pumpe",
        "4¸, 5¸",
    ],
)
def test_signs_of_the_western_code_page_are_no_letters_of_another(text):
    decoded = decode_text(text.encode("cp1252"))
    assert (decoded.text, decoded.notice) == (text, "read as CP1252: it is not UTF-8")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Był kot.", "cp1250"),
        ("Są dwa koty.", "iso8859-2"),
        ("Řehoř Šťastný a žije", "iso8859-2"),
        ("Işık Şahin, Muğla", "cp1254"),
        ("Íþróttir á Alþingi, maðurinn býr þar", "cp1252"),
        ("Žena a muž", "iso8859-2"),
        ("Дом «Заря», 21 °C ± 2, § 4", "cp1251"),
        ("Le prix est de 5 €, l'été à Évry", "iso8859-15"),
    ],
)
def test_letters_that_are_signs_in_the_western_code_page_stay_letters(text, encoding):
    assert decode_text(text.encode(encoding)).text == text
