"""The font of the pages, read as a browser would."""

import io

from fontTools.ttLib import TTFont

from billfold.pages.fonts import web_font


def test_the_font_of_the_pages_has_a_minus_as_wide_as_a_digit():
    for name in ("source-sans.woff", "source-sans-semibold.woff"):
        content = web_font(name)
        assert content is not None
        font = TTFont(io.BytesIO(content), checkChecksums=2)
        widths, glyphs = font["hmtx"], font.getBestCmap()
        assert font.flavor == "woff"
        assert len({widths[glyphs[ord(each)]][0] for each in "0123456789$\N{MINUS SIGN}"}) == 1
    assert web_font("other.woff") is None
