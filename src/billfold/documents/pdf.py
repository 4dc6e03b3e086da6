"""Texts as PDFs: tagged, with language, title and fonts inside (PDF/UA-1, PDF/A-3a). Equal texts are equal files.

A template in Typst lays out facts that are given as data: nothing in them is read as markup or as a program.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import msgspec
import typst

from billfold.platform.dates import et_instant

REPLACEMENT: Final = "\ufffd"
"""What stands in a document for a letter that no font has."""
_FONT_PACKAGES: Final = (
    "font_source_sans_pro",
    "justmytype_intl_cjk",
    "justmytype_intl_sea",
    "justmytype_intl_south_asia",
)
_UNKNOWN_TEXT = re.compile(r'the text `"(.*)"` could not be displayed', re.DOTALL)
_ESCAPE = re.compile(r"\\u\{([0-9a-f]+)\}|\\(.)")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "0": "\0"}


class Unprintable(ValueError):
    """A text has letters that no font has, which `letters` are; the message says it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        found = _UNKNOWN_TEXT.search(message)
        self.letters = frozenset(_ESCAPE.sub(_unescape, found[1])) if found else frozenset()


def typeset(template: bytes, facts: Mapping[str, object], *, made_on: date, fonts: Sequence[Path] = ()) -> bytes:
    """Return the file that a template makes of facts, which it reads as `json(bytes(sys.inputs.facts))`.

    Its letters are those of Source Sans, of Noto Sans for Asia, of the fonts that Typst brings (Arabic, Hebrew and
    others), and of the fonts in these folders. Several threads may typeset at once. Raises Unprintable.
    """
    return _compile(template, msgspec.json.encode(facts).decode(), made_on, fonts=tuple(fonts))


def typeset_all(template: bytes, facts: Mapping[str, object], *, made_on: date) -> bytes:
    """The same for facts that nobody has proofread: a letter that no font has becomes U+FFFD."""
    text = msgspec.json.encode(facts).decode()
    while True:
        try:
            return _compile(template, text, made_on)
        except Unprintable as error:
            if error.letters.isdisjoint(text):
                raise
            text = text.translate({ord(each): REPLACEMENT for each in error.letters})


def _compile(template: bytes, facts: str, made_on: date, *, fonts: tuple[Path, ...] = ()) -> bytes:
    try:
        return typst.compile(
            template,
            sys_inputs={"facts": facts},
            font_paths=_fonts(fonts),
            pdf_standards=["a-3a", "ua-1"],
            timestamp=int(et_instant(made_on, 0).timestamp()),
        )
    except typst.TypstError as error:
        raise Unprintable(re.sub("^PDF/.* error: ", "", error.message)) from None


@cache
def _fonts(more: tuple[Path, ...]) -> typst.Fonts:
    folders = [folder for name in _FONT_PACKAGES for folder in _folders_of(name)]
    return typst.Fonts(include_system_fonts=False, font_paths=[*folders, *map(str, more)])


def _folders_of(package: str) -> Sequence[str]:
    """Return where a package lies, without importing it."""
    spec = find_spec(package)
    assert spec is not None
    return spec.submodule_search_locations or ()


def _unescape(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else _ESCAPED.get(found[2], found[2])
