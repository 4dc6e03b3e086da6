"""Texts that come from outside, made harmless for the format they go into."""

import re
import unicodedata

from anyascii import anyascii

# What XML 1.0 does not allow, controls, and marks that turn the direction of the text after them.
_UNSAFE = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufeff\\ufffe\\uffff\\ud800-\\udfff]+"
)
_NOT_SWIFT = re.compile(r"[^A-Za-z0-9/\-:().,'+ ]")
_NOT_PRINTABLE = re.compile(r"[^ -~]+")
_BAI_DELIMITERS = str.maketrans({",": ";", "/": "-"})


def plain(text: str) -> str:
    """Return a text on one line, in any script, without controls."""
    return " ".join(_UNSAFE.sub(" ", text).split())


def cut(text: str, length: int) -> str:
    """Return the beginning of a text, on one line and without controls."""
    return plain(text)[:length].rstrip()


def ascii_text(text: str) -> str:
    """Return a text on one line in ASCII: other letters as they are written in Latin ones."""
    text = plain(text)
    if not text.isascii():
        text = plain(_NOT_PRINTABLE.sub(" ", anyascii(unicodedata.normalize("NFKC", text))))
    return text


def swift_text(text: str) -> str:
    """Return a text in the character set x of SWIFT, on one line; what that has no sign for is a full stop."""
    return _NOT_SWIFT.sub(".", ascii_text(text).replace("&", "+").replace("_", "-"))


def swift_reference(text: str, length: int) -> str:
    """Return a reference: no slash at either end, none beside another."""
    return re.sub("/{2,}", "/", swift_text(text)[:length]).strip("/ ")


def swift_lines(text: str, width: int, count: int) -> list[str]:
    """Return a text as lines; none begins like a field or like the end of the message."""
    lines: list[str] = []
    rest = swift_text(text)
    while rest and len(lines) < count:
        if rest[0] in ":-":
            rest = "." + rest
        lines.append(rest[:width].rstrip())
        rest = rest[width:].lstrip()
    return lines


def bai_text(text: str) -> str:
    """Return a text without the delimiters of BAI2."""
    return ascii_text(text).translate(_BAI_DELIMITERS)


def decimal(cents: int) -> str:
    """Return cents as dollars with two decimals and without a sign."""
    dollars, rest = divmod(abs(cents), 100)
    return f"{dollars}.{rest:02d}"
