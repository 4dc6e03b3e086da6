"""Text as PDF: tagged, with language, title and embedded fonts (PDF/UA-1, PDF/A-3a). Equal texts give equal files.

A Typst template lays out facts that are passed as data: nothing in them is interpreted as markup or code.
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
"""Replacement in a document for a character that no font has."""
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
    """A text has characters that no font has: `letters`, which the message names."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        found = _UNKNOWN_TEXT.search(message)
        self.letters = frozenset(_ESCAPE.sub(_unescape, found[1])) if found else frozenset()


def typeset(template: bytes, facts: Mapping[str, object], *, made_on: date, fonts: Sequence[Path] = ()) -> bytes:
    """Return the file that a template makes of facts, which it reads as `json(bytes(sys.inputs.facts))`.

    The fonts are Source Sans, with the extra `fonts` Noto Sans for Asian scripts, those built into Typst (Arabic,
    Hebrew and others), and those in these folders. Thread-safe. Raises Unprintable.
    """
    return _compile(template, msgspec.json.encode(facts).decode(), made_on, fonts=tuple(fonts))


def typeset_all(template: bytes, facts: Mapping[str, object], *, made_on: date) -> bytes:
    """Do the same for facts that nobody has proofread: a character that no font has becomes U+FFFD."""
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
    """Return the folder of a package, without importing it; none if the extra `fonts` is not installed."""
    spec = find_spec(package)
    return () if spec is None else spec.submodule_search_locations or ()


def _unescape(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else _ESCAPED.get(found[2], found[2])
