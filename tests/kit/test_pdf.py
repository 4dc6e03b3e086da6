"""Texts as PDFs: every object is where the table says, and the words are there."""

import re

from billfold.kit.pdf import text_pdf


def test_every_object_is_where_the_table_says():
    made = text_pdf("Title", ["word " * 400] * 6)
    assert made.startswith(b"%PDF-1.4\n")
    assert made.endswith(b"%%EOF\n")
    table = int(re.search(rb"startxref\n(\d+)\n", made)[1])
    assert made[table:].startswith(b"xref\n")
    places = [int(each) for each in re.findall(rb"(\d{10}) 00000 n", made)]
    for number, place in enumerate(places, start=1):
        assert made[place:].startswith(b"%d 0 obj\n" % number)
    pages = made.count(b"/Type /Page ")
    assert pages > 1
    assert f"/Count {pages} ".encode() in made
    assert made.count(b"word") == 2400


def test_streams_are_as_long_as_they_say():
    made = text_pdf("Title", ["One.", "Two."])
    for length, stream in re.findall(
        rb"/Length (\d+) >>\nstream\n(.*?)\nendstream", made, re.DOTALL
    ):
        assert len(stream) == int(length)


def test_signs_with_a_meaning_are_escaped_and_strange_ones_replaced():
    made = text_pdf("a(b)c\\d", ["é 漢"])
    assert rb"(a\(b\)c\\d) Tj" in made
    assert b"(\xe9 ?) Tj" in made


def test_the_same_text_is_the_same_file():
    assert text_pdf("a", ["b"]) == text_pdf("a", ["b"])
