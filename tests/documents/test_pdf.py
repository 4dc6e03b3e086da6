"""Documents a reader of PDF can read."""

from io import BytesIO

from pypdf import PdfReader

from billfold.documents.pdf import text_pdf


def read(made: bytes) -> PdfReader:
    return PdfReader(BytesIO(made), strict=True)


def test_a_reader_finds_every_word_when_the_text_takes_several_pages():
    found = read(text_pdf("Title", ["word " * 400] * 6))
    text = " ".join(page.extract_text() for page in found.pages)
    assert len(found.pages) > 1
    assert text.count("word") == 2400
    assert found.metadata is not None
    assert found.metadata.title == "Title"


def test_signs_of_markup_are_only_signs():
    text = read(text_pdf("a(b)c", ["1 < 2 & <b>3</b>"])).pages[0].extract_text()
    assert "a(b)c" in text
    assert "1 < 2 & <b>3</b>" in text


def test_the_same_text_is_the_same_file():
    assert text_pdf("a", ["b"]) == text_pdf("a", ["b"])
