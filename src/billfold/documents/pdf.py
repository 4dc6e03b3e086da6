"""Texts as PDFs: tagged, with their language, title and fonts inside (PDF/UA-1). The same text is the same file.

A template in Typst lays out facts that are given as data: nothing in them is read as markup or as a program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

import msgspec
import typst

from billfold.platform.dates import et_instant


class Unprintable(ValueError):
    """A text has letters that no font has; the message says which."""


def typeset(template: bytes, facts: Mapping[str, object], *, made_on: date, fonts: Sequence[Path] = ()) -> bytes:
    """Return the file that a template makes of facts, which it reads as `json(bytes(sys.inputs.facts))`.

    Its letters are those of the fonts that Typst brings (Latin, Greek, Cyrillic, Arabic and others), and of the fonts
    in these folders. Raises Unprintable.
    """
    try:
        return typst.compile(
            template,
            sys_inputs={"facts": msgspec.json.encode(facts).decode()},
            font_paths=typst.Fonts(include_system_fonts=False, font_paths=[str(each) for each in fonts]),
            pdf_standards="ua-1",
            timestamp=int(et_instant(made_on, 0).timestamp()),
        )
    except typst.TypstError as error:
        raise Unprintable(error.message.removeprefix("PDF/UA-1 error: ")) from None
