"""Text as PDF, with and without the fonts of Asian scripts."""

from datetime import date

import pytest

from billfold.documents import pdf

TEMPLATE = b'#set document(title: "x")\n#set text(lang: "en")\n#json(bytes(sys.inputs.facts)).name'


def test_letters_of_asian_scripts_are_replaced_when_their_fonts_are_not_installed(monkeypatch):
    facts, day = {"name": "\u5317\u4eac Trading"}, date(2025, 6, 2)
    pdf._fonts.cache_clear()
    whole = pdf.typeset(TEMPLATE, facts, made_on=day)
    monkeypatch.setattr(pdf, "_FONT_PACKAGES", ("font_source_sans_pro", "no_such_package"))
    pdf._fonts.cache_clear()
    with pytest.raises(pdf.Unprintable):
        pdf.typeset(TEMPLATE, facts, made_on=day)
    replaced = pdf.typeset_all(TEMPLATE, facts, made_on=day)
    pdf._fonts.cache_clear()
    assert replaced.startswith(b"%PDF")
    assert replaced != whole
